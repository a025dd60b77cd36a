"""Finds the rows of a database that are nearest to queries. Knows streams; nothing of an engine."""
