"""Arrays refuse bad calls by name, in one line: nothing is sent, executed, allocated or freed.

A row is a line of Python on an array ``x``; behind ``#`` are the error and words of its message.
Keys are the data type and the shape of ``x``.
"""

from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import Array, Device
from bitlane import array_api as xp
from support.host.arrays import random
from support.host.refusals import refused_row

ROWS: dict[str, str] = {
    "u1 3 4": r"""
x + 1  # NotOfferedError: operator \+: .*np\.asarray\(x\)
1 - x  # NotOfferedError: operator -
x < 3  # NotOfferedError: operator <: .* == != alone; np\.asarray\(x\)
x == object()  # DataTypeError: b: data type object
x == [None]  # DataTypeError: b: data type object
x == np.zeros(3, "f4")  # DataTypeError: uint8 and float32; expected integers
x != np.zeros(3, "u1")  # ShapeError: do not broadcast
x.view("u4").astype("u8") == 2.0 ** 60  # DataTypeError: which NumPy rounds
x.view("f4") == 10 ** 400  # OutOfRangeError: expected a number that float64
np.any(x, axis=2)  # ShapeError: axis: 2
xp.any(A)  # DataTypeError: expected an array on a device
xp.all(A)  # DataTypeError: expected an array on a device
xp.count_nonzero(A)  # DataTypeError: expected an array on a device
xp.isnan(A)  # DataTypeError: expected an array on a device
xp.bitwise_and(1, 2)  # DataTypeError: expected an array on a device
xp.positive(x == x)  # DataTypeError: x: data type bool; the sign \+ expects numbers
np.equal(x, 1, dtype="O")  # NotOfferedError: np\.equal: dtype is not offered
np.array_equal(x, x, equal_nan=True)  # NotOfferedError: equal_nan
abs(x)  # NotOfferedError: abs
x.mean()  # MissingError: x\.get\(\)\.mean does it on the host
x.repeat(2)  # MissingError: np\.repeat\(x\) does it on the device
x.bogus  # MissingError: no bogus
x.reshape(5)  # ShapeError: has 12 elements
x.T.reshape(12, copy=False)  # CopyError: takes a copy
x ^ np.zeros(3, "u1")  # ShapeError: do not broadcast
x.broadcast_to((2, 3, 4))[0, 0] = 1  # ShapeError: repeats
np.broadcast_to(x, (2, 3, 4)).__ixor__(1)  # ShapeError: repeats
x[0] = [1, 2, 3]  # ShapeError: broadcast
x ^ "text"  # DataTypeError: b: data type
x ^ None  # DataTypeError: b: data type object
x ^ 1j  # DataTypeError: b: data type complex128
x.astype("f4")  # DataTypeError: floats take arithmetic
x.astype("bogus")  # DataTypeError: expected a data type
x[0] = 1.5  # DataTypeError: value: data type float64 for uint8
hash(x)  # TypeError: unhashable
x.T.mT[0].mT  # ShapeError: expected two axes
x[[0, 3]]  # ArrayIndexError: index: 3 for axis 0 of 3; expected -3 to 2
x[:, [-5]]  # ArrayIndexError: index: -5 for axis 1 of 4; expected -4 to 3
x[[[0], [0, 1]]]  # ArrayIndexError: lists of different lengths
x[np.uint64([2 ** 63])]  # ArrayIndexError: 9223372036854775808 for axis 0
x[[0.5]]  # ArrayIndexError: an array of float64; expected integers or truth
x[np.ones(4, bool)]  # ArrayIndexError: of shape \(4,\) for axis 0
x[[0, 1], [0, 1, 2]]  # ArrayIndexError: \(2,\), \(3,\) do not broadcast
x[[0], [0], [0]]  # ArrayIndexError: index: 3 axes; the array has 2
x[..., [0], ...]  # ArrayIndexError: more than one
x["row"]  # ArrayIndexError: of type str; expected integers, slices
x[[0], 0.5]  # ArrayIndexError: of type float
x[[0, 1]] = [1, 2, 3]  # ShapeError: does not broadcast
x[[0, 1]] = 1.5  # DataTypeError: value: data type float64
x.broadcast_to((2, 3, 4))[[0]] = 1  # ShapeError: repeats
np.putmask(x.broadcast_to((2, 3, 4)), np.zeros((2, 3, 4), bool), [])  # ShapeError: read-only
np.place(x.broadcast_to((2, 3, 4)), np.zeros((2, 3, 4), bool), [1])  # ShapeError: read-only
x.sum(where=np.ones(3, bool))  # ShapeError: where: shape \(3,\); expected one that broadcasts to
x.any(where=MORE)  # ShapeError: where: shape \(4, 3, 4\); expected .*\(3, 4\)
np.invert(x, out=x, where=MORE)  # ShapeError: out: shape \(3, 4\); expected \(4, 3, 4\)
x.sum(where=np.ones(4, "c8"))  # DataTypeError: where: data type
np.where(x)  # NotOfferedError: np\.where: .*missing
np.where(x, x, np.zeros(4, "f4"))  # DataTypeError: uint8 and float32
x.get(out=np.zeros((3, 4), "u4"))  # DataTypeError: out: uint32; expected an array of uint8
x.get(out=np.zeros((4, 3), "u1"))  # ShapeError: out: shape
bool(x[0, :2])  # ShapeError: 2 elements; expected one
len(x[0, 0])  # ShapeError: without axes has no length
x.item(12)  # ArrayIndexError: item: 12; the array has 12 elements
x.item(-13)  # ArrayIndexError: item: -13; the array has 12 elements
x[:, :0].item(0)  # ArrayIndexError: item: 0; the array has 0 elements
bitlane.compute()  # DataTypeError: ^compute: expected arrays on a device
bitlane.compute(x, A)  # DataTypeError: ^compute: expected arrays on a device
bitlane.compute(1)  # DataTypeError: ^compute: expected arrays on a device
x.reshape(x)  # ShapeError: shape: of type Array
x.transpose(x)  # ShapeError: axes: of type Array
x.to_device(x)  # DataTypeError: of type
x.__index__()  # DataTypeError: shape \(3, 4\), uint8
np.full_like(x, 1 << 70)  # OutOfRangeError: fill_value
""",
    "u1 4 6": r"""
x ^ W  # ShapeError: shape
W ^ x  # ShapeError: shape
x == W  # ShapeError: shape
np.bitwise_xor(x, A, out=x[:2])  # ShapeError: shape
np.bitwise_xor(x, A, out=A[:2].copy())  # ShapeError: shape
np.bitwise_xor(x, A, out=x, where=W > 0)  # ShapeError: shape
np.bitwise_xor(x, A, where=W > 0)  # ShapeError: shape
np.logical_xor(x, W)  # ShapeError: shape
np.where(x, W, A)  # ShapeError: shape
np.where(W, x, A)  # ShapeError: shape
np.where(x, A, W)  # ShapeError: shape
x.sum(where=W > 0)  # ShapeError: shape
x.any(where=W > 0)  # ShapeError: shape
np.bitwise_or.reduce(x, where=W > 0)  # ShapeError: shape
np.copyto(x, W)  # ShapeError: shape
np.copyto(x, A, where=W > 0)  # ShapeError: shape
np.copyto(x, W, where=A > 0)  # ShapeError: shape
np.putmask(x, W, 1)  # ShapeError: mask: 28
x[:] = W  # ShapeError: shape
x[:2] = A  # ShapeError: shape
bitlane.hamming(x, W)  # ShapeError: shape
bitlane.jaccard(W, x)  # ShapeError: shape
bitlane.bit_xor(x, W)  # ShapeError: shape
x.device.bit_xor(A, A, out=x[:2])  # ShapeError: shape
x.device.bit_not(A, out=x[:2])  # ShapeError: shape
x.device.bit_count(A, out=x[:2])  # ShapeError: shape
""",
    "f4 2 3": r"""
x ^ x  # DataTypeError: float32|floats
~x  # DataTypeError: float32|floats
x << 1  # DataTypeError: float32|floats
x.astype("i4")  # DataTypeError: float32|floats
x.astype("f8")  # DataTypeError: float32|floats
x == x.view("i4")  # DataTypeError: float32|floats
x == np.zeros((2, 3))  # DataTypeError: float32|floats
x.view("i4") & 1.5  # DataTypeError: float32|floats
x.device.bit_shift_left(x, x)  # DataTypeError: float32|floats
""",
    "u2 3 4": r"""
x[3]  # ArrayIndexError: 3 for axis 0 of 3; expected -3 to 2
x[0, -5]  # ArrayIndexError: -5 for axis 1 of 4
x[0, 0, 0]  # ArrayIndexError: 3 axes; the array has 2
x[..., 0, ...]  # ArrayIndexError: more than one
x[::0]  # ShapeError: step of 0
x[1.0]  # ArrayIndexError: of type float
x[:0][0]  # ArrayIndexError: has no elements
x.reshape(-1, 5)  # ShapeError: shape:
x.reshape(-1, -1)  # ShapeError: shape:
x.reshape(-2, 6)  # ShapeError: shape:
x.reshape(0, -1)  # ShapeError: shape:
x.reshape(2.5)  # ShapeError: shape:
x.reshape(2.5, 1)  # ShapeError: shape:
x.transpose(0, 0)  # ShapeError: ax[ie]s
x.transpose(2, 0)  # ShapeError: ax[ie]s
x.transpose(np.array([0.0, 1.0]))  # ShapeError: expected integers
x.transpose(np.array([[0, 1]]))  # ShapeError: expected integers
x.reshape(np.array([[0, 1]]))  # ShapeError: expected integers
x.reshape(np.array(["0"]))  # ShapeError: expected integers
np.expand_dims(x, np.array([0]))  # ShapeError: expected an integer
np.squeeze(x[None], np.array([0]))  # ShapeError: expected an integer
np.any(x, np.array([0]))  # ShapeError: expected an integer
np.any(x, -3)  # ShapeError: ax[ie]s
np.any(x, "ab")  # ShapeError: ax[ie]s
np.broadcast_to(x, (3,))  # ShapeError: does not broadcast
np.broadcast_to(x, (3, 5))  # ShapeError: does not broadcast
np.broadcast_to(x, (4, 3))  # ShapeError: does not broadcast
np.expand_dims(x, 4)  # AxisError: axis: 4; expected -3 to 2
xp.expand_dims(x, axis=-4)  # AxisError: axis: -4
np.take(x, [0], axis=2)  # AxisError: axis: 2; expected -2 to 1
np.take(x, [3], axis=0)  # ArrayIndexError: index: 3 for axis 0 of 3
np.take(x, [0.5])  # DataTypeError: indices: data type float64
np.take(x, [True])  # DataTypeError: indices: data type bool
np.take(x, [0], mode="wrap")  # NotOfferedError: np.take: .*does not take mode
np.take(x, [0], out=x)  # NotOfferedError: np.take: .*it does not take out .*np.asarray
np.take(x, [[0], [1, 2]])  # ShapeError: indices: lists of different lengths
np.take(x, [2 ** 70])  # OutOfRangeError: indices: 1180591620717411303424; expected integers of
np.take(x, [0], (0,))  # ShapeError: axis: \(0,\); expected an integer
np.take(x, HUGE)  # OutOfHostMemory: index: .* bytes do not fit
x[HUGE]  # OutOfHostMemory: index: .* bytes do not fit
x[..., None, None, None][np.ix_(*[[0] * 8192] * 5)] = 1  # OutOfHostMemory: index: 2951479
x[[2 ** 70]]  # ArrayIndexError: index: 1180591620717411303424; expected integers of 64 bits
x[0:1.5]  # DataTypeError: index: slice\(0, 1\.5, None\); expected integers
np.size(x, 5)  # AxisError: axis: 5; expected -2 to 1
np.size(x, 0.5)  # ShapeError: axis: 0\.5; expected an integer
np.expand_dims(x, 1.5)  # ShapeError: axis: 1\.5; expected an integer
np.swapaxes(x, (0, 1), 0)  # ShapeError: axis: \(0, 1\); expected an integer
np.concatenate([x, x], (0, 1))  # ShapeError: expected an integer
np.stack([x, x], (0, 1))  # ShapeError: expected an integer
xp.unstack(x, axis=(0,))  # ShapeError: axis: .0,.; expected an integer
xp.eye(2, k=1.5)  # DataTypeError: k: 1\.5; expected an integer
np.roll(x, 1.5)  # DataTypeError: shift: 1\.5; expected an integer
np.roll(x, (1, 2, 3), (0, 1))  # ShapeError: expected one for each axis of
np.take_along_axis(x, np.array([0]), 0)  # ShapeError: expected 2 axes
np.take_along_axis(A, x, 0)  # DataTypeError: arr: an array on the host
np.repeat(x, -1)  # ShapeError: from -1 on
np.repeat(x, [1, 2], axis=0)  # ShapeError: repeats: shape \(2,\), .* or 3 of
np.repeat(x, [[1], [1, 2]])  # ShapeError: repeats: lists of different lengths
np.repeat(x, 2, (0, 1))  # ShapeError: axis: \(0, 1\); expected an integer
np.repeat(x, 2 ** 70)  # OutOfRangeError: repeats: 1180591620717411303424; expected integers
np.repeat(x, [2 ** 62, 1, 2], 0)  # OutOfHostMemory: repeats: .* bytes do not fit
np.repeat(x, 1.5)  # DataTypeError: repeats: data type float64
np.tile(x, -1)  # ShapeError: none below 0
np.tile(x, 1.5)  # ShapeError: reps: \[1\.5\]; expected integers
np.tile(x, "2")  # ShapeError: expected integers
np.meshgrid(x)  # ShapeError: expected one axis each
np.meshgrid(x[0], indexing="ii")  # ShapeError: indexing: 'ii'
xp.broadcast_arrays(A)  # DataTypeError: none on a device
xp.arange(0, 5, 0)  # ShapeError: arange: a step of 0; expected an
xp.arange(256, 258, dtype="u1")  # OutOfRangeError: arange: .* 256 out .*; expected n
xp.arange("x")  # DataTypeError: arange:
xp.arange(3, dtype=np.dtype("c8"))  # DataTypeError: dtype:
xp.arange(1 << 62)  # ShapeError: arange:
xp.linspace(0, 1, -1)  # ShapeError: num: -1; expected 0 or more
xp.linspace(1j, 2, 3)  # DataTypeError: linspace:
xp.linspace(0, 1, 2.5)  # DataTypeError: linspace:
xp.take(x, x[0])  # ShapeError: axis: None
xp.take(x, [4], axis=1)  # ArrayIndexError: index: 4 for axis 1
xp.finfo(xp.uint8)  # DataTypeError: x: uint8; expected a float type
np.concatenate([x, x.get().astype("c16")])  # DataTypeError: arrays: data type complex128; expected
np.concatenate([x, np.full((3, 4), None)])  # DataTypeError: arrays: data type object; expected
np.concatenate([x, [["a"] * 4] * 3])  # DataTypeError: arrays: data type <U1; expected
np.stack([x, x.get().astype("c16")])  # DataTypeError: arrays: data type complex128; expected
np.stack([x, np.full((3, 4), None)])  # DataTypeError: arrays: data type object; expected
np.stack([x, [["a"] * 4] * 3])  # DataTypeError: arrays: data type <U1; expected
""",
    "u1 4 5": r"""
np.split(x, 3)  # ShapeError: indices_or_sections: 3; expected a number that divides 4
np.array_split(x, 0)  # ShapeError: indices_or_sections: 0; expected 1 or more
np.dsplit(x, 1)  # ShapeError: np\.dsplit: shape \(4, 5\); expected 3 axes or more
np.vsplit(x[0], 1)  # ShapeError: np\.vsplit: shape \(5,\); expected 2 axes or more
np.fliplr(x[0])  # ShapeError: np\.fliplr: shape \(5,\); expected 2 axes or more
np.rot90(x, 1, (0, 0))  # ShapeError: axes|axis
np.diagonal(x[0])  # ShapeError: np\.diagonal: shape \(5,\)
np.rollaxis(x, 2)  # ShapeError: axis: 2
np.hstack([x, x[0]])  # ShapeError: arrays: shapes
x.ravel("X")  # ShapeError: order: 'X'; expected
""",
    "u1 2 3": r"""
np.nonzero(x[0, 0])  # ShapeError: an array without axes
np.compress(x.get(), x)  # ShapeError: condition: shape \(2, 3\)
np.compress([1] * 7, x)  # BitlaneError: index: 6 for axis 0 of 6
np.place(x, [True], 1)  # ShapeError: mask: 1 elements; expected 6
np.place(x, x.get() == x.get(), [])  # ShapeError: vals: no elements
np.putmask(x, x, np.arange(3))  # DataTypeError: values: data type int64
np.put(x, [9], 1)  # BitlaneError: ind: 9; the array has 6 elements
np.put(x, [2 ** 64 - 1], 1)  # BitlaneError: ind: 18446744073709551615; expected
np.put(x, [2 ** 63], 1, "clip")  # BitlaneError: expected numbers below 2
np.put(x, [0], 1, "W")  # ShapeError: mode: 'W'; expected 'raise', 'wrap' or
np.put(x.get(), [0], x)  # DataTypeError: a: of type ndarray; expected
np.fill_diagonal(x[0], 1)  # ShapeError: a: shape \(3,\); expected two axes
np.delete(x, 9)  # BitlaneError: obj: index 9 is out of bounds
np.trim_zeros(x[0], "x")  # ShapeError: trim: 'x'; expected 'f', 'b' or 'fb'
x.flat[9]  # BitlaneError: flat: index 9 is out of bounds
x.flat[np.True_] = 1  # BitlaneError: flat: expected an integer, a
x.flat[np.array(True)]  # BitlaneError: flat: expected an integer, a slice
x.flat[(None,),] = 1  # BitlaneError: flat: expected an integer, a
np.place(x.get(), x, 1)  # DataTypeError: arr: of type ndarray; expected
np.concatenate([x[0], x[0, 0]])  # ShapeError: expected alike but for axis 0
np.concatenate([x[0, 0], x[0, 1]])  # ShapeError: there are no axes
np.bitwise_xor(x, 1, out=np.broadcast_to(np.uint8(0), (2, 3)))  # ShapeError: out: the array is r
x.get(out=np.broadcast_to(np.uint8(0), x.shape))  # ShapeError: out: the array is read-only
x.get(out=[1])  # DataTypeError: out: of type list
np.bitwise_xor(x, 1, out=[1])  # DataTypeError: out: of type list
x.to_device("cpu")  # DataTypeError: device: 'cpu'; expected one that bitlane
xp.zeros(3, device="cpu")  # DataTypeError: device: 'cpu'
x.device.from_dlpack(3)  # DataTypeError: x: of type int; .* __dlpack__
np.swapaxes(x, 0, 2)  # ShapeError: axis:
np.swapaxes(x, -3, 0)  # ShapeError: axis:
x.device.bit_not(WIDE)  # OutOfHostMemory: ^result: 1125899906842624 bytes
x.device.hamming(WIDE, 3)  # OutOfHostMemory: ^sums: 9007199254740992 bytes
""",
    "u1 2 4": r"""
np.unpackbits(x.astype("u2"))  # DataTypeError: data type uint16; expected uint
np.unpackbits(x, bitorder="middle")  # ShapeError: bitorder: 'middle'; expected
np.unpackbits(x, 0, -17)  # ShapeError: count: -17; expected -16 or more
np.unpackbits(x, 2)  # BitlaneError: axis: 2
np.packbits(x.view("f4"))  # DataTypeError: data type float32; expected integ
np.packbits(x, bitorder=None)  # ShapeError: bitorder: None; expected 'big'
x.view("f2").sum()  # DataTypeError: sum: data type float16; expected integers
x.sum(dtype="f4")  # DataTypeError: dtype: float32; sums are integers
x.sum(dtype=bool)  # DataTypeError: dtype: bool; sums are integers
x.sum(out=3)  # DataTypeError: out: of type int
x.sum(0, out=np.zeros(3, int))  # ShapeError: out: shape
x.sum(0, out=np.zeros((1, 4), int))  # ShapeError: \(1, 4\); expected \(4,\)
x.any(0, np.zeros((1, 4), bool))  # ShapeError: \(1, 4\); expected \(4,\)
x.all(0, np.zeros((1, 4), bool))  # ShapeError: \(1, 4\); expected \(4,\)
np.mean(x)  # NotOfferedError: np.mean: not on a device
np.cumsum(x)  # NotOfferedError: np.cumsum: not on a device
bitlane.bit_count(x).sum(axis=2)  # ShapeError: axis: 2; expected -2 to 1
bitlane.hamming(x, x, (1, -1))  # ShapeError: expected each once
bitlane.hamming(x, x[:, :2])  # ShapeError: do not broadcast
bitlane.hamming(x, "no")  # DataTypeError: data type <U2
np.sum(bitlane.bit_count(x), initial=5)  # NotOfferedError: initial
bitlane.cardinality(x, dtype="no")  # DataTypeError: 'no'; sums are integers
bitlane.cardinality(x, dtype=float)  # DataTypeError: float64; sums are int
bitlane.hamming(rows(x, 1 << 29), 1)  # OutOfRangeError: to 4294967295; .* 4294967296
bitlane.jaccard(rows(x, 1 << 29), 1)  # OutOfRangeError: to 4294967295; .* 4294967296
bitlane.cardinality(rows(x, 32), dtype="u1")  # OutOfRangeError: uint8 .* 255; .* 256
bitlane.cardinality(rows(x, 28), dtype="i1")  # OutOfRangeError: int8 .* 127; .* 224
np.bitwise_or.reduce(x, out=x)  # ShapeError: out: shape \(2, 4\); expected \(4,\)
np.add.reduce(x, out=x)  # ShapeError: out: shape \(2, 4\); expected \(4,\)
np.logical_and.reduce(x, out=x)  # ShapeError: out: shape \(2, 4\); expected \(4,\)
""",
    "i2 2 3": r"""
np.add(x, 1)  # NotOfferedError: np\.add: not on a device; np\.asarray\(x\)
np.add(x, "text")  # NotOfferedError: ^np\.add: not on a device
np.add.accumulate(x)  # NotOfferedError: np\.add\.accumulate
np.left_shift.reduce(x)  # NotOfferedError: np\.left_shift\.reduce
np.bitwise_xor.accumulate(x)  # NotOfferedError: np\.bitwise_xor\.accumulate
np.bitwise_xor.reduceat(x, [0, 1])  # NotOfferedError: np\.bitwise_xor\.reduceat
np.bitwise_xor.outer(x, x)  # NotOfferedError: np\.bitwise_xor\.outer
np.bitwise_xor.at(x, 0, 1)  # NotOfferedError: np\.bitwise_xor\.at
np.bitwise_xor(x, 1, dtype="i8")  # NotOfferedError: dtype is not offered
np.bitwise_or.reduce(x, initial=1)  # NotOfferedError: initial is not offered
np.cumsum(x)  # NotOfferedError: np\.cumsum: not on a device
np.mean(x)  # NotOfferedError: np\.mean: not on a device
np.linalg.norm(x)  # NotOfferedError: np\.linalg\.norm
np.take(x, [0], 0, x)  # NotOfferedError: ^np\.take: on a device, too many positional arg
np.sum(bitlane.bit_count(x), initial=3)  # NotOfferedError: not take initial .*np\.asarray\(x\)
np.bitwise_or.reduce(x, axis=3)  # ShapeError: axis|axes
np.bitwise_or.reduce(x, axis=-3)  # ShapeError: axis|axes
np.bitwise_or.reduce(x, axis=(0, 0))  # ShapeError: axis|axes
np.bitwise_or.reduce(x, axis=1.5)  # ShapeError: axis|axes
np.bitwise_or.reduce(x.view("f2"))  # DataTypeError: x: data type float16; expected integers
np.invert(x, out=x[0])  # ShapeError: out: shape \(3,\); expected \(2, 3\)
np.invert(x, out=x.astype("?"))  # DataTypeError: out: data type bool for a result of int16
np.bitwise_count(x)  # DataTypeError: np\.bitwise_count: data type int16.*bitlane\.bit_
bitlane.bit_count(x, np.uint16)  # DataTypeError: counts are uint8 or uint32
""",
    "u1 4": r"""
d.bit_and(u, np.zeros(4, "int8"), casting="no")  # DataTypeError: uint8 and int8; expected the
d.bit_and(u, np.zeros(4, "uint16"), casting="no")  # DataTypeError: uint8 and uint16; expected the
d.bit_and(u, np.zeros(4, "float16"), casting="no")  # DataTypeError: uint8 and float16; expected the
d.bit_and(u, np.zeros(4, "uint64"), casting="no")  # DataTypeError: uint8 and uint64; expected the
d.bit_and(u, np.zeros(4, "bool"), casting="no")  # DataTypeError: uint8 and bool; expected the
d.bit_or(np.zeros(4, "u8"), np.zeros(4, "i8"))  # DataTypeError: ; expected integers or truth values
d.bit_or(np.zeros(4, "u1"), np.zeros(4, "f4"))  # DataTypeError: ; expected integers or truth values
d.bit_or(np.zeros(4, "f4"), np.zeros(4, "f8"))  # DataTypeError: ; expected integers or truth values
d.bit_or(np.zeros(4, "f2"), np.zeros(4, "?"))  # DataTypeError: ; expected integers or truth values
d.bit_or(np.zeros(3, "u1"), 256)  # OutOfRangeError: b: 256 does not fit
d.bit_or(256, np.zeros(3, "u1"))  # OutOfRangeError: a: 256 does not fit
d.bit_or(np.zeros(3, "u1"), -1)  # OutOfRangeError: b: -1 does not fit
d.bit_or(-1, np.zeros(3, "u1"))  # OutOfRangeError: a: -1 does not fit
d.bit_or(np.zeros(3, "i1"), 128)  # OutOfRangeError: b: 128 does not fit
d.bit_or(128, np.zeros(3, "i1"))  # OutOfRangeError: a: 128 does not fit
d.bit_shift_left(np.zeros(3, "f2"), np.zeros(3, "f2"))  # DataTypeError: as np.uint16
d.bit_shift_right(np.zeros(3, "f2"), np.zeros(3, "f2"))  # DataTypeError: integers
d.bit_shift_left(np.zeros(3, "f4"), np.zeros(3, "f4"))  # DataTypeError: as np.uint32
d.bit_shift_right(np.zeros(3, "f4"), np.zeros(3, "f4"))  # DataTypeError: integers
d.bit_shift_left(np.zeros(3, "f8"), np.zeros(3, "f8"))  # DataTypeError: as np.uint64
d.bit_shift_right(np.zeros(3, "f8"), np.zeros(3, "f8"))  # DataTypeError: integers
d.bit_not([[1], [1, 2]])  # ShapeError: a: no array can be made of this list
d.bit_xor(u, [[1], [1, 2]])  # ShapeError: b: no array can
d.bit_not([[1, 2], 3])  # ShapeError: a: no array can be made of this list
d.bit_xor(u, [[1, 2], 3])  # ShapeError: b: no array can
d.bit_not([[[1]], [[1, 2]]])  # ShapeError: a: no array can be made of this list
d.bit_xor(u, [[[1]], [[1, 2]]])  # ShapeError: b: no array can
d.bit_count(u, "zz")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, "u99")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, 3.5)  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, [1])  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, object())  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, "i1")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, "u2")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, "u8")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, "i4")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, "f4")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, "?")  # DataTypeError: counts are uint8 or uint32
d.bit_count(u, out=np.zeros(4, "i1"))  # DataTypeError: uint8
d.bit_count(u, out=np.zeros(4, "u2"))  # DataTypeError: uint8
d.bit_count(u, out=np.zeros(4, "u8"))  # DataTypeError: uint8
d.bit_count(u, out=np.zeros(4, "i4"))  # DataTypeError: uint8
d.bit_count(u, out=np.zeros(4, "f4"))  # DataTypeError: uint8
d.bit_count(u, out=np.zeros(4, "?"))  # DataTypeError: uint8
d.bit_or(u, u, casting="yes")  # DataTypeError: 'yes'
d.bit_or(u, 1, casting="yes")  # DataTypeError: 'yes'
d.bit_or(np.zeros(3, "f4"), 1)  # DataTypeError: integer 1 beside float32
d.hamming(u, u[:2])  # ShapeError: do not broadcast
d.cardinality(u, 1)  # ShapeError: axis: 1; expected -1 to 0
d.cardinality(np.uint8(3))  # ShapeError: axis: -1; there are
d.jaccard(u, u.astype(float))  # DataTypeError: data types
d.cardinality(np.zeros((2, 32), "u1"), dtype=np.uint8)  # OutOfRangeError: up to 255; .* be 256
d.cardinality(np.broadcast_to(np.uint8(1), (1 << 29,)))  # OutOfRangeError: 4294967295; .* 429496729
d.bit_and(LONG, LONG.T)  # ShapeError: \(8589934592, 1\) and \(1, 8589934592\) make more
d.bit_xor(u, u[:3])  # ShapeError: shapes \(4,\) and \(3,\) do not broadcast
d.bit_not(u, out=np.zeros(4, "i1"))  # DataTypeError: out: data type int8; expected uint8
d.bit_not(u, out=np.zeros(3, "u1"))  # ShapeError: out: shape \(3,\); expected \(4,\)
d.bit_not(u, out=np.zeros((1, 4), "u1"))  # ShapeError: out: shape \(1, 4\)
d.bit_not(u, out=np.broadcast_to(np.uint8(0), 4))  # ShapeError: read-only
d.bit_not(u, out=[0, 0, 0, 0])  # DataTypeError: out: of type list; expected an array of uint8
d.bit_not(u, out=np.ma.zeros(4, "u1"))  # DataTypeError: out: of type MaskedArray
d.bit_not(u, out=np.ndarray(4, "u1", bytearray(1), 0, 0))  # ShapeError: lie on one another
""",
}

