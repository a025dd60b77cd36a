"""Moves of blocks at irregular distances: commands that copy each to its address.

Works on addresses alone: it never sees data, and never talks to a device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from ..driver import Abilities, Command
from .lower import lower
from .strided import Streams, View

_PROGRESSION: Final = 3
"""Fewest items of a progression."""

_FIRST_CHECKED: Final = 256
"""Moves that are grouped before all are, so that counting too many commands takes little time."""

ByteOffsets: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MovedBlock:
    """The elements that one move copies: their shape, and their strides on both sides in bytes."""

    shape: tuple[int, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]
    itemsize: int


@dataclass(frozen=True, slots=True)
class Moves:
    """Blocks from the addresses ``sources`` to as many addresses ``targets``.

    No two targets may overlap, and no target a source.
    """

    block: MovedBlock
    sources: ByteOffsets
    targets: ByteOffsets


class MoveGroup(NamedTuple):
    """Moves that one operation does: two loops around a block."""

    source: int
    target: int
    counts: tuple[int, int]
    read: tuple[int, int]
    """Bytes from one source to the next, in the outer loop and the inner one."""
    written: tuple[int, int]


def group_moves(moves: Moves, most: int | None = None) -> list[MoveGroup] | None:
    """Group moves whose sources and targets both advance by constant distances.

    Groups of as many moves at equal distances become one group again. Returns None if there are
    more than ``most`` groups.
    """
    count = len(moves.sources)
    if most is not None and _has_more_groups(moves, most):
        return None
    groups = _group(moves, count)
    if most is not None and len(groups) > most:
        return None
    return [MoveGroup(*numbers[:2], *_in_pairs(numbers[2:])) for numbers in groups.tolist()]


def _has_more_groups(moves: Moves, most: int) -> bool:
    """Return whether the first moves show that there are more than ``most`` groups."""
    checked, count = _FIRST_CHECKED, len(moves.sources)
    while checked == _FIRST_CHECKED or checked < count:
        for starts in (moves.sources, moves.targets):
            gaps = np.sort(np.diff(starts[:checked]))
            # A group has two distances at most, and one to the next group. Grouping takes longer.
            if np.count_nonzero(np.diff(gaps)) > 3 * most:
                return True
        # A group that is cut in two is counted twice at each level.
        if checked < count and len(_group(moves, checked)) > most + 2:
            return True
        checked *= 4
    return False


def _in_pairs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    for at in range(0, len(numbers), 2):
        yield numbers[at], numbers[at + 1]


def lower_moves(
    groups: Sequence[MoveGroup], block: MovedBlock, abilities: Abilities, memory: range | None
) -> Iterator[Command]:
    """Commands that do the moves of ``groups``; only the first has FENCE set.

    Raises what `lower` does.
    """
    fence = True
    for group in groups:
        a = View(group.source, (*group.read, *block.read), block.itemsize)
        y = View(group.target, (*group.written, *block.written), block.itemsize)
        shape, streams = (*group.counts, *block.shape), Streams(a, None, y)
        for command in lower(Op.COPY, shape, streams, abilities, memory):
            yield command if command.fence is fence else replace(command, fence=fence)
            fence = False


def _group(moves: Moves, count: int) -> NDArray[np.int64]:
    """Return a row for each group of the first ``count`` moves: the fields of `MoveGroup`."""
    starts = np.stack([moves.sources[:count], moves.targets[:count]])
    inner, inner_steps, first = _progressions(starts, starts[:0])
    starts = starts[:, first]
    outer, outer_steps, first = _progressions(starts, np.stack([inner, *inner_steps]))
    rows = [*starts[:, first], outer, inner[first]]
    for steps, own in zip(outer_steps, inner_steps, strict=True):
        rows += [steps, own[first]]
    return np.stack(rows, axis=1)


def _progressions(
    starts: NDArray[np.int64], alike: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts, the steps and the first items of progressions, which hold all items once.

    An item has a column in ``starts``, whose numbers advance by constant steps, and one in
    ``alike``, whose numbers stay. A progression has one item, or three or more: two moves take two
    commands, which share a plan with all other moves of their block.
    """
    items = starts.shape[1]
    steps = np.diff(starts, axis=1)
    inside = np.zeros(items + 1, np.int64)
    if items >= _PROGRESSION:
        first, last = _find_progressions(steps, alike)
        inside[first + 1] += 1
        inside[last + 1] -= 1
    first = np.flatnonzero(np.cumsum(inside[:items]) == 0)
    counts = np.diff(first, append=items)
    own = np.zeros((len(steps), len(first)), np.int64)
    several = counts > 1
    own[:, several] = steps[:, first[several]]
    return counts, own, first


def _find_progressions(
    steps: NDArray[np.int64], alike: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last item of each progression of several items."""
    constant: NDArray[np.bool_] = (np.diff(alike, axis=1) == 0).all(axis=0)
    changes = (steps[:, 1:] != steps[:, :-1]).any(axis=0) | (constant[1:] != constant[:-1])
    edges = np.flatnonzero(changes) + 1
    # Equal steps lead from item ``low`` to item ``high``.
    low, high = np.concatenate([[0], edges]), np.concatenate([edges, [steps.shape[1]]])
    steady = constant[low]
    # Two progressions in sequence share an item, which the first one takes.
    late = np.zeros(len(low), np.int64)
    late[1:] = steady[:-1] & (high - low >= _PROGRESSION - 1)[:-1]
    taken = steady & (high - low - late >= _PROGRESSION - 1)
    return (low + late)[taken], high[taken]
