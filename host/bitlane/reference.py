"""The golden model: every operator on NumPy arrays, and whole operator descriptions on raw bytes.

Written from DirectML's documentation, and independent of the lowering and the driver, which are
checked against it: it must never import either.

All functions act on the *native encoding*: arrays of any of DirectML's eleven data types, floats
included, are taken as the unsigned integers of the same width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bitlane_rtl.abi import Op

from .dml.operators import NodeDesc, ReduceOperatorDesc
from .dml.tensor import BufferTensorDesc

Array = npt.NDArray[np.generic]
Bytes = npt.NDArray[np.uint8]

# Ones in a byte. A table, because np.bitwise_count counts the bits of abs(x) in signed types.
_ONES = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def native(array: npt.ArrayLike) -> npt.NDArray[np.unsignedinteger]:
    """The bits of ``array`` as unsigned integers of the same width, 8 to 64 bits; a copy.

    Raises ``TypeError`` for a type without a native encoding of 1, 2, 4 or 8 bytes.
    """
    values = np.array(array, order="C", copy=True)
    if values.dtype.kind not in "uif" or values.dtype.itemsize not in (1, 2, 4, 8):
        raise TypeError(f"{values.dtype} has no native encoding of 8, 16, 32 or 64 bits")
    values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    # reshape, because a view of a zero-dimensional array cannot change its type.
    return values.reshape(-1).view(f"<u{values.dtype.itemsize}").reshape(values.shape)


def _as(bits: Array, like: npt.ArrayLike) -> Array:
    """``bits`` seen as the data type of ``like`` again."""
    dtype = np.asarray(like).dtype
    return bits.reshape(-1).view(dtype.newbyteorder("<")).reshape(bits.shape)


def bit_not(a: npt.ArrayLike) -> Array:
    """Every bit inverted; the type of ``a``."""
    return _as(np.bitwise_not(native(a)), a)


def bit_and(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """Bitwise AND of arrays of one type, broadcast as NumPy does; the type of ``a``."""
    return _as(np.bitwise_and(*_pair(a, b)), a)


def bit_or(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """Bitwise OR of arrays of one type, broadcast as NumPy does; the type of ``a``."""
    return _as(np.bitwise_or(*_pair(a, b)), a)


def bit_xor(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """Bitwise XOR of arrays of one type, broadcast as NumPy does; the type of ``a``."""
    return _as(np.bitwise_xor(*_pair(a, b)), a)


def bit_shift_left(a: npt.ArrayLike, b: npt.ArrayLike, *, saturate: bool = False) -> Array:
    """``a << b``; the type of ``a``.

    Counts are the unsigned encoding of ``b``. One of the width or more is masked to the width,
    as DirectML does, or with ``saturate`` gives 0, as NumPy does.
    """
    bits, counts = _pair(a, b)
    width = bits.dtype.itemsize * 8
    shifted = np.left_shift(bits, np.bitwise_and(counts, counts.dtype.type(width - 1)))
    if saturate:
        shifted = np.where(counts >= width, bits.dtype.type(0), shifted)
    return _as(shifted, a)


def bit_shift_right(
    a: npt.ArrayLike, b: npt.ArrayLike, *, saturate: bool = False, arithmetic: bool = False
) -> Array:
    """``a >> b``; the type of ``a``. Logical, or with ``arithmetic`` filled with the sign bit.

    Counts are the unsigned encoding of ``b``. One of the width or more is masked to the width,
    as DirectML does, or with ``saturate`` gives the fill alone, as NumPy does.
    """
    bits, counts = _pair(a, b)
    width = bits.dtype.itemsize * 8
    masked = np.bitwise_and(counts, counts.dtype.type(width - 1))
    if saturate:
        # The sign bit alone; a logical shift is put right below.
        masked = np.where(counts >= width, counts.dtype.type(width - 1), masked)
    if arithmetic:
        signed = f"<i{bits.dtype.itemsize}"
        shifted = np.right_shift(bits.view(signed), masked.astype(signed)).view(bits.dtype)
    else:
        shifted = np.right_shift(bits, masked)
        if saturate:
            shifted = np.where(counts >= width, bits.dtype.type(0), shifted)
    return _as(shifted, a)


def bit_count(a: npt.ArrayLike, dtype: npt.DTypeLike = np.uint8) -> Array:
    """The number of ones of every element's encoding, 0 to 64, as ``dtype``."""
    bits = native(a)
    ones = _ONES[bits.reshape(-1).view(np.uint8)].reshape(*bits.shape, bits.dtype.itemsize)
    counts: Array = ones.sum(axis=-1, dtype=dtype)
    return counts


