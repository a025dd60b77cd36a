"""Passes over memory, one operation each, and the planner that turns expressions into them.

A plan has the operations in order; their buffers get addresses later.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from bitlane_rtl.abi import Op

from ..driver.geometry import Abilities
from ..errors import NoRunError, UnsupportedError
from ..lowering.cost import cycles
from ..lowering.fences import CommandGroup, lower_group
from ..lowering.routes import Options
from ..lowering.strided import WIDTHS, Streams, View, order_of, packed_strides
from .nodes import (
    Applied,
    Argument,
    Constant,
    Expression,
    Stored,
    Viewed,
    VirtualBuffer,
    Widened,
    apply,
    operands_first,
)


@dataclass(frozen=True, slots=True)
class Location:
    """Elements in a buffer, whose start is address 0 of the view; without one, at its addresses."""

    buffer: VirtualBuffer | None
    view: View

    def window(self, offset: int, strides: tuple[int, ...], itemsize: int) -> "Location":
        """Return other elements, from ``offset`` bytes behind element 0 on."""
        return Location(self.buffer, View(self.view.address + offset, strides, itemsize))

    def broadcast(self, shape: tuple[int, ...], target: tuple[int, ...]) -> "Location":
        """Return these elements of ``shape`` repeated to the shape ``target``."""
        return Location(self.buffer, self.view.broadcast(shape, target))


@dataclass(frozen=True, slots=True)
class Pass:
    """One operation on ``shape`` elements: the arguments of `lower`, at locations."""

    op: Op
    shape: tuple[int, ...]
    a: Location
    b: Location | None
    y: Location
    options: Options = Options.NONE

    @property
    def operands(self) -> tuple[Location, ...]:
        return (self.a,) if self.b is None else (self.a, self.b)

    @property
    def name(self) -> str:
        """The operation, with what the circuit does to its counts: ``COUNT_XOR TEST SUM``."""
        tests = [flag.name for flag in (Options.TEST, Options.NEGATE) if flag in self.options]
        return " ".join([self.op.name, *filter(None, tests), *["SUM"] * self.sums])

    @property
    def sums(self) -> bool:
        """Whether results are added up along the axes in which ``y`` does not move."""
        steps = zip(self.shape, self.y.view.strides, strict=True)
        return self.op.counts and any(count > 1 and not step for count, step in steps)

    def lower(
        self,
        locate: Callable[[Location], View],
        abilities: Abilities,
        memory: range | None = None,
    ) -> CommandGroup:
        """Return the commands for streams at what ``locate`` returns. Raises as `lower`."""
        b = None if self.b is None else locate(self.b)
        streams = Streams(locate(self.a), b, locate(self.y))
        return lower_group(self.op, self.shape, streams, abilities, memory, self.options)


@dataclass(frozen=True, slots=True)
class Plan:
    """The passes that compute some expressions, each node once and after its operands."""

    passes: tuple[Pass, ...]
    results: tuple[Location, ...]
    """Location of each expression at the end."""
    constants: VirtualBuffer
    arguments: tuple[VirtualBuffer, ...] = ()
    """Buffers of the expressions' arguments."""
    roots: tuple[Expression, ...] = ()
    """Held so that the memory of their leaves is not given back."""


_CONSTANT: Final = WIDTHS[-1]
"""Bytes of memory for a constant: those of the widest element."""

_IMPOSSIBLE: Final = 1 << 62
"""Cycles of passes that the circuit cannot execute."""


def plan_passes(
    roots: Sequence[Expression], abilities: Abilities, constants: "ConstantPool | None" = None
) -> Plan:
    """Return the passes for ``roots``, ordered so that they need little memory at a time.

    ``constants``: those of earlier plans that are to be executed together with this one.
    """
    writer = _Writer(abilities, constants or ConstantPool())
    computed = [apply(Op.COPY, root) if _is_constant(root) else root for root in roots]
    for node in operands_first(computed):
        writer.visit(node)
    results = tuple(writer.locations[root] for root in computed)
    return Plan(tuple(writer.passes), results, writer.constants.buffer, roots=tuple(computed))


def _view_of(location: Location) -> View:
    return location.view


def _is_constant(node: Expression) -> bool:
    return isinstance(node.source if isinstance(node, Viewed) else node, Constant)


