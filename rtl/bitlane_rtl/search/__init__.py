"""Finds the rows of a database that are nearest to queries. It does not depend on the engine."""
