"""NumPy's interface as a table: a row is one line of Python, of NumPy or of arrays on a device.

The names of a row:

| Name | |
|---|---|
| ``np``, ``xp`` | NumPy; on a device ``xp`` is the namespace of the array API |
| ``x`` | a view of a larger array |
| ``y`` | an array of the same shape: on the device, on the host, there also big-endian |
| ``m`` | truth values of the same shape, on the device or on the host |
| ``z`` | the elements of ``x``: itself on a device, a copy in NumPy |
| ``n`` | a number, a list or an array of integers |
| ``bit_count`` and others | the functions of `bitlane`; and the same in NumPy |
| ``K``, ``d`` | the axes of ``x`` in all ways; a choice of ``keepdims`` |
"""

from typing import NamedTuple

from support.host.arrays import KINDS, TYPES

ANY = [*TYPES, "?"]


class Row(NamedTuple):
    """A call: an expression, or a statement that writes."""

    text: str
    kinds: list[str]
    """Data types of ``x``."""
    writes: bool = False


_MOVES = """
[x.copy(), x.copy("F")]
[np.copy(x), np.copy(x, order="C")]
[copy.copy(x), copy.deepcopy(x)]
[x.astype(x.dtype), x.astype(x.dtype, copy=False)]
[x.astype(x.dtype, order="F", copy=False), x.astype(x.dtype, order="C", copy=False)]
[xp.asarray(x), xp.asarray(x, copy=False), xp.asarray(x, copy=True)]
[xp.astype(x, x.dtype), xp.astype(x, x.dtype, copy=False)]
x.view(x.dtype)
x.T
x.mT
[x[...], x[..., None], x[None, ..., ::-1], x[True], x[False]]
[x[np.array(1)], x[np.array(-1), ...], x[:, np.array(0)]]
x[[0]]
x[[1, 0, -1]]
x[range(1, -1, -1)]
x[[0, 1], [1, 1]]
x[np.uint64([1, 0])]
x[:, [1, 0]]
[x[np.int8(-1), ...], x[np.uint64(0), ...]]
x[:, np.zeros((1,) * 60, int)]
x[[[0, 1], [1, 0]], ..., [0, 1]]
x[:, [1, 0], None, [1, 2]]
x[:, None, [1, 0], [[2], [1]]]
x[None][:, [0, 0], :, [1, 0]]
x[None][:, 0, :, [1, 0]]
x[None][:, [0, 0], [1, 0]]
x[None][:, [0, 0], ..., [1]]
x[np.array([1, 0], ">i8")]
x[[]]
x[m.tolist()]
[x.reshape(-1), x.reshape(x.shape), x.reshape(*x.shape, 1)]
x.reshape(x.shape, copy=True)
[x.reshape(np.array([2, -1])), x.reshape(np.array(-1))]
[x.transpose(np.array([1, 0])), x.transpose(np.array(1), np.int64(0))]
x.reshape(4, -1)
x.reshape(2, -1, order="F")
x.reshape(-1, order="A")
[xp.reshape(x, x.shape), xp.reshape(x, x.shape, copy=True)]
np.reshape(x, np.array([2, -1]))
np.reshape(x, (4, -1), order="F")
[np.ravel(x, order) for order in "CFAK"]
x.ravel()
[x.flatten(order) for order in "CFAK"]
np.squeeze(x)
np.squeeze(x, 1)
[np.expand_dims(x, 0), np.expand_dims(x, (0, -1))]
np.expand_dims(x, np.int64(1))
[np.atleast_1d(x), np.atleast_2d(x)]
np.atleast_3d(x)
[*np.atleast_3d(x, x)]
[np.broadcast_to(x, (2, *x.shape)), np.broadcast_to(x, x.shape)]
[np.broadcast_to(x, np.array([2, *x.shape]))]
np.broadcast_arrays(x)
np.broadcast_arrays(x, y[:1])
np.broadcast_arrays(x, np.zeros((2, *[1] * x.ndim)))[0]
np.meshgrid(x.reshape(-1))
np.meshgrid(x.reshape(-1), copy=False)
np.meshgrid(x.reshape(-1), sparse=True)
np.meshgrid(y.reshape(-1)[:3], x.reshape(-1)[:2], z.reshape(-1)[:4], indexing="ij")
np.meshgrid(x.reshape(-1)[:3], x.reshape(-1)[:2], sparse=True)
xp.meshgrid(x.reshape(-1))
np.transpose(x)
np.transpose(x, (1, 0, 2))
[np.transpose(x, np.array([1, 0])), x.transpose(1, 0)]
xp.permute_dims(x, tuple(range(x.ndim))[::-1])
[np.matrix_transpose(x), xp.matrix_transpose(x)]
np.moveaxis(x, (0, 1), (-1, 0))
np.moveaxis(x, np.array([0]), np.array([1]))
np.moveaxis(x, range(x.ndim), range(x.ndim))
[np.swapaxes(x, 0, -1), np.swapaxes(x, 0, 0)]
np.swapaxes(x, 1, -2)
[np.rollaxis(x, 2), np.rollaxis(x, 1, -1)]
np.rollaxis(x, 0, 3)
[np.flip(x), np.flip(x, ())]
[np.flip(x, np.array([0, 1])), np.flip(x, 1)]
np.flip(x, (0, 2))
np.fliplr(x)
np.flipud(x)
[np.rot90(x, k) for k in range(-1, 4)]
np.rot90(x, 1, (2, 1))
np.split(x, 2)
np.split(x, [1, 1, 9], 1)
[*np.split(x, [-1]), *np.array_split(x, 3)]
np.array_split(x, 5, axis=2)
np.hsplit(x, [1])
np.hsplit(x, 2)
np.vsplit(x, 2)
np.dsplit(x, [2, 3])
[np.diagonal(x, k) for k in range(-4, 5)]
np.diagonal(x, 1, 2, 0)
[*np.unstack(x, axis=1), np.stack([x, y], axis=-1)]
xp.unstack(x)
np.concatenate([x, x[:, 1:]], axis=1)
[np.concatenate([x, y], axis=None), np.stack([x])]
[np.concatenate([y, x]), xp.concat([x, z])]
np.concatenate([x[None]])
[np.hstack([x, y]), np.vstack([x, y]), np.dstack([x, y])]
np.column_stack([x, y])
[np.roll(x, 0), np.roll(x, 1), np.roll(x, 5), np.roll(x[None], (), ())]
[np.roll(x, (), 0), np.roll(x, (1, 2), 0)]
[np.roll(x, 3, (0, 1)), np.roll(x, np.array([1, 2], ">i8"), (0, 1))]
np.roll(x, (1, -2), (0, 2))
np.delete(x, 1, 0)
np.delete(x, np.s_[::2], -1)
np.delete(x, [0, 9])
np.delete(x, np.arange(x.shape[-1]) % 2 == 1, -1)
x.flat[[3, -1]]
x.flat[[0]]
x.flat[1]
[x.flat[...], x.flat.copy(), x.flat[2:40:3], x.flat[np.arange(x.size) % 5 == 1]]
list(x.flat)
len(x.flat)
[np.zeros_like(x), np.zeros_like(x, bool, "C", shape=(2, 3))]
[np.ones_like(x), np.ones_like(x, "i8", order="F")]
[np.full_like(x, 1), np.full_like(x, -1, "i1", shape=5), xp.full_like(x, 0)]
np.take(x, [1, 0, -1])
np.take(x, [[1, 0], [1, 1]], axis=1)
np.take(x, 1, axis=0)
[np.take(x, [], axis=0), np.repeat(x, 0, axis=0)]
np.take(x, np.array([1, 0], ">i4"), -1)
xp.take(x, xp.asarray([1, 0]), axis=0)
np.take_along_axis(x, np.zeros((1,) * x.ndim, int), 0)
np.take_along_axis(x, np.ones((x.shape[0], 3), int), axis=1)
np.take_along_axis(x, np.array([1, 0]), axis=None)
np.take_along_axis(x[(None,) * 40], np.zeros((1,) * 40 + x.shape, int), -1)
[np.repeat(x, 1), np.repeat(x, 3)]
np.repeat(x, 2, axis=1)
np.repeat(x, [2], axis=0)
np.repeat(x, [2, 0, 3, 1], axis=-2)
np.repeat(x, np.array([2, 0, 3, 1], ">u2"), axis=0)
[np.tile(x, 1), np.tile(x, ()), np.tile(x, 2)]
[np.tile(x, (2, 1, 3)), np.tile(x, np.array([2, 1])), np.tile(x, np.int64(2))]
np.where(np.True_, x, x)
np.where(m, x, y)
np.where(m[..., :1], x, z)
np.where(m[:1], y[:1], x)
np.extract(m, x)
np.compress(m.reshape(-1)[:2], x)
np.compress(m[..., 0], x, axis=0)
np.compress(m[0], x, -1)
x[m]
x[m[:, 0]]
x[:, m[0]]
[np.array_equal(x, each) for each in (y, z, x[:0])]
xp.isdtype(x.dtype, "integral")
"""
"""Calls that move elements of any type, repeat or pick them."""

