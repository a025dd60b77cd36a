"""Elements of an array by their numbers in C's order: ``x.flat``, and writing at numbers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import AnyArray
from ..arguments.operands import allocating
from ..errors import ArrayIndexError, ShapeError
from .base import ArrayBase
from .elementwise import cast_on_host
from .indexing import select
from .operands import as_source
from .selections import assign, gather
from .value import Value

Numbers = NDArray[np.int64]


class Flat:
    """The elements of an array in C's order, as a row that copies them and writes to them."""

    __slots__ = ("_array",)

    def __init__(self, array: ArrayBase) -> None:
        self._array = array

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[ArrayBase]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """Return a copy of the elements at an integer, a slice or an array of either kind.

        Raises ``ArrayIndexError``.
        """
        numbers = self._numbers(key)
        row = _with_axes(self._array)
        index = np.unravel_index(np.atleast_1d(numbers), row.shape)
        found = row._of(gather(row._value, select(row._value.strided, index)))
        return found if numbers.ndim else found.reshape(())

    def __setitem__(self, key: Any, values: Any) -> None:
        """Write ``values``, repeated as often as needed, over the elements at ``key``.

        They are read first, also where they are elements of the array, which NumPy's row is not.
        Raises ``ArrayIndexError``, ``ShapeError`` for several values at an integer, and as
        assignments do.
        """
        numbers = self._numbers(key)
        if not numbers.ndim and np.ndim(values):
            raise ShapeError(f"value: shape {np.shape(values)}; expected no axes for one element")
        write_at(self._array, numbers.reshape(-1), values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.asarray(self._array.reshape(-1), dtype, copy=copy)

    def __eq__(self, other: object) -> Any:
        return self.copy() == other

    def __ne__(self, other: object) -> Any:
        return self.copy() != other

    def copy(self) -> ArrayBase:
        """Return a copy of all elements as one row."""
        return self._array.flatten()

    def _numbers(self, key: Any) -> Numbers:
        parts = key if isinstance(key, tuple) else (key,)
        part: Any = parts[0] if len(parts) == 1 else None
        part = np.asarray(part) if isinstance(part, ArrayBase) else part
        # An array of the host would take a truth value without axes as all elements.
        truth = getattr(part, "dtype", None) == np.bool_ and not part.ndim
        if part is None or isinstance(part, bool | tuple) or truth:
            raise ArrayIndexError("flat: expected an integer, a slice, or one array of indices")
        with allocating("flat", len(self) * np.dtype(np.int64).itemsize):
            try:
                return np.asarray(np.arange(len(self), dtype=np.int64)[part])
            except (IndexError, ValueError, TypeError) as error:
                raise ArrayIndexError(f"flat: {error}; expected indices from 0 on") from None


def write_at(array: ArrayBase, numbers: Numbers, values: Any) -> None:
    """Write ``values``, repeated as often as needed, over the elements with ``numbers``.

    ``numbers`` has one axis. Of several values for one element, the last one stays. Without
    values nothing is written. Raises the errors of `as_source` and of assignments.
    """
    given = as_source("values", values, array.dtype)
    row = _with_axes(array)
    row._value.expect_writable()
    if isinstance(given, Value):
        source = values
    else:
        source = cast_on_host("values", given, array.dtype)
    if not numbers.size or not source.size:
        return
    count = 1 if source.size == 1 else numbers.size
    assign(row._value, np.unravel_index(numbers, row.shape), repeat_to(source, count))


def repeat_to(values: ArrayBase | AnyArray, count: int) -> Value | AnyArray:
    """Return ``count`` of one or more elements in one row, repeated as often as needed."""
    if isinstance(values, np.ndarray):
        return np.resize(values, count)
    value = values.reshape(-1)._value
    size = value.strided.size
    if size == count:
        return value
    return gather(value, select(value.strided, np.arange(count) % size))


def _with_axes(array: ArrayBase) -> ArrayBase:
    """Return ``array``, or a view of one axis if it has none."""
    return array if array.ndim else array.reshape(1)
