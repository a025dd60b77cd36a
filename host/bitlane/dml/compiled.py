"""A graph as passes over memory: logic goes into the count behind it, and counts into their sums.

Planned once, when the graph is compiled; addresses are filled in when it is dispatched. Computes
nothing, and never touches a device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import Final

import numpy as np

from bitlane_rtl.abi import Op

from ..compiler import (
    Applied,
    Argument,
    Expression,
    Location,
    Plan,
    VirtualBuffer,
    add_up,
    allocate,
    apply,
    fuse,
    pass_costs,
    plan_passes,
    window,
)
from ..compiler.explain import Explanation, table
from ..compiler.memory import MemoryPlan, write_into
from ..compiler.passes import ConstantPool, Pass
from ..driver import Abilities
from ..errors import DmlError
from ..links import Link
from ..lowering import Options, View, order_of, packed_strides
from .buffer import Buffer, Parent
from .graph import Connections, Port
from .operators import InPlace, NamedTensors, OperatorDesc, ReduceOperatorDesc
from .tensor import BufferTensorDesc
from .types import DataType

COPYING: Final = (Op.COPY, Op.OR, Op.AND)
"""Operations that return their operand where both operands are the same: the cheapest first."""

GRAPH: Final = "DML_GRAPH"
"""Type of a graph."""

_INTEGERS: Final = (DataType.UINT32, DataType.INT32)
"""Types of sums, which are modulo 2**32."""


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled graph, or a compiled operator as the graph of it alone."""

    operator_type: str
    """Name in messages."""
    connections: Connections
    memory: MemoryPlan

    @property
    def inputs(self) -> NamedTensors:
        return self.connections.inputs

    @property
    def readers(self) -> tuple[NamedTensors, ...]:
        """The tensors that read each input."""
        return self.connections.readers

    @property
    def outputs(self) -> NamedTensors:
        return self.connections.outputs

    @property
    def in_place(self) -> InPlace:
        nodes = self.connections.nodes
        only = nodes[0] if len(nodes) == 1 else None
        return only.in_place if isinstance(only, OperatorDesc) else InPlace.NONE

    def explain(self, abilities: Abilities, link: Link) -> Explanation:
        """Return a table of the passes of a dispatch, beside those without fusion."""
        plain = _Builder(self.connections, abilities, list).plan()
        fused = pass_costs(self.memory.plan, abilities, link)
        return table(fused, pass_costs(plain, abilities, link), link)


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory of a graph that has been initialised, and the plan of its use."""

    buffer: Buffer | None
    """None for a graph without intermediate values."""
    memory: MemoryPlan


def scratch_of(device: Parent, program: Program) -> Scratch:
    """Return memory for intermediate values, its constants written. ``OutOfDeviceMemory``."""

    def take(memory: MemoryPlan) -> Scratch:
        if not memory.temporary:
            return Scratch(None, memory)
        buffer = device.create_buffer(memory.temporary)
        buffer.write(np.frombuffer(memory.plan.constants.content, np.uint8))
        return Scratch(buffer, memory)

    return program.memory.fit(take)


def compile_graph(
    connections: Connections, abilities: Abilities, operator_type: str = GRAPH
) -> Program:
    """Plan a graph.

    Raises ``DmlError`` for a graph beyond all circuits, and ``UnsupportedError`` or
    ``LayoutError`` for one beyond this circuit.
    """
    plan = _Builder(connections, abilities, partial(fuse, abilities=abilities)).plan()
    memory = allocate(plan)
    memory.dry_groups(abilities)
    return Program(operator_type, connections, memory)


@lru_cache(maxsize=512)
def compile_operator(desc: OperatorDesc, abilities: Abilities) -> Program:
    """Plan an operator as the graph of it alone. Raises as `compile_graph`."""
    inputs = tuple([Port(None, number) for number in range(len(desc.inputs))])
    readers = tuple([(reader,) for reader in desc.inputs])
    alone = Connections((desc,), (inputs,), (Port(0, 0),), (0,), desc.inputs, readers, desc.outputs)
    return compile_graph(alone, abilities, str(desc.operator_type))


class _Builder:
    """Appends the passes of a graph's nodes.

    A value stays an expression as long as it can: only where a node reads bytes between another
    one's elements is it written out first, in the layout of its tensor.
    """

    def __init__(
        self,
        connections: Connections,
        abilities: Abilities,
        rewrite: Callable[[Sequence[Expression]], list[Expression]],
    ) -> None:
        self._connections = connections
        self._abilities = abilities
        self._rewrite = rewrite
        self._passes: list[Pass] = []
        self._constants = ConstantPool()
        self._values: dict[Port, tuple[BufferTensorDesc, Expression]] = {}
        self._written: dict[Port, Argument] = {}

    def plan(self) -> Plan:
        """Return the passes; the arguments of the plan are the graph's inputs."""
        inputs = [_argument(tensor) for _, tensor in self._connections.inputs]
        for number, ((_, tensor), value) in enumerate(
            zip(self._connections.inputs, inputs, strict=True)
        ):
            self._values[Port(None, number)] = tensor, value
        for number in self._connections.order:
            self._visit(number)
        values = [self._values[port] for port in self._connections.results]
        outputs = [_argument(tensor) for tensor, _ in values]
        self._write(values, outputs)
        results = tuple([Location(x.buffer, x.view) for x in outputs])
        arguments = tuple([x.buffer for x in inputs])
        return Plan(tuple(self._passes), results, self._constants.buffer, arguments)

    def _visit(self, number: int) -> None:
        node = self._connections.nodes[number]
        ports = self._connections.operands[number]
        operands = [
            self._operand(port, tensor)
            for port, (_, tensor) in zip(ports, node.inputs, strict=True)
        ]
        value: Expression
        if isinstance(node, ReduceOperatorDesc):
            value = _summed(number, node, operands[0])
        else:
            b = operands[1] if node.op.reads_b else None
            size = node.output_tensor.data_type.itemsize
            value = apply(node.op, operands[0], b, itemsize=size, options=Options.NONE)
            if _is_dense(node.output_tensor):
                order = order_of(node.output_tensor.element_strides)
                value = replace(value, strides=packed_strides(value.shape, order, size))
        self._values[Port(number, 0)] = node.output_tensor, value

    def _operand(self, port: Port, tensor: BufferTensorDesc) -> Expression:
        """Return the value of ``port``, seen as ``tensor``."""
        made, value = self._values[port]
        if _elements(made) == _elements(tensor):
            return value
        inside = _is_dense(made) and tensor.bytes_reached <= made.bytes_reached
        if not isinstance(value, Argument) and not inside:
            if port not in self._written:
                self._written[port] = _argument(made)
                self._write([self._values[port]], [self._written[port]])
            value = self._written[port]
        return window(value, 0, *_elements(tensor))

    def _write(
        self,
        values: Sequence[tuple[BufferTensorDesc, Expression]],
        targets: Sequence[Argument],
    ) -> None:
        """Append the passes that write ``values`` to ``targets``."""
        roots = self._rewrite([value for _, value in values])
        plan = plan_passes(roots, self._abilities, self._constants)
        locations = [Location(x.buffer, x.view) for x in targets]
        plan = write_into(plan, locations, [x.shape for x in targets])
        copying = next((op for op in COPYING if op in self._abilities.ops), Op.COPY)
        for step in plan.passes:
            if step.op is Op.COPY:
                step = replace(step, op=copying, b=step.a if copying.reads_b else None)
            self._passes.append(step)


