"""An operator on a model of the device, for tests of binding, recording and refusals."""

from collections.abc import Callable, Sequence
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
        self.operator = self.compile(desc, flags)
        self.recorder = self.device.create_command_recorder()
        self.commands = self.device.create_command_list()
        if initialize:
            self.initialize()
        self.table = self.device.create_binding_table(self.operator)
        self.buffer = self.device.create_buffer(256)

    def initialize(self) -> None:
        self.record_initialization(self.operator)
        self.device.execute(self.commands)
        self.commands.reset()

    def compile(
        self, desc: dml.OperatorDesc, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> dml.CompiledOperator:
        return self.device.compile_operator(self.device.create_operator(desc), flags)

    def record_initialization(
        self, operator: dml.CompiledOperator, *bindings: BufferBinding | None
    ) -> None:
        """Record that ``operator`` is initialised with ``bindings`` of its inputs."""
        initializer = self.device.create_operator_initializer([operator])
        table = self.device.create_binding_table(initializer)
        table.bind_inputs([bindings])
        self.recorder.record_dispatch(self.commands, initializer, table)

    def record_dispatch(
        self, operator: dml.CompiledOperator, *bindings: BufferBinding | None
    ) -> None:
        """Record a dispatch of ``operator``; the last binding is the output's."""
        table = self.device.create_binding_table(operator)
        table.bind_inputs(bindings[:-1])
        table.bind_outputs(bindings[-1:])
        self.recorder.record_dispatch(self.commands, operator, table)

    def at(self, offset: int, size: int | None = 16) -> BufferBinding:
        return BufferBinding(self.buffer, offset, size)

    def dispatch(self, *bindings: BufferBinding | None) -> None:
        """Record a dispatch of the bench's operator."""
        self.record_dispatch(self.operator, *bindings)

    def bind(self, *bindings: BufferBinding | None) -> None:
        """Bind the bench's table; the last binding is the output's."""
        self.table.bind_inputs(bindings[:-1])
        self.table.bind_outputs(bindings[-1:])

    def record(self) -> None:
        """Record a dispatch with the bindings of the bench's table."""
        self.recorder.record_dispatch(self.commands, self.operator, self.table)

    def refuse_dispatch(
        self, bindings: Sequence[BufferBinding | None], found: str, expected: str
    ) -> None:
        """Expect that each binding is accepted by itself, and their dispatch is refused."""
        self.bind(*bindings)
        self.refuse(self.record, found, expected)

    def refuse_execution(self, found: str, expected: str) -> None:
        self.refuse(lambda: self.device.execute(self.commands), found, expected)

    def refuse(
        self, action: Callable[[], object], found: str, expected: str, hresult: str = REMOVED
    ) -> None:
        """Expect that ``action`` raises an error, and that nothing is executed."""
        before = list(self.model.calls)
        with pytest.raises(dml.DmlError) as caught:
            action()
        expect_error(caught.value, found, expected, hresult)
        assert self.model.calls == before


def expect_error(error: dml.DmlError, found: str, expected: str, hresult: str) -> None:
    """Expect that an error names the value in ``found`` and the requirement in ``expected``."""
    assert error.hresult == hresult
    assert f"{error.tensor}.{error.field} is {error.value}" == found
    assert expected in error.expected
    assert str(error) == f"{hresult}: {found}; expected {error.expected}"
