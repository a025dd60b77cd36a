"""The golden model against figures worked out by hand, and against the tests' oracle."""

import random
from typing import Any

import numpy as np
import pytest

from bitlane import dml, reference
from bitlane.dml import BufferTensorDesc, DataType
from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, Op
from support.oracle import computed

NOT, AND = dml.ElementWiseBitNotOperatorDesc, dml.ElementWiseBitAndOperatorDesc
XOR, COUNT = dml.ElementWiseBitXorOperatorDesc, dml.ElementWiseBitCountOperatorDesc
SHIFT_LEFT = dml.ElementWiseBitShiftLeftOperatorDesc


@pytest.mark.parametrize("arithmetic", [False, True])
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("op", sorted(BIT_OPS))
def test_agrees_with_python_integers(op: Op, width: int, saturate: bool, arithmetic: bool) -> None:
    seed = 1000 * op + width
    generator = random.Random(seed)
    edges = [0, 1, width - 1, width, width + 1, 2 * width, 1 << (width - 1), (1 << width) - 1]
    pairs = [(a, b) for a in edges for b in edges]
    pairs += [(generator.getrandbits(width), generator.getrandbits(width)) for _ in range(100)]
    dtype = np.dtype(f"u{width // 8}")
    a, b = (np.array(column, dtype=dtype) for column in zip(*pairs, strict=True))
    got = reference.compute(op, a, b, saturate=saturate, arithmetic=arithmetic)
    shifts = {"saturate": saturate, "arithmetic": arithmetic}
    want = [computed(op, width, *pair, **shifts) for pair in pairs]
    assert got.tolist() == want, f"seed {seed}"


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("out", [np.uint8, np.uint32])
@pytest.mark.parametrize("op", sorted(COUNT_OPS))
def test_a_test_of_a_count_is_a_truth_value(op: Op, out: type, negate: bool) -> None:
    a, b = np.array([0, 0, 1 << 63, 6], np.uint64), np.array([0, 1, 1 << 63, 5], np.uint64)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    got = reference.compute(op, a, b, test=True, negate=negate, count_dtype=out)
    assert got.dtype == out
    assert got.tolist() == [computed(op, 64, *pair, test=True, negate=negate) for pair in pairs]


ROWS = np.array([[-1, 0, 3], [1, 1, 7]], np.int16)
ODD = np.array([0x7F812345], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        # Counts are of the native encoding of every type: np.bitwise_count says 1 of int8's -1.
        *(
            (reference.bit_count(np.full(x.itemsize, 0xFF, "u1").view(x.dtype)), [x.itemsize * 8])
            for x in list(DataType)[1:]
        ),
        (reference.bit_count(np.int8([-1])), [8]),
        # 1.0 is 0x3F800000, -0.0 is 0x80000000.
        (reference.bit_count(np.float32([1.0, -0.0, 0.0])), [7, 1, 0]),
        (reference.cardinality(ROWS), [18, 5]),
        (reference.cardinality(ROWS, 0), [17, 1, 5]),
        (reference.cardinality(ROWS, (0, 1)), 23),
        (reference.cardinality(ROWS, None), 23),
        # The inverse of a float keeps its type and bits, the payload of a NaN among them.
        (reference.bit_not(np.float32([0.0])).view(np.uint32), [0xFFFFFFFF]),
        (np.array(reference.bit_not(np.float32([0.0])).dtype.name), "float32"),
        (reference.bit_not(reference.bit_not(ODD)).view(np.uint32), [0x7F812345]),
        (reference.bit_not(np.array([1], ">u2")), [0xFFFE]),
        (
            reference.bit_shift_right(
                np.int8([-5, 5]), np.int8([-1, -1]), saturate=True, arithmetic=True
            ),
            [-1, 0],
        ),
    ],
)
def test_figures_worked_out_by_hand(got: Any, wanted: Any) -> None:
    assert got.tolist() == wanted


@pytest.mark.parametrize("dtype", [np.complex64, np.bool_, "U4"])
def test_refuses_types_without_a_native_encoding(dtype: str) -> None:
    with pytest.raises(TypeError, match="native encoding"):
        reference.bit_not(np.zeros(2, dtype=dtype))
    with pytest.raises(TypeError, match="uint8 and uint16"):
        reference.bit_and(np.zeros(1, np.uint8), np.zeros(1, np.uint16))


def region(data: list[int], offset: int = 0) -> reference.Region:
    return reference.Region(np.array(data, dtype=np.uint8), offset)


def u8(*sizes: int, strides: list[int] | None = None) -> BufferTensorDesc:
    return BufferTensorDesc(DataType.UINT8, list(sizes), strides)


WORDS = BufferTensorDesc(DataType.UINT32, [2])
AT_2 = region([9] * 8, 2)


@pytest.mark.parametrize(
    ("desc", "inputs", "output", "wanted"),
    [
        # A documented example.
        (NOT(u8(4), u8(4)), [region([0, 128, 42, 255])], region([0] * 4), [255, 127, 213, 0]),
        # Strides transpose the input, and the output has gaps whose bytes stay as they are.
        (
            NOT(u8(2, 2), u8(2, 2, strides=[1, 3])),
            [region([7, 1, 2, 3, 4], 1)],
            AT_2,
            [9, 9, 0xFE, 0xFC, 9, 0xFD, 0xFB, 9],
        ),
        # A broadcast input.
        (
            XOR(u8(2, 3), u8(2, 3, strides=[0, 1]), u8(2, 3)),
            [region([0, 1, 2, 3, 4, 5, 0, 0]), region([1, 2, 4, 0])],
            region([0] * 8),
            [1, 3, 6, 2, 6, 1, 0, 0],
        ),
        # Counts in wider elements.
        (COUNT(u8(2), WORDS), [region([255, 17, 0, 0])], region([7] * 8), [8, 0, 0, 0, 2, 0, 0, 0]),
        # Counts of shifts are masked as DirectML masks them.
        (
            SHIFT_LEFT(u8(4), u8(4), u8(4)),
            [region([1] * 4), region([0, 7, 8, 255])],
            region([0] * 4),
            [1, 128, 1, 128],
        ),
    ],
)  # fmt: skip
def test_evaluates_operators(
    desc: Any, inputs: list[reference.Region], output: reference.Region, wanted: list[int]
) -> None:
    before = output.data.tolist()
    assert reference.evaluate(desc, inputs, output).tolist() == wanted
    assert output.data.tolist() == before


def test_reads_all_inputs_before_it_writes() -> None:
    here = region([15, 51, 85, 255])
    after = reference.evaluate(AND(u8(4), u8(4), u8(4)), [here, here], here)
    assert after.tolist() == here.data.tolist()


@pytest.mark.parametrize("offset", [1, 8, 100])
def test_refuses_a_tensor_that_leaves_its_buffer(offset: int) -> None:
    with pytest.raises(ValueError, match=r"buffer|offset"):
        reference.evaluate(NOT(u8(8), u8(8)), [region([0] * 8, offset)], region([0] * 8))
