"""Short jobs that between them use every part of the data path."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitlane.driver import Command, Geometry
from bitlane.errors import LayoutError, UnsupportedError
from bitlane.lowering import Options, Streams, View, lower
from bitlane_rtl.abi import Op

from .stimulus import packed

MEMORY = 4096
"""Bytes of memory that the jobs need."""

_A, _B, _Y = 3, 1030, 2061
"""Addresses of operands and output: odd, except where elements must be aligned."""

_EVEN = 2064


@dataclass(frozen=True, slots=True)
class ShortJob:
    """Commands, and their ``records``: (commands, 32), of which each uses ``used`` words."""

    name: str
    commands: list[Command]
    records: NDArray[np.uint32]
    used: NDArray[np.int64]

    def extent(self, stream: str) -> tuple[int, int] | None:
        """Return the first and last byte of stream A, B or Y over all commands, or None."""
        base, last = {"A": (2, 3), "Y": (4, 5), "B": (6, 7)}[stream]
        having = self.records[self.records[:, last] != 0] if stream == "B" else self.records
        if not len(having):
            return None
        # All walks of these jobs ascend.
        return int(having[:, base].min()), int(having[:, last].max())


def _dense(op: Op, size: int, geometry: Geometry, at: int = 0) -> Iterable[Command]:
    a, b, y = (View(start + at, (1,), 1) for start in (_A, _B, _Y))
    return lower(op, (size,), Streams(a, b, y), geometry.abilities, geometry.memory)


def _strided(geometry: Geometry) -> Iterable[Command]:
    a, y = View(_A - 1, (120, 6), 2), View(_EVEN, (88, 4), 2)
    return lower(Op.NOT, (3, 18), Streams(a, None, y), geometry.abilities, geometry.memory)


def _popcount(geometry: Geometry) -> Iterable[Command]:
    a, y = View(_A, (1,), 1), View(_EVEN, (4,), 4)
    return lower(Op.COUNT, (61,), Streams(a, None, y), geometry.abilities, geometry.memory)


def _shift(geometry: Geometry) -> Iterable[Command]:
    a, b, y = View(4, (52, 4), 4), View(1032, (4, 0), 4), View(_EVEN, (48, 4), 4)
    options = Options.SATURATE | Options.ARITHMETIC
    return lower(
        Op.SHIFT_RIGHT, (3, 12), Streams(a, b, y), geometry.abilities, geometry.memory, options
    )


def _row_sums(geometry: Geometry) -> Iterable[Command]:
    a, b, y = View(_A, (21, 1), 1), View(_B, (0, 1), 1), View(_EVEN, (4, 0), 4)
    return lower(Op.COUNT_XOR, (7, 19), Streams(a, b, y), geometry.abilities, geometry.memory)


def _tests(geometry: Geometry) -> Iterable[Command]:
    a, b, y = View(_A - 1, (24, 2), 2), View(_B, (0, 2), 2), View(_EVEN, (4, 0), 4)
    options = Options.TEST | Options.NEGATE
    return lower(
        Op.COUNT_AND, (7, 11), Streams(a, b, y), geometry.abilities, geometry.memory, options
    )


def _two(geometry: Geometry) -> Iterable[Command]:
    return [*_dense(Op.XOR, 90, geometry), *_dense(Op.NOT, 90, geometry, at=95)]


_JOBS: dict[str, Callable[[Geometry], Iterable[Command]]] = {
    "dense XOR": lambda geometry: _dense(Op.XOR, 205, geometry),
    "strided NOT": _strided,
    "popcount": _popcount,
    "shift, broadcast": _shift,
    "row sums": _row_sums,
    "sums of tests": _tests,
    "two commands": _two,
}


def jobs_of(geometry: Geometry) -> list[ShortJob]:
    """Return the jobs that ``geometry`` supports."""
    jobs = []
    for name, commands_of in _JOBS.items():
        try:
            commands = list(commands_of(geometry))
        except (LayoutError, UnsupportedError):
            continue
        if len(commands) > geometry.slots:
            continue
        records, used, _ = packed([commands])
        jobs.append(ShortJob(name, commands, records[0], used[0]))
    return jobs
