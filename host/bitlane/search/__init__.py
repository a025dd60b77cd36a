"""Nearest-neighbour search in rows of bits: `BinaryIndex`.

The device compares; the host sorts the near rows. Shapes and order are those of FAISS.
"""

from .index import BinaryIndex, SearchRequest, as_rows, search_once

__all__ = ["BinaryIndex", "SearchRequest", "as_rows", "search_once"]
