"""Nearest-neighbour search in rows of bits: `BinaryIndex`.

The device compares; the host sorts the near rows. Shapes and order are those of FAISS.
"""

from .index import BinaryIndex, search_once
from .request import SearchRequest, as_rows
from .selectors import (
    IDSelector,
    IDSelectorAll,
    IDSelectorAnd,
    IDSelectorArray,
    IDSelectorBatch,
    IDSelectorBitmap,
    IDSelectorNot,
    IDSelectorOr,
    IDSelectorRange,
    IDSelectorXOr,
    Selection,
)

__all__ = [
    "BinaryIndex",
    "IDSelector",
    "IDSelectorAll",
    "IDSelectorAnd",
    "IDSelectorArray",
    "IDSelectorBatch",
    "IDSelectorBitmap",
    "IDSelectorNot",
    "IDSelectorOr",
    "IDSelectorRange",
    "IDSelectorXOr",
    "SearchRequest",
    "Selection",
    "as_rows",
    "search_once",
]
