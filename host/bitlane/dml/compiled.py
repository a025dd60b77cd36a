"""A graph as passes over memory: logic goes into the count behind it, and counts into their sums.

Planned once, when the graph is compiled; addresses are put in when it is dispatched. Computes
nothing, and never touches a device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, Final, TypeAlias

import numpy as np

from bitlane_rtl.abi import Op

from ..compiler.explain import explained_passes, table
from ..compiler.fusion import fused
from ..compiler.memory import Arrangement, arranged, side_by_side
from ..compiler.nodes import Applied, Expression, Stored, added, apply, window
from ..compiler.passes import Pass, Plan, Room, Spot, planned
from ..driver.driver import Storage
from ..driver.geometry import Geometry
from ..errors import DmlError, OutOfDeviceMemory
from ..lowering.routes import Shift
from ..lowering.strided import View, order_of, packed_strides
from .buffer import Buffer, Parent
from .graph import Connections, Port
from .operators import InPlace, NamedTensors, OperatorDesc, ReduceOperatorDesc
from .tensor import BufferTensorDesc
from .types import DataType

_APART: Final = 1 << 48
"""Bytes between the places that stand for memory that is not bound yet; more than there are."""

COPYING: Final = (Op.COPY, Op.OR, Op.AND)
"""What gives its operand unchanged, where both operands are the same: the cheapest first."""

_INTEGERS: Final = (DataType.UINT32, DataType.INT32)
"""Types of sums, which are modulo 2**32."""


class _Unbound(Storage):
    """Stands for memory that is bound when the graph is dispatched; takes none itself."""

    __slots__ = ()

    def __init__(self, number: int, size: int) -> None:
        self.address = (number + 1) * _APART
        self.size = size


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """What a graph was compiled into: it stands where a description stands for one operator."""

    operator_type: ClassVar[str] = "DML_GRAPH"

    inputs: NamedTensors
    outputs: NamedTensors
    in_place: InPlace
    constants: bytes
    """What the first bytes of the scratch memory hold."""
    arrangements: tuple[Arrangement, ...]
    """How the passes may be arranged, what is fastest first: others take less scratch memory."""
    plain: Arrangement
    """The passes as they would be if nothing were fused."""

    def explain(self, geometry: Geometry) -> str:
        """A table of the passes of a dispatch, and what they would be unfused."""
        fused, plain = (
            explained_passes(arrangement, self._starts(), geometry.abilities)
            for arrangement in (self.arrangements[0], self.plain)
        )
        return table(fused, plain)

    def check(self, geometry: Geometry) -> None:
        """Raises ``UnsupportedError`` or ``LayoutError`` for what the circuit cannot do."""
        self.arrangements[0].groups(self._starts(), geometry.abilities)

    def _starts(self) -> list[int]:
        count = len(self.outputs) + len(self.inputs) + 1
        return [(number + 1) * _APART for number in range(count)]


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory of a graph that has been initialised, and how its passes are arranged in it."""

    buffer: Buffer | None
    """None where nothing is in between."""
    arrangement: Arrangement


def scratch_of(device: Parent, program: GraphProgram) -> Scratch:
    """Memory for what is in between, its constants written. Raises ``OutOfDeviceMemory``."""
    *roomy, least = program.arrangements
    for arrangement in (*roomy, least):
        if not arrangement.temporary:
            return Scratch(None, arrangement)
        try:
            buffer = device.create_buffer(arrangement.temporary)
        except OutOfDeviceMemory:
            if arrangement is least:
                raise
        else:
            buffer.write(np.frombuffer(program.constants, np.uint8))
            return Scratch(buffer, arrangement)
    raise AssertionError("a program has arrangements")


Compiled: TypeAlias = OperatorDesc | GraphProgram
"""What a compiled operator does."""


