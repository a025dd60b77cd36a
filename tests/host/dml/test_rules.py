"""A bad description is refused by name, as in DirectML, before the device is accessed."""

import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType, TensorFlags
from bitlane.dml.operators import OperatorDesc
from support.host.dml_rules import ALL, LOGIC, SHIFTS, U8, UNARY, create, first, make, of, refuse

# --- Sizes and strides ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("size", [0, -1, 2**32])
def test_refuses_sizes_that_are_zero_or_no_uint(kind: type[OperatorDesc], size: int) -> None:
    desc = of(kind, BufferTensorDesc(DataType.UINT8, [2, size, 3]))
    refuse(desc, f"{first(kind)}.Sizes[1] is {size}", "1 to 4294967295")


@pytest.mark.parametrize("stride", [-1, 2**32])
def test_refuses_strides_that_are_no_uint(stride: int) -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [2, 3], [3, stride])
    refuse(
        dml.ElementWiseBitXorOperatorDesc(U8, tensor, U8),
        f"BTensor.Strides[1] is {stride}",
        "0 to 4294967295",
    )


@pytest.mark.parametrize("strides", [[], [1], [6, 3, 1]])
def test_refuses_too_few_or_too_many_strides(strides: list[int]) -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [2, 3], strides, total_tensor_size_in_bytes=64)
    refuse(
        dml.ElementWiseBitXorOperatorDesc(tensor, U8, U8),
        f"ATensor.Strides is {strides}",
        "2 numbers, as in Sizes",
    )


@pytest.mark.parametrize("sizes", [[2**16, 2**16], [2**32 - 1, 2], [2**31, 2**31]])
def test_refuses_more_than_a_uint_of_elements(sizes: list[int]) -> None:
    desc = of(dml.ElementWiseBitNotOperatorDesc, BufferTensorDesc(DataType.UINT8, sizes))
    refuse(desc, f"InputTensor.Sizes is {sizes}", "at most 4294967295 elements")


def test_refuses_strides_that_reach_over_a_uint_of_elements() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [2, 3], [2**32 - 1, 1])
    refuse(
        dml.ElementWiseBitAndOperatorDesc(U8, tensor, U8),
        "BTensor.Strides is [4294967295, 1]",
        "from first to last",
    )


def test_takes_the_largest_tensor() -> None:
    create(of(dml.ElementWiseBitNotOperatorDesc, BufferTensorDesc(DataType.UINT64, [2**32 - 1])))
    create(
        of(
            dml.ElementWiseBitNotOperatorDesc,
            BufferTensorDesc(DataType.UINT8, [2**32 - 1], total_tensor_size_in_bytes=2**32),
        )
    )


def test_refuses_a_total_size_of_more_than_a_uint_of_elements() -> None:
    tensor = BufferTensorDesc(DataType.UINT16, [2], total_tensor_size_in_bytes=2**33 + 4)
    desc = of(dml.ElementWiseBitNotOperatorDesc, tensor)
    refuse(desc, f"InputTensor.TotalTensorSizeInBytes is {2**33 + 4}", "at most 8589934592")


# --- Total size, alignment, flags -------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "strides", "total", "least"),
    [
        ([2, 3], None, 4, 8),
        ([2, 3], None, 7, 8),  # six bytes of elements, but whole words are bound
        ([2, 3], [8, 1], 11, 12),
        ([2, 3], [0, 0], 0, 4),
        ([2, 3], None, -8, 8),
    ],
)
def test_refuses_a_total_size_below_what_is_implied(
    sizes: list[int], strides: list[int] | None, total: int, least: int
) -> None:
    tensor = BufferTensorDesc(DataType.UINT8, sizes, strides, total_tensor_size_in_bytes=total)
    refuse(
        dml.ElementWiseBitOrOperatorDesc(tensor, U8, U8),
        f"ATensor.TotalTensorSizeInBytes is {total}",
        f"at least {least}",
    )


@pytest.mark.parametrize("total", [8, 9, 10, 12, 1000])
def test_takes_larger_total_sizes_multiples_of_four_or_not(total: int) -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [2, 3], total_tensor_size_in_bytes=total)
    create(of(dml.ElementWiseBitNotOperatorDesc, tensor))


@pytest.mark.parametrize(
    ("data_type", "alignment", "fine"),
    [
        (DataType.UINT8, 0, True),
        (DataType.UINT8, 1, True),
        (DataType.UINT32, 4, True),
        (DataType.UINT64, 4096, True),
        (DataType.UINT32, 2, False),  # smaller than an element
        (DataType.UINT64, 4, False),
        (DataType.UINT8, 48, False),  # no power of two
        (DataType.UINT8, -16, False),
        (DataType.UINT8, 2**32, False),  # no UINT
    ],
)
def test_guaranteed_alignment_is_a_power_of_two_of_an_element_or_more(
    data_type: DataType, alignment: int, fine: bool
) -> None:
    tensor = BufferTensorDesc(data_type, [2], guaranteed_base_offset_alignment=alignment)
    desc = of(dml.ElementWiseBitNotOperatorDesc, tensor)
    if fine:
        create(desc)
    else:
        found = f"InputTensor.GuaranteedBaseOffsetAlignment is {alignment}"
        refuse(desc, found, f"power of two from {data_type.itemsize} up")


