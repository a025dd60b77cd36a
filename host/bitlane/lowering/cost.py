"""Estimated cycles of commands, on a memory that answers at once. Arithmetic on walks alone.

The constants are measured on the simulator (``tests/system/test_expressions_on_simulator.py``).
"""

from collections.abc import Iterable
from math import gcd, prod
from typing import Final

from bitlane_rtl.abi import Mode, record_words

from ..driver import Abilities, Command, Walk

_START: Final = 2
"""Cycles from the doorbell until the first command is decoded."""

_FENCE: Final = 15
"""Cycles from the last write of a command to the first of the next one behind a fence."""


def cycles(
    commands: Iterable[Command], abilities: Abilities, *, behind_others: bool = False
) -> int:
    """Estimate the cycles from the doorbell until all ``commands`` have retired.

    With ``behind_others``, only the cycles that they add to earlier commands of the same run. A
    command without a fence takes as long as its data, or as its record, read at a word a cycle.
    """
    total = 0
    for command in commands:
        busy = beats(command, abilities)
        if command.fence:
            total += _FENCE + busy
        else:
            b_mode = Mode.DENSE if command.b is None else command.b.mode
            modes = (command.a.mode, b_mode, command.y.mode)
            total += max(busy, record_words(command.op, command.loops, modes))
    return total + _START if total and not behind_others else total


def beats(command: Command, abilities: Abilities) -> int:
    """Return the beats of the busiest memory port during a command: a cycle each."""
    run, runs = command.run, prod(command.counts)
    reads = [_beats(command.a, run, runs, command.lane.bytes, abilities.data_bytes)]
    if command.b is not None:
        reads.append(_beats(command.b, run, runs, command.lane.bytes, abilities.data_bytes))
    writes = _beats(command.y, run, runs, command.out_lane.bytes, abilities.data_bytes)
    return max(sum(reads) if abilities.read_ports == 1 else max(reads), writes)


def _beats(walk: Walk, run: int, runs: int, size: int, data_bytes: int) -> int:
    if walk.mode is Mode.STRIDED:
        return runs * run
    if walk.mode in (Mode.REPEAT, Mode.SUM):
        return runs
    # A run that starts inside a beat may end in one more: each offset as often as any other.
    step = gcd(data_bytes, *walk.jumps) if runs > 1 else data_bytes
    starts = range(walk.base % step, data_bytes, step) if runs > 1 else (walk.base % data_bytes,)
    return runs * sum(-(-(start + run * size) // data_bytes) for start in starts) // len(starts)
