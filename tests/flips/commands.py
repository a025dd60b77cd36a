"""Random commands that a board can execute, drawn from its configuration."""

import random
from collections.abc import Sequence

from bitlane.driver.commands import Command, Walk, encode
from bitlane_rtl.abi import Lane, Mode, Op
from bitlane_rtl.configuration import Configuration

__all__ = ["CommandWriter"]

_STEPS = (-67, -9, -3, -2, -1, 0, 1, 2, 3, 5, 16, 70)
"""Distances between two elements of a run, in elements."""

_COUNTED = (Lane.BITS_8, Lane.BITS_32)
"""Lanes that hold a population count."""


class CommandWriter:
    """Draws commands for a board of ``configuration`` from ``chance``."""

    def __init__(self, configuration: Configuration, chance: random.Random) -> None:
        self._configuration = configuration
        self._random = chance

    def command(self, *, dense: bool = False) -> Command:
        """Return a command that stays inside the memory, with dense streams if ``dense``."""
        choose, configuration = self._random, self._configuration
        op = choose.choice(sorted(configuration.ops - {Op.SEARCH}))
        dense = dense or choose.random() < 0.4
        lanes = [
            x for x in sorted(configuration.lanes) if dense or x.bytes <= configuration.data_bytes
        ]
        lane = choose.choice(lanes or [Lane.BITS_8])
        modes = [Mode.DENSE] * 3
        if not dense:
            modes = [choose.choice(sorted(configuration.modes - {Mode.SUM})) for _ in range(3)]
            modes[1] = modes[1] if op.reads_b else Mode.DENSE
            modes[2] = Mode.STRIDED if modes[2] is Mode.STRIDED else Mode.DENSE
        if Mode.SUM in configuration.modes and op.counts and choose.random() < 0.3:
            modes[2] = Mode.SUM
        out_lane = lane
        if op.counts:
            out_lane = Lane.BITS_32 if modes[2] is Mode.SUM else choose.choice(_COUNTED)
        loops = 1 if dense or configuration.loops == 1 else choose.randint(1, configuration.loops)
        counts = [choose.choice([1, 2, 5, 9, 16, 33, 33, 100, 500])]
        counts += [choose.choice([1, 2, 3, 7]) for _ in range(loops - 1)]
        plain = modes == [Mode.DENSE] * 3
        aligned = (
            modes[0] is not Mode.DENSE,
            modes[1] is not Mode.DENSE,
            op.splits_lanes or not plain,
        )
        a, b, y = (
            self._walk(counts, mode, of, unit=of.bytes if each else 1)
            for mode, of, each in zip(modes, (lane, lane, out_lane), aligned, strict=True)
        )
        return Command(
            *(op, lane, out_lane, counts[0], a, b if op.reads_b else None, y),
            counts=tuple(counts[1:]),
            fence=choose.random() < 0.2,
        )

    def _walk(self, counts: Sequence[int], mode: Mode, lane: Lane, unit: int) -> Walk:
        """Return a walk with steps of random signs that stays inside the memory."""
        choose, configuration = self._random, self._configuration
        inner = {Mode.REPEAT: 0, Mode.SUM: 0, Mode.DENSE: lane.bytes}
        while True:
            step = inner[mode] if mode in inner else choose.choice(_STEPS) * lane.bytes
            steps = [step, *(choose.choice(_STEPS) * 4 * unit for _ in counts[1:])]
            ways = [step * (count - 1) for step, count in zip(steps, counts, strict=True)]
            low = sum(min(way, 0) for way in ways)
            high = sum(max(way, 0) for way in ways) + lane.bytes
            room = configuration.memory_bytes - (high - low)
            if room >= 0:
                break
        base = configuration.memory_base - low + choose.randrange(room + 1)
        base -= base % unit
        if base + low < configuration.memory_base:
            base += unit
        inside = ways[0] if mode is Mode.STRIDED else 0
        jumps = []
        for step, way in zip(steps[1:], ways[1:], strict=True):
            jumps.append(step - inside)
            inside += way
        stride = step if mode is Mode.STRIDED and not jumps else steps[0]
        return Walk(
            base,
            min(base + high - 1, configuration.memory_last),
            mode,
            stride if mode is Mode.STRIDED else 0,
            tuple(jumps),
        )

    def sealed(self, command: Command) -> list[int]:
        """Return the words of the command's record; some request an interrupt."""
        interrupt = self._random.random() < 0.3
        return [int(word) for word in encode(command, interrupt=interrupt)]
