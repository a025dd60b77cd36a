"""Nearest-neighbour search in rows of bits: `BinaryIndex`.

The device compares; the host sorts the near rows. Shapes and order are those of FAISS.
"""

from .index import BinaryIndex, search_once
from .request import SearchRequest, as_rows

__all__ = ["BinaryIndex", "SearchRequest", "as_rows", "search_once"]