@pytest.mark.parametrize("kind", ALL)
def test_dml_owns_no_output(kind: type[OperatorDesc]) -> None:
    owned = BufferTensorDesc(DataType.UINT8, [2, 3], flags=TensorFlags.OWNED_BY_DML)
    tensors = [U8, owned] if kind in UNARY else [owned, owned, owned]
    desc = make(kind, *tensors)
    refuse(desc, "OutputTensor.Flags is OWNED_BY_DML", "NONE")


# --- Tensors that do not match ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "field", "value", "expected"),
    [
        (BufferTensorDesc(DataType.UINT8, [2, 4]), "Sizes", [2, 4], "[2, 3]"),
        (BufferTensorDesc(DataType.UINT8, [3, 2]), "Sizes", [3, 2], "[2, 3]"),
        (BufferTensorDesc(DataType.UINT8, [6]), "DimensionCount", 1, "2"),
        (BufferTensorDesc(DataType.UINT8, [1, 2, 3]), "DimensionCount", 3, "2"),
        (BufferTensorDesc(DataType.UINT16, [2, 3]), "DataType", "UINT16", "UINT8"),
    ],
)
@pytest.mark.parametrize("kind", [*LOGIC, *SHIFTS, dml.ElementWiseBitNotOperatorDesc])
def test_all_tensors_match(
    kind: type[OperatorDesc], other: BufferTensorDesc, field: str, value: object, expected: str
) -> None:
    if kind in UNARY:
        desc = make(kind, U8, other)
        refuse(desc, f"OutputTensor.{field} is {value}", f"{expected}, as in InputTensor")
        return
    desc = make(kind, U8, other, U8)
    refuse(desc, f"BTensor.{field} is {value}", f"{expected}, as in ATensor")
    desc = make(kind, U8, U8, other)
    refuse(desc, f"OutputTensor.{field} is {value}", f"{expected}, as in ATensor")


def test_count_matches_in_sizes_but_not_in_types() -> None:
    count = dml.ElementWiseBitCountOperatorDesc
    create(count(BufferTensorDesc(DataType.UINT16, [2]), BufferTensorDesc(DataType.UINT32, [2])))
    desc = count(U8, BufferTensorDesc(DataType.UINT8, [2, 2]))
    refuse(desc, "OutputTensor.Sizes is [2, 2]", "[2, 3], as in InputTensor")


# --- Outputs that overlap themselves ----------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("strides", [[0, 1], [3, 0], [2, 1], [1, 1]])
def test_refuses_outputs_that_overlap_themselves(
    kind: type[OperatorDesc], strides: list[int]
) -> None:
    output = BufferTensorDesc(DataType.UINT8, [2, 3], strides)
    tensors = [U8, output] if kind in UNARY else [U8, U8, output]
    desc = make(kind, *tensors)
    refuse(desc, f"OutputTensor.Strides is {strides}", "its own place")


@pytest.mark.parametrize("strides", [[3, 1], [1, 2], [4, 1], [3, 2], [100, 7]])
def test_takes_outputs_with_gaps_or_interleaved_rows(strides: list[int]) -> None:
    create(dml.ElementWiseBitNotOperatorDesc(U8, BufferTensorDesc(DataType.UINT8, [2, 3], strides)))


def test_refuses_outputs_that_cannot_be_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    strides = [3, 4]
    sizes = BufferTensorDesc(DataType.UINT8, [4, 3])
    output = BufferTensorDesc(DataType.UINT8, [4, 3], strides)
    desc = dml.ElementWiseBitNotOperatorDesc(sizes, output)
    create(desc)
    monkeypatch.setattr("bitlane.jobs.overlap.WORK_LIMIT", 0)
    refuse(desc, f"OutputTensor.Strides is {strides}", "too intricate to tell, so refused")


def test_a_stride_of_0_means_nothing_where_the_size_is_1() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [1, 3], [0, 1])
    create(dml.ElementWiseBitNotOperatorDesc(tensor, tensor))


def test_takes_inputs_that_overlap_themselves() -> None:
    repeated = BufferTensorDesc(DataType.UINT8, [2, 3], [0, 0])
    create(dml.ElementWiseBitAndOperatorDesc(repeated, repeated, U8))
