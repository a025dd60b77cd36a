"""Passes over memory, one operation each, and the planner that turns expressions into them.

A plan says what is computed, and in which order; not where.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..driver.geometry import Abilities
from ..errors import UnsupportedError
from ..lowering.cost import cycles
from ..lowering.fences import CommandGroup, lower_group
from ..lowering.routes import NoRunError, Shift
from ..lowering.strided import Streams, View, order_of, overlap, packed_strides
from .nodes import Applied, Constant, Expression, Stored, Viewed, Widened, apply


def operands(node: Expression) -> tuple[Expression, ...]:
    """What a node needs."""
    if isinstance(node, Applied):
        return (node.a,) if node.b is None else (node.a, node.b)
    return (node.source,) if isinstance(node, Widened | Viewed) else ()


def count_pending(root: Expression) -> int:
    """How many operations ``root`` needs that are not computed yet."""
    waiting, seen = [root], {root}
    count = 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, Applied | Widened):
            if node.kept:
                continue
            count += 1
        fresh = [each for each in operands(node) if each not in seen]
        waiting += fresh
        seen.update(fresh)
    return count


def kept_values(roots: Sequence[Expression]) -> dict[Expression, Stored]:
    """What ``roots`` need and need not be computed again."""
    known: dict[Expression, Stored] = {}
    waiting, seen = list(roots), set(roots)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Applied | Widened) and (stored := node.kept):
            known[node] = stored
            continue
        fresh = [each for each in operands(node) if each not in seen]
        waiting += fresh
        seen.update(fresh)
    return known


def operands_first(
    roots: Sequence[Expression], known: Container[Expression] = ()
) -> list[Expression]:
    """Every node that ``roots`` need, once, each behind its operands; those of ``known`` alone.

    Of two operands that comes first which needs more memory, beyond what is left of it: then all
    of them need little.
    """
    needs: dict[Expression, int] = {}
    for node in _depth_first(roots, known, {}):
        held, most = 0, 0
        below = () if node in known else operands(node)
        for each in sorted(below, key=lambda x: _size(x) - needs[x]):
            most = max(most, held + needs[each])
            held += _size(each)
        needs[node] = max(most, held + _size(node))
    return _depth_first(roots, known, needs)


def _depth_first(
    roots: Sequence[Expression], known: Container[Expression], needs: dict[Expression, int]
) -> list[Expression]:
    order: dict[Expression, None] = {}
    # Not recursive: programs build chains of any length.
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, ready = waiting.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
            continue
        waiting.append((node, True))
        below = () if node in known else operands(node)
        following = [each for each in reversed(below) if each not in order]
        if needs:
            following.sort(key=lambda x: needs[x] - _size(x))
        waiting += [(each, False) for each in following]
    return list(order)


def _size(node: Expression) -> int:
    """Bytes of temporary memory that a node's value takes."""
    return prod(node.shape) * node.itemsize if isinstance(node, Applied | Widened) else 0


@dataclass(slots=True, eq=False)
class Room:
    """``size`` bytes that a plan needs. ``content``: what they hold before it begins."""

    size: int
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Spot:
    """Elements in a room, whose start is address 0 of the view; without one, at its addresses."""

    room: Room | None
    view: View

    def moved(self, offset: int, strides: tuple[int, ...], itemsize: int) -> "Spot":
        """Other elements, from ``offset`` bytes behind element 0 on."""
        return Spot(self.room, View(self.view.address + offset, strides, itemsize))


@dataclass(frozen=True, slots=True)
class Pass:
    """One operation on ``shape`` elements: what ``lower`` takes, but in spots."""

    op: Op
    shape: tuple[int, ...]
    a: Spot
    b: Spot | None
    y: Spot
    shift: Shift = Shift.NONE

    @property
    def operands(self) -> tuple[Spot, ...]:
        return (self.a,) if self.b is None else (self.a, self.b)

    @property
    def sums(self) -> bool:
        """Whether results are added up along the axes in which ``y`` does not move."""
        steps = zip(self.shape, self.y.view.strides, strict=True)
        return self.op.counts and any(count > 1 and not step for count, step in steps)

    def lower(self, locate: Callable[[Spot], View], geometry: Abilities) -> CommandGroup:
        """Return the commands for streams at what ``locate`` returns. Raises as `lower`."""
        b = None if self.b is None else locate(self.b)
        streams = Streams(locate(self.a), b, locate(self.y))
        return lower_group(self.op, self.shape, streams, geometry, self.shift)