def cardinality(a: npt.ArrayLike, axis: int | Sequence[int] | None = -1) -> npt.NDArray[np.uint64]:
    """The number of ones of all encodings along ``axis``; of all there are for None."""
    axes = axis if axis is None or isinstance(axis, int) else tuple(axis)
    return np.asarray(bit_count(a, np.uint64).sum(axis=axes, dtype=np.uint64))


def compute(
    op: Op,
    a: npt.ArrayLike,
    b: npt.ArrayLike | None = None,
    *,
    saturate: bool = False,
    arithmetic: bool = False,
    test: bool = False,
    negate: bool = False,
    count_dtype: npt.DTypeLike = np.uint8,
) -> Array:
    """Any operation of the circuit. ``b`` is required where ``op.reads_b``, else ignored.

    With ``test``, a count becomes 1 where it is not 0, and with ``negate``, too, 1 where it is 0.
    """
    if op is Op.COPY:
        return _as(native(a), a)
    if op is Op.NOT:
        return bit_not(a)
    if op.counts:
        counts = bit_count(compute(op.counted, a, b), count_dtype)
        return ((counts == 0) == negate).astype(counts.dtype) if test else counts
    if b is None:
        raise TypeError(f"{op.name} has two operands")
    if op is Op.SHIFT_LEFT:
        return bit_shift_left(a, b, saturate=saturate)
    if op is Op.SHIFT_RIGHT:
        return bit_shift_right(a, b, saturate=saturate, arithmetic=arithmetic)
    plain = {Op.AND: bit_and, Op.OR: bit_or, Op.XOR: bit_xor}
    if op in plain:
        return plain[op](a, b)
    negated = {Op.NAND: bit_and, Op.NOR: bit_or, Op.XNOR: bit_xor}
    return bit_not(negated[op](a, b))


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor's place: ``data`` are all bytes of its buffer, ``offset`` its first byte."""

    data: Bytes
    offset: int = 0


def evaluate(desc: NodeDesc, inputs: Sequence[Region], output: Region) -> Bytes:
    """All bytes of the output's buffer after the operator; ``output.data`` stays as it is.

    Bytes that belong to no element of the output are those of ``output.data``. Inputs may be
    regions of the output's buffer: all are read before anything is written. Shift counts are
    masked and shifts are logical, as DirectML's are; sums wrap. Raises ``ValueError`` if a tensor
    reaches outside its buffer.
    """
    operands = [
        _elements(tensor, region.data, region.offset).copy()
        for (_, tensor), region in zip(desc.inputs, inputs, strict=True)
    ]
    _, target = desc.outputs[0]
    if isinstance(desc, ReduceOperatorDesc):
        (a,) = operands
        result: Array = a.sum(axis=tuple(desc.axes), dtype=a.dtype, keepdims=True)
    else:
        result = compute(desc.op, *operands, count_dtype=target.data_type.dtype)
    after = output.data.copy()
    _elements(target, after, output.offset)[...] = native(result)
    return after


def _pair(
    a: npt.ArrayLike, b: npt.ArrayLike
) -> tuple[npt.NDArray[np.unsignedinteger], npt.NDArray[np.unsignedinteger]]:
    left, right = native(a), native(b)
    if left.dtype != right.dtype:
        raise TypeError(f"the operands are {left.dtype} and {right.dtype}; they must be alike")
    return left, right


def _elements(
    tensor: BufferTensorDesc, data: Bytes, offset: int
) -> npt.NDArray[np.unsignedinteger]:
    """A window on the elements of a tensor, which shares the memory of ``data``."""
    itemsize = tensor.data_type.itemsize
    # The constructor, unlike as_strided, refuses a window that leaves the buffer.
    return np.ndarray(
        tensor.sizes,
        dtype=f"<u{itemsize}",
        buffer=data,
        offset=offset,
        strides=tuple(stride * itemsize for stride in tensor.element_strides),
    )