def compiled(connections: Connections, geometry: Geometry) -> GraphProgram:
    """Plan a graph. Raises ``DmlError`` for what no circuit does, and as ``GraphProgram.check``."""
    builder = _Builder(connections, geometry, lambda roots: fused(roots, geometry))
    plain = _Builder(connections, geometry, list)
    only = connections.nodes[0] if len(connections.nodes) == 1 else None
    program = GraphProgram(
        connections.inputs,
        connections.outputs,
        only.in_place if isinstance(only, OperatorDesc) else InPlace.NONE,
        builder.constants.content,
        (builder.arrangement(sparing=False), builder.arrangement(sparing=True)),
        plain.arrangement(sparing=False),
    )
    program.check(geometry)
    return program


class _Builder:
    """Writes down the passes of a graph.

    A value stays an expression as long as it can: only where a node reads bytes between another
    one's elements is it written out first, in the layout that its tensor has.
    """

    def __init__(
        self,
        connections: Connections,
        geometry: Geometry,
        rewrite: Callable[[Sequence[Expression]], list[Expression]],
    ) -> None:
        self._geometry = geometry
        self._rewrite = rewrite
        self._passes: list[Pass] = []
        self.constants = Room(0)
        self._rooms: list[Room] = []
        self._values: dict[Port, tuple[BufferTensorDesc, Expression]] = {}
        self._written: dict[Port, Stored] = {}
        for place, (_, tensor) in enumerate(connections.inputs):
            self._values[Port(None, place)] = tensor, self._unbound(tensor)
        self._inputs = tuple(self._rooms)
        for number in connections.order:
            self._visit(number, connections)
        values = [self._values[port] for port in connections.results]
        self._outputs = [self._spot(tensor) for tensor, _ in values]
        self._write(values, self._outputs)

    def arrangement(self, *, sparing: bool) -> Arrangement:
        """Memory for the passes: pieces are the outputs, then the inputs; the rest is temporary."""
        plan = Plan(tuple(self._passes), tuple(self._outputs), self.constants, ())
        passes = plan.passes if sparing else side_by_side(plan.passes)
        found = arranged(plan, passes, sparing=sparing)
        first = len(self._outputs)
        bound = {room: (first + place, 0) for place, room in enumerate(self._inputs)}
        return replace(found, places=found.places | bound)

    def _visit(self, number: int, connections: Connections) -> None:
        node = connections.nodes[number]
        operands = [
            self._operand(port, tensor)
            for port, (_, tensor) in zip(connections.operands[number], node.inputs, strict=True)
        ]
        value: Expression
        if isinstance(node, ReduceOperatorDesc):
            value = _summed(number, node, operands[0])
        else:
            b = operands[1] if node.op.reads_b else None
            size = node.output_tensor.data_type.itemsize
            value = apply(node.op, operands[0], b, itemsize=size, shift=Shift.NONE)
            if _is_dense(node.output_tensor):
                order = order_of(node.output_tensor.element_strides)
                value = replace(value, strides=packed_strides(value.shape, order, size))
        self._values[Port(number, 0)] = node.output_tensor, value

    def _operand(self, port: Port, tensor: BufferTensorDesc) -> Expression:
        """What comes from ``port``, as ``tensor`` shows it."""
        made, value = self._values[port]
        if _elements(made) == _elements(tensor):
            return value
        inside = _is_dense(made) and tensor.bytes_reached <= made.bytes_reached
        if not isinstance(value, Stored) and not inside:
            if port not in self._written:
                self._written[port] = self._unbound(made)
                self._write([self._values[port]], [Spot(self._rooms[-1], _view(made))])
            value = self._written[port]
        return window(value, 0, *_elements(tensor))

    def _unbound(self, tensor: BufferTensorDesc) -> Stored:
        storage = _Unbound(len(self._rooms), tensor.total_tensor_size_in_bytes)
        self._rooms.append(Room(storage.size))
        view = _view(tensor)
        return Stored(storage, view.moved(storage.address), tensor.sizes)

    @staticmethod
    def _spot(tensor: BufferTensorDesc) -> Spot:
        return Spot(Room(tensor.total_tensor_size_in_bytes), _view(tensor))

    def _write(
        self, values: Sequence[tuple[BufferTensorDesc, Expression]], spots: Sequence[Spot]
    ) -> None:
        """Add the passes that write ``values`` to ``spots``."""
        plan = planned(self._rewrite([value for _, value in values]), self._geometry)
        copying = next((op for op in COPYING if op in self._geometry.ops), Op.COPY)
        shapes = [tensor.sizes for tensor, _ in values]
        steps, moved = _directed(plan, spots, shapes)
        behind = self.constants.size
        self.constants.content += plan.constants.content
        self.constants.size += plan.constants.size

        def placed(spot: Spot) -> Spot:
            if spot.room is plan.constants:
                return Spot(self.constants, View(spot.view.address + behind, *_rest(spot.view)))
            if spot.room is not None:
                return Spot(moved.get(spot.room, spot.room), spot.view)
            number, address = divmod(spot.view.address, _APART)
            return Spot(self._rooms[number - 1], View(address, *_rest(spot.view)))

        for step in steps:
            if step.op is Op.COPY:
                step = replace(step, op=copying, b=step.a if copying.reads_b else None)
            b = None if step.b is None else placed(step.b)
            self._passes.append(replace(step, a=placed(step.a), b=b, y=placed(step.y)))