@dataclass(frozen=True, slots=True)
class Plan:
    """What computes some expressions, each node once and after its operands."""

    passes: tuple[Pass, ...]
    results: tuple[Spot, ...]
    """Where each of the expressions is in the end."""
    constants: Room
    roots: tuple[Expression, ...]
    """What keeps the memory of the leaves."""


def redirected(plan: Plan, target: View, shape: tuple[int, ...]) -> Plan:
    """A plan of one result that ends with writing it to ``target``, as if that were not read.

    The last pass writes there, if nothing that it has yet to read can be lost so; else one more
    pass copies the result.
    """
    (result,) = plan.results
    into = Spot(None, target)
    if result == into:
        return plan
    steps = list(plan.passes)
    if steps and _may_write(plan, target):
        steps[-1] = replace(steps[-1], y=into)
        return replace(plan, passes=tuple(steps), results=(into,))
    if result.room is None and overlap(result.view.span(shape), target.span(shape)):
        strides = packed_strides(shape, itemsize=target.itemsize)
        copy = Spot(Room(prod(shape) * target.itemsize), View(0, strides, target.itemsize))
        steps.append(Pass(Op.COPY, shape, result, None, copy))
        result = copy
    steps.append(Pass(Op.COPY, shape, result, None, into))
    return replace(plan, passes=tuple(steps), results=(into,))


def _may_write(plan: Plan, target: View) -> bool:
    """Whether the last pass may write to ``target`` instead of memory of its own."""
    last = plan.passes[-1]
    misplaced = any(step % target.itemsize for step in (target.address, *target.strides))
    if last.y != plan.results[0] or (misplaced and last.op not in LOGIC_OPS):
        return False
    place = target.span(last.shape)
    return not any(
        x.room is None and x.view != target and overlap(x.view.span(last.shape), place)
        for x in last.operands
    )


_WIDTHS: Final = (1, 2, 4, 8)
"""Bytes of an element."""

_CONSTANT: Final = _WIDTHS[-1]
"""Bytes that a constant takes: the widest element."""

_ANYWHERE: Final = 1 << 62
"""More bytes, and cycles, than there are."""


def planned(roots: Sequence[Expression], abilities: Abilities) -> Plan:
    """The passes for ``roots``. What needs most memory comes first, so that all needs least."""
    writer = _Writer(abilities.abilities)
    kept = [apply(Op.COPY, root) if _is_constant(root) else root for root in roots]
    for node in operands_first(kept):
        writer.visit(node)
    results = tuple(writer.spots[root] for root in kept)
    return Plan(tuple(writer.passes), results, writer.constants.room(), tuple(kept))


def _is_constant(node: Expression) -> bool:
    return isinstance(node.source if isinstance(node, Viewed) else node, Constant)


