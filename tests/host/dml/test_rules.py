"""A bad description is refused by name, as in DirectML, before the device is accessed.

So are operators, types and ranks that a feature level lacks, and what a circuit lacks.
"""

from collections.abc import Callable
from typing import cast

import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType, FeatureLevel, TensorFlags
from bitlane.dml.operators import OPERATOR_DESCS, OperatorDesc
from bitlane_rtl.abi import Lane, Op
from support.host.dml_bench import COUNT, NOT, SHIFT_LEFT, SHIFT_RIGHT, XOR, expect_error
from support.host.model_driver import ModelDriver

UINT8, UINT16, UINT32, UINT64 = DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64
AND, OR = dml.ElementWiseBitAndOperatorDesc, dml.ElementWiseBitOrOperatorDesc
UNARY: list[type[OperatorDesc]] = [NOT, COUNT]
LOGIC: list[type[OperatorDesc]] = [AND, OR, XOR]
SHIFTS: list[type[OperatorDesc]] = [SHIFT_LEFT, SHIFT_RIGHT]
ALL = [*UNARY, *LOGIC, *SHIFTS]


def u8(
    sizes: list[int], strides: list[int] | None = None, total: int | None = None
) -> BufferTensorDesc:
    return BufferTensorDesc(UINT8, sizes, strides, total_tensor_size_in_bytes=total)


U8 = u8([2, 3])


def create(desc: OperatorDesc, level: FeatureLevel = FeatureLevel.LEVEL_4_1) -> None:
    dml.Device(ModelDriver(), level).create_operator(desc)


def refuse(
    desc: OperatorDesc,
    found: str,
    expected: str,
    level: FeatureLevel = FeatureLevel.LEVEL_4_1,
    driver: ModelDriver | None = None,
) -> None:
    """Expect that no operator is created; a ``driver`` lacks what the operator needs."""
    hresult = "DXGI_ERROR_UNSUPPORTED" if driver else "E_INVALIDARG"
    driver = driver or ModelDriver()
    with pytest.raises(dml.DmlError) as caught:
        dml.Device(driver, level).create_operator(desc)
    expect_error(caught.value, found, expected, hresult)
    assert driver.model.calls == []
    assert driver.allocator.pieces == 0


def make(kind: type[OperatorDesc], *tensors: BufferTensorDesc) -> OperatorDesc:
    """Return a description of type ``kind``, with its tensors in order."""
    return cast(Callable[..., OperatorDesc], kind)(*tensors)


def of(kind: type[OperatorDesc], tensor: BufferTensorDesc) -> OperatorDesc:
    """Return a description whose tensors are all ``tensor``, but for a UINT8 output of COUNT."""
    output = u8(list(tensor.sizes)) if kind is COUNT else tensor
    return make(kind, *[tensor] * (1 if kind in UNARY else 2), output)


def first(kind: type[OperatorDesc]) -> str:
    return "InputTensor" if kind in UNARY else "ATensor"


# --- Tensors ----------------------------------------------------------------------------------

UNKNOWN = BufferTensorDesc(DataType.UNKNOWN, [1])


@pytest.mark.parametrize("kind", ALL)
def test_refuses_sizes_that_are_zero(kind: type[OperatorDesc]) -> None:
    refuse(of(kind, u8([2, 0, 3])), f"{first(kind)}.Sizes[1] is 0", "1 to 4294967295")


@pytest.mark.parametrize(
    ("desc", "found", "expected"),
    [
        *(
            (of(NOT, u8(n)), f"InputTensor.Sizes is {n}", "at most 4294967295 elements")
            for n in ([2**16, 2**16], [2**32 - 1, 2], [2**31, 2**31])
        ),
        (
            AND(U8, u8([2, 3], [2**32 - 1, 1]), U8),
            "BTensor.Strides is [4294967295, 1]",
            "from first to last",
        ),
        (
            of(NOT, BufferTensorDesc(UINT16, [2], total_tensor_size_in_bytes=2**33 + 4)),
            f"InputTensor.TotalTensorSizeInBytes is {2**33 + 4}",
            "at most 8589934592",
        ),
        *(
            (
                OR(u8(sizes, strides, total), U8, U8),
                f"ATensor.TotalTensorSizeInBytes is {total}",
                f"at least {least}",
            )
            for sizes, strides, total, least in (
                ([2, 3], None, 4, 8),
                ([2, 3], None, 7, 8),  # six bytes of elements, but whole words are bound
                ([2, 3], [8, 1], 11, 12),
                ([2, 3], [0, 0], 0, 4),
            )
        ),
        *(
            (
                of(NOT, BufferTensorDesc(data_type, [2], guaranteed_base_offset_alignment=n)),
                f"InputTensor.GuaranteedBaseOffsetAlignment is {n}",
                f"power of two from {data_type.itemsize} up",
            )
            for data_type, n in (
                (UINT32, 2),  # smaller than an element
                (UINT64, 4),
                (UINT8, 48),  # no power of two
            )
        ),
        (
            of(NOT, BufferTensorDesc(DataType.UNKNOWN, [1])),
            "InputTensor.DataType is UNKNOWN",
            "one of FLOAT32",
        ),
        (COUNT(U8, u8([2, 2])), "OutputTensor.Sizes is [2, 2]", "[2, 3], as in InputTensor"),
    ],
)
def test_refuses_what_no_tensor_has(desc: OperatorDesc, found: str, expected: str) -> None:
    refuse(desc, found, expected)


