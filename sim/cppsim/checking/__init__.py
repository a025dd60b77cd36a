"""Compiled code and Amaranth's simulator side by side."""
