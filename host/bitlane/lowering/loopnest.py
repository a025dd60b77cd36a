"""Axes of several tensors walked together: merging them, and cutting them to a circuit's loops.

Pure arithmetic on counts and steps; knows neither operations nor commands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal, TypeAlias

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

    def flipped(self) -> "Axis":
        return Axis(self.count, -self.a, -self.b, -self.y)

    def times(self, factor: int, count: int) -> "Axis":
        """``count`` steps, each as long as ``factor`` of these."""
        return Axis(count, self.a * factor, self.b * factor, self.y * factor)


@dataclass(frozen=True, slots=True)
class Block:
    """A box of elements that one command walks, or many alike that start at different places."""

    run: int
    """Elements of the innermost loop."""
    loops: tuple[Axis, ...]
    """The circuit's loops outside the run, innermost first."""
    host: tuple[Axis, ...]
    """Loops that take a command for each iteration."""
    start: Axis
    """Where the box starts: bytes from the first element, a stream each; ``count`` is unused."""

    @property
    def commands(self) -> int:
        return prod(axis.count for axis in self.host)

    @property
    def runs(self) -> int:
        """Runs of one command."""
        return prod(axis.count for axis in self.loops)

    def offset(self, stream: Stream) -> int:
        return self.start.step(stream)


def merge(axes: Sequence[Axis]) -> list[Axis]:
    """The same elements with as few axes as possible, the longest steps of Y first.

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


def blocks(
    run: Axis,
    others: Sequence[Axis],
    *,
    longest_run: int,
    most_iterations: int,
    loops: int,
) -> list[Block]:
    """Cut a nest of axes into the fewest commands of at most ``loops`` loops, the run included.

    ``longest_run`` and ``most_iterations`` bound the counts of the run and of every other loop.
    """
    if most_iterations == 1:
        loops = 1
    plans = [
        list(_cut_all(run, others, longest_run, most_iterations, loops, divide))
        for divide in (True, False)
    ]
    return min(plans, key=lambda plan: sum(block.commands for block in plan))


def _cut_all(
    run: Axis,
    others: Sequence[Axis],
    longest_run: int,
    most_iterations: int,
    loops: int,
    divide: bool,
) -> Iterator[Block]:
    bound = most_iterations if loops > 1 else 0
    shortest = max(longest_run // 1024, min(longest_run, _SHORTEST_RUN)) if divide else longest_run
    pieces = [_cut(run.count, longest_run, shortest, bound)]
    pieces += [_cut(axis.count, bound, 2 if divide else bound, bound) for axis in others]
    for choice in product(*pieces):
        start = [0, 0, 0]
        nest: list[Axis] = []
        for axis, (first, counts) in zip((run, *others), choice, strict=True):
            start = [
                start[0] + first * axis.a,
                start[1] + first * axis.b,
                start[2] + first * axis.y,
            ]
            factor = 1
            for count in counts:
                nest.append(axis.times(factor, count))
                factor *= count
        outer = [axis for axis in nest[1:] if axis.count > 1]
        # The host repeats the shortest loops: every other choice takes more commands.
        by_count = sorted(outer, key=lambda axis: axis.count, reverse=True)
        inside = sorted(by_count[: loops - 1], key=lambda axis: abs(axis.y))
        host = sorted(by_count[loops - 1 :], key=lambda axis: -abs(axis.y))
        yield Block(nest[0].count, tuple(inside), tuple(host), Axis(0, *start))


def _cut(count: int, most: int, least: int, outer: int) -> list[tuple[int, tuple[int, ...]]]:
    """Ways to count to ``count``: first index, and loops innermost first.

    The innermost loop counts to ``most`` at most, the others to ``outer``; 0 is no bound. It may
    count to as few as ``least``, 2 or more, if this leaves no rest.
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
    """The largest divisor of ``count`` from ``least`` to ``most``, or ``most`` if none is near."""
    fewest = -(-count // most)
    for parts in range(fewest, min(count // least, fewest + _DIVISORS_TRIED) + 1):
        if count % parts == 0:
            return count // parts
    return most
