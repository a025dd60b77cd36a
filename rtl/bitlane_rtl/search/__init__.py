"""Finds the rows of a database that are nearest to queries. It does not depend on the engine."""

from .layouts import Beat, Sizes
from .lists import Lists
from .search_array import SearchArray
from .tree import CountTree
from .unit import Unit

__all__ = [
    "Beat",
    "CountTree",
    "Lists",
    "SearchArray",
    "Sizes",
    "Unit",
]