_LOGIC = """
[~x, ~~x]
[x | 0, x & 1, 1 ^ x]
[x & y, x | y, x ^ y, y ^ x]
x ^ y[..., :1]
x[:1] & y
x & x.T
x << y
x >> y
x << 1
x >> True
1 << x
[xp.bitwise_invert(x), xp.bitwise_and(x, z), xp.bitwise_or(x, z), xp.bitwise_xor(x, z)]
[xp.bitwise_left_shift(x, z), xp.bitwise_right_shift(x, z)]
[np.trim_zeros(np.concatenate([x ^ x, x | 1, x ^ x]), trim) for trim in ("f", "b", "fb")]
np.trim_zeros(x & 1)
np.nonzero(x & 1)
np.flatnonzero(x & 1)
np.extract(x & 1, x)
[x.astype("i2"), x.astype("u8"), x.astype("u1")]
[x.astype("i4", copy=False), x.astype(">u4"), x.astype("?")]
(x ^ y).astype("i2")
[np.bitwise_and.reduce(x, axis=k, keepdims=d) for k in K]
[np.bitwise_or.reduce(x, axis=k, keepdims=d) for k in K]
[np.bitwise_xor.reduce(x, axis=k, keepdims=d) for k in K]
[np.bitwise_xor.reduce(x, axis=k, where=m) for k in K]
np.bitwise_or.reduce(x[None], axis=0)
[x.sum(k, keepdims=d) for k in K]
[x.sum(k, dtype="u4") for k in K]
[np.sum(x, k, where=m) for k in K]
[np.add.reduce(x, axis=k, keepdims=d) for k in K]
x.sum(0, where=m[:1])
(x ^ y).sum(-1)
(x & 5).sum(0)
x.sum(-1).sum()
np.any(x) ^ np.all(x, -1)
x.copy().sum(axis=0)
(~x.astype("u8")).sum(-1)
x[..., ::-1].astype("i4").copy().sum(0)
x.astype(np.uint32).sum(axis=-1, keepdims=True)
x.astype(np.int8).sum()
np.packbits(x, -1)
np.packbits(x)
np.packbits(x, 0, bitorder="little")
np.empty_like(x) & 0
np.full_like(x, 1) ^ x
"""
"""Calls on integers and truth values."""

