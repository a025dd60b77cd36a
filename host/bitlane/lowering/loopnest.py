"""Axes of several tensors walked together: merged, and cut to the loops of a circuit.

Arithmetic on counts and steps alone; independent of operations and commands.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal, NamedTuple, TypeAlias

Stream: TypeAlias = Literal["a", "b", "y"]

_SHORTEST_RUN = 256
"""Elements below which a run is not shortened to save a command: short runs cost more."""

_DIVISORS_TRIED = 1024


@dataclass(frozen=True, slots=True)
class Axis:
    """``count`` steps of ``a``, ``b`` and ``y`` bytes in the three streams."""

    count: int
    a: int
    b: int
    y: int

    def step(self, stream: Stream) -> int:
        return self.a if stream == "a" else self.b if stream == "b" else self.y

    def times(self, factor: int, count: int) -> "Axis":
        """Return ``count`` steps, each as long as ``factor`` of these."""
        return Axis(count, self.a * factor, self.b * factor, self.y * factor)


class Offsets(NamedTuple):
    """A position in each of the three streams, in bytes."""

    a: int
    b: int
    y: int

    def along(self, axis: Axis, steps: int) -> "Offsets":
        """Return the position after ``steps`` of ``axis``."""
        return Offsets(self.a + steps * axis.a, self.b + steps * axis.b, self.y + steps * axis.y)


class LoopLimits(NamedTuple):
    """The loops that a command of a circuit may have."""

    run: int
    """Largest count of the run."""
    iterations: int
    """Largest count of any other loop."""
    loops: int
    """Most loops, the run included."""


@dataclass(frozen=True, slots=True)
class LoopTile:
    """Elements that one command walks, or several alike that start at different positions."""

    run: int
    """Elements of the innermost loop."""
    loops: tuple[Axis, ...]
    """The circuit's loops outside the run, innermost first."""
    host: tuple[Axis, ...]
    """Loops that take a command for each iteration."""
    start: Offsets
    """Position of the first element, from that of the whole tensors."""

    @property
    def commands(self) -> int:
        return prod(axis.count for axis in self.host)


def flip(axes: Sequence[Axis], descends: Callable[[Axis], bool]) -> tuple[list[Axis], Offsets]:
    """Reverse the axes that descend; return all axes, and where the streams start then."""
    start = Offsets(0, 0, 0)
    result = []
    for axis in axes:
        if descends(axis):
            start = start.along(axis, axis.count - 1)
            axis = axis.times(-1, axis.count)
        result.append(axis)
    return result, start


def merge(axes: Sequence[Axis]) -> list[Axis]:
    """Return the same elements with as few axes as possible, the longest steps of Y first.

    Two axes become one where in every stream a step of the outer one is as long as all steps of
    the inner one together.
    """
    left = sorted(axes, key=lambda axis: -abs(axis.y))
    inner = len(left) - 1
    while inner >= 0:
        small = left[inner]
        for index, big in enumerate(left):
            if (
                big.a == small.a * small.count
                and big.y == small.y * small.count
                and big.b == small.b * small.count
                and index != inner
            ):
                left[inner] = small.times(1, small.count * big.count)
                del left[index]
                inner = len(left)
                break
        inner -= 1
    return left


def cut_nest(run: Axis, others: Sequence[Axis], limits: LoopLimits) -> list[LoopTile]:
    """Cut a nest of axes, ``run`` innermost, into the fewest commands within ``limits``."""
    if limits.iterations == 1:
        limits = limits._replace(loops=1)
    cuts = [list(_tiles(run, others, limits, divide)) for divide in (True, False)]
    return min(cuts, key=lambda tiles: sum(tile.commands for tile in tiles))


def _tiles(
    run: Axis, others: Sequence[Axis], limits: LoopLimits, divide: bool
) -> Iterator[LoopTile]:
    """Cut every axis by itself. ``divide``: shorten loops where this leaves no remainder."""
    longest, loops = limits.run, limits.loops
    bound = limits.iterations if loops > 1 else 0
    shortest = max(longest // 1024, min(longest, _SHORTEST_RUN)) if divide else longest
    choices = [_cut(run.count, longest, shortest, bound)]
    choices += [_cut(axis.count, bound, 2 if divide else bound, bound) for axis in others]
    for choice in product(*choices):
        start = Offsets(0, 0, 0)
        nest: list[Axis] = []
        for axis, (first, counts) in zip((run, *others), choice, strict=True):
            start = start.along(axis, first)
            factor = 1
            for count in counts:
                nest.append(axis.times(factor, count))
                factor *= count
        outer = [axis for axis in nest[1:] if axis.count > 1]
        # The host repeats the shortest loops: every other choice takes more commands.
        by_count = sorted(outer, key=lambda axis: axis.count, reverse=True)
        inside = sorted(by_count[: loops - 1], key=lambda axis: abs(axis.y))
        host = sorted(by_count[loops - 1 :], key=lambda axis: -abs(axis.y))
        yield LoopTile(nest[0].count, tuple(inside), tuple(host), start)


def _cut(count: int, most: int, least: int, outer: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return ways to count to ``count``: first index, and loops innermost first.

    The innermost loop counts to ``most`` at most, the others to ``outer``; 0 is unbounded. It may
    count to as few as ``least``, 2 or more, if this leaves no remainder.
    """
    if most == 0 or count <= most:
        return [(0, (count,))]
    size = _divisor(count, most, least)
    whole, rest = divmod(count, size)
    result = [
        (first * size, (size, *counts))
        for first, counts in _cut(whole, outer, 2 if least < most else outer, outer)
    ]
    if rest:
        result.append((whole * size, (rest,)))
    return result


def _divisor(count: int, most: int, least: int) -> int:
    """Return the largest near divisor of ``count`` from ``least`` to ``most``, else ``most``."""
    fewest = -(-count // most)
    for factor in range(fewest, min(count // least, fewest + _DIVISORS_TRIED) + 1):
        if count % factor == 0:
            return count // factor
    return most
