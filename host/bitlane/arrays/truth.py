"""Truth values of elements: comparisons, logic, ``any`` and ``all``, as expressions.

The circuit tests whether the logic of two elements has a bit that is 1, and adds up such elements.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np

from bitlane_rtl.abi import Mode, Op

from .._typing import AnyArray
from ..arguments.axes import Axes, reduced_axes
from ..arguments.operands import little_endian
from ..arguments.promotion import promoted_type, type_or_int
from ..compiler import Constant, Expression, apply, broadcast, truth_of
from ..driver import Geometry
from ..errors import DataTypeError, OutOfRangeError
from . import floats
from .elementwise import (
    BOOL,
    TRUE,
    Operand,
    add_axes,
    as_value,
    cast,
    elementwise,
    expect_shapes,
    reduce_axes,
    to_device,
)
from .sums import sum_elements, sum_rows, without_repeats
from .transfers import download
from .value import DeviceLike, Value

Compared: TypeAlias = "Operand | float"
"""A float of Python's takes the type of the array beside it, as an integer of Python's does."""

_EXACT: Final = 1 << 53
"""No integer is rounded to a float64 below this but the integer of the same value."""


# --- one operand ---------------------------------------------------------------------------------


def is_true(value: Value, *, negate: bool = False) -> Value:
    """Return whether each element is not 0, or with ``negate`` whether it is 0."""
    if not negate:
        return cast(value, BOOL)
    if value.dtype.kind == "b":
        return value.derived(apply(Op.XOR, value.node, TRUE))
    return value.derived(truth_of(floats.magnitude(value.node, value.dtype), negate=True), BOOL)


def is_negative(value: Value) -> Value:
    """Return whether the sign of each element is set, as it is of -0.0."""
    if value.dtype.kind not in "fi":
        return same_truth(value, False)
    sign = (1 << (8 * value.dtype.itemsize - 1)).to_bytes(value.dtype.itemsize, "little")
    return value.derived(truth_of(apply(Op.AND, value.node, Constant(sign))), BOOL)


def _of_floats(
    decide: Callable[[Expression, np.dtype[Any]], Expression], others: bool
) -> Callable[[Value], Value]:
    """Return the function that decides floats by ``decide``; all others are ``others``."""

    def apply_to(value: Value) -> Value:
        if value.dtype.kind != "f":
            return same_truth(value, others)
        return value.derived(decide(value.node, value.dtype), BOOL)

    return apply_to


def same_truth(value: Value, truth: bool) -> Value:
    """Return ``truth`` for each element of ``value``."""
    one = broadcast(Constant(bytes([truth])), value.shape)
    return value.derived(apply(Op.COPY, one), BOOL)


# --- two operands --------------------------------------------------------------------------------


def compare(device: DeviceLike, a: Compared, b: Compared, *, negate: bool = False) -> Value:
    """Return whether the elements of ``a`` and ``b`` are equal, or with ``negate`` differ.

    Integers of two types are compared in the type in which they meet; floats of one type as IEEE
    754 says, zeros being equal and NaNs not. A number is equal to the elements of its value. Raises
    ``DataTypeError``, also for integers beside floats, ``OutOfRangeError`` or ``ShapeError``.
    """
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Value) and _is_number(y):
            return _compare_number(as_value(device, "x", x), y, negate=negate)
    x, y = (_both if _are_floats(a, b) else _meet)(device, a, b)
    return Value(device, BOOL, equal_typed(x.dtype, x.node, y.node, negate=negate), (x, y))


def equal_typed(
    dtype: np.dtype[Any], a: Expression, b: Expression, *, negate: bool = False
) -> Expression:
    """Return whether elements of ``dtype`` are equal, or with ``negate`` differ."""
    if dtype.kind == "f":
        return floats.is_equal(a, b, dtype, negate=negate)
    return truth_of(apply(Op.XOR, a, b), negate=not negate)


def _is_number(x: Compared) -> bool:
    return isinstance(x, int | float) or (isinstance(x, np.ndarray) and not x.ndim)


def _are_floats(a: Compared, b: Compared) -> bool:
    """Return whether the operands are arrays of one float type."""
    types = {little_endian(x.dtype) for x in (a, b) if not isinstance(x, int | float)}
    return len(types) == 1 and types.pop().kind == "f"


def _both(device: DeviceLike, a: Compared, b: Compared) -> tuple[Value, Value]:
    """Return two operands on ``device``, in their own types."""
    x, y = (np.asarray(each) if isinstance(each, float) else each for each in (a, b))
    expect_shapes(x, y)
    return as_value(device, "a", x), as_value(device, "b", y)


def _meet(device: DeviceLike, a: Compared, b: Compared) -> tuple[Value, Value]:
    """Return two operands on ``device`` in the integer type in which they meet, or truth values."""
    dtype = promoted_type(Op.XOR, type_or_int(a), type_or_int(b), encoding=False)
    x, y = (np.asarray(each) if isinstance(each, float) else each for each in (a, b))
    expect_shapes(x, y)
    return to_device(device, "a", x, dtype), to_device(device, "b", y, dtype)


def _compare_number(x: Value, number: Any, *, negate: bool) -> Value:
    """Return whether elements equal a number: one of Python's, or an array without axes."""
    one = _fit_float(number, x.dtype) if x.dtype.kind == "f" else _fit_integer(number, x.dtype)
    if one is None:
        return same_truth(x, negate)
    if x.dtype.kind == "f" and not one:
        return is_true(x, negate=not negate)
    content = one.astype(one.dtype.newbyteorder("<")).tobytes()
    return x.derived(truth_of(apply(Op.XOR, x.node, Constant(content)), negate=not negate), BOOL)