_TRUTH = """
[x == y, x != y, y == x, x == z]
x == x[:1]
[x.flat == y.reshape(-1), x.flat != y.flat, x.flat == 7, x.flat != x.flat]
[~(x == y), (x == y).copy()]
[x == 1, 0.5 == x, x != 0, x == np.float32(0.5)]
[f(x, y) for f in (np.logical_and, np.logical_or, np.logical_xor)]
[f(y, x[::-1]) for f in (np.equal, np.not_equal, np.logical_and, np.logical_or)]
[f(x) for f in (np.logical_not, np.isnan, np.isfinite, np.isinf, np.signbit)]
[f(x, z) for f in (xp.equal, xp.not_equal, xp.logical_and, xp.logical_or, xp.logical_xor)]
[f(x) for f in (xp.logical_not, xp.isnan, xp.isfinite, xp.isinf, xp.signbit)]
x.astype(bool)
np.nonzero(x)
np.where(x, x, y)
[np.any(x, k, keepdims=d) for k in K]
[np.all(x, k, keepdims=d) for k in K]
[np.count_nonzero(x, k, keepdims=d) for k in K]
[np.any(x, k, where=m) for k in K]
[np.all(x, k, where=m) for k in K]
[np.any(x == y, k) for k in K]
[np.all(x == z, k) for k in K]
[np.count_nonzero(x != y, k) for k in K]
[np.logical_and.reduce(x, axis=k, keepdims=d) for k in K]
[np.logical_or.reduce(x, axis=k, where=m) for k in K]
[xp.any(x, axis=k, keepdims=d) for k in K]
[xp.all(x, axis=k, keepdims=d) for k in K]
[xp.count_nonzero(x, axis=k, keepdims=d) for k in K]
x.any(0, keepdims=True)
x.all(where=m, keepdims=True)
np.count_nonzero(x, -1).sum()
1 in x
np.array_equal(x, y[::-1])
"""
"""Comparisons and tests."""

_BYTES = """
np.unpackbits(x)
np.unpackbits(x, -1, bitorder="little")
np.unpackbits(x, -1, count=5 if x.size else None)
np.unpackbits(x, -1, count=-3)
np.unpackbits(x, count=x.size and x.size * 8 + 5)
[np.bitwise_count(x), np.bitwise_count(x ^ y)]
[np.bitwise_count(x).sum(axis=k, keepdims=d) for k in K]
[np.bitwise_count(x ^ y).sum(axis=k, dtype=np.uint32, keepdims=d) for k in K]
[np.add.reduce(np.bitwise_count(x), k) for k in K]
[x.view("i1"), x[..., ::2].view("i1")]
x.view("u2")
"""
"""Calls on bytes."""