@pytest.mark.parametrize(
    "desc",
    [
        of(NOT, BufferTensorDesc(UINT64, [2**32 - 1])),  # the largest tensor
        of(NOT, u8([2**32 - 1], total=2**32)),
        *(of(NOT, u8([2, 3], total=total)) for total in (8, 9, 10, 12, 1000)),
        *(
            of(NOT, BufferTensorDesc(data_type, [2], guaranteed_base_offset_alignment=n))
            for data_type, n in ((UINT8, 0), (UINT8, 1), (UINT32, 4), (UINT64, 4096))
        ),
        COUNT(BufferTensorDesc(UINT16, [2]), BufferTensorDesc(UINT32, [2])),  # types may differ
        # Outputs with gaps or interleaved rows.
        *(NOT(U8, u8([2, 3], n)) for n in ([3, 1], [1, 2], [4, 1], [3, 2], [100, 7])),
        # A stride of 0 has no effect where the size is 1.
        of(NOT, u8([1, 3], [0, 1])),
        # Inputs may overlap themselves.
        AND(u8([2, 3], [0, 0]), u8([2, 3], [0, 0]), U8),
    ],
)
def test_takes_what_tensors_may_have(desc: OperatorDesc) -> None:
    create(desc)


@pytest.mark.parametrize("kind", ALL)
def test_dml_owns_no_output(kind: type[OperatorDesc]) -> None:
    owned = BufferTensorDesc(UINT8, [2, 3], flags=TensorFlags.OWNED_BY_DML)
    desc = make(kind, *([U8, owned] if kind in UNARY else [owned] * 3))
    refuse(desc, "OutputTensor.Flags is OWNED_BY_DML", "NONE")


@pytest.mark.parametrize(
    ("other", "field", "value", "expected"),
    [
        (u8([2, 4]), "Sizes", [2, 4], "[2, 3]"),
        (u8([3, 2]), "Sizes", [3, 2], "[2, 3]"),
        (u8([6]), "DimensionCount", 1, "2"),
        (u8([1, 2, 3]), "DimensionCount", 3, "2"),
        (BufferTensorDesc(UINT16, [2, 3]), "DataType", "UINT16", "UINT8"),
    ],
)
@pytest.mark.parametrize("kind", [*LOGIC, *SHIFTS, NOT])
def test_all_tensors_match(
    kind: type[OperatorDesc], other: BufferTensorDesc, field: str, value: object, expected: str
) -> None:
    found, wanted = f"{field} is {value}", f"{expected}, as in {first(kind)}"
    if kind in UNARY:
        refuse(make(kind, U8, other), f"OutputTensor.{found}", wanted)
    else:
        refuse(make(kind, U8, other, U8), f"BTensor.{found}", wanted)
        refuse(make(kind, U8, U8, other), f"OutputTensor.{found}", wanted)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("strides", [[0, 1], [3, 0], [2, 1], [1, 1]])
def test_outputs_do_not_overlap_themselves(kind: type[OperatorDesc], strides: list[int]) -> None:
    desc = make(kind, *[U8] * (1 if kind in UNARY else 2), u8([2, 3], strides))
    refuse(desc, f"OutputTensor.Strides is {strides}", "its own place")


def test_refuses_outputs_that_cannot_be_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    desc = NOT(u8([4, 3]), u8([4, 3], [3, 4]))
    create(desc)
    monkeypatch.setattr("bitlane.lowering.self_overlap.WORK_LIMIT", 0)
    refuse(desc, "OutputTensor.Strides is [3, 4]", "too intricate to tell, so refused")


# --- Feature levels ---------------------------------------------------------------------------

ALL_TYPES = set(list(DataType)[1:])
UNSIGNED = {UINT64, UINT32, UINT16, UINT8}
SMALL = UNSIGNED - {UINT64}
LEVEL_2_1, LEVEL_3_0 = FeatureLevel.LEVEL_2_1, FeatureLevel.LEVEL_3_0
LEVEL_4_1, LEVEL_6_4 = FeatureLevel.LEVEL_4_1, FeatureLevel.LEVEL_6_4
EARLY = [FeatureLevel.LEVEL_1_0, FeatureLevel.LEVEL_2_0, LEVEL_2_1]


