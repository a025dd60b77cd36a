"""Amaranth's simulator at first, then compiled code that was made meanwhile."""
