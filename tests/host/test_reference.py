"""The golden model against figures worked out by hand, and against the tests' oracle."""

import random

import numpy as np
import pytest

from bitlane import reference
from bitlane.dml import (
    BufferTensorDesc,
    DataType,
    ElementWiseBitAndOperatorDesc,
    ElementWiseBitCountOperatorDesc,
    ElementWiseBitNotOperatorDesc,
    ElementWiseBitShiftLeftOperatorDesc,
    ElementWiseBitXorOperatorDesc,
)
from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, Op
from support.oracle import computed

TYPES = [data_type for data_type in DataType if data_type is not DataType.UNKNOWN]
WIDTHS = [8, 16, 32, 64]


@pytest.mark.parametrize("arithmetic", [False, True])
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
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


@pytest.mark.parametrize("data_type", TYPES)
def test_counts_the_native_encoding_of_every_type(data_type: DataType) -> None:
    ones = np.full(3, 0xFF, dtype=np.uint8).repeat(data_type.itemsize).view(data_type.dtype)
    assert reference.bit_count(ones).tolist() == [data_type.itemsize * 8] * 3


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("out", [np.uint8, np.uint32])
@pytest.mark.parametrize("op", sorted(COUNT_OPS))
def test_a_test_of_a_count_is_a_truth_value(op: Op, out: type, negate: bool) -> None:
    a, b = np.array([0, 0, 1 << 63, 6], np.uint64), np.array([0, 1, 1 << 63, 5], np.uint64)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    got = reference.compute(op, a, b, test=True, negate=negate, count_dtype=out)
    assert got.dtype == out
    assert got.tolist() == [computed(op, 64, *pair, test=True, negate=negate) for pair in pairs]


def test_counts_minus_one_as_all_ones() -> None:
    assert reference.bit_count(np.int8(-1)) == 8  # np.bitwise_count says 1


def test_adds_counts_up_along_any_axes() -> None:
    a = np.array([[-1, 0, 3], [1, 1, 7]], np.int16)
    assert reference.cardinality(a).tolist() == [18, 5]
    assert reference.cardinality(a, 0).tolist() == [17, 1, 5]
    assert reference.cardinality(a, (0, 1)) == reference.cardinality(a, None) == 23


def test_counts_floats_by_their_encoding() -> None:
    # 1.0 is 0x3F800000, -0.0 is 0x80000000.
    assert reference.bit_count(np.array([1.0, -0.0, 0.0], np.float32)).tolist() == [7, 1, 0]


def test_not_of_a_float_keeps_its_type_and_bits() -> None:
    got = reference.bit_not(np.array([0.0], np.float32))
    assert got.dtype == np.float32
    assert got.view(np.uint32).tolist() == [0xFFFFFFFF]


def test_preserves_the_payload_of_a_nan() -> None:
    odd = np.array([0x7F812345], dtype=np.uint32).view(np.float32)
    assert reference.bit_not(reference.bit_not(odd)).view(np.uint32).tolist() == [0x7F812345]


def test_takes_big_endian_arrays_by_value() -> None:
    assert reference.bit_not(np.array([1], dtype=">u2")).tolist() == [0xFFFE]


def test_negative_counts_saturate() -> None:
    a, b = np.array([-5, 5], np.int8), np.array([-1, -1], np.int8)
    got = reference.bit_shift_right(a, b, saturate=True, arithmetic=True)
    assert got.tolist() == [-1, 0]


def test_refuses_operands_of_different_types() -> None:
    with pytest.raises(TypeError, match="uint8 and uint16"):
        reference.bit_and(np.zeros(1, np.uint8), np.zeros(1, np.uint16))


@pytest.mark.parametrize("dtype", [np.complex64, np.bool_, "U4"])
def test_refuses_types_without_a_native_encoding(dtype: str) -> None:
    with pytest.raises(TypeError, match="native encoding"):
        reference.bit_not(np.zeros(2, dtype=dtype))


def region(data: list[int], offset: int = 0) -> reference.Region:
    return reference.Region(np.array(data, dtype=np.uint8), offset)


def test_evaluates_a_documented_example() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [2, 2])
    desc = ElementWiseBitNotOperatorDesc(tensor, tensor)
    after = reference.evaluate(desc, [region([0, 128, 42, 255])], region([0] * 4))
    assert after.tolist() == [255, 127, 213, 0]


def test_evaluates_strides_and_offsets_and_keeps_every_other_byte() -> None:
    column = BufferTensorDesc(DataType.UINT8, [2, 2], strides=[1, 3])  # transposed, with a gap
    packed = BufferTensorDesc(DataType.UINT8, [2, 2])
    desc = ElementWiseBitNotOperatorDesc(packed, column)
    output = region([9] * 8, offset=2)
    after = reference.evaluate(desc, [region([7, 1, 2, 3, 4], offset=1)], output)
    assert after.tolist() == [9, 9, 0xFE, 0xFC, 9, 0xFD, 0xFB, 9]
    assert output.data.tolist() == [9] * 8


def test_evaluates_a_broadcast_input() -> None:
    full = BufferTensorDesc(DataType.UINT8, [2, 3])
    row = BufferTensorDesc(DataType.UINT8, [2, 3], strides=[0, 1])
    desc = ElementWiseBitXorOperatorDesc(full, row, full)
    after = reference.evaluate(
        desc, [region([0, 1, 2, 3, 4, 5, 0, 0]), region([1, 2, 4, 0])], region([0] * 8)
    )
    assert after.tolist() == [1, 3, 6, 2, 6, 1, 0, 0]


def test_evaluates_counts_into_wider_elements() -> None:
    desc = ElementWiseBitCountOperatorDesc(
        BufferTensorDesc(DataType.UINT8, [2]), BufferTensorDesc(DataType.UINT32, [2])
    )
    after = reference.evaluate(desc, [region([0xFF, 0x11, 0, 0])], region([7] * 8))
    assert after.tolist() == [8, 0, 0, 0, 2, 0, 0, 0]


def test_masks_shift_counts_as_directml_does() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [4])
    desc = ElementWiseBitShiftLeftOperatorDesc(tensor, tensor, tensor)
    after = reference.evaluate(desc, [region([1] * 4), region([0, 7, 8, 255])], region([0] * 4))
    assert after.tolist() == [1, 128, 1, 128]


def test_reads_all_inputs_before_it_writes() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [4])
    desc = ElementWiseBitAndOperatorDesc(tensor, tensor, tensor)
    shared = np.array([15, 51, 85, 255], dtype=np.uint8)
    here = reference.Region(shared)
    assert reference.evaluate(desc, [here, here], here).tolist() == shared.tolist()


@pytest.mark.parametrize("offset", [1, 8, 100])
def test_refuses_a_tensor_that_leaves_its_buffer(offset: int) -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [8])
    desc = ElementWiseBitNotOperatorDesc(tensor, tensor)
    with pytest.raises(ValueError, match=r"buffer|offset"):
        reference.evaluate(desc, [region([0] * 8, offset)], region([0] * 8))
