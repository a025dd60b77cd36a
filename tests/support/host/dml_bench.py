"""An operator on a model of the device, to be bound, recorded and refused."""

from collections.abc import Callable
from typing import Any

import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, ExecutionFlags
from support.host.model_driver import ModelDriver

REMOVED = "DXGI_ERROR_DEVICE_REMOVED"

U8 = BufferTensorDesc(DataType.UINT8, [16])
NOT = dml.ElementWiseBitNotOperatorDesc
XOR = dml.ElementWiseBitXorOperatorDesc
COUNT = dml.ElementWiseBitCountOperatorDesc
SHIFT_LEFT = dml.ElementWiseBitShiftLeftOperatorDesc
SHIFT_RIGHT = dml.ElementWiseBitShiftRightOperatorDesc


class Bench:
    """A device, and an operator on it that has been initialised."""

    def __init__(
        self,
        desc: dml.OperatorDesc,
        flags: ExecutionFlags = ExecutionFlags.NONE,
        initialize: bool = True,
        **changes: Any,
    ) -> None:
        self.driver = ModelDriver(**changes)
        self.model = self.driver.model
        self.device = dml.Device(self.driver)
        self.operator = self.device.compile_operator(self.device.create_operator(desc), flags)
        self.recorder = self.device.create_command_recorder()
        self.commands = self.device.create_command_list()
        if initialize:
            self.initialize()
        self.table = self.device.create_binding_table(self.operator)
        self.buffer = self.device.create_buffer(256)

    def initialize(self) -> None:
        initializer = self.device.create_operator_initializer([self.operator])
        table = self.device.create_binding_table(initializer)
        self.recorder.record_dispatch(self.commands, initializer, table)
        self.device.execute(self.commands)
        self.commands.reset()

    def at(self, offset: int, size: int | None = 16) -> BufferBinding:
        return BufferBinding(self.buffer, offset, size)

    def record(self) -> None:
        self.recorder.record_dispatch(self.commands, self.operator, self.table)

    def refuse(
        self,
        action: Callable[[], object],
        tensor: str,
        field: str,
        value: object,
        expected: str,
        hresult: str = REMOVED,
    ) -> None:
        before = list(self.model.calls)
        with pytest.raises(dml.DmlError) as caught:
            action()
        error = caught.value
        assert (error.tensor, error.field, error.value) == (tensor, field, value)
        assert error.hresult == hresult
        assert expected in error.expected
        for part in (hresult, tensor, field, str(value)):
            assert part in str(error)
        assert self.model.calls == before
