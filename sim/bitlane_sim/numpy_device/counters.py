"""The counters of the device: predicted, and only when somebody reads them.

The host's accesses to the control window take as long as those of the simulated device, and its
look at STATUS, RETIRED, FAULT or a completion takes place when all commands have ended, because
that is what the device answers.
"""

from collections import deque
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import inf
from typing import TypeAlias

import numpy as np

from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration

from ..fields import Fields
from .command import DecodedCommand
from .cycles import CommandShape, CounterValues, Stream
from .memories import Memory, Turns
from .recorder import PredictedCommands
from .row_sets import RowSets
from .timeline import Timeline

_WRITE_CYCLES, _READ_CYCLES = 4, 5
"""Cycles of an access to the control window: `ControlManager` and `Axi4LiteControl`."""

_LONG_AGO = 64
"""Cycles after which every record has been fetched, whatever its length."""

MOST_POSTPONED = 1 << 14
"""Jobs whose prediction is postponed; each further one has the oldest predicted, in milliseconds if
it is a new one, so that no call pays for all of them."""

Submission: TypeAlias = tuple[int, int, tuple[bytes, ...]]
"""Commands of a DOORBELL: its cycle, that of the last write to the ring, and the records."""

_Job: TypeAlias = tuple[Submission, ...]
"""Submissions, their cycles counted from the first DOORBELL."""

_Shapes: TypeAlias = tuple[tuple[int, int, tuple[CommandShape, ...]], ...]
"""A job: as `Submission`, with the shapes of the records."""


class PredictedCounters:
    """Collects the commands that retire, and predicts the counters from them."""

    def __init__(
        self, circuit: Configuration, memory: Memory, recorder: PredictedCommands | None = None
    ) -> None:
        self._circuit = circuit
        self._memory = memory
        self._recorder = recorder
        self._now = self._ring_written = 0
        self._job: list[Submission] = []
        self._jobs: deque[_Job] = deque()
        self._different: dict[_Job, _Job] = {}  # of them, so that equal ones take no memory
        self._turns: Turns = ()  # of the memory's arbiters, from which a job begins
        self._total = self._cleared = CounterValues()
        self._shape = lru_cache(MOST_POSTPONED)(self._new_shape)
        self._predict = lru_cache(MOST_POSTPONED)(self._new_prediction)
        self._repeat = lru_cache(MOST_POSTPONED)(
            lambda job, turns: self._predict(self._shapes(job), turns)
        )

    def wrote(self, words: int, *, ring: bool) -> None:
        """Let the time pass in which the host writes ``words``."""
        self._now += words * _WRITE_CYCLES
        if ring:
            self._ring_written = self._now

    def read(self, words: int) -> None:
        """Let the time pass in which the host reads ``words``."""
        self._now += words * _READ_CYCLES

    def submitted(self, records: tuple[bytes, ...]) -> None:
        """Note ``records`` that a DOORBELL has submitted in this cycle and that retire."""
        if records:
            self._job.append((self._now, self._ring_written, records))

    def ended(self) -> None:
        """All commands have retired, and the host has seen it."""
        if not self._job:
            return
        first = self._job[0][0]
        key = tuple(
            [
                (rung - first, max(written, rung - _LONG_AGO) - first, records)
                for rung, written, records in self._job
            ]
        )
        self._job.clear()
        if self._recorder:
            self._add()
            self._record(self._recorder, key, first)
        if len(self._different) > MOST_POSTPONED:
            self._different.clear()
        self._jobs.append(self._different.setdefault(key, key))
        if len(self._jobs) > MOST_POSTPONED:
            self._predict_one()

    def clear(self) -> None:
        """Set all counters to 0."""
        self.counts()
        self._cleared = self._total

    def counts(self) -> CounterValues:
        """Return the counters."""
        self.ended()
        self._add()
        return self._total.plus(self._cleared, -1)

    def retirements(self, records: tuple[bytes, ...]) -> list[int]:
        """Return the cycles from a doorbell until each of ``records`` retires, without counting."""
        line = self._followed(self._shapes(((0, -_LONG_AGO, records),)), ())
        return list(map(int, line.retired))

    @property
    def busy_cycles(self) -> int:
        """BUSY_CYCLES since power-on: no clearing changes it."""
        self.counts()
        return self._total.busy

    def _add(self) -> None:
        while self._jobs:
            self._predict_one()
        self._different.clear()

    def _predict_one(self) -> None:
        counts, self._turns = self._repeat(self._jobs.popleft(), self._turns)
        self._total = self._total.plus(counts)

    def _record(self, recorder: PredictedCommands, job: _Job, first: int) -> None:
        """Record a job whose first DOORBELL was written in cycle ``first``."""
        line = self._followed(self._shapes(job), self._turns)
        recorder.add(
            (first + rung for rung, _, _ in job),
            (first + int(cycle) for cycle in line.started),
            # A retirement is seen in the cycle behind the last one that counts.
            (first + int(cycle) + 1 for cycle in line.retired),
        )

    def _shapes(self, job: _Job) -> _Shapes:
        jobs = [tuple(map(self._shape, records)) for _, _, records in job]
        if size := self._memory.row_set:
            shapes = list(chain.from_iterable(jobs))
            sets = RowSets(shapes, size, used=any(shape.op is Op.SEARCH for shape in shapes))
            jobs = [tuple(map(sets.renumbered, each)) for each in jobs]
        return tuple(
            (rung, written, each) for (rung, written, _), each in zip(job, jobs, strict=True)
        )

    def _followed(self, job: _Shapes, turns: Turns) -> Timeline:
        line = Timeline(self._circuit, self._memory, turns)
        for rung, written, shapes in job:
            for number, shape in enumerate(shapes):
                line.command(shape, rung + 1, -inf if number else written)
        line.run()
        return line

    def _new_shape(self, record: bytes) -> CommandShape:
        """Return the shape of a command, at the address within a block on which cycles depend."""
        return shape_of(np.frombuffer(record, "<u4").tolist(), self._memory.extent)

    def _new_prediction(self, job: _Shapes, turns: Turns) -> tuple[CounterValues, Turns]:
        line, number, busy, end = self._followed(job, turns), 0, 0.0, 0.0
        for rung, _, shapes in job:
            number += len(shapes)
            before, end = end, line.retired[number - 1]
            busy += end - max(rung, before)
        a_stalls, b_stalls, y_stalls = map(int, line.stalls)
        counts = line.counts._replace(
            busy=int(busy), a_stalls=a_stalls, b_stalls=b_stalls, y_stalls=y_stalls
        )
        return counts, line.turns


def shape_of(words: list[int], extent: int) -> CommandShape:
    """Return the shape of a record that is not refused, from its 32 words.

    Addresses are modulo ``extent``.
    """
    command = DecodedCommand(words)
    streams = {}
    for name in command.streams:
        walk = command.bursts(name)
        if command.op is Op.SEARCH and name != "A":
            walk = replace(
                walk, size=command.word(f"{name}_LAST") - command.word(f"{name}_BASE") + 1
            )
        streams[name] = Stream(replace(walk, base=walk.base % extent), command.mode(name))
    return CommandShape(
        command.op,
        command.lane("A").bytes,
        command.lane("Y").bytes,
        command.run,
        int(Fields(words).used),
        bool(command.control["FENCE"]),
        streams["A"],
        streams.get("B"),
        streams["Y"],
    )
