"""The stimulus of instances: records in the ring, timing of the memory, and faults.

Writes programs for many instances at once. Knows no expected results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitlane.driver import Command, encode
from bitlane_rtl.abi import RECORD_BYTES, RECORD_WORDS, RING_OFFSET, WORD_BYTES, register
from cppsim import Program

from ..fields import CONTROL
from ..system.ports import MEMORY_CHANNELS

READ = ("STATUS", "RETIRED", "FAULT", "FAULT_ADDRESS", "BUSY_CYCLES")
"""Registers that are read at the end; results have their names."""

_ANSWER = 64
"""Cycles in which the control window answers; it needs a handful."""

_FETCH = 64
"""Cycles in which the first record is fetched ahead."""

_NOWHERE = 0x0F00
"""An unused offset of the control window."""

_INTERRUPT = register("INTERRUPT")
_ENABLE = _INTERRUPT["ENABLE"].insert(1) | _INTERRUPT["PENDING"].insert(1)


@dataclass(frozen=True, slots=True)
class Workload:
    """The commands and the memory's behaviour of many instances.

    ``records``: words of the commands, (instances, commands, 32). ``used``: words in use of each
    command, (instances, commands). ``counts``: commands of each instance, 1 or more.
    ``settings``: inputs of the harness, by name. ``timeout``: value of TIMEOUT. ``limit``: cycles
    until the commands must have ended or, with ``may_go_on``, for which they are observed.
    """

    records: NDArray[np.uint32]
    used: NDArray[np.int64]
    counts: NDArray[np.int64]
    timeout: int
    limit: int
    settings: dict[str, ArrayLike] = field(default_factory=dict)
    may_go_on: bool = False

    @property
    def instances(self) -> int:
        return len(self.records)

    @property
    def raises(self) -> NDArray[np.bool_]:
        """Return a mask of the instances whose last command raises the interrupt."""
        last = self.records[np.arange(self.instances), self.counts - 1, 0]
        return np.asarray(CONTROL["INTERRUPT"].extract(last.astype(np.int64)) != 0)


def packed(
    commands: Sequence[Sequence[Command]], most: int | None = None, *, interrupt: bool = True
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the first three fields of a `Workload` whose instances have these commands.

    There is room for ``most`` commands, by default for the longest list. With ``interrupt`` the
    last command of each list raises the interrupt.
    """
    most = max(map(len, commands)) if most is None else most
    records = np.zeros((len(commands), most, RECORD_WORDS), np.uint32)
    used = np.zeros((len(commands), most), np.int64)
    for instance, each in enumerate(commands):
        for number, command in enumerate(each):
            words = encode(command, interrupt=interrupt and number == len(each) - 1)
            records[instance, number, : words.size] = words
            used[instance, number] = words.size
    return records, used, np.array([len(each) for each in commands])


def stalls(chance: Callable[[str], ArrayLike]) -> dict[str, ArrayLike]:
    """Return the settings that stall the memory: ``chance`` of each channel, in 256."""
    return {f"memory__stall_{channel}": chance(channel) for channel in MEMORY_CHANNELS}


def submit(work: Workload) -> Program:
    """Apply settings, write records, ring the doorbell, wait for the interrupt, and read.

    Results: ``came`` (cycles from the doorbell's start to the interrupt, 0: not within the limit),
    the registers in `READ`, ``violation`` with ``where`` and ``when``, ``answer ...`` (0 without an
    answer of the control window), and ``began``: the monitor's cycle in which ``count`` is 0.
    """
    program = Program()
    for port, values in work.settings.items():
        program.set(port, values)
    offsets, words = _ring_writes(work)
    first = [(register("TIMEOUT").offset, work.timeout), (_INTERRUPT.offset, _ENABLE)]
    _write(program, offsets, words, "ring", first)
    # From here on the timing does not depend on the length of other instances' rings.
    program.step(_FETCH).set("memory__seed_load", 1).set("clear", 1).step()
    program.set("memory__seed_load", 0).set("clear", 0)
    program.get("cycle", "began").set("go", 1)
    _access(program, register("DOORBELL").offset, work.counts, "doorbell")
    program.until("irq", work.limit, "came")
    _look(program)
    return program


def traffic_of(program: Program, channels: Sequence[str]) -> Program:
    """Read the monitor's counters of ``channels``; results are named like ``r__first``."""
    for name in channels:
        for part in ("count", "stalls", "first", "last"):
            program.get(f"{name}__{part}", f"{name}__{part}")
    return program


def recover(program: Program, cycles: int) -> Program:
    """End the fault, write CLEAR, step ``cycles``, and read; results begin with ``cleared ``."""
    program.set("go", 0).step()
    _access(program, register("CLEAR").offset, 1, "clear")
    program.step(cycles)
    _look(program, "cleared ")
    return program


def _look(program: Program, before: str = "") -> None:
    program.set("control__write", 0)
    for name in READ:
        program.set("control__address", register(name).offset)
        program.set("control__start", 1).step().set("control__start", 0)
        program.until("control__done", _ANSWER, f"answer {before}{name}")
        program.get("control__answer", before + name)
    for name, port in (("", ""), ("_where", "where"), ("_cycle", "when")):
        program.get(f"violation{name}", before + (port or "violation"))


def _access(program: Program, offset: ArrayLike, words: ArrayLike, name: str) -> None:
    program.set("control__write", 1).set("control__address", offset).set("control__data", words)
    program.set("control__start", 1).step().set("control__start", 0)
    program.until("control__done", _ANSWER, f"answer {name}")


def _write(
    program: Program, offsets: ArrayLike, words: ArrayLike, name: str, first: list[tuple[int, int]]
) -> None:
    """Write words of the control window: ``first`` in all instances, then (instances, words)."""
    for number, (offset, word) in enumerate(first):
        _access(program, offset, word, f"{name} {number}")
    with program.repeat(np.shape(offsets)[1]):
        _access(program, offsets, words, name)


def _ring_writes(work: Workload) -> tuple[Any, Any]:
    """Return offsets and words that fill the ring; shorter rings write to `_NOWHERE`."""
    commands = work.records.shape[1]
    word = np.arange(RECORD_WORDS)
    wanted = word < work.used[:, :, None]
    wanted &= (np.arange(commands) < work.counts[:, None])[:, :, None]
    offset = RING_OFFSET + RECORD_BYTES * np.arange(commands)[:, None] + WORD_BYTES * word
    flat = wanted.reshape(work.instances, -1)
    most = int(flat.sum(axis=1).max())
    order = np.argsort(~flat, axis=1, kind="stable")[:, :most]
    taken = np.take_along_axis(flat, order, axis=1)
    offsets = np.where(taken, offset.reshape(-1)[order], _NOWHERE)
    words = np.take_along_axis(work.records.reshape(work.instances, -1), order, axis=1)
    return offsets, np.where(taken, words, 0)
