"""NumPy's functions that find, take or replace the elements for which a condition is true.

The host needs to know which ones: a byte for each element of the condition comes there.
"""

from math import prod
from typing import Any

import numpy as np

from .._typing import AnyArray
from ..arguments.operands import as_array
from ..errors import DataTypeError, ShapeError
from .array import Array
from .elementwise import as_value, cast_on_host, to_device
from .masks import choose
from .numpy_protocols import implements
from .operands import as_operand, as_source, device_of, store_result
from .shapes import along
from .transfers import download, upload
from .truth import is_true
from .value import Value, overwrite


def _truth_on_host(condition: Any) -> AnyArray:
    """Return whether each element of ``condition`` is not 0, as an array of the host."""
    if isinstance(condition, Array):
        return download(is_true(condition._value))
    return as_array("condition", condition).astype(bool)


@implements(np.nonzero)
def nonzero(a: Array) -> tuple[Array, ...]:
    """Return the indices of the elements that are not 0, an int64 array on the device an axis.

    Raises ``ShapeError`` for an array without axes.
    """
    if not a.ndim:
        raise ShapeError("np.nonzero: an array without axes; expected one axis or more")
    found = np.nonzero(_truth_on_host(a))
    return tuple([Array(upload(a.device, each.astype(np.int64))) for each in found])


@implements(np.flatnonzero)
def flatnonzero(a: Array) -> Array:
    """Return the numbers, in C's order, of the elements that are not 0, as int64."""
    found = np.flatnonzero(_truth_on_host(a))
    return Array(upload(a.device, found.astype(np.int64)))


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Copy the slices along ``axis`` for which ``condition``, of one axis, is true.

    ``a`` as one row for None. Raises ``ArrayIndexError``, ``AxisError`` or ``ShapeError``.
    """
    truth = _truth_on_host(condition)
    if truth.ndim != 1:
        raise ShapeError(f"condition: shape {truth.shape}; expected one axis")
    x, at = along(_on_device(a, condition, out), axis)
    result = x[(*(slice(None),) * at, np.flatnonzero(truth))]
    return result if out is None else store_result(out, result._value)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Array:
    """Copy the elements for which ``condition``, in C's order, is true.

    Raises ``ArrayIndexError`` if the last true element has no element of ``arr``.
    """
    truth = _truth_on_host(condition).reshape(-1)
    return _on_device(arr, condition).reshape(-1)[np.flatnonzero(truth)]


def _on_device(a: Any, *others: Any) -> Array:
    """Return ``a`` on its device, or on that of the first array among ``others``."""
    if isinstance(a, Array):
        return a
    return Array(upload(device_of(*others), as_array("a", a)))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write ``vals``, repeated as often as needed, over the elements where ``mask`` is true.

    Raises ``DataTypeError`` for an array on the host, and for values that might not fit, and
    ``ShapeError`` unless ``mask`` has as many elements as ``arr``, and if ``vals`` has none.
    """
    target = _target("arr", arr)
    truth = _truth_on_host(mask)
    values = _check(truth.size, vals, target)
    count = int(np.count_nonzero(truth))
    if count:
        target[truth.reshape(target.shape)] = _repeat(values, count)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the element of ``values`` with the same number in C's order where ``mask`` is true.

    ``values`` is repeated if it has another size. All of it is done on the device. Raises as
    `place` does.
    """
    target = _target("a", a)
    wanted = as_operand("mask", mask)
    given = _check(prod(getattr(wanted, "shape", ())), values, target)
    chosen = Array(is_true(as_value(target.device, "mask", wanted)))
    if not target.size:
        return
    one = given.size == 1
    values = as_operand("values", given if one else _repeat(given, target.size))
    source = Array(to_device(target.device, "values", values, target.dtype))
    shape = () if one else target.shape
    choice = choose(
        chosen.reshape(target.shape)._value, source.reshape(shape)._value, target._value
    )
    overwrite(target._value, choice, fresh=True)


def _target(name: str, x: Any) -> Array:
    if isinstance(x, Array):
        return x
    raise DataTypeError(
        f"{name}: of type {type(x).__name__}; expected a bitlane.Array, as another argument is one"
        " (get() brings that to the host)"
    )


def _check(size: int, values: Any, target: Array) -> Any:
    """Return ``values`` as an array, which the elements of ``target`` can hold.

    Raises ``ShapeError`` for the size of a mask, and ``DataTypeError`` or ``OutOfRangeError``.
    """
    if size != target.size:
        raise ShapeError(f"mask: {size} elements; expected {target.size}, as the array has")
    if isinstance(values, Array | np.ndarray) and not np.can_cast(values.dtype, target.dtype):
        raise DataTypeError(
            f"values: data type {values.dtype}; expected one that {target.dtype} holds (astype)"
        )
    given = as_source("values", values, target.dtype)
    return values if isinstance(given, Value) else cast_on_host("values", given, target.dtype)


def _repeat(values: Any, count: int) -> Any:
    """Return ``count`` elements of ``values`` in one row, repeated as often as needed."""
    if not values.size:
        raise ShapeError("values: no elements; expected one or more")
    if not isinstance(values, Array):
        return np.resize(values, count)
    row = values.reshape(-1)
    return row if row.size == count else row[np.arange(count) % row.size]