def expect_taken_if(
    fine: bool, desc: OperatorDesc, found: str, expected: str, level: FeatureLevel = LEVEL_4_1
) -> None:
    """Expect that an operator is created if it is ``fine``, and else refused."""
    if fine:
        create(desc, level)
    else:
        refuse(desc, found, expected, level)


def test_there_is_a_description_for_every_operator_type() -> None:
    assert set(OPERATOR_DESCS) == set(dml.OperatorType) - {dml.OperatorType.REDUCE}
    assert set(OPERATOR_DESCS.values()) == set(ALL)


@pytest.mark.parametrize("data_type", sorted(ALL_TYPES))
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("level", [LEVEL_3_0, FeatureLevel.LEVEL_4_0, LEVEL_4_1, LEVEL_6_4])
def test_each_level_takes_the_types_of_its_table(
    level: FeatureLevel, kind: type[OperatorDesc], data_type: DataType
) -> None:
    all_types = UNSIGNED if kind in SHIFTS else ALL_TYPES
    fine = data_type in (all_types if level >= LEVEL_4_1 else SMALL)
    found = f"{first(kind)}.DataType is {data_type.name}"
    expect_taken_if(fine, of(kind, BufferTensorDesc(data_type, [2, 3])), found, "one of ", level)


@pytest.mark.parametrize("level", [LEVEL_3_0, LEVEL_4_1])
@pytest.mark.parametrize("data_type", list(DataType))
def test_count_gives_uint8_or_uint32(data_type: DataType, level: FeatureLevel) -> None:
    desc = COUNT(U8, BufferTensorDesc(data_type, [2, 3]))
    fine = data_type in (UINT8, UINT32)
    found = f"OutputTensor.DataType is {data_type.name}"
    expect_taken_if(fine, desc, found, "one of UINT32, UINT8", level)


@pytest.mark.parametrize(
    ("level", "kind", "needed"),
    [
        *((level, kind, "3_0 or above") for level in EARLY for kind in [*UNARY, *LOGIC]),
        *((level, kind, "2_1 or above") for level in EARLY[:2] for kind in SHIFTS),
    ],
)
def test_the_first_levels_have_no_bit_operator_but_2_1_the_shifts(
    level: FeatureLevel, kind: type[OperatorDesc], needed: str
) -> None:
    refuse(
        of(kind, U8), f"{kind.operator_type!s}.FeatureLevel is {level}", f"level {needed}", level
    )


@pytest.mark.parametrize("kind", SHIFTS)
@pytest.mark.parametrize("rank", [1, 3, 4, 5, 8])
def test_level_2_1_shifts_in_four_dimensions(kind: type[OperatorDesc], rank: int) -> None:
    desc = of(kind, BufferTensorDesc(UINT32, [2] * rank))
    expect_taken_if(rank == 4, desc, f"ATensor.DimensionCount is {rank}", "4 for ", LEVEL_2_1)


def test_a_single_count_of_dimensions_is_no_range() -> None:
    desc = of(SHIFTS[0], BufferTensorDesc(UINT32, [2]))
    with pytest.raises(dml.DmlError, match="expected 4 for "):
        dml.Device(ModelDriver(), LEVEL_2_1).create_operator(desc)


@pytest.mark.parametrize("level", [LEVEL_3_0, LEVEL_4_1])
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("rank", range(10))
def test_ranks_of_later_levels(rank: int, kind: type[OperatorDesc], level: FeatureLevel) -> None:
    found = f"{first(kind)}.DimensionCount is {rank}"
    expect_taken_if(1 <= rank <= 8, of(kind, u8([1] * rank)), found, "1 to 8", level)


# --- What the circuit lacks -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_refuses_operators_that_the_circuit_lacks(kind: type[OperatorDesc]) -> None:
    driver = ModelDriver(ops=frozenset(Op) - {kind.op})
    found = f"{kind.operator_type!s}.Type is {kind.op.name}"
    expected = "an operation that this device was built with: "
    refuse(of(kind, U8), found, expected, driver=driver)


@pytest.mark.parametrize("kind", [*SHIFTS, COUNT])
def test_refuses_widths_that_the_circuit_lacks(kind: type[OperatorDesc]) -> None:
    driver = ModelDriver(lanes=frozenset({Lane.BITS_8, Lane.BITS_32}))
    desc = of(kind, BufferTensorDesc(UINT64, [2]))
    refuse(desc, f"{first(kind)}.DataType is UINT64", "elements of 8, 32 bits", driver=driver)


def test_logic_does_not_depend_on_the_circuits_widths() -> None:
    driver = ModelDriver(lanes=frozenset({Lane.BITS_8}))
    dml.Device(driver).create_operator(of(XOR, BufferTensorDesc(DataType.FLOAT64, [2])))


def test_refuses_what_is_no_description() -> None:
    with pytest.raises(dml.DmlError, match=r"OperatorDesc\.Type is str"):
        dml.Device(ModelDriver()).create_operator("BIT_NOT")  # type: ignore[arg-type]
