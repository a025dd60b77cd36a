"""Finds the rows of a database that are nearest to queries. It uses streams, and no engine."""
