"""The version of cppsim, and nothing else: the build reads this file without importing it."""

__version__ = "0.1.0"
