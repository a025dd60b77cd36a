"""Innermost loops that a circuit can walk for an operation, and the command for each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Final, Self

from bitlane_rtl.abi import LOGIC_OPS, Lane, Mode, Op

from ..driver import Abilities, Command, Walk
from ..errors import NoRunError, RowTooLongError, UnsupportedError
from .loopnest import Axis, LoopLimits, LoopTile, Offsets, Stream, cut_nest, merge

LANES: Final = {lane.bytes: lane for lane in Lane}

_SUM_BYTES: Final = Lane.BITS_32.bytes


class Options(IntFlag):
    """Options of an operation, as bits of CONTROL. `lower` drops those without an effect."""

    NONE = 0
    SATURATE = 1
    """A count of as many bits as an element has shifts all of them out; else it counts modulo."""
    ARITHMETIC = 2
    """A shift to the right fills with the sign bit."""

    TEST = 4
    """A count becomes 1 if it is not 0."""
    NEGATE = 8
    """With TEST: a count becomes 1 if it is 0, and 0 if it is not."""

    @classmethod
    def of(
        cls,
        *,
        saturate: bool = False,
        arithmetic: bool = False,
        test: bool = False,
        negate: bool = False,
    ) -> Self:
        """Return the options that are true."""
        shifts = cls.SATURATE * saturate + cls.ARITHMETIC * arithmetic
        return cls(shifts + cls.TEST * test + cls.NEGATE * negate)

    @property
    def flags(self) -> dict[str, bool]:
        """All options by their names in small letters, as a `Command` has them."""
        return {name.lower(): bool(self & option) for name, option in _OPTIONS.items()}


LOGICAL: Final = Options.SATURATE
"""Options with which NumPy shifts unsigned elements; nothing but shifts is affected."""

ARITHMETIC: Final = LOGICAL | Options.ARITHMETIC
"""Options with which NumPy shifts signed elements."""

_OPTIONS: Final = {name: each for name, each in Options.__members__.items() if each}


@dataclass(frozen=True, slots=True)
class Nest:
    """The axes of an operation, none of which descends in Y."""

    axes: list[Axis]
    origin: Offsets
    """Addresses of the first elements, modulo the widest element."""
    size_in: int
    """Bytes of an element of A and B."""
    size_out: int
    has_b: bool


@dataclass(frozen=True, slots=True)
class Route:
    """One way to walk a nest: an innermost axis, and the mode of each stream along it."""

    run: Axis
    others: tuple[Axis, ...]
    size_in: int
    """Bytes of an element of A and B."""
    size_out: int
    mode_a: Mode = Mode.DENSE
    mode_b: Mode = Mode.DENSE
    mode_y: Mode = Mode.DENSE

    def cut(self, abilities: Abilities) -> list[LoopTile]:
        """Return the fewest tiles that commands can walk."""
        wider = self.size_in if self.mode_y is Mode.SUM else max(self.size_in, self.size_out)
        most = (1 << abilities.count_bits) - 1
        limits = LoopLimits(abilities.longest_run // wider, most, abilities.loops)
        return cut_nest(self.run, self.others, limits)

    def command(self, op: Op, tile: LoopTile, has_b: bool, options: Options) -> Command:
        """Return the command for ``tile``, of tensors whose first elements are at 0."""
        size = self.size_in
        return Command(
            op=op,
            lane=LANES[size],
            out_lane=LANES[self.size_out],
            run=tile.run,
            a=self._walk(tile, "a", self.mode_a, size),
            b=self._walk(tile, "b", self.mode_b, size) if has_b else None,
            y=self._walk(tile, "y", self.mode_y, self.size_out),
            counts=tuple(axis.count for axis in tile.loops),
            **options.flags,
        )

    def _walk(self, tile: LoopTile, stream: Stream, mode: Mode, size: int) -> Walk:
        stride = self.run.step(stream) if mode is Mode.STRIDED else 0
        # From the first address that the loops inside generate to the last.
        inside = stride * (tile.run - 1)
        highest = max(0, inside) + (tile.run if mode is Mode.DENSE else 1) * size - 1
        jumps = []
        for axis in tile.loops:
            step = axis.step(stream)
            jumps.append(step - inside)
            inside += step * (axis.count - 1)
            highest += max(0, step * (axis.count - 1))
        base: int = getattr(tile.start, stream)
        return Walk(base, base + highest, mode, stride, tuple(jumps))


def element_routes(op: Op, nest: Nest, abilities: Abilities) -> list[Route]:
    """Return every innermost loop that the circuit can walk; the first one is always walkable.

    Each element of Y is ``op`` of the same elements of A and B.
    """
    axes, size_in, size_out = nest.axes, nest.size_in, nest.size_out
    if op in LOGIC_OPS:
        # Logic acts on bytes: an element is one more axis, which merges like any other.
        one = (1, int(nest.has_b), 1)
        merged = merge([*axes, Axis(size_in, *one)])
        bytewise = next(axis for axis in merged if (axis.a, axis.b, axis.y) == one)
        axes = [axis for axis in merged if axis is not bytewise]
        size_in = size_out = bytewise.count
        result = [Route(bytewise, tuple(axes), 1, 1)]
    else:
        axes = merge(axes)
        single = Axis(1, size_in, size_in if nest.has_b else 0, size_out)
        result = [Route(single, tuple(axes), size_in, size_out)]
    for axis in axes:
        modes = (
            _mode_of(axis.a, size_in),
            _mode_of(axis.b, size_in) if nest.has_b else Mode.DENSE,
            _mode_of(axis.y, size_out),
        )
        route = Route(axis, tuple(x for x in axes if x is not axis), size_in, size_out, *modes)
        if set(modes) == {Mode.DENSE} or _is_walkable(route, nest.origin, abilities):
            result.append(route)
    return result


def sum_route(nest: Nest, abilities: Abilities) -> Route:
    """Return the run that has all elements of a sum: the axes along which Y does not move.

    Raises ``NoRunError``, ``RowTooLongError`` or ``UnsupportedError``.
    """
    # The ones of an element are those of its bytes: one more axis to add up along.
    bytewise = Axis(nest.size_in, 1, int(nest.has_b), 0)
    merged = merge([*nest.axes, bytewise])
    others = tuple(axis for axis in merged if axis.y)
    summed = [axis for axis in merged if not axis.y]
    dense = next(axis for axis in summed if (axis.a, axis.b) == (bytewise.a, bytewise.b))
    route = Route(dense, others, dense.count, _SUM_BYTES, mode_y=Mode.SUM)
    if summed == [dense]:
        size = _widest_lane(dense.count, abilities)
        route = replace(route, run=Axis(dense.count // size, size, size * dense.b, 0), size_in=size)
    else:
        run = next(axis for axis in summed if axis is not dense)
        mode_b = _mode_of(run.b, dense.count) if nest.has_b else Mode.DENSE
        route = replace(route, run=run, mode_a=_mode_of(run.a, dense.count), mode_b=mode_b)
        if len(summed) > 2 or not _is_walkable(route, nest.origin, abilities):
            raise _no_run(summed, "bytes")
    return _expect_short(route, abilities)


def sum_test_route(nest: Nest, abilities: Abilities) -> Route:
    """Return the run that has all elements of a sum of tests, which depends on their lane.

    Raises ``NoRunError``, ``RowTooLongError`` or ``UnsupportedError``.
    """
    size = nest.size_in
    if LANES[size] not in abilities.lanes:
        raise UnsupportedError(
            f"op: this device has no {8 * size}-bit lanes for sums of tests; it has"
            f" {lanes_text(abilities)}"
        )
    merged = merge(nest.axes)
    others = tuple(axis for axis in merged if axis.y)
    summed = [axis for axis in merged if not axis.y]
    run = summed[0] if summed else Axis(1, size, int(nest.has_b) * size, 0)
    modes = _mode_of(run.a, size), _mode_of(run.b, size) if nest.has_b else Mode.DENSE
    route = Route(run, others, size, _SUM_BYTES, *modes, Mode.SUM)
    is_dense = set(modes) == {Mode.DENSE}
    if len(summed) > 1 or not (is_dense or _is_walkable(route, nest.origin, abilities)):
        raise _no_run(summed, "elements")
    return _expect_short(route, abilities)


def _no_run(summed: Sequence[Axis], units: str) -> NoRunError:
    return NoRunError(
        f"sum: {' x '.join(str(axis.count) for axis in summed)} {units} that are"
        f" {', '.join(str(axis.a) for axis in summed)} bytes apart; expected one run"
    )


def _expect_short(route: Route, abilities: Abilities) -> Route:
    """Return ``route``, of a sum. Raises ``RowTooLongError`` if a run cannot be as long."""
    if route.run.count * route.size_in > abilities.longest_run:
        raise RowTooLongError(
            f"sum: {route.run.count * route.size_in} bytes a row; expected"
            f" {abilities.longest_run} at most on this device (rows of arrays are cut, and their"
            " parts added up)"
        )
    return route


def lanes_text(abilities: Abilities) -> str:
    """Return the widths of the lanes that are built, as text."""
    return ", ".join(str(lane.bits) for lane in sorted(abilities.lanes))


def _widest_lane(size: int, abilities: Abilities) -> int:
    """Return the bytes of the widest lane that divides ``size``. ``UnsupportedError``."""
    sizes = [lane.bytes for lane in abilities.lanes if size % lane.bytes == 0]
    if not sizes:
        raise UnsupportedError(
            f"op: this device has no lanes for sums of {size} bytes; it has"
            f" {lanes_text(abilities)} bits"
        )
    return max(sizes)


def _mode_of(step: int, size: int) -> Mode:
    """Return how a stream walks a run whose elements of ``size`` bytes are ``step`` apart."""
    if step == size:
        return Mode.DENSE
    return Mode.STRIDED if step else Mode.REPEAT


def _is_walkable(route: Route, origin: Offsets, abilities: Abilities) -> bool:
    """Return whether the circuit can walk a run that is not dense on every stream."""
    size_in, size_out = route.size_in, route.size_out
    sizes = {size_in} if route.mode_y is Mode.SUM else {size_in, size_out}
    if not (
        {route.mode_a, route.mode_b, route.mode_y} <= abilities.modes
        and sizes <= {lane.bytes for lane in abilities.lanes}
        and max(sizes) <= abilities.data_bytes
    ):
        return False
    axes = (route.run, *route.others)
    return (
        (route.mode_a is Mode.DENSE or _is_aligned(origin.a, [x.a for x in axes], size_in))
        and (route.mode_b is Mode.DENSE or _is_aligned(origin.b, [x.b for x in axes], size_in))
        and _is_aligned(origin.y, [x.y for x in axes], size_out)
    )


def _is_aligned(first: int, steps: Sequence[int], size: int) -> bool:
    """Return whether ``first`` and all ``steps`` are multiples of an element."""
    return first % size == 0 and all(step % size == 0 for step in steps)
