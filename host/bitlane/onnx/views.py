"""Operators that move elements: other shapes, orders and parts, as views and copies."""

from collections.abc import Sequence
from typing import Final

from .._typing import AnyArray
from ..arguments.axes import normalize_axes
from ..arrays import Strided
from ..compiler import Expression, broadcast, copy_ordered, join, window
from ..errors import OnnxError, ShapeError
from ..lowering import broadcast_shapes
from .build import Operand, Workplace
from .given import Given, Reading
from .model import BitNode


def _strided(node: Expression) -> Strided:
    return Strided(node.shape, node.strides, node.itemsize)


def _view(x: Operand, part: Strided) -> Operand:
    """Return ``part`` of the memory of ``x``."""
    return Operand(window(x.node, part.offset, part.shape, part.strides), x.dtype)


def build_identity(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    return operands[0]


# --- shapes ---------------------------------------------------------------------------------------


def read_reshape(given: Given) -> Reading:
    shape = given.integers(1, "shape")
    if min(shape, default=0) < -1 or shape.count(-1) > 1:
        raise OnnxError(f"{given.label}: shape {shape}; expected lengths, and -1 once at most")
    keeps_zeros = bool(given.attributes.get("allowzero"))
    if keeps_zeros and -1 in shape and 0 in shape:
        raise OnnxError(f"{given.label}: shape {shape} with allowzero; expected no -1 beside a 0")
    return Reading(given.inputs[:1], given.dtype, {"shape": shape, "zeros": keeps_zeros})


def build_reshape(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    given = node.settings["shape"]
    shape = list(given)
    for axis, length in enumerate(given):
        if length == 0 and not node.settings["zeros"]:
            if axis >= len(x.node.shape):
                raise ShapeError(f"shape: {given}; axis {axis} of {x.node.shape} has no length")
            shape[axis] = x.node.shape[axis]
    return _reshape(x, _strided(x.node).infer_shape(shape))


def _reshape(x: Operand, shape: tuple[int, ...]) -> Operand:
    view = _strided(x.node).reshape(shape)
    if view is not None:
        return _view(x, view)
    copied = copy_ordered(x.node, tuple(range(len(x.node.shape))))
    packed = Strided.packed(shape, copied.itemsize)
    return _view(Operand(copied, x.dtype), packed)


def read_expand(given: Given) -> Reading:
    shape = given.integers(1, "shape")
    if min(shape, default=0) < 0:
        raise OnnxError(f"{given.label}: shape {shape}; expected 0 or more")
    return Reading(given.inputs[:1], given.dtype, {"shape": shape})


def build_expand(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    shape = broadcast_shapes(x.node.shape, node.settings["shape"])
    return Operand(broadcast(x.node, shape), x.dtype)


def read_squeeze(given: Given) -> Reading:
    axes = given.integers(1, "axes") if given.has(1) else None
    return Reading(given.inputs[:1], given.dtype, {"axes": axes})


def build_squeeze(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    shape, given = x.node.shape, node.settings["axes"]
    if given is None:
        axes = tuple([axis for axis, length in enumerate(shape) if length == 1])
    else:
        axes = normalize_axes(given, len(shape))
    if given == () and 1 in shape:
        raise ShapeError(
            f"axes: none of {shape}; expected one at least, or no input axes, as backends differ:"
            " ONNX Runtime takes all axes of length 1 away"
        )
    if any(shape[axis] != 1 for axis in axes):
        raise ShapeError(f"axes: {given} of {shape}; expected axes of length 1")
    return _view(x, _strided(x.node).index(_key(axes, len(shape), 0)))


def read_unsqueeze(given: Given) -> Reading:
    return Reading(given.inputs[:1], given.dtype, {"axes": given.integers(1, "axes")})


def build_unsqueeze(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    given = node.settings["axes"]
    rank = len(x.node.shape) + len(given)
    return _view(x, _strided(x.node).index(_key(normalize_axes(given, rank), rank, None)))


def _key(axes: Sequence[int], rank: int, at: int | None) -> tuple[int | slice | None, ...]:
    """Return the index with ``at`` for each of ``axes``, and whole axes else."""
    return tuple([at if axis in axes else slice(None) for axis in range(rank)])


def read_transpose(given: Given) -> Reading:
    order = given.attributes.get("perm")
    return Reading(given.inputs, given.dtype, {"order": order})


def build_transpose(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    return _view(x, _strided(x.node).transpose(node.settings["order"]))


# --- parts ----------------------------------------------------------------------------------------


def read_slice(given: Given) -> Reading:
    starts, ends = given.integers(1, "starts"), given.integers(2, "ends")
    axes = given.integers(3, "axes") if given.has(3) else tuple(range(len(starts)))
    steps = given.integers(4, "steps") if given.has(4) else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        counts = f"{len(starts)}, {len(ends)}, {len(axes)} and {len(steps)}"
        raise OnnxError(
            f"{given.label}: {counts} starts, ends, axes and steps; expected as many of each"
        )
    if 0 in steps:
        raise OnnxError(f"{given.label}: steps {steps}; expected none of 0")
    parts = tuple(zip(starts, ends, steps, strict=True))
    return Reading(given.inputs[:1], given.dtype, {"axes": axes, "parts": parts})


def build_slice(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    shape = x.node.shape
    key = [slice(None)] * len(shape)
    for axis, part in zip(
        normalize_axes(node.settings["axes"], len(shape)), node.settings["parts"], strict=True
    ):
        start, end, step = part
        if step < 0 and shape[axis]:
            _expect_alike(start, end, step, shape[axis])
        key[axis] = slice(start, end, step)
    return _view(x, _strided(x.node).index(tuple(key)))


_ENDLESS: Final = ((1 << 31) - 1, (1 << 63) - 1)
"""Ends that stand for that of the axis."""


def _expect_alike(start: int, end: int, step: int, length: int) -> None:
    """Raise ``ShapeError`` for parts in reverse order that backends read differently."""
    if start < -length:
        # ONNX takes element 0 there, NumPy and onnx's reference take none.
        raise ShapeError(
            f"start: {start} with step {step} on an axis of {length}; expected {-length} or more,"
            " as backends differ on others"
        )
    if end in _ENDLESS:
        # ONNX Runtime takes all elements down to element 0, ONNX and its reference take none.
        raise ShapeError(
            f"end: {end} with step {step}; expected {length - 1} for no elements, or"
            f" {-length - 1} for all down to element 0, as backends differ on it"
        )


def read_concat(given: Given) -> Reading:
    return Reading(given.inputs, given.dtype, {"axis": given.attributes["axis"]})


def build_concat(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    first = operands[0]
    (axis,) = normalize_axes(node.settings["axis"], len(first.node.shape))
    if len(operands) == 1:
        return first
    return Operand(join([x.node for x in operands], axis), first.dtype)


def read_gather(given: Given) -> Reading:
    indices = given.constant(1, "indices")
    settings = {"axis": given.attributes["axis"], "indices": indices}
    return Reading(given.inputs[:1], given.dtype, settings)


def build_gather(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    shape, indices = x.node.shape, node.settings["indices"]
    (axis,) = normalize_axes(node.settings["axis"], len(shape))
    count = shape[axis]
    outside = indices[(indices < -count) | (indices >= count)]
    if outside.size:
        known = f"expected {-count} to {count - 1}" if count else "it has no elements"
        raise ShapeError(f"indices: {outside[0]} on axis {axis} of {count}; {known}")
    runs = _progressions(indices.reshape(-1) % max(1, count))
    parts = [_progression(x, axis, run) for run in runs]
    if not parts:
        parts = [_view(x, _strided(x.node).index((*[slice(None)] * axis, slice(0))))]
    whole = parts[0] if len(parts) == 1 else Operand(join([y.node for y in parts], axis), x.dtype)
    return _reshape(whole, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


def _progression(x: Operand, axis: int, part: tuple[int, int, int]) -> Operand:
    """Return elements along ``axis``; ``part`` has the first, their number and their distance."""
    first, count, step = part
    stride = x.node.strides[axis]
    shape = (*x.node.shape[:axis], count, *x.node.shape[axis + 1 :])
    strides = (*x.node.strides[:axis], stride * step, *x.node.strides[axis + 1 :])
    return Operand(window(x.node, first * stride, shape, strides), x.dtype)


def _progressions(indices: AnyArray) -> list[tuple[int, int, int]]:
    """Return first index, count and step of arithmetic progressions that make up ``indices``."""
    found: list[tuple[int, int, int]] = []
    for index in map(int, indices):
        if found:
            first, count, step = found[-1]
            if count == 1 or index == first + count * step:
                found[-1] = first, count + 1, index - first if count == 1 else step
                continue
        found.append((index, 1, 0))
    return found
