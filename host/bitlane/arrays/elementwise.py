"""Operations on values: casts, bit operations, counts and reductions, as expressions."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.axes import Axes, reduced_axes
from ..arguments.operands import expect_supported, fit_integer, shown
from ..arguments.promotion import NEGATED, Casting, expect_same_type, promoted_type, type_or_int
from ..compiler import Constant, Expression, apply, broadcast, narrow, truth_of, widen, window
from ..errors import DataTypeError, OtherDeviceError, OutOfRangeError, ShapeError
from ..lowering import ARITHMETIC, LOGICAL, broadcast_shapes
from .floats import magnitude
from .strided import Strided
from .transfers import constant, upload
from .value import DeviceLike, Value

_UINT8: Final = np.dtype(np.uint8)
BOOL: Final = np.dtype(np.bool_)

TRUE: Final = Constant(b"\1")
"""Truth values are inverted by XOR with it."""


def cast(value: Value, dtype: np.dtype[Any]) -> Value:
    """Return ``value`` as ``dtype``, perhaps the same.

    Raises ``DataTypeError`` for floats, whose truth alone is computed.
    """
    if value.dtype == dtype:
        return value
    if dtype.kind == "b":
        return value.derived(truth_of(magnitude(value.node, value.dtype)), dtype)
    if "f" in (value.dtype.kind, dtype.kind):
        raise DataTypeError(
            f"astype: from {value.dtype} to {dtype}; expected integers or truth values, as floats"
            " take arithmetic (x.get().astype(...) converts on the host; view keeps the bits)"
        )
    node, size = value.node, dtype.itemsize
    if size < node.itemsize:
        node = narrow(node, size)
    else:
        node = widen(node, size, signed=value.dtype.kind == "i")
    return value.derived(node, dtype)


Operand: TypeAlias = "Value | AnyArray | int"


def elementwise(
    device: DeviceLike,
    op: Op,
    operands: Sequence[Operand],
    *,
    encoding: bool = False,
    casting: Casting = "safe",
    dtype: np.dtype[Any] = _UINT8,
) -> Value:
    """Return ``op`` of its one or two operands, in the type that NumPy promotes them to.

    ``encoding``: take the bits of floats of one type, and count the bits of signed integers;
    NumPy's universal functions do neither. ``dtype``: the type of counts, uint8 or uint32. Raises
    ``DataTypeError``, ``OutOfRangeError``, ``ShapeError``, ``OtherDeviceError`` and what `upload`
    does.
    """
    if op.reads_b:
        a, b = operands
        types = type_or_int(a), type_or_int(b)
        expect_same_type(*types, casting)
        common = promoted_type(op, *types, encoding=encoding)
        expect_shapes(a, b)
        first, second = to_device(device, "a", a, common), to_device(device, "b", b, common)
        node = apply_typed(op, common, first.node, second.node)
        return Value(device, common, node, (first, second))
    x = as_value(device, "a", operands[0])
    if not encoding:
        _expect_numbers(op, x.dtype)
    if op is Op.COUNT:
        return x.derived(apply(op, x.node, itemsize=dtype.itemsize), dtype)
    return x.derived(apply_typed(op, x.dtype, x.node))


def _expect_numbers(op: Op, dtype: np.dtype[Any]) -> None:
    """Raise ``DataTypeError`` for a type that NumPy's universal function does not take."""
    if op is Op.COUNT and dtype.kind not in "ub":
        raise DataTypeError(
            f"np.bitwise_count: data type {dtype}; of a signed integer it counts the absolute"
            " value, which takes arithmetic (bitlane.bit_count counts the bits of the encoding)"
        )
    if op is Op.COPY:
        if dtype.kind == "b":
            raise DataTypeError("x: data type bool; the sign + expects numbers (copy copies any)")
    elif dtype.kind == "f":
        raise DataTypeError(
            f"x: data type {dtype}; ~ expects integers or truth values (bitlane.bit_not takes the"
            " bits of floats)"
        )


