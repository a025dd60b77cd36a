"""Passes over memory: one operation each, on places that are not fixed yet. Plain data."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..driver.commands import Command
from ..driver.geometry import Geometry
from ..jobs.lowering import View, lower
from ..jobs.operands import packed_strides
from ..jobs.order import meet, touched
from ..jobs.sums import lower_sum
from .form import Expression

__all__ = ["Pass", "Plan", "Room", "Spot", "redirected"]

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

    @property
    def sums(self) -> bool:
        """Whether results are added up along the axes in which ``y`` does not move."""
        steps = zip(self.shape, self.y.view.strides, strict=True)
        return self.op.counts and any(count > 1 and not step for count, step in steps)

    def commands(self, where: Callable[[Spot], View], geometry: Geometry) -> Iterator[Command]:
        """What executes it where its spots are. Raises as ``lower`` and ``lower_sum`` do."""
        a, b, y = where(self.a), None if self.b is None else where(self.b), where(self.y)
        if self.sums:
            return lower_sum(self.op, self.shape, a, b, y, geometry=geometry)
        return lower(
            self.op,
            self.shape,
            a,
            b,
            y,
            geometry=geometry,
            saturate=self.flags[0],
            arithmetic=self.flags[1],
        )


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
    if result.room is None and meet(touched(result.view, shape), touched(target, shape)):
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
    place = touched(target, last.shape)
    return not any(
        x.room is None and x.view != target and meet(touched(x.view, last.shape), place)
        for x in last.operands
    )
