"""Rules of every operator: its types and ranks by feature level, and tensors that fit together."""

from collections.abc import Callable
from typing import cast

import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType, FeatureLevel, TensorFlags
from bitlane.dml.operators import OPERATOR_DESCS, OperatorDesc
from bitlane_rtl.abi import Lane
from support.host.dml_bench import (
    COUNT,
    NOT,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    XOR,
    u8,
)
from support.host.model_link import ModelDriver
from support.host.refusals import literal, refused

UNARY: list[type[OperatorDesc]] = [NOT, COUNT]
SHIFTS: list[type[OperatorDesc]] = [SHIFT_LEFT, SHIFT_RIGHT]
LOGIC: list[type[OperatorDesc]] = [
    dml.ElementWiseBitAndOperatorDesc,
    dml.ElementWiseBitOrOperatorDesc,
    XOR,
]
ALL = [*UNARY, *LOGIC, *SHIFTS]
LEVEL_2_1, LEVEL_3_0 = FeatureLevel.LEVEL_2_1, FeatureLevel.LEVEL_3_0
LEVEL_4_1, LEVEL_6_4 = FeatureLevel.LEVEL_4_1, FeatureLevel.LEVEL_6_4


U8 = u8([2, 3])


def create(desc: OperatorDesc, level: FeatureLevel = LEVEL_4_1) -> None:
    dml.Device(ModelDriver(), level).create_operator(desc)


def refuse(desc: OperatorDesc, words: str, level: FeatureLevel = LEVEL_4_1) -> None:
    with refused(device := dml.Device(ModelDriver(), level), dml.DmlError, literal(words)):
        device.create_operator(desc)


def expect_taken_if(
    fine: bool, desc: OperatorDesc, words: str, level: FeatureLevel = LEVEL_4_1
) -> None:
    """Expect that an operator is created if it is ``fine``, and else refused."""
    if fine:
        create(desc, level)
    else:
        refuse(desc, words, level)


def make(kind: type[OperatorDesc], *tensors: BufferTensorDesc) -> OperatorDesc:
    """Return a description of type ``kind``, with its tensors in order."""
    return cast(Callable[..., OperatorDesc], kind)(*tensors)


def of(kind: type[OperatorDesc], tensor: BufferTensorDesc) -> OperatorDesc:
    """Return a description whose tensors are all ``tensor``, but for a UINT8 output of COUNT."""
    output = u8(list(tensor.sizes)) if kind is COUNT else tensor
    return make(kind, *[tensor] * (1 if kind in UNARY else 2), output)


def first(kind: type[OperatorDesc]) -> str:
    return "InputTensor" if kind in UNARY else "ATensor"


# --- tensors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_no_size_is_zero(kind: type[OperatorDesc]) -> None:
    refuse(of(kind, u8([2, 0, 3])), f"{first(kind)}.Sizes[1] is 0; expected 1 to 4294967295")


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
        XOR(u8([2, 3], [0, 0]), u8([2, 3], [0, 0]), U8),
    ],
)
def test_takes_what_tensors_may_have(desc: OperatorDesc) -> None:
    create(desc)


@pytest.mark.parametrize("kind", ALL)
def test_dml_owns_no_output(kind: type[OperatorDesc]) -> None:
    owned = BufferTensorDesc(UINT8, [2, 3], flags=TensorFlags.OWNED_BY_DML)
    desc = make(kind, *([U8, owned] if kind in UNARY else [owned] * 3))
    refuse(desc, "OutputTensor.Flags is OWNED_BY_DML; expected NONE")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (u8([2, 4]), "Sizes is [2, 4]; expected [2, 3]"),
        (u8([3, 2]), "Sizes is [3, 2]; expected [2, 3]"),
        (u8([6]), "DimensionCount is 1; expected 2"),
        (u8([1, 2, 3]), "DimensionCount is 3; expected 2"),
        (BufferTensorDesc(UINT16, [2, 3]), "DataType is UINT16; expected UINT8"),
    ],
)
@pytest.mark.parametrize("kind", [*LOGIC, *SHIFTS, NOT])
def test_all_tensors_match(kind: type[OperatorDesc], other: BufferTensorDesc, words: str) -> None:
    for at in (1,) if kind in UNARY else (1, 2):
        tensors = [U8] * (2 if kind in UNARY else 3)
        tensors[at] = other
        name = "BTensor" if at < len(tensors) - 1 else "OutputTensor"
        refuse(make(kind, *tensors), f"{name}.{words}, as in {first(kind)}")


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("strides", [[0, 1], [3, 0], [2, 1], [1, 1]])
def test_outputs_do_not_overlap_themselves(kind: type[OperatorDesc], strides: list[int]) -> None:
    desc = make(kind, *[U8] * (1 if kind in UNARY else 2), u8([2, 3], strides))
    refuse(desc, f"OutputTensor.Strides is {strides}; expected ...its own place")


def test_refuses_outputs_that_cannot_be_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    desc = NOT(u8([4, 3]), u8([4, 3], [3, 4]))
    create(desc)
    monkeypatch.setattr("bitlane.lowering.self_overlap.WORK_LIMIT", 0)
    refuse(desc, "OutputTensor.Strides is [3, 4]; expected ...too intricate to tell, so refused")


# --- feature levels ---------------------------------------------------------------------------

ALL_TYPES = set(list(DataType)[1:])
UNSIGNED = {UINT64, UINT32, UINT16, UINT8}
EARLY = [FeatureLevel.LEVEL_1_0, FeatureLevel.LEVEL_2_0, LEVEL_2_1]


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
    fine = data_type in (all_types if level >= LEVEL_4_1 else UNSIGNED - {UINT64})
    words = f"{first(kind)}.DataType is {data_type.name}; expected one of "
    expect_taken_if(fine, of(kind, BufferTensorDesc(data_type, [2, 3])), words, level)


@pytest.mark.parametrize("level", [LEVEL_3_0, LEVEL_4_1])
@pytest.mark.parametrize("data_type", list(DataType))
def test_count_gives_uint8_or_uint32(data_type: DataType, level: FeatureLevel) -> None:
    desc = COUNT(U8, BufferTensorDesc(data_type, [2, 3]))
    words = f"OutputTensor.DataType is {data_type.name}; expected one of UINT32, UINT8"
    expect_taken_if(data_type in (UINT8, UINT32), desc, words, level)


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
    found = f"{kind.operator_type!s}.FeatureLevel is {level}; expected ...level {needed}"
    refuse(of(kind, U8), found, level)


@pytest.mark.parametrize("kind", SHIFTS)
@pytest.mark.parametrize("rank", [1, 3, 4, 5, 8])
def test_level_2_1_shifts_in_four_dimensions(kind: type[OperatorDesc], rank: int) -> None:
    words = f"ATensor.DimensionCount is {rank}; expected 4 for "
    expect_taken_if(rank == 4, of(kind, BufferTensorDesc(UINT32, [2] * rank)), words, LEVEL_2_1)


@pytest.mark.parametrize("level", [LEVEL_3_0, LEVEL_4_1])
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("rank", range(10))
def test_ranks_of_later_levels(rank: int, kind: type[OperatorDesc], level: FeatureLevel) -> None:
    words = f"{first(kind)}.DimensionCount is {rank}; expected ...1 to 8"
    expect_taken_if(1 <= rank <= 8, of(kind, u8([1] * rank)), words, level)


def test_logic_does_not_depend_on_the_circuits_widths() -> None:
    driver = ModelDriver(lanes=frozenset({Lane.BITS_8}))
    dml.Device(driver).create_operator(of(XOR, BufferTensorDesc(DataType.FLOAT64, [2])))
