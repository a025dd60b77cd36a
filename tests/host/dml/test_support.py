"""Which operators, types and ranks each feature level has, and what a circuit may lack."""

import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType, FeatureLevel
from bitlane.dml.operators import OPERATOR_DESCS, OperatorDesc
from bitlane_rtl.abi import Lane, Op
from support.host.dml_rules import (
    ALL,
    ALL_TYPES,
    LOGIC,
    SHIFTS,
    SMALL,
    U8,
    UNARY,
    UNSIGNED,
    create,
    first,
    of,
    refuse,
)
from support.host.model_driver import ModelDriver


def test_there_is_a_description_for_every_operator_type() -> None:
    assert set(OPERATOR_DESCS) == set(dml.OperatorType) - {dml.OperatorType.REDUCE}
    assert set(OPERATOR_DESCS.values()) == set(ALL)


# --- Data types and levels --------------------------------------------------------------------

LEVEL_TYPES = [
    (FeatureLevel.LEVEL_3_0, SMALL, SMALL, SMALL),
    (FeatureLevel.LEVEL_4_0, SMALL, SMALL, SMALL),
    (FeatureLevel.LEVEL_4_1, ALL_TYPES, UNSIGNED, ALL_TYPES),
    (FeatureLevel.LEVEL_6_4, ALL_TYPES, UNSIGNED, ALL_TYPES),
]


@pytest.mark.parametrize("data_type", sorted(ALL_TYPES))
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("level", "logic", "shift", "count"), LEVEL_TYPES)
def test_each_level_takes_the_types_of_its_table(
    level: FeatureLevel,
    logic: set[DataType],
    shift: set[DataType],
    count: set[DataType],
    kind: type[OperatorDesc],
    data_type: DataType,
) -> None:
    counts = kind is dml.ElementWiseBitCountOperatorDesc
    allowed = shift if kind in SHIFTS else count if counts else logic
    desc = of(kind, BufferTensorDesc(data_type, [2, 3]))
    if data_type in allowed:
        create(desc, level)
    else:
        refuse(desc, f"{first(kind)}.DataType is {data_type.name}", "one of ", level)


@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_3_0, FeatureLevel.LEVEL_4_1])
@pytest.mark.parametrize("data_type", list(DataType))
def test_count_gives_uint8_or_uint32(data_type: DataType, level: FeatureLevel) -> None:
    desc = dml.ElementWiseBitCountOperatorDesc(U8, BufferTensorDesc(data_type, [2, 3]))
    if data_type in (DataType.UINT8, DataType.UINT32):
        create(desc, level)
    else:
        refuse(desc, f"OutputTensor.DataType is {data_type.name}", "one of UINT32, UINT8", level)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_1_0, FeatureLevel.LEVEL_2_0])
def test_the_first_levels_have_no_bit_operator(
    level: FeatureLevel, kind: type[OperatorDesc]
) -> None:
    needed = "2_1" if kind in SHIFTS else "3_0"
    name = str(kind.operator_type)
    refuse(of(kind, U8), f"{name}.FeatureLevel is {level}", f"level {needed} or above", level)


@pytest.mark.parametrize("kind", [*UNARY, *LOGIC])
def test_level_2_1_has_the_shifts_alone(kind: type[OperatorDesc]) -> None:
    level = FeatureLevel.LEVEL_2_1
    refuse(of(kind, U8), f"{kind.operator_type!s}.FeatureLevel is {level}", "3_0", level)


@pytest.mark.parametrize("kind", SHIFTS)
@pytest.mark.parametrize("rank", [1, 3, 4, 5, 8])
def test_level_2_1_shifts_in_four_dimensions(kind: type[OperatorDesc], rank: int) -> None:
    desc = of(kind, BufferTensorDesc(DataType.UINT32, [2] * rank))
    level = FeatureLevel.LEVEL_2_1
    if rank == 4:
        create(desc, level)
    else:
        refuse(desc, f"ATensor.DimensionCount is {rank}", "4 for ", level)


@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_3_0, FeatureLevel.LEVEL_4_1])
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("rank", range(10))
def test_later_levels_take_one_to_eight_dimensions(
    rank: int, kind: type[OperatorDesc], level: FeatureLevel
) -> None:
    desc = of(kind, BufferTensorDesc(DataType.UINT8, [1] * rank))
    if 1 <= rank <= 8:
        create(desc, level)
    else:
        refuse(desc, f"{first(kind)}.DimensionCount is {rank}", "1 to 8", level)


def test_unknown_is_no_data_type() -> None:
    desc = of(dml.ElementWiseBitNotOperatorDesc, BufferTensorDesc(DataType.UNKNOWN, [1]))
    refuse(desc, "InputTensor.DataType is UNKNOWN", "one of FLOAT32")


# --- What the circuit lacks -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_refuses_operators_that_the_circuit_lacks(kind: type[OperatorDesc]) -> None:
    driver = ModelDriver(ops=frozenset(Op) - {kind.op})
    refuse(
        of(kind, U8),
        f"{kind.operator_type!s}.Type is {kind.op.name}",
        "an operation that this device was built with: ",
        hresult="DXGI_ERROR_UNSUPPORTED",
        driver=driver,
    )


@pytest.mark.parametrize("kind", [*SHIFTS, dml.ElementWiseBitCountOperatorDesc])
def test_refuses_widths_that_the_circuit_lacks(kind: type[OperatorDesc]) -> None:
    driver = ModelDriver(lanes=frozenset({Lane.BITS_8, Lane.BITS_32}))
    refuse(
        of(kind, BufferTensorDesc(DataType.UINT64, [2])),
        f"{first(kind)}.DataType is UINT64",
        "elements of 8, 32 bits",
        hresult="DXGI_ERROR_UNSUPPORTED",
        driver=driver,
    )


def test_logic_does_not_depend_on_the_circuits_widths() -> None:
    driver = ModelDriver(lanes=frozenset({Lane.BITS_8}))
    desc = of(dml.ElementWiseBitXorOperatorDesc, BufferTensorDesc(DataType.FLOAT64, [2]))
    dml.Device(driver).create_operator(desc)


def test_refuses_what_is_no_description() -> None:
    with pytest.raises(dml.DmlError, match=r"OperatorDesc\.Type is str"):
        dml.Device(ModelDriver()).create_operator("BIT_NOT")  # type: ignore[arg-type]
