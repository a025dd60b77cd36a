"""From expressions to passes over memory: one operation each, on places that are not fixed yet.

Decides what is computed, in which order; not where. Never talks to a device.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..jobs.lowering import View
from ..jobs.operands import packed_strides
from .form import Applied, Constant, Expression, Stored, Viewed, Widened, apply
from .walk import operands_first

__all__ = ["Pass", "Plan", "Room", "Spot", "planned", "redirected", "touched"]

_CONSTANT: Final = 8
"""Bytes that a constant takes: the widest element."""

_PLAIN: Final = (False, False)


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
    flags: tuple[bool, bool] = _PLAIN
    """Whether shift counts saturate; whether shifts to the right are arithmetic."""

    @property
    def operands(self) -> tuple[Spot, ...]:
        return (self.a,) if self.b is None else (self.a, self.b)


@dataclass(frozen=True, slots=True)
class Plan:
    """What computes some expressions, each node once and after its operands."""

    passes: tuple[Pass, ...]
    results: tuple[Spot, ...]
    """Where each of the expressions is in the end."""
    constants: Room


def planned(roots: Sequence[Expression]) -> Plan:
    """The passes for ``roots``. What needs most memory comes first, so that all needs least."""
    writer = _Writer()
    kept = [apply(Op.COPY, root) if _is_constant(root) else root for root in roots]
    for node in operands_first(kept):
        writer.visit(node)
    results = tuple(writer.spots[root] for root in kept)
    return Plan(tuple(writer.passes), results, writer.constants)


def _is_constant(node: Expression) -> bool:
    return isinstance(node.source if isinstance(node, Viewed) else node, Constant)


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
    if result.room is None and _meet(touched(result.view, shape), touched(target, shape)):
        strides = packed_strides(shape, range(len(shape)), target.itemsize)
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
    place = touched(target, last.shape)
    return not any(
        x.room is None and x.view != target and _meet(touched(x.view, last.shape), place)
        for x in last.operands
    )


def touched(view: View, shape: tuple[int, ...]) -> range:
    """The addresses from the first byte of a view to its last."""
    spans = [step * (count - 1) for count, step in zip(shape, view.strides, strict=True)]
    first = view.address + sum(min(0, span) for span in spans)
    last = view.address + sum(max(0, span) for span in spans) + view.itemsize
    return range(first, last)


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


class _Writer:
    """Writes down the passes, a node at a time."""

    def __init__(self) -> None:
        self.passes: list[Pass] = []
        self.constants = Room(0)
        self.spots: dict[Expression, Spot] = {}

    def visit(self, node: Expression) -> None:
        """Add what computes ``node``, whose operands have been visited."""
        if isinstance(node, Stored):
            self.spots[node] = Spot(None, node.view)
        elif isinstance(node, Viewed):
            source = self.spots[node.source]
            self.spots[node] = source.moved(node.offset, node.strides, node.itemsize)
        elif isinstance(node, Constant):
            self.spots[node] = self._constant(node.content)
        else:
            room = Room(prod(node.shape) * node.itemsize)
            y = Spot(room, View(0, node.strides, node.itemsize))
            self.spots[node] = y
            if isinstance(node, Applied):
                self._apply(node, y)
            else:
                self._widen(node, y)

    def _apply(self, node: Applied, y: Spot) -> None:
        a = _repeated(self.spots[node.a], node.a.shape, node.shape)
        b = None if node.b is None else _repeated(self.spots[node.b], node.b.shape, node.shape)
        flags = (node.saturate, node.arithmetic)
        self.passes.append(Pass(node.op, node.shape, a, b, y, flags))

    def _widen(self, node: Widened, y: Spot) -> None:
        source, shape = self.spots[node.source], node.shape
        repeated = (0,) * len(shape)
        narrow = node.source.itemsize
        if not node.signed:
            zero = self._constant(bytes(node.itemsize)).moved(0, repeated, node.itemsize)
            bottom = y.moved(0, node.strides, narrow)
            self.passes.append(Pass(Op.COPY, shape, zero, None, y))
            self.passes.append(Pass(Op.COPY, shape, source, None, bottom))
            return
        places = (8 * (node.itemsize - narrow)).to_bytes(node.itemsize, "little")
        count = self._constant(places).moved(0, repeated, node.itemsize)
        top = y.moved(node.itemsize - narrow, node.strides, narrow)
        self.passes.append(Pass(Op.COPY, shape, source, None, top))
        self.passes.append(Pass(Op.SHIFT_RIGHT, shape, y, count, y, (True, True)))

    def _constant(self, content: bytes) -> Spot:
        room, width = self.constants, len(content)
        known = (at for at in range(0, room.size, width) if room.content[at:].startswith(content))
        offset = next(known, room.size)
        if offset == room.size:
            room.content += content.ljust(_CONSTANT, b"\0")
            room.size += _CONSTANT
        return Spot(room, View(offset, (), width))


def _repeated(spot: Spot, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Spot:
    """``spot`` of ``shape`` as an operand of ``wanted`` elements."""
    if shape == wanted:
        return spot
    kept = [0 if n == 1 else step for n, step in zip(shape, spot.view.strides, strict=True)]
    strides = (0,) * (len(wanted) - len(shape)) + tuple(kept)
    return spot.moved(0, strides, spot.view.itemsize)
