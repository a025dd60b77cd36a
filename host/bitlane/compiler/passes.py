"""Passes over memory, one operation each, and the planner that turns expressions into them.

A plan has the operations in order; their buffers get addresses later.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, TypeGuard

from bitlane_rtl.abi import Op

from ..driver import Abilities
from ..errors import NoRunError, UnsupportedError
from ..lowering import (
    CommandGroup,
    Options,
    Streams,
    View,
    cycles,
    lower_group,
    order_of,
    packed_strides,
)
from ..lowering.strided import WIDTHS
from .nodes import (
    Applied,
    Argument,
    Constant,
    Expression,
    HostSum,
    Joined,
    Selected,
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
    computed = [apply(Op.COPY, root) if _is_constant(root) else root for root in roots]
    order = operands_first(computed)
    writer = _Writer(abilities, constants or ConstantPool())
    writer.masked_sums.update(_rows_of(node) for node in order if _sums_masked(node))
    for node in order:
        writer.visit(node)
    results = tuple(writer.locations[root] for root in computed)
    return Plan(tuple(writer.passes), results, writer.constants.buffer, roots=tuple(computed))


def _view_of(location: Location) -> View:
    return location.view


def _packed(step: Pass) -> Location:
    """Return memory for the elements of A, each row of those that ``step`` adds up without gaps."""
    size = step.a.view.itemsize
    # The summed axes, in which Y does not move, are innermost in this order.
    strides = packed_strides(step.shape, order_of(step.y.view.strides), size)
    return Location(VirtualBuffer(prod(step.shape) * size), View(0, strides, size))


def _is_constant(node: Expression) -> bool:
    return isinstance(node.source if isinstance(node, Viewed) else node, Constant)


def _sums_masked(node: Expression) -> TypeGuard[Applied]:
    """Return whether ``node`` counts and adds up the bits that one mask chooses."""
    return isinstance(node, Applied) and bool(node.summed) and isinstance(node.b, Constant)


def _rows_of(node: Applied) -> tuple[Expression, tuple[int, ...]]:
    return node.a, node.summed


class _Writer:
    """Appends the passes of one node at a time."""

    def __init__(self, abilities: Abilities, constants: "ConstantPool") -> None:
        self._abilities = abilities
        self.passes: list[Pass] = []
        self.constants = constants
        self.locations: dict[Expression, Location] = {}
        self.masked_sums: Counter[tuple[Expression, tuple[int, ...]]] = Counter()
        """Sums of masked elements along the same axes."""
        self._rows: dict[tuple[Expression, tuple[int, ...]], Location] = {}
        """Elements that have been packed for such sums."""

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
            assert not isinstance(node, HostSum | Selected), "computed before, in a run of its own"
            buffer = VirtualBuffer(prod(node.shape) * node.itemsize)
            y = Location(buffer, View(0, node.strides, node.itemsize))
            self.locations[node] = y
            if isinstance(node, Applied):
                self._apply(node, y)
            elif isinstance(node, Joined):
                self._join(node, y)
            else:
                self._widen(node, y)

    def _apply(self, node: Applied, y: Location) -> None:
        shape = node.operand_shape
        a = self.locations[node.a].broadcast(node.a.shape, shape)
        b = None if node.b is None else self.locations[node.b].broadcast(node.b.shape, shape)
        if node.summed:
            self.passes += self._sum(Pass(node.op, shape, a, b, y, node.options), node)
        else:
            self.passes.append(Pass(node.op, shape, a, b, y, node.options))

    def _join(self, node: Joined, y: Location) -> None:
        """Append a pass for each part that has elements, which copies it to its range.

        One of no elements, if no part has any: each computed value is written by a pass.
        """
        start, empty = 0, 0 in node.shape
        for part in node.parts[:1] if empty else node.parts:
            if empty or 0 not in part.shape:
                source = self.locations[part].broadcast(part.shape, part.shape)
                target = y.window(start * node.strides[node.axis], node.strides, node.itemsize)
                self.passes.append(Pass(Op.COPY, part.shape, source, None, target))
            start += part.shape[node.axis]

    def _sum(self, count: Pass, node: Applied) -> list[Pass]:
        """Return the pass that adds ``count`` up, perhaps after one that packs the rows."""
        shape, steps = count.shape, iter(count.y.view.strides)
        strides = tuple([0 if axis in node.summed else next(steps) for axis in range(len(shape))])
        step = replace(count, y=count.y.window(0, strides, count.y.view.itemsize))
        runs = self._has_runs(step)
        if _sums_masked(node) and (packed := self._pack(step, node, runs=runs)):
            return packed
        if runs:
            return [step]
        rows = _packed(step)
        return [
            Pass(step.op.counted, shape, step.a, step.b, rows),
            replace(step, op=Op.COUNT, a=rows, b=None),
        ]

    def _has_runs(self, step: Pass) -> bool:
        try:
            step.lower(_view_of, self._abilities)
        except NoRunError:
            return False
        return True

    def _pack(self, step: Pass, node: Applied, *, runs: bool) -> list[Pass]:
        """Return passes that pack the rows once for all sums of them; none if that does not help.

        ``runs``: whether the rows are runs without packing.
        """
        key = _rows_of(node)
        known = self._rows.get(key)
        if known is not None:
            return [replace(step, a=known)]
        rows, times = _packed(step), self.masked_sums[key]
        dense = replace(step, a=rows)
        if (runs and times == 1) or not self._has_runs(dense):
            return []
        copy = Pass(Op.COPY, step.shape, step.a, None, rows)
        if runs:
            once, each = self._estimate([copy]), self._estimate([dense])
            if once + times * each >= times * self._estimate([step]):
                return []
        self._rows[key] = rows
        return [copy, dense]

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