def apply_typed(
    op: Op, dtype: np.dtype[Any], a: Expression, b: Expression | None = None
) -> Expression:
    """Return ``op`` of elements of ``dtype`` as NumPy and ONNX define it.

    Truth values are inverted by XOR with 1, as inverting all bits of a byte would not give 0 or 1.
    Shift counts saturate; a shift right of signed integers is arithmetic.
    """
    truth = dtype.kind == "b"
    if truth and op is Op.NOT:
        return apply(Op.XOR, a, TRUE)
    if truth and op in NEGATED:
        return apply(Op.XOR, apply(NEGATED[op], a, b), TRUE)
    return apply(op, a, b, options=ARITHMETIC if dtype.kind == "i" else LOGICAL)


def copy_value(value: Value) -> Value:
    """Return a copy of ``value``, in other memory."""
    return value.derived(apply(Op.COPY, value.node))


def expect_shapes(*operands: Any) -> tuple[int, ...]:
    """Return the shape to which operands broadcast, of which none is sent. Raises ``ShapeError``.

    It is checked first: an operand on the host that does not fit is not sent to the device.
    """
    shape: tuple[int, ...] = ()
    for x in operands:
        shape = broadcast_shapes(shape, getattr(x, "shape", ()))
    return shape


def expect_within(name: str, shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Raise ``ShapeError`` unless elements of ``shape`` broadcast to the shape ``target``."""
    try:
        fits = broadcast_shapes(shape, target) == target
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(f"{name}: shape {shape}; expected one that broadcasts to {target}")


def as_value(device: DeviceLike, name: str, operand: Operand) -> Value:
    """Return ``operand`` on ``device`` in its own type. Raises as `to_device` does."""
    return to_device(device, name, operand, np.dtype(getattr(operand, "dtype", np.int64)))


def to_device(device: DeviceLike, name: str, operand: Operand, dtype: np.dtype[Any]) -> Value:
    """Return ``operand`` on ``device`` as ``dtype``; an operand on the host is sent.

    Raises ``OtherDeviceError`` for a value on another device, and as `elementwise` does.
    """
    if isinstance(operand, Value):
        expect_on(device, name, operand)
        return cast(operand, dtype)
    array = cast_on_host(name, operand, dtype)
    return constant(device, array) if not array.ndim else upload(device, array)


def expect_on(device: DeviceLike, name: str, value: Value) -> None:
    """Raise ``OtherDeviceError`` for a value on another device; ``name`` names it."""
    if value.device is not device:
        there, here = repr(value.device), repr(device)
        if there == here:
            there, here = f"another device that is also {there}", "the same device"
        raise OtherDeviceError(
            f"{name}: an array on {there}; expected one on {here} (device.asarray copies it there)"
        )


def cast_on_host(name: str, given: AnyArray | int, dtype: np.dtype[Any]) -> AnyArray:
    """Cast an operand on the host before it is sent.

    Raises ``DataTypeError`` or ``OutOfRangeError``.
    """
    if isinstance(given, int):
        if dtype.kind in "ui":
            return fit_integer(name, given, dtype)
        try:
            # As in NumPy, rounded to float64 first, and not from an array of integers.
            return np.array(given, dtype)
        except OverflowError as error:
            raise OutOfRangeError(f"{name}: {error}; expected one that {dtype} holds") from None
    if given.dtype.kind == "f" and dtype.kind != "f":
        raise DataTypeError(
            f"{name}: data type {given.dtype} for {dtype}; expected integers or truth values"
            " (convert it with astype, or view its bits)"
        )
    return given.astype(dtype, copy=False)


def as_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return ``dtype`` as NumPy's, in the native byte order. Raises ``DataTypeError``."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise DataTypeError(f"dtype: {shown(dtype)}; expected a data type") from None
    expect_supported("dtype", kind)
    return kind.newbyteorder("=")


def without_extra_axes(operand: Operand, rank: int) -> tuple[int, ...]:
    """Return the shape of ``operand`` without the axes that `drop_extra_axes` drops."""
    shape: tuple[int, ...] = getattr(operand, "shape", ())
    extra = max(0, len(shape) - rank)
    return shape[extra:] if set(shape[:extra]) == {1} else shape


def drop_extra_axes(value: Value, rank: int) -> Value:
    """Drop the first axes beyond ``rank`` if they count one element, as NumPy's assignments do."""
    extra = len(value.shape) - len(without_extra_axes(value, rank))
    return value.derived(index_node(value.node, (0,) * extra)) if extra else value


# --- reductions ------------------------------------------------------------------------


def add_axes(value: Value, axes: tuple[int, ...]) -> Value:
    """Return ``value`` with axes of one element at ``axes``."""
    key = _with_axes(axes, len(value.shape) + len(axes))
    return value.derived(index_node(value.node, key))


def _with_axes(axes: Sequence[int], rank: int) -> tuple[slice | None, ...]:
    """Return the index that inserts axes of one element at ``axes`` of ``rank``."""
    return tuple([None if axis in axes else slice(None) for axis in range(rank)])


_NOTHING: Final = {Op.AND: 0xFF, Op.OR: 0, Op.XOR: 0}
"""Each byte of the reduction of no elements."""


def reduce(op: Op, value: Value, axes: Axes, *, keep: bool = False) -> Value:
    """Reduce the elements along ``axes``, all for None, by ``op``: AND, OR or XOR.

    ``keep``: the axes stay, with one element. The result of no elements is all ones for AND,
    else 0. Raises ``ShapeError``, or ``DataTypeError`` for floats.
    """
    if value.dtype.kind == "f":
        raise DataTypeError(
            f"x: data type {value.dtype}; expected integers or truth values (view its bits)"
        )
    rank = len(value.shape)
    chosen = reduced_axes(axes, rank)
    node = reduce_axes(op, value.node, chosen, truth=value.dtype.kind == "b")
    if keep:
        node = index_node(node, _with_axes(chosen, rank))
    if all(value.shape[axis] == 1 for axis in chosen):
        # Nothing was combined: the result must not share the memory all the same.
        node = apply(Op.COPY, node)
    return value.derived(node)


def reduce_axes(
    op: Op, node: Expression, axes: Sequence[int], *, truth: bool = False
) -> Expression:
    """Reduce ``node``, of ``truth`` values or not, along ``axes``, which it then lacks."""
    outermost_first = sorted(axes, key=lambda axis: -abs(node.strides[axis]))
    for axis in outermost_first:
        node = _reduce_axis(op, node, axis, truth=truth)
    key = tuple([0 if axis in axes else slice(None) for axis in range(len(node.shape))])
    return index_node(node, key)


def _reduce_axis(op: Op, node: Expression, axis: int, *, truth: bool) -> Expression:
    """Reduce ``node`` to one element along ``axis``."""
    count = node.shape[axis]
    before = (slice(None),) * axis
    if not count:
        one = bytes([_NOTHING[op] & (1 if truth else 0xFF)]) * node.itemsize
        shape = (*node.shape[:axis], 1, *node.shape[axis + 1 :])
        return apply(Op.COPY, broadcast(Constant(one), shape))
    odd = []
    while count > 1:
        half, rest = divmod(count, 2)
        if rest:
            odd.append(index_node(node, (*before, slice(2 * half, None))))
        low = index_node(node, (*before, slice(half)))
        node = apply(op, low, index_node(node, (*before, slice(half, 2 * half))))
        count = half
    for each in odd:
        node = apply(op, node, each)
    return node


def index_node(node: Expression, key: tuple[object, ...]) -> Expression:
    """Return the window of ``node`` that integers, slices and None select."""
    part = Strided(node.shape, node.strides, node.itemsize).index(key)
    return window(node, part.offset, part.shape, part.strides)