def _fit_integer(number: Any, dtype: np.dtype[Any]) -> AnyArray | None:
    """Return ``number`` as ``dtype``, integers or truth values; None if it has another value.

    Raises ``DataTypeError`` where NumPy would round the elements to compare them.
    """
    value = number if isinstance(number, int | float) else number.item()
    if isinstance(value, float):
        if not isfinite(value) or value != int(value):
            return None
        if dtype.itemsize == 8 and abs(value) >= _EXACT and _is_near(value, dtype):
            raise DataTypeError(
                f"b: {value} beside {dtype}, which NumPy rounds to compare them; expected an"
                " integer"
            )
        value = int(value)
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.array(value, dtype) if least <= value <= most else None


def _is_near(value: float, dtype: np.dtype[Any]) -> bool:
    """Return whether an integer of ``dtype`` becomes ``value`` if it is rounded to a float64."""
    return float(np.iinfo(dtype).min) <= value <= float(np.iinfo(dtype).max)


def _fit_float(number: Any, dtype: np.dtype[Any]) -> AnyArray | None:
    """Return ``number`` as the float ``dtype``; None if no element equals it.

    A number of Python's is rounded, one of NumPy's is not. Raises ``OutOfRangeError``.
    """
    weak = isinstance(number, int | float)
    try:
        with np.errstate(all="ignore"):
            exact = np.asarray(number, np.float64 if weak else None)
            one = exact.astype(dtype)
            rounded = not weak and one != exact
    except OverflowError as error:
        raise OutOfRangeError(f"b: {error}; expected a number that float64 holds") from None
    return None if rounded or np.isnan(one) else one


def combine(device: DeviceLike, a: Compared, b: Compared, *, op: Op) -> Value:
    """Return ``op``, AND, OR or XOR, of whether each element of ``a`` and of ``b`` is not 0."""
    x, y = _both(device, a, b)
    if op is Op.OR and x.dtype == y.dtype and x.dtype.kind in "ui":
        return Value(device, BOOL, truth_of(apply(Op.OR, x.node, y.node)), (x, y))
    return elementwise(device, op, (is_true(x), is_true(y)))


_ONE: Final[Mapping[np.ufunc, Callable[[Value], Value]]] = {
    np.logical_not: partial(is_true, negate=True),
    np.isnan: _of_floats(floats.is_nan, False),
    np.isfinite: _of_floats(floats.is_finite, True),
    np.isinf: _of_floats(floats.is_infinite, False),
    np.signbit: is_negative,
}

