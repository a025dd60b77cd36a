"""The version of bitlane, and nothing else: the build reads this file without importing it."""

__version__ = "0.2.0"
