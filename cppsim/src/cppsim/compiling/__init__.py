"""Compile C++ into libraries in memory, and cache the libraries."""
