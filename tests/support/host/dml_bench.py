"""Operators and graphs on a model of the device, for tests of binding, recording and refusals."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, ExecutionFlags, FeatureLevel
from support.host.model_link import ModelDriver
from support.host.refusals import literal, refused

REMOVED = "DXGI_ERROR_DEVICE_REMOVED"

U8 = BufferTensorDesc(DataType.UINT8, [16])
UINT8, UINT16, UINT32, UINT64 = DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64
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

    def create(self, desc: Any, level: FeatureLevel = FeatureLevel.LEVEL_4_1) -> dml.Operator:
        """Return an operator of the bench's driver at a feature level."""
        return dml.Device(self.driver, level).create_operator(desc)

    def use(self, desc: dml.OperatorDesc, *places: Any) -> None:
        """Record a dispatch of an operator that is not initialised; the last place is the output's.

        A place is an offset in the buffer, an offset and a size, a binding or None.
        """
        self.record_dispatch(self.compile(desc), *map(self.bound, places))

    def bound(self, place: Any) -> Any:
        """Return the binding at an offset of the buffer, or ``place`` if it is none."""
        if isinstance(place, tuple):
            return self.at(*place)
        return self.at(place) if isinstance(place, int) else place

    def refuse_execution(self, words: str) -> None:
        self.refuse(lambda: self.device.execute(self.commands), words)

    def refuse(self, action: Callable[[], object], words: str, code: str = REMOVED) -> None:
        """Expect that ``action`` is refused with ``code``, and that nothing is executed."""
        before = list(self.model.calls)
        with refused(self.device, dml.DmlError, f"^{code}: {literal(words)}"):
            action()
        assert self.model.calls == before


def u8(
    sizes: list[int], strides: list[int] | None = None, total: int | None = None
) -> BufferTensorDesc:
    return BufferTensorDesc(UINT8, sizes, strides, total_tensor_size_in_bytes=total)


def refusals(
    prefix: str, rows: Sequence[tuple[Callable[[Any], object], str]], error: Any = dml.DmlError
) -> Callable[..., None]:
    """Return a test of each row's call on a bench: its message begins with ``prefix`` and words.

    Three dots stand for any text.
    """

    @pytest.mark.parametrize(("call", "words"), rows)
    def test(call: Callable[[Any], object], words: str) -> None:
        bench = Bench(NOT(U8, U8))
        with refused(bench.device, error, f"^{literal(prefix + words)}"):
            call(bench)
        assert (bench.model.calls, len(bench.commands)) == ([], 0)

    return test


# --- graphs: of one operator, of distances of rows, and of any ----------------------------------

WORDS = BufferTensorDesc(DataType.UINT32, [4, 8])
SUMS = BufferTensorDesc(DataType.UINT32, [4, 1])
OWNED = BufferTensorDesc(DataType.UINT32, [4, 8], flags=dml.TensorFlags.OWNED_BY_DML)
ROWS = dml.ReduceOperatorDesc(dml.ReduceFunction.SUM, WORDS, SUMS, (1,))
DISTANCES = [XOR(WORDS, WORDS, WORDS), COUNT(WORDS, WORDS), ROWS]
"""Logic, count and sum: one behind the other they are Hamming distances of rows."""

A = np.random.default_rng(3).integers(0, 2**32, (4, 8), np.uint32)
B = np.random.default_rng(4).integers(0, 2**32, (4, 8), np.uint32)

To, Out, Via = dml.InputGraphEdgeDesc, dml.OutputGraphEdgeDesc, dml.IntermediateGraphEdgeDesc
ONE = [NOT(WORDS, WORDS)]
PLAIN = [To(0, 0, 0), Out(0, 0, 0)]
NOTHING: Any = None


def desc(device: dml.Device, nodes: Sequence[Any], *edges: Any) -> dml.GraphDesc:
    """Return a graph of ``nodes``, with the inputs and outputs that ``edges`` name."""
    operators = [dml.OperatorGraphNodeDesc(device.create_operator(node)) for node in nodes]
    arriving = [edge for edge in edges if isinstance(edge, To)]
    leaving = [edge for edge in edges if isinstance(edge, Out)]
    between = [edge for edge in edges if isinstance(edge, Via)]
    inputs = 1 + max([edge.graph_input_index for edge in arriving], default=-1)
    outputs = 1 + max([edge.graph_output_index for edge in leaving], default=0)
    return dml.GraphDesc(inputs, outputs, operators, arriving, leaving, between)


def distances(device: dml.Device, *more: Any) -> dml.GraphDesc:
    """Return a graph of distances of rows, with ``more`` edges behind it."""
    edges = (To(0, 0, 0), To(1, 0, 1), Via(0, 0, 1, 0), Via(1, 0, 2, 0), Out(2, 0, 0))
    return desc(device, DISTANCES, *edges, *more)


def run(graph: dml.GraphDesc, device: dml.Device, *inputs: Any) -> list[Any]:
    """Run a graph on inputs of NumPy arrays; return the content of each output."""
    return list(device.run(graph, inputs))