def _directed(
    plan: Plan, spots: Sequence[Spot], shapes: Sequence[tuple[int, ...]]
) -> tuple[list[Pass], dict[Room, Room]]:
    """The passes of ``plan`` and the rooms that take others' place, so that its results go there.

    A result is computed in its spot if it lies as the spot does, or if nothing else needs it; else
    it is copied.
    """
    steps, moved = list(plan.passes), dict[Room, Room]()
    for found, spot, shape in zip(plan.results, spots, shapes, strict=True):
        users = [
            number
            for number, step in enumerate(steps)
            for each in (*step.operands, step.y)
            if each.room is found.room
        ]
        pairs = zip(shape, found.view.strides, strict=True)
        lies = found.view._replace(strides=tuple([0 if n == 1 else step for n, step in pairs]))
        assert found.room is not None
        assert spot.room is not None
        alone = found.room not in moved  # as no room can be in two places
        if alone and lies == spot.view and found.room.size <= spot.room.size:
            moved[found.room] = spot.room
        elif alone and len(users) == 1 and steps[users[0]].y == found:
            steps[users[0]] = replace(steps[users[0]], y=spot)
        else:
            steps.append(Pass(Op.COPY, shape, found, None, spot))
    return steps, moved


def _summed(number: int, node: ReduceOperatorDesc, count: Expression) -> Expression:
    """The sums of a count. Raises ``DmlError`` for anything else: there is no other adder."""
    tensor = node.output_tensor
    counts = isinstance(count, Applied) and count.op.counts and not count.summed
    if not isinstance(count, Applied) or not counts or tensor.data_type not in _INTEGERS:
        raise DmlError(
            f"Nodes[{number}]",
            "InputTensor",
            "no count of bits",
            "the output of a BIT_COUNT in this graph, as UINT32: the circuit adds up what it"
            " counts, and nothing else",
            hresult="DXGI_ERROR_UNSUPPORTED",
        )
    sums = added(count, tuple(sorted(node.axes)))
    kept = [step for axis, step in enumerate(tensor.element_strides) if axis not in node.axes]
    strides = packed_strides(sums.shape, order_of(tuple(kept)), sums.itemsize)
    steps = iter(strides)
    shown = tuple(
        [0 if axis in node.axes else next(steps) for axis in range(tensor.dimension_count)]
    )
    return window(replace(sums, strides=strides), 0, tensor.sizes, shown)


def _is_dense(tensor: BufferTensorDesc) -> bool:
    """Whether an output has no gaps between its elements."""
    return tensor.bytes_reached == prod(tensor.sizes) * tensor.data_type.itemsize


def _elements(tensor: BufferTensorDesc) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides in bytes, and bytes of an element."""
    view = _view(tensor)
    return tensor.sizes, view.strides, view.itemsize


def _view(tensor: BufferTensorDesc) -> View:
    size = tensor.data_type.itemsize
    return View(0, tuple([step * size for step in tensor.element_strides]), size)


def _rest(view: View) -> tuple[tuple[int, ...], int]:
    return view.strides, view.itemsize
