"""NumPy's functions that find, take or replace elements by a condition or by their numbers.

The host needs to know which ones: a byte for each element of a condition comes there.
"""

from math import prod
from typing import Any

import numpy as np

from .._typing import AnyArray
from ..arguments.axes import Axes, normalize_axes
from ..arguments.operands import as_array, as_truth
from ..errors import ArrayIndexError, DataTypeError, ShapeError
from ..lowering import packed_strides
from .array import Array
from .elementwise import as_value, cast_on_host, to_device
from .flat import repeat_to, write_at
from .functions import as_integers
from .masks import choose
from .numpy_protocols import implements
from .operands import as_operand, as_source, device_of, store_result
from .selections import assign
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
    if not count:
        return
    if not values.size:
        raise ShapeError("vals: no elements; expected one or more")
    assign(target._value, truth.reshape(target.shape), repeat_to(values, count))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the element of ``values`` with the same number in C's order where ``mask`` is true.

    ``values`` is repeated if it has another size, and nothing is written if it has no elements. All
    of it is done on the device. Raises as `place` does.
    """
    target = _target("a", a)
    wanted = as_operand("mask", mask)
    given = _check(prod(getattr(wanted, "shape", ())), values, target)
    if not target.size or not given.size:
        return
    chosen = Array(is_true(as_value(target.device, "mask", wanted)))
    one = given.size == 1
    values = as_operand("values", given) if one else repeat_to(given, target.size)
    source = Array(to_device(target.device, "values", values, target.dtype))
    shape = () if one else target.shape
    choice = choose(
        chosen.reshape(target.shape)._value, source.reshape(shape)._value, target._value
    )
    overwrite(target._value, choice, fresh=True)


def _target(name: str, x: Any) -> Array:
    """Return ``x``, an array that can be written."""
    if isinstance(x, Array):
        x._value.expect_writable()
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


# --- elements with numbers ------------------------------------------------------------------------


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write ``v``, repeated as often as needed, over the elements with the numbers ``ind``.

    ``mode``: "wrap" and "clip" bring numbers outside into the array. Raises ``ArrayIndexError``,
    ``DataTypeError``, ``OutOfRangeError`` or ``ShapeError``.
    """
    target = _target("a", a)
    given = as_integers("ind", ind).reshape(-1)
    numbers = given.astype(np.int64)
    if mode not in ("raise", "wrap", "clip"):
        raise ShapeError(f"mode: {mode!r}; expected 'raise', 'wrap' or 'clip'")
    wrapped = given[(given > 0) & (numbers < 0)]
    if wrapped.size:
        raise ArrayIndexError(f"ind: {wrapped[0]}; expected numbers below 2**63")
    if numbers.size and not target.size:
        raise ArrayIndexError(f"ind: {numbers[0]}; the array has no elements")
    if mode == "clip":
        numbers = numbers.clip(0, target.size - 1)
    elif mode == "wrap" and numbers.size:
        numbers = numbers % target.size
    elif np.size(v):
        outside = numbers[(numbers < -target.size) | (numbers >= target.size)]
        if outside.size:
            raise ArrayIndexError(f"ind: {outside[0]}; the array has {target.size} elements")
        numbers = np.where(numbers < 0, numbers + target.size, numbers)
    write_at(target, numbers, v)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write ``val``, repeated as often as needed, over the elements with equal indices.

    ``wrap``: the diagonal of a matrix goes on below it after a row that is left out. Raises
    ``ShapeError`` for fewer than two axes, or more of different lengths, and as `put` does.
    """
    target = _target("a", a)
    shape = target.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ShapeError(f"a: shape {shape}; expected two axes, or more of one length")
    whole = as_truth("wrap", wrap) or len(shape) > 2
    end = target.size if whole else min(target.size, shape[1] ** 2)
    write_at(target, np.arange(0, end, sum(packed_strides(shape)), dtype=np.int64), val)


@implements(np.trim_zeros)
def trim_zeros(filt: Array, trim: str = "fb", axis: Axes | None = None) -> Array:
    """Return a view without the elements before the first one along each axis that is not 0.

    And without those behind the last one; ``trim``: "f" for the first, "b" for the second, "fb" for
    both. ``axis``: an axis, or several. Raises ``AxisError`` or ``ShapeError``.
    """
    sides = trim.lower() if isinstance(trim, str) else ""
    if sides not in ("f", "b", "fb", "bf"):
        raise ShapeError(f"trim: {trim!r}; expected 'f', 'b' or 'fb'")
    axes = range(filt.ndim) if axis is None else normalize_axes(axis, filt.ndim)
    if not axes:
        return filt
    key = [slice(None)] * filt.ndim
    found = np.nonzero(_truth_on_host(filt))
    for at in axes:
        if not found[at].size:
            key[at] = slice(0)
            continue
        first, last = int(found[at].min()), int(found[at].max())
        key[at] = slice(first if "f" in sides else None, last + 1 if "b" in sides else None)
    return filt[tuple(key)]
