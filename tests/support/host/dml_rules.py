"""Descriptions of every kind, and the assertion that one is refused."""

from collections.abc import Callable
from typing import cast

import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType, FeatureLevel
from bitlane.dml.operators import OperatorDesc
from support.host.dml_bench import expect_error
from support.host.model_driver import ModelDriver

UNARY = [dml.ElementWiseBitNotOperatorDesc, dml.ElementWiseBitCountOperatorDesc]
LOGIC = [
    dml.ElementWiseBitAndOperatorDesc,
    dml.ElementWiseBitOrOperatorDesc,
    dml.ElementWiseBitXorOperatorDesc,
]
SHIFTS = [dml.ElementWiseBitShiftLeftOperatorDesc, dml.ElementWiseBitShiftRightOperatorDesc]
ALL = [*UNARY, *LOGIC, *SHIFTS]

ALL_TYPES = set(list(DataType)[1:])
UNSIGNED = {DataType.UINT64, DataType.UINT32, DataType.UINT16, DataType.UINT8}
SMALL = UNSIGNED - {DataType.UINT64}

U8 = BufferTensorDesc(DataType.UINT8, [2, 3])


def create(desc: OperatorDesc, level: FeatureLevel = FeatureLevel.LEVEL_4_1) -> None:
    dml.Device(ModelDriver(), level).create_operator(desc)


def refuse(
    desc: OperatorDesc,
    found: str,
    expected: str,
    level: FeatureLevel = FeatureLevel.LEVEL_4_1,
    hresult: str = "E_INVALIDARG",
    driver: ModelDriver | None = None,
) -> None:
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
    if kind is dml.ElementWiseBitCountOperatorDesc:
        output = BufferTensorDesc(DataType.UINT8, tensor.sizes)
        return dml.ElementWiseBitCountOperatorDesc(tensor, output)
    if kind is dml.ElementWiseBitNotOperatorDesc:
        return dml.ElementWiseBitNotOperatorDesc(tensor, tensor)
    return make(kind, tensor, tensor, tensor)


def first(kind: type[OperatorDesc]) -> str:
    return "InputTensor" if kind in UNARY else "ATensor"