_TWO: Final[Mapping[np.ufunc, Callable[[DeviceLike, Compared, Compared], Value]]] = {
    np.equal: compare,
    np.not_equal: partial(compare, negate=True),
    np.logical_and: partial(combine, op=Op.AND),
    np.logical_or: partial(combine, op=Op.OR),
    np.logical_xor: partial(combine, op=Op.XOR),
}

TRUTHS: Final = frozenset([*_ONE, *_TWO])
"""NumPy's universal functions whose results are truth values."""


def find_truth(device: DeviceLike, ufunc: np.ufunc, inputs: Sequence[Compared]) -> Value:
    """Return the truth values of a universal function among `TRUTHS`.

    Raises what `compare` does.
    """
    if ufunc in _TWO:
        return _TWO[ufunc](device, *inputs)
    (x,) = inputs
    return _ONE[ufunc](as_value(device, "x", np.asarray(x) if isinstance(x, float) else x))


# --- along axes ----------------------------------------------------------------------------------


def any_true(value: Value, axes: Axes, *, keep: bool = False) -> Value:
    """Return whether any element along ``axes``, all for None, is not 0. Raises ``ShapeError``.

    ``keep``: the axes stay, with one element.
    """
    once = _without_repeats(value, axes)
    node = floats.magnitude(once.node, value.dtype)
    return _test_along(once, node, axes, keep=keep, negate=False)


def all_true(value: Value, axes: Axes, *, keep: bool = False) -> Value:
    """Return whether all elements along ``axes``, all for None, are not 0; see `any_true`."""
    once = _without_repeats(value, axes)
    node = is_true(once, negate=True).node
    return _test_along(once, node, axes, keep=keep, negate=True)


def count_true(value: Value, axes: Axes, *, keep: bool = False) -> Value:
    """Return how many elements along ``axes``, all for None, are not 0, as int64.

    Raises ``ShapeError``; ``UnsupportedError`` when it is computed.
    """
    return sum_elements(is_true(value), axes, None, keep=keep)


def arrays_equal(device: DeviceLike, a: Operand, b: Operand) -> bool:
    """Return whether all elements of arrays of one shape, with elements, are equal.

    One element of a result comes to the host. Raises as `compare` does.
    """
    if _are_floats(a, b) or _is_number(a) or _is_number(b):
        differences = compare(device, a, b, negate=True)
    else:
        x, y = _meet(device, a, b)
        differences = Value(device, x.dtype, apply(Op.XOR, x.node, y.node), (x, y))
    one = _join(differences.node, range(len(differences.shape)), device.driver.geometry)
    return not download(differences.derived(one, np.dtype(f"u{one.itemsize}"))).item()


def _without_repeats(value: Value, axes: Axes) -> Value:
    """Return ``value`` with one of the elements that repeat along ``axes``. `ShapeError`."""
    node, _ = without_repeats(value.node, reduced_axes(axes, len(value.shape)))
    return value if node is value.node else value.derived(node)


def _test_along(value: Value, node: Expression, axes: Axes, *, keep: bool, negate: bool) -> Value:
    """Return whether any element of ``node``, made from ``value``, is not 0, or none is."""
    chosen = reduced_axes(axes, len(node.shape))
    joined = _join(node, chosen, value.device.driver.geometry)
    truth = value.derived(truth_of(joined, negate=negate), BOOL)
    return add_axes(truth, chosen) if keep else truth


def _join(node: Expression, axes: Sequence[int], geometry: Geometry) -> Expression:
    """Return elements that are not 0 where any element of ``node`` along ``axes`` is not 0."""
    can_sum = Mode.SUM in geometry.modes and Op.COUNT in geometry.ops and len(geometry.lanes) == 4
    if 0 in node.shape or not can_sum:
        return reduce_axes(Op.OR, node, axes)
    rank = len(node.shape) - len(axes)
    sums = [
        reduce_axes(Op.OR, part, range(rank, len(part.shape)))
        for part in sum_rows(apply(Op.COUNT, node), tuple(axes), geometry)
    ]
    return reduce(partial(apply, Op.OR), sums)
