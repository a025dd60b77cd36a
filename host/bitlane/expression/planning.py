"""From expressions to passes: what is computed, in which order; not where.

Never talks to a device.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

from bitlane_rtl.abi import Op

from ..driver.geometry import Geometry
from ..jobs.cost import cycles
from ..jobs.lowering import UnsupportedError, View
from ..jobs.operands import order_of, packed_strides
from ..jobs.sums import NoRunError
from .form import Applied, Constant, Expression, Stored, Viewed, Widened, apply
from .passes import Pass, Plan, Room, Spot
from .walk import operands_first

__all__ = ["planned"]

_WIDTHS: Final = (1, 2, 4, 8)
"""Bytes of an element."""

_CONSTANT: Final = _WIDTHS[-1]
"""Bytes that a constant takes: the widest element."""

_ANYWHERE: Final = 1 << 62
"""More bytes, and cycles, than there are."""


def planned(roots: Sequence[Expression], geometry: Geometry) -> Plan:
    """The passes for ``roots``. What needs most memory comes first, so that all needs least."""
    writer = _Writer(geometry)
    kept = [apply(Op.COPY, root) if _is_constant(root) else root for root in roots]
    for node in operands_first(kept):
        writer.visit(node)
    results = tuple(writer.spots[root] for root in kept)
    return Plan(tuple(writer.passes), results, writer.constants.room(), tuple(kept))


def _is_constant(node: Expression) -> bool:
    return isinstance(node.source if isinstance(node, Viewed) else node, Constant)


class _Writer:
    """Writes down passes, a node at a time."""

    def __init__(self, geometry: Geometry) -> None:
        self._anywhere = replace(geometry, memory_base=0, memory_last=_ANYWHERE)
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
            flags = (node.saturate, node.arithmetic)
            self.passes.append(Pass(node.op, shape, a, b, y, flags))

    def _sum(self, node: Applied, a: Spot, b: Spot | None, y: Spot) -> list[Pass]:
        """Counts added up as they come; if these are no run, of a copy in which they are."""
        shape, kept = node.walked, iter(y.view.strides)
        strides = [0 if axis in node.summed else next(kept) for axis in range(len(shape))]
        into = y.moved(0, tuple(strides), y.view.itemsize)
        step = Pass(node.op, shape, a, b, into)
        try:
            step.commands(lambda spot: spot.view, self._anywhere)
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
        self.passes.append(Pass(Op.SHIFT_RIGHT, node.shape, y, count, y, (True, True)))

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
        anywhere = self._anywhere
        try:
            return sum(
                cycles(step.commands(lambda spot: spot.view, anywhere), anywhere) for step in steps
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