_BOOLEANS = """
np.bitwise_count(x)
np.concatenate([np.ones(x.shape, "u1"), x, y])
"""
"""Calls on truth values."""

_COUNTS = """
[bit_count(x), bit_count(x, np.uint32), bit_count(x & y)]
[bit_count(x).sum(k, keepdims=d) for k in K]
[bit_count(x ^ y).sum(k, dtype=np.uint32, keepdims=d) for k in K]
[np.sum(bit_count(x), k) for k in K]
bit_count(x, np.uint32)[..., 1:].sum(-1)
bit_count(x).copy().sum()
[hamming(x, y, k, keepdims=d) for k in K]
[hamming(y, x[..., ::-1], k) for k in K]
[hamming(x, y, k, dtype="u8") for k in K]
[cardinality(x, k, keepdims=d) for k in K]
[cardinality(x, k, dtype=">i8") for k in K]
[jaccard(x, y, k, keepdims=d).tolist() for k in K]
"""
"""Counts of bits, which NumPy has of absolute values alone, and their sums."""

_WRITES = """
x[...] = y
x[...] = y.T
x[...] = n
x[0] = 1
x[:1] = n
x[-1:, ...] = y[:1]
x[:, 1] = n
x[1::2, ::-2] = n
x[0:0] = n
x[::-1] = z
x[1:] = z[:-1]
x[1:] = y[None, 1:]
x[0] = y.reshape(-1)[:1].reshape(())
x[:-1] ^= z[1:]
x[::-1] ^= z
x[[1, 0]] = n
x[[1, 2, 0]] = z[0:3]
x[:, [0, 2]] ^= z[:, [1, 3]]
x[[1, 1, 1], 0] = [1, 0, 1]
x[m] = n
x[m[:, 0]] = 1
x[m] = z[m]
x[:, m[0]] = 1
x[x == 0] = 1
x ^= y
x |= y[:1]
x &= 1
x <<= 1
np.copyto(x, y)
np.copyto(x, n)
np.copyto(x, y, where=m)
np.copyto(x, y, "unsafe", where=m[:1])
np.copyto(x, z.T)
np.copyto(x, y[None] if m.ndim else y, where=m)
np.bitwise_xor(x, y, out=x)
np.bitwise_xor(x, z[::-1], out=x, where=m)
np.bitwise_or(x, y, out=x, where=m[..., :1])
np.invert(x, out=x, where=np.array(True))
np.invert(x, out=x, where=np.array(False))
np.equal(x, y, out=x)
np.logical_or(x, y, out=x, where=m)
np.bitwise_or.reduce(z, keepdims=True, out=x[:1])
np.bitwise_xor.reduce(x, 0, keepdims=True, out=x[1:2])
x[:1] = np.sum(z, 0, keepdims=True)
np.any(z, 0, keepdims=True, out=x[:1])
np.all(z, -1, keepdims=True, out=x[..., :1])
np.compress([True, False], y, 0, x[:1])
np.place(x, m, n)
np.place(x, m, z.reshape(-1)[:3])
np.putmask(x, m, 1)
np.putmask(x, m, [1, 0, 1])
np.putmask(x, m, z[::-1])
np.put(x, [0, 1, -1, 0], n)
np.put(x, [0, -1], n)
np.put(x, [[99], [-50]], n, mode="wrap")
np.put(x, [99, -50, 1], n, "clip")
np.put(x, [], n)
np.put(x, np.arange(x.size)[::-1], z[:2])
np.fill_diagonal(x, n)
np.fill_diagonal(x, n, wrap=True)
np.fill_diagonal(x, z[:1], wrap=True)
x.flat = n
x.flat[-2::-3] = n
x.flat[[0, -1, 0]] = [1, 0, 1]
x.flat[np.arange(x.size) % 3 == 1] = n
x.flat[::2] = z.reshape(-1)[::-1]
x.flat[: x.size // 2] = z.reshape(-1)[: x.size // 2 - 1 : -1]
x.flat[...] = z.T
"""
"""Statements that write to a view of an array, whose other elements must stay."""

ROWS = [
    Row(text, kinds, writes)
    for group, kinds, writes in (
        (_MOVES, ANY, False),
        (_LOGIC, KINDS, False),
        (_TRUTH, ANY, False),
        (_BYTES, ["u1"], False),
        (_BOOLEANS, ["?"], False),
        (_COUNTS, KINDS, False),
        (_WRITES, KINDS, True),
    )
    for text in group.strip().splitlines()
]