class _Writer:
    """Writes down passes, a node at a time."""

    def __init__(self, abilities: Abilities) -> None:
        self._abilities = abilities
        self.passes: list[Pass] = []
        self.constants = _Constants()
        self.spots: dict[Expression, Spot] = {}

    def visit(self, node: Expression) -> None:
        """Add what computes ``node``, whose operands have been visited."""
        if isinstance(node, Stored):
            self.spots[node] = Spot(None, node.view)
        elif isinstance(node, Viewed):
            source = self.spots[node.source]
            self.spots[node] = source.moved(node.offset, node.strides, node.itemsize)
        elif isinstance(node, Constant):
            self.spots[node] = self.constants.spot(node.content)
        else:
            room = Room(prod(node.shape) * node.itemsize)
            y = Spot(room, View(0, node.strides, node.itemsize))
            self.spots[node] = y
            if isinstance(node, Applied):
                self._apply(node, y)
            else:
                self._widen(node, y)

    def _apply(self, node: Applied, y: Spot) -> None:
        shape = node.walked
        a = _repeated(self.spots[node.a], node.a.shape, shape)
        b = None if node.b is None else _repeated(self.spots[node.b], node.b.shape, shape)
        if node.summed:
            self.passes += self._sum(node, a, b, y)
        else:
            self.passes.append(Pass(node.op, shape, a, b, y, node.shift))

    def _sum(self, node: Applied, a: Spot, b: Spot | None, y: Spot) -> list[Pass]:
        """Counts added up as they come; if these are no run, of a copy in which they are."""
        shape, kept = node.walked, iter(y.view.strides)
        strides = [0 if axis in node.summed else next(kept) for axis in range(len(shape))]
        into = y.moved(0, tuple(strides), y.view.itemsize)
        step = Pass(node.op, shape, a, b, into)
        try:
            step.lower(lambda spot: spot.view, self._abilities)
        except NoRunError:
            pass
        else:
            return [step]
        size = a.view.itemsize
        room = Room(prod(shape) * size)
        # Those that are added up have stride 0 there, and so come last.
        rows = Spot(room, View(0, packed_strides(shape, order_of(tuple(strides)), size), size))
        return [
            Pass(node.op.counted, shape, a, b, rows),
            Pass(Op.COUNT, shape, rows, None, into),
        ]

    def _widen(self, node: Widened, y: Spot) -> None:
        source, narrow = self.spots[node.source], node.source.itemsize
        if not node.signed:
            ways = [self._masked(node, source, y), self._spread(node, source, y)]
            best = min(ways, key=self._estimate)
            self.passes += best
            return
        places = (8 * (node.itemsize - narrow)).to_bytes(node.itemsize, "little")
        count = _repeated(self.constants.spot(places), (), node.shape)
        top = y.moved(node.itemsize - narrow, node.strides, narrow)
        self.passes.append(Pass(Op.COPY, node.shape, source, None, top))
        self.passes.append(
            Pass(Op.SHIFT_RIGHT, node.shape, y, count, y, Shift.SATURATE | Shift.ARITHMETIC)
        )

    def _masked(self, node: Widened, source: Spot, y: Spot) -> list[Pass]:
        """Each element as often as it fits into a wider one, and 0 but for the lowest."""
        narrow = node.source.itemsize
        parts = node.itemsize // narrow
        mask = self.constants.spot((b"\xff" * narrow).ljust(node.itemsize, b"\0"))
        shape, still = (*node.shape, parts), (0,) * len(node.shape)
        a = source.moved(0, (*source.view.strides, 0), narrow)
        b = mask.moved(0, (*still, narrow), narrow)
        return [Pass(Op.AND, shape, a, b, y.moved(0, (*node.strides, narrow), narrow))]

    def _spread(self, node: Widened, source: Spot, y: Spot) -> list[Pass]:
        """Zeros, and then each element over the lowest bytes."""
        zero = _repeated(self.constants.spot(bytes(node.itemsize)), (), node.shape)
        bottom = y.moved(0, node.strides, node.source.itemsize)
        return [
            Pass(Op.COPY, node.shape, zero, None, y),
            Pass(Op.COPY, node.shape, source, None, bottom),
        ]

    def _estimate(self, steps: Sequence[Pass]) -> int:
        """The cycles of passes one behind the other, wherever they are."""
        abilities = self._abilities
        try:
            return sum(
                cycles(step.lower(lambda spot: spot.view, abilities).commands, abilities)
                for step in steps
            )
        except UnsupportedError:
            return _ANYWHERE


class _Constants:
    """The bytes of a plan's constants, each of them once. A look-up takes the same time for any
    number of constants."""

    def __init__(self) -> None:
        self._room = Room(0)
        self._content = bytearray()
        self._offsets: dict[bytes, int] = {}

    def spot(self, content: bytes) -> Spot:
        """Return the address of ``content``, of 1, 2, 4 or 8 bytes, maybe part of another one."""
        if content not in self._offsets:
            self._append(content.ljust(_CONSTANT, b"\0"))
        return Spot(self._room, View(self._offsets[content], (), len(content)))

    def room(self) -> Room:
        """The memory of all of them, once the last one is there."""
        self._room.size, self._room.content = len(self._content), bytes(self._content)
        return self._room

    def _append(self, content: bytes) -> None:
        first = len(self._content)
        self._content += content
        for width in _WIDTHS:
            for at in range(0, _CONSTANT, width):
                self._offsets.setdefault(content[at : at + width], first + at)


def _repeated(spot: Spot, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Spot:
    """``spot`` of ``shape`` as an operand of ``wanted`` elements."""
    if shape == wanted:
        return spot
    kept = [0 if n == 1 else step for n, step in zip(shape, spot.view.strides, strict=True)]
    strides = (0,) * (len(wanted) - len(shape)) + tuple(kept)
    return spot.moved(0, strides, spot.view.itemsize)