LACKING = {
    "np.zeros(2, np.complex128)": "data type complex128; expected truth values, integers",
    "np.zeros(2, np.complex64)": "view it as the float",
    'np.zeros(2, "M8[s]")': r"np\.int64",
    'np.zeros(2, "m8[s]")': r"np\.int64",
    "np.zeros(2, np.longdouble)": "data type .*128",
    "np.zeros(2, object)": "data type object",
    'np.zeros(2, "U1")': "data type <U1",
    'np.zeros(2, [("x", np.uint8)])': "data type",
    'np.zeros(2, "V4")': "data type",
    "np.ma.masked_array([1, 2], [True, False])": "masked",
    "None": "data type object",
}
"""Arrays of types that DirectML lacks, and words of the message."""

CALLS = "d.bit_not({})", "d.bit_count({})", "d.bit_xor({}, x.get())", "d.bit_xor(x.get(), {})"

ROWS["u1 2"] = "\n".join(
    f"{call.format(array)}  # DataTypeError: {words}"
    for array, words in LACKING.items()
    for call in CALLS
)

CASES = [(key, row) for key, rows in ROWS.items() for row in rows.strip().splitlines()]

A, W = np.ones((4, 6), np.uint8), np.ones((4, 7), np.uint8)
MORE = np.ones((4, 3, 4), bool)
HUGE = np.broadcast_to(np.int64(0), (1 << 58,))
LONG = np.broadcast_to(np.uint8(1), (2**33, 1))
# No address space holds its copy, whatever memory the system promises.
WIDE = np.broadcast_to(np.uint8(1), (1 << 50, 1))


def rows(x: Array, length: int) -> Array:
    """Return a row of ``length`` bytes, four bytes of ``x`` again and again."""
    return x[:1].view("u4").broadcast_to((1, length // 4))


NAMES: dict[str, Any] = {"np": np, "xp": xp, "bitlane": bitlane, "rows": rows, "A": A, "W": W}
NAMES |= {"MORE": MORE, "HUGE": HUGE, "WIDE": WIDE, "LONG": LONG}


@pytest.mark.parametrize(("key", "row"), CASES, ids=lambda text: text.replace("::", ":"))
def test_a_bad_call_is_refused(device: Device, key: str, row: str) -> None:
    dtype, *shape = key.split()
    x = device.asarray(random([int(n) for n in shape], dtype))
    stored = x.get().tobytes()
    with refused_row(device, row) as call:
        exec(call, NAMES | {"x": x, "u": x.get(), "d": device})
    assert x.get().tobytes() == stored
    x.free()  # NumPy keeps a reference to the operand of a reduction that raises
