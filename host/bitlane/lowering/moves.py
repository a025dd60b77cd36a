"""Moves of elements at irregular distances: commands that copy each to its address.

Works on addresses alone: it never sees data, and never talks to a device.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from ..driver.commands import Command
from ..driver.geometry import Geometry
from .lower import lower
from .strided import Streams, View

_PROGRESSION = 3
"""Fewest equidistant moves that become one command; two moves take two commands, which share one
plan with all other moves of their block."""

ByteOffsets = NDArray[np.int64]


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


def lower_moves(moves: Moves, geometry: Geometry) -> Iterator[Command]:
    """Commands that do ``moves``; only the first has FENCE set.

    Moves whose sources and targets both advance by constant distances become one command. Raises
    what `lower` does.
    """
    fence = True
    block = moves.block
    for first, count in _progressions(moves.sources, moves.targets):
        source, target = int(moves.sources[first]), int(moves.targets[first])
        steps = (0, 0)
        if count > 1:
            steps = int(moves.sources[first + 1]) - source, int(moves.targets[first + 1]) - target
        a = View(source, (steps[0], *block.read), block.itemsize)
        y = View(target, (steps[1], *block.written), block.itemsize)
        shape, streams = (count, *block.shape), Streams(a, None, y)
        for command in lower(Op.COPY, shape, streams, geometry.abilities, geometry.memory):
            yield command if command.fence is fence else replace(command, fence=fence)
            fence = False


def _progressions(sources: ByteOffsets, targets: ByteOffsets) -> Iterator[tuple[int, int]]:
    """The first move and the number of moves of each command, all moves in order."""
    count = len(sources)
    steps = np.stack([np.diff(sources), np.diff(targets)])
    changes = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 1
    start = 0
    for low, high in pairwise([0, *changes.tolist(), max(0, count - 1)]):
        first = max(low, start)
        if high - first + 1 >= _PROGRESSION:
            yield from ((each, 1) for each in range(start, first))
            yield first, high - first + 1
            start = high + 1
    yield from ((each, 1) for each in range(start, count))
