"""From expressions to passes over memory: one operation each, on places that are not fixed yet.

Decides what is computed, in which order; not where. Never talks to a device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from bitlane_rtl.abi import Op

from ..jobs.lowering import View
from .form import Applied, Constant, Expression, Stored, Widened, Window, apply

__all__ = ["Pass", "Region", "Room", "passes"]

_PLAIN: Final = (False, False)


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """``size`` bytes that a plan needs. ``content``: what they are to hold before it begins."""

    size: int
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """Elements in a room, whose start is address 0 of the view; without one, at its addresses."""

    room: Room | None
    view: View

    def moved(self, offset: int, strides: tuple[int, ...], itemsize: int) -> "Region":
        """Other elements, from ``offset`` bytes behind element 0 on."""
        return Region(self.room, View(self.view.address + offset, strides, itemsize))


@dataclass(frozen=True, slots=True)
class Pass:
    """One operation on ``shape`` elements: what ``lower`` takes, but in regions."""

    op: Op
    shape: tuple[int, ...]
    a: Region
    b: Region | None
    y: Region
    flags: tuple[bool, bool] = _PLAIN
    """Whether shift counts saturate; whether shifts to the right are arithmetic."""

    @property
    def operands(self) -> tuple[Region, ...]:
        return (self.a,) if self.b is None else (self.a, self.b)


def passes(roots: Sequence[Expression]) -> tuple[list[Pass], list[Region]]:
    """What computes ``roots``, each node once and after its operands; and where each root is."""
    writer = _Writer()
    kept = [apply(Op.COPY, root) if _is_constant(root) else root for root in roots]
    for node in _operands_first(kept):
        writer.visit(node)
    return writer.passes, [writer.regions[root] for root in kept]


def _is_constant(node: Expression) -> bool:
    return isinstance(node.source if isinstance(node, Window) else node, Constant)


def _operands(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Applied):
        return (node.a,) if node.b is None else (node.a, node.b)
    return (node.source,) if isinstance(node, Widened | Window) else ()


def _operands_first(roots: Sequence[Expression]) -> list[Expression]:
    """Every node that ``roots`` need, once."""
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
        waiting += [(each, False) for each in reversed(_operands(node))]
    return list(order)


class _Writer:
    """Writes down the passes, a node at a time."""

    def __init__(self) -> None:
        self.passes: list[Pass] = []
        self.regions: dict[Expression, Region] = {}

    def visit(self, node: Expression) -> None:
        """Add what computes ``node``, whose operands have been visited."""
        if isinstance(node, Stored):
            self.regions[node] = Region(None, node.view)
        elif isinstance(node, Window):
            source = self.regions[node.source]
            self.regions[node] = source.moved(node.offset, node.strides, node.itemsize)
        elif isinstance(node, Constant):
            self.regions[node] = _constant(node.content)
        else:
            room = Room(prod(node.shape) * node.itemsize)
            y = Region(room, View(0, node.strides, node.itemsize))
            self.regions[node] = y
            if isinstance(node, Applied):
                self._apply(node, y)
            else:
                self._widen(node, y)

    def _apply(self, node: Applied, y: Region) -> None:
        a = _repeated(self.regions[node.a], node.a.shape, node.shape)
        b = None if node.b is None else _repeated(self.regions[node.b], node.b.shape, node.shape)
        flags = (node.saturate, node.arithmetic)
        self.passes.append(Pass(node.op, node.shape, a, b, y, flags))

    def _widen(self, node: Widened, y: Region) -> None:
        source, shape = self.regions[node.source], node.shape
        repeated = (0,) * len(shape)
        narrow = node.source.itemsize
        if not node.signed:
            zero = _constant(bytes(node.itemsize)).moved(0, repeated, node.itemsize)
            bottom = y.moved(0, node.strides, narrow)
            self.passes.append(Pass(Op.COPY, shape, zero, None, y))
            self.passes.append(Pass(Op.COPY, shape, source, None, bottom))
            return
        count = 8 * (node.itemsize - narrow)
        places = _constant(count.to_bytes(node.itemsize, "little")).moved(
            0, repeated, node.itemsize
        )
        top = y.moved(node.itemsize - narrow, node.strides, narrow)
        self.passes.append(Pass(Op.COPY, shape, source, None, top))
        self.passes.append(Pass(Op.SHIFT_RIGHT, shape, y, places, y, (True, True)))


def _constant(content: bytes) -> Region:
    return Region(Room(len(content), content), View(0, (), len(content)))


def _repeated(region: Region, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Region:
    """``region`` of ``shape`` as an operand of ``wanted`` elements."""
    if shape == wanted:
        return region
    kept = [0 if n == 1 else step for n, step in zip(shape, region.view.strides, strict=True)]
    strides = (0,) * (len(wanted) - len(shape)) + tuple(kept)
    return region.moved(0, strides, region.view.itemsize)
