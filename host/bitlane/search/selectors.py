"""Selections of an index's rows by their ids, with FAISS's names: to search some, or remove them.

A selection only computes truth values of ids; it knows neither rows nor where they are stored.
"""

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments.operands import as_array, shown
from ..errors import DataTypeError, SearchError, ShapeError
from .ids import Ids, RowIds, as_ids

Selected = NDArray[np.bool_]


class IDSelector(ABC):
    """The rows of an index that a search looks at, or that `BinaryIndex.remove_ids` removes.

    ``~``, ``&``, ``|`` and ``^`` combine selectors, arrays of truth values and of ids. A subclass
    with a method `members` of its own is a selector, too.
    """

    @abstractmethod
    def members(self, ids: Ids) -> Selected:
        """Return whether each of ``ids`` (n,), those of all rows in order, is selected: (n,)."""

    def __invert__(self) -> "IDSelectorNot":
        return IDSelectorNot(self)

    def __and__(self, other: "Selection") -> "IDSelectorAnd":
        return IDSelectorAnd(self, other)

    def __or__(self, other: "Selection") -> "IDSelectorOr":
        return IDSelectorOr(self, other)

    def __xor__(self, other: "Selection") -> "IDSelectorXOr":
        return IDSelectorXOr(self, other)

    __array_ufunc__ = None
    """NumPy leaves ``array & selector`` to the selector."""

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


Selection: TypeAlias = IDSelector | ArrayLike
"""A selector; an array of truth values, one for each row in order; or an array of ids."""


class IDSelectorAll(IDSelector):
    """All rows."""

    def members(self, ids: Ids) -> Selected:
        return np.ones(len(ids), bool)


class IDSelectorRange(IDSelector):
    """The rows with ids from ``imin`` to ``imax`` - 1. Raises ``DataTypeError``."""

    def __init__(self, imin: int, imax: int) -> None:
        self.imin, self.imax = as_ids("imin, imax", [imin, imax]).tolist()

    def members(self, ids: Ids) -> Selected:
        return np.asarray((self.imin <= ids) & (ids < self.imax))


class IDSelectorBatch(IDSelector):
    """The rows with these ``ids``, integers (n,); ids that no row has count for nothing.

    Raises ``DataTypeError``, ``ShapeError`` or ``SearchError``.
    """

    def __init__(self, ids: ArrayLike) -> None:
        self.ids = as_ids("ids", ids)

    def members(self, ids: Ids) -> Selected:
        return np.isin(ids, self.ids)


class IDSelectorArray(IDSelectorBatch):
    """The same as `IDSelectorBatch`: FAISS has two, of which one is slow."""


class IDSelectorBitmap(IDSelector):
    """The rows whose id is the number of a bit that is 1, in ``bitmap``, uint8 (n,).

    Bit ``i % 8`` of byte ``i // 8`` stands for id ``i``, as in ``np.packbits(...,
    bitorder="little")``; ids beyond are not selected. Raises ``DataTypeError`` or ``ShapeError``.
    """

    def __init__(self, bitmap: ArrayLike) -> None:
        array = as_array("bitmap", bitmap)
        if array.dtype != np.uint8:
            raise DataTypeError(f"bitmap: data type {array.dtype}; expected uint8, 8 bits a byte")
        if array.ndim != 1:
            raise ShapeError(f"bitmap: shape {array.shape}; expected (n,)")
        self.bitmap = array.copy()

    def members(self, ids: Ids) -> Selected:
        inside = (ids >= 0) & (ids < 8 * len(self.bitmap))
        result = np.zeros(len(ids), bool)
        known = ids[inside]
        result[inside] = self.bitmap[known >> 3] >> (known & 7).astype(np.uint8) & 1
        return result


class IDSelectorNot(IDSelector):
    """The rows that ``sel`` leaves out. Raises as `BinaryIndex.search` does."""

    def __init__(self, sel: Selection) -> None:
        self.sel = as_selector("sel", sel)

    def members(self, ids: Ids) -> Selected:
        return ~_members(self.sel, ids)


class _Pair(IDSelector):
    def __init__(self, lhs: Selection, rhs: Selection) -> None:
        self.lhs = as_selector("lhs", lhs)
        self.rhs = as_selector("rhs", rhs)


class IDSelectorAnd(_Pair):
    """The rows that both ``lhs`` and ``rhs`` select. Raises as `BinaryIndex.search` does."""

    def members(self, ids: Ids) -> Selected:
        return _members(self.lhs, ids) & _members(self.rhs, ids)


class IDSelectorOr(_Pair):
    """The rows that ``lhs``, ``rhs`` or both select. Raises as `BinaryIndex.search` does."""

    def members(self, ids: Ids) -> Selected:
        return _members(self.lhs, ids) | _members(self.rhs, ids)


class IDSelectorXOr(_Pair):
    """The rows that one of ``lhs`` and ``rhs`` selects. Raises as `BinaryIndex.search` does."""

    def members(self, ids: Ids) -> Selected:
        return _members(self.lhs, ids) ^ _members(self.rhs, ids)


class _Mask(IDSelector):
    """A truth value for each row, whatever its id."""

    def __init__(self, name: str, values: Selected) -> None:
        self._name = name
        self._values = values

    def members(self, ids: Ids) -> Selected:
        if len(self._values) != len(ids):
            raise ShapeError(
                f"{self._name}: {len(self._values)} truth values; expected {len(ids)}, one for each"
                " row"
            )
        return self._values


def as_selector(name: str, given: Selection) -> IDSelector:
    """Return ``given`` as a selector. Raises ``DataTypeError``, ``ShapeError`` or `SearchError`."""
    if isinstance(given, IDSelector):
        return given
    array = as_array(name, given)
    if array.dtype != bool:
        return IDSelectorBatch(as_ids(name, array))
    if array.ndim != 1:
        raise ShapeError(f"{name}: shape {array.shape}; expected (n,), a truth value for each row")
    return _Mask(name, _normalized(array))


def selected_rows(name: str, given: Selection, ids: RowIds) -> Ids:
    """Return the numbers of the rows that ``given`` selects. Raises as `as_selector` does."""
    return np.flatnonzero(_members(as_selector(name, given), ids.of_all())).astype(np.int64)


def _members(selector: IDSelector, ids: Ids) -> Selected:
    """Return what ``selector`` computes. Raises ``SearchError`` unless it is one for each id."""
    result = selector.members(ids)
    if isinstance(result, np.ndarray) and result.dtype == bool and result.shape == ids.shape:
        return _normalized(result)
    raise SearchError(
        f"{type(selector).__name__}.members: {shown(result)}; expected {len(ids)} truth values, as"
        " an array"
    )


def _normalized(values: Selected) -> Selected:
    """Return a copy of ``values`` whose bytes are 0 and 1, which NumPy relies on."""
    return np.asarray(values.view(np.uint8) != 0)