class _Writer:
    """Appends the passes of one node at a time."""

    def __init__(self, abilities: Abilities, constants: "ConstantPool") -> None:
        self._abilities = abilities
        self.passes: list[Pass] = []
        self.constants = constants
        self.locations: dict[Expression, Location] = {}

    def visit(self, node: Expression) -> None:
        """Append the passes for ``node``, whose operands have been visited."""
        if isinstance(node, Stored):
            self.locations[node] = Location(None, node.view)
        elif isinstance(node, Argument):
            self.locations[node] = Location(node.buffer, node.view)
        elif isinstance(node, Viewed):
            source = self.locations[node.source]
            self.locations[node] = source.window(node.offset, node.strides, node.itemsize)
        elif isinstance(node, Constant):
            self.locations[node] = self.constants.locate(node.content)
        else:
            buffer = VirtualBuffer(prod(node.shape) * node.itemsize)
            y = Location(buffer, View(0, node.strides, node.itemsize))
            self.locations[node] = y
            if isinstance(node, Applied):
                self._apply(node, y)
            else:
                self._widen(node, y)

    def _apply(self, node: Applied, y: Location) -> None:
        shape = node.operand_shape
        a = self.locations[node.a].broadcast(node.a.shape, shape)
        b = None if node.b is None else self.locations[node.b].broadcast(node.b.shape, shape)
        if node.summed:
            self.passes += self._sum(node, a, b, y)
        else:
            self.passes.append(Pass(node.op, shape, a, b, y, node.options))

    def _sum(self, node: Applied, a: Location, b: Location | None, y: Location) -> list[Pass]:
        """Return the pass that adds counts up; without one run, after a pass that packs them."""
        shape, steps = node.operand_shape, iter(y.view.strides)
        strides = [0 if axis in node.summed else next(steps) for axis in range(len(shape))]
        into = y.window(0, tuple(strides), y.view.itemsize)
        step = Pass(node.op, shape, a, b, into, node.options)
        try:
            step.lower(_view_of, self._abilities)
        except NoRunError:
            pass
        else:
            return [step]
        size = a.view.itemsize
        buffer = VirtualBuffer(prod(shape) * size)
        # The summed axes, which have stride 0, are innermost in this order.
        rows = Location(
            buffer, View(0, packed_strides(shape, order_of(tuple(strides)), size), size)
        )
        return [
            Pass(node.op.counted, shape, a, b, rows),
            Pass(Op.COUNT, shape, rows, None, into, node.options),
        ]

    def _widen(self, node: Widened, y: Location) -> None:
        source, narrow = self.locations[node.source], node.source.itemsize
        if not node.signed:
            options = [self._masked(node, source, y), self._spread(node, source, y)]
            best = min(options, key=self._estimate)
            self.passes += best
            return
        bits = (8 * (node.itemsize - narrow)).to_bytes(node.itemsize, "little")
        count = self.constants.locate(bits).broadcast((), node.shape)
        top = y.window(node.itemsize - narrow, node.strides, narrow)
        self.passes.append(Pass(Op.COPY, node.shape, source, None, top))
        self.passes.append(
            Pass(Op.SHIFT_RIGHT, node.shape, y, count, y, Options.SATURATE | Options.ARITHMETIC)
        )

    def _masked(self, node: Widened, source: Location, y: Location) -> list[Pass]:
        """Return a pass that repeats each element, and masks all copies but the lowest."""
        narrow = node.source.itemsize
        copies = node.itemsize // narrow
        mask = self.constants.locate((b"\xff" * narrow).ljust(node.itemsize, b"\0"))
        shape, still = (*node.shape, copies), (0,) * len(node.shape)
        a = source.window(0, (*source.view.strides, 0), narrow)
        b = mask.window(0, (*still, narrow), narrow)
        return [Pass(Op.AND, shape, a, b, y.window(0, (*node.strides, narrow), narrow))]

    def _spread(self, node: Widened, source: Location, y: Location) -> list[Pass]:
        """Return passes that write zeros, and then each element over the lowest bytes."""
        zero = self.constants.locate(bytes(node.itemsize)).broadcast((), node.shape)
        bottom = y.window(0, node.strides, node.source.itemsize)
        return [
            Pass(Op.COPY, node.shape, zero, None, y),
            Pass(Op.COPY, node.shape, source, None, bottom),
        ]

    def _estimate(self, steps: Sequence[Pass]) -> int:
        """Return the estimated cycles of passes in sequence, at any addresses."""
        abilities = self._abilities
        try:
            return sum(
                cycles(step.lower(_view_of, abilities).commands, abilities) for step in steps
            )
        except UnsupportedError:
            return _IMPOSSIBLE


class ConstantPool:
    """The constants of a plan in one buffer, each of them once, found by hashing."""

    def __init__(self) -> None:
        self.buffer = VirtualBuffer(0, bytearray())
        self._offsets: dict[bytes, int] = {}

    def locate(self, content: bytes) -> Location:
        """Return the location of ``content``, of 1, 2, 4 or 8 bytes, maybe inside another one."""
        if content not in self._offsets:
            self._append(content.ljust(_CONSTANT, b"\0"))
        return Location(self.buffer, View(self._offsets[content], (), len(content)))

    def _append(self, content: bytes) -> None:
        first = self.buffer.size
        self.buffer.content += content
        self.buffer.size += len(content)
        for width in WIDTHS:
            for at in range(0, _CONSTANT, width):
                self._offsets.setdefault(content[at : at + width], first + at)
