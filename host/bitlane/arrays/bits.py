"""Bits of bytes as elements, and back: ``np.unpackbits`` and ``np.packbits``, as expressions."""

from functools import partial, reduce
from typing import Final

import numpy as np

from bitlane_rtl.abi import Op

from ..arguments.operands import as_integer
from ..compiler import Constant, Expression, apply, broadcast, copy_ordered, truth_of, window
from ..errors import DataTypeError, ShapeError
from ..lowering import LOGICAL, packed_strides
from .array import Array
from .elementwise import index_node
from .numpy_protocols import implements
from .shapes import along
from .sums import widest_lane
from .truth import is_true
from .value import Value, overwrite

_BITS: Final = 8
_UINT8: Final = np.dtype(np.uint8)
_ORDERS: Final = ("big", "little")


@implements(np.unpackbits)
def unpackbits(
    a: Array, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Return the bits of bytes along ``axis``, each as a byte of 0 or 1; ``a`` as one row for None.

    ``count``: how many bits there are of each row, with zeros behind the last one, or how many to
    leave out if it is negative. ``bitorder``: "big" begins with the highest bit of each byte. It
    takes one pass; with zeros behind, three that are computed at once. Raises ``AxisError``,
    ``DataTypeError`` unless the elements are uint8, or ``ShapeError``.
    """
    if a.dtype != _UINT8:
        raise DataTypeError(f"np.unpackbits: data type {a.dtype}; expected uint8")
    masks = _masks(bitorder)
    a, at = along(a, axis)
    whole = _BITS * a.shape[at]
    wanted = whole if count is None else as_integer("count", count)
    if wanted < 0:
        wanted += whole
    if wanted < 0:
        raise ShapeError(f"count: {count}; expected {-whole} or more")
    before = (slice(None),) * at
    bits = _unpack(a[(*before, slice(-(-wanted // _BITS)))]._value, at, masks)
    shape = (*a.shape[:at], wanted, *a.shape[at + 1 :])
    if bits.shape == shape:
        return Array(bits)
    kept = index_node(bits.node, (*before, slice(wanted)))
    if wanted < whole:
        return Array(bits.derived(copy_ordered(kept, tuple(range(a.ndim)))))
    return Array(_extend(bits, shape))


def _unpack(value: Value, axis: int, masks: Expression) -> Value:
    """Return whether each bit of ``masks`` is 1, for the bytes along ``axis``."""
    rank = len(value.shape)
    split = (*(slice(None),) * (axis + 1), None)
    ones = (None,) * (rank - axis - 1)
    each = index_node(masks, (slice(None), *ones))
    bits = truth_of(apply(Op.AND, index_node(value.node, split), each))
    shape = (*value.shape[:axis], _BITS * value.shape[axis], *value.shape[axis + 1 :])
    return value.derived(window(bits, 0, shape, packed_strides(shape)), _UINT8)


def _masks(bitorder: str) -> Expression:
    """Return eight bytes, each with the bit of its place. Raises ``ShapeError``."""
    if bitorder not in _ORDERS:
        raise ShapeError(f"bitorder: {bitorder!r}; expected 'big' or 'little'")
    bits = bytes(1 << bit for bit in range(_BITS))
    return window(Constant(bits if bitorder == "little" else bits[::-1]), 0, (_BITS,), (1,), 1)


@implements(np.packbits)
def packbits(a: Array, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return the truth of elements along ``axis`` as bits of bytes; ``a`` as one row for None.

    Zeros fill the last byte of each row. ``bitorder``: "big" begins with the highest bit. A device
    of 64 bits takes seven passes, and one more to bring truth values behind each other. If eight
    does not divide the length of a row, the row is copied and extended by zeros at once. Raises
    ``AxisError``, ``DataTypeError`` for floats, or ``ShapeError``.
    """
    if a.dtype.kind == "f":
        raise DataTypeError(f"np.packbits: data type {a.dtype}; expected integers or booleans")
    _masks(bitorder)
    a, at = along(a, axis)
    count = -(-a.shape[at] // _BITS)
    truth = is_true(a._value)
    if not a.size:
        return Array(_zeros(truth, (*a.shape[:at], count, *a.shape[at + 1 :])))
    if a.shape[at] % _BITS:
        truth = _extend(truth, (*a.shape[:at], _BITS * count, *a.shape[at + 1 :]))
    others = [axis for axis in range(a.ndim) if axis != at]
    node = truth.node
    if node.strides[at] != 1:
        node = copy_ordered(node, (*others, at))
    width = widest_lane(_BITS, a.device.driver.geometry)
    packed = _pack(_words(node, at, width), width, little=bitorder == "little")
    order = [*others, at]
    back = [order.index(axis) for axis in range(a.ndim)]
    shape, strides = (tuple([x[axis] for axis in back]) for x in (packed.shape, packed.strides))
    node = window(packed, 0, shape, strides)
    return Array(truth.derived(copy_ordered(node, tuple(range(a.ndim))), _UINT8))


def _words(node: Expression, axis: int, width: int) -> Expression:
    """Return bytes, which lie one behind the other along ``axis``, as elements of ``width``.

    The last two axes are the groups of eight bytes along ``axis``, and the elements of a group.
    """
    others = [each for each in range(len(node.shape)) if each != axis]
    shape = (*(node.shape[x] for x in others), node.shape[axis] // _BITS, _BITS // width)
    strides = (*(node.strides[x] for x in others), _BITS, width)
    return window(node, 0, shape, strides, width)


def _pack(words: Expression, width: int, *, little: bool) -> Expression:
    """Return a byte for each group of elements of ``width`` along the last axis: bytes of 0 or 1.

    Each shift brings the bits of half the bytes beside those of the others: b1 beside b0, then b3
    and b2 beside b1 and b0, in the lowest byte, or the highest one.
    """
    step = 1
    while step < width:
        distance = (7 if little else 9) * step
        moved = apply(
            Op.SHIFT_RIGHT if little else Op.SHIFT_LEFT,
            words,
            Constant(distance.to_bytes(width, "little")),
            options=LOGICAL,
        )
        words = apply(Op.OR, words, moved)
        step *= 2
    first = 0 if little else width - 1
    groups = words.shape[-1]
    parts = [
        window(words, first + part * width, words.shape[:-1], words.strides[:-1], 1)
        for part in range(groups)
    ]
    places = range(groups) if little else range(groups - 1, -1, -1)
    joined = [
        apply(Op.SHIFT_LEFT, part, Constant(bytes([width * place])), options=LOGICAL)
        if place
        else part
        for part, place in zip(parts, places, strict=True)
    ]
    return reduce(partial(apply, Op.OR), joined)


def _zeros(like: Value, shape: tuple[int, ...]) -> Value:
    zeros = broadcast(Constant(bytes(1)), shape)
    return like.derived(apply(Op.COPY, zeros), _UINT8)


def _extend(value: Value, shape: tuple[int, ...]) -> Value:
    """Return ``value``, of one byte an element, with zeros behind it to ``shape``, computed."""
    zeros = _zeros(value, shape)
    result = Value(value.device, value.dtype, zeros.stored)
    inside = tuple([slice(count) for count in value.shape])
    overwrite(result.view(result.strided.index(inside)), value, fresh=True)
    return result