def _argument(tensor: BufferTensorDesc) -> Argument:
    """Return the elements of ``tensor``, in memory that is bound later."""
    return Argument(VirtualBuffer(tensor.total_tensor_size_in_bytes), _view(tensor), tensor.sizes)


def _summed(number: int, node: ReduceOperatorDesc, count: Expression) -> Expression:
    """Return the sums of a count. ``DmlError`` for other values: counts alone have an adder."""
    tensor = node.output_tensor
    counts = isinstance(count, Applied) and count.op.counts and not count.summed
    if not isinstance(count, Applied) or not counts or tensor.data_type not in _INTEGERS:
        raise DmlError(
            f"Nodes[{number}]",
            "InputTensor",
            "not a count of bits",
            "the output of a BIT_COUNT in this graph, as UINT32: the circuit adds up what it"
            " counts, and nothing else",
            hresult="DXGI_ERROR_UNSUPPORTED",
        )
    sums = add_up(count, tuple(sorted(node.axes)))
    own = [step for axis, step in enumerate(tensor.element_strides) if axis not in node.axes]
    strides = packed_strides(sums.shape, order_of(tuple(own)), sums.itemsize)
    steps = iter(strides)
    shown = tuple(
        [0 if axis in node.axes else next(steps) for axis in range(tensor.dimension_count)]
    )
    return window(replace(sums, strides=strides), 0, tensor.sizes, shown)


def _is_dense(tensor: BufferTensorDesc) -> bool:
    """Whether an output has no gaps between its elements."""
    return tensor.bytes_reached == prod(tensor.sizes) * tensor.data_type.itemsize


def _elements(tensor: BufferTensorDesc) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return shape, strides in bytes, and bytes of an element."""
    view = _view(tensor)
    return tensor.sizes, view.strides, view.itemsize


def _view(tensor: BufferTensorDesc) -> View:
    size = tensor.data_type.itemsize
    return View(0, tuple([step * size for step in tensor.element_strides]), size)
