"""The product's interpreter of commands, which asserts that they rely on nothing left open.

The contract leaves open what becomes of a read of bytes that an unfinished command writes, of a
byte that is written twice, and of a read of bytes that an earlier step of the command has written.
"""

from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Mode, Op, Port, Status
from bitlane_rtl.configuration import Configuration
from bitlane_sim.numpy_device import AddressWalk, Interpreter, Stop
from support.record import Record

Places: TypeAlias = slice | NDArray[np.int64]
"""Offsets of bytes."""

_PORTS = {"A": Port.READ_A, "B": Port.READ_B, "Y": Port.WRITE}

_NEVER = np.iinfo(np.int64).max


def walk_of(record: Record, stream: str) -> AddressWalk:
    """Return the walk of a stream, element by element."""
    size, mode = record.size(stream), record.mode(stream)
    run = 1 if mode is Mode.SUM else record.run
    strided = record.signed(f"{stream}_STRIDE") if mode is Mode.STRIDED else 0
    loops = list(zip(record.counts, record.jumps(stream), strict=True))
    walk = AddressWalk.of(record.word(f"{stream}_BASE"), (run, strided), loops, size)
    return walk.with_run(run, size) if mode is Mode.DENSE else walk


def bounds_of(walk: AddressWalk) -> tuple[int, int]:
    """Return the lowest and the highest address of a walk."""
    low, end = walk.bounds()
    return walk.base + low, walk.base + end - 1


def places_of(walk: AddressWalk, first: int = 0) -> Places:
    """Return all bytes of a walk as offsets from address ``first``, element by element."""
    start = walk.base - first
    if walk.steps[-1] == walk.size and set(walk.counts[:-1]) <= {1}:
        return slice(start, start + walk.counts[-1] * walk.size)
    axes = [np.arange(n) * step for n, step in zip(walk.counts, walk.steps, strict=True)]
    starts = reduce(np.add.outer, axes, np.array(start))
    return np.asarray(np.add.outer(starts, np.arange(walk.size)).reshape(-1))


class WatchedInterpreter(Interpreter):
    """An interpreter that asserts the above, and that LAST is the highest address of a stream.

    A command is in flight until the next one with FENCE. ``fail_reads`` and ``fail_writes`` are
    byte addresses that answer with an error, before the command has written anything.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.fail_reads: frozenset[int] = frozenset()
        self.fail_writes: frozenset[int] = frozenset()
        self._read_in_flight = np.zeros(configuration.memory_bytes, bool)
        self._written_in_flight = np.zeros(configuration.memory_bytes, bool)

    def forget_flights(self) -> None:
        """Treat every command so far as finished."""
        self._read_in_flight.fill(False)
        self._written_in_flight.fill(False)

    def access(self, name: str, first: int, end: int) -> None:
        """Do nothing; called for the addresses from ``first`` to before ``end`` of each stream."""

    def execute(self, record: bytes) -> Stop | None:
        words = Record.of(record)
        stop = self._failure(words) or super().execute(record)
        if stop is None:
            self._watch(words)
        return stop

    def _failure(self, record: Record) -> Stop | None:
        """Return the stop of a command that meets a failing byte, in the earliest run."""
        if not (self.fail_reads or self.fail_writes) or record.op == Op.SEARCH:
            return None
        if record.refusal(self.configuration) is not Status.OK:
            return None
        found = []
        for stream in record.streams:
            writes = stream == "Y"
            places = np.r_[places_of(walk_of(record, stream))]
            failing = self.fail_writes if writes else self.fail_reads
            hits = np.flatnonzero(np.isin(places, list(failing)))
            if hits.size:
                elements = 1 if writes and record.sums else record.run
                number = int(hits[0]) // (elements * record.size(stream))
                found.append((number, stream, int(places[hits[0]])))
        if not found:
            return None
        _, stream, address = min(found)
        status = Status.WRITE_ERROR if stream == "Y" else Status.READ_ERROR
        return Stop(status, _PORTS[stream], address - address % self.configuration.data_bytes)

    def _watch(self, record: Record) -> None:
        if record.op == Op.SEARCH:
            last = record.word("A_BASE") + record.run - 1
            for stream in "ABY":
                end = last if stream == "A" else record.word(f"{stream}_LAST")
                self.access(_PORTS[stream].name, record.word(f"{stream}_BASE"), end + 1)
            return
        if record.control["FENCE"]:
            self.forget_flights()
        walks = {stream: walk_of(record, stream) for stream in record.streams}
        bounds = {stream: bounds_of(walk) for stream, walk in walks.items()}
        for stream, (low, last) in bounds.items():
            self.access(_PORTS[stream].name, low, last + 1)
        base = self.configuration.memory_base
        places = {stream: places_of(walk, base) for stream, walk in walks.items()}
        expect_order(record, places)
        self._expect_no_flight(places)
        for stream, (_, last) in bounds.items():
            told = record.word(f"{stream}_LAST")
            assert told == last, f"{_PORTS[stream].name}: LAST is {told}, not {last}"

    def _expect_no_flight(self, places: dict[str, Places]) -> None:
        """Assert that commands in flight do not meet the bytes of this one, which then is, too."""
        y = places["Y"]
        inputs = [index for stream, index in places.items() if stream != "Y"]
        for index in inputs:
            assert not self._written_in_flight[index].any(), "reads what is still being written"
        assert not self._written_in_flight[y].any(), "writes what is still being written"
        assert not self._read_in_flight[y].any(), "writes what is still being read"
        self._written_in_flight[y] = True
        for index in inputs:
            self._read_in_flight[index] = True


def _bounds(index: Places) -> tuple[int, int]:
    """Return the lowest address, and the one behind the highest."""
    if isinstance(index, slice):
        return index.start, index.stop
    return int(index.min()), int(index.max()) + 1


def expect_order(record: Record, places: dict[str, Places]) -> None:
    """Assert that no byte is written twice, or read in a step after the one that writes it.

    A step is an element, or of a sum a run.
    """
    y = places["Y"]
    low, end = _bounds(y)
    bounds = {stream: _bounds(index) for stream, index in places.items() if stream != "Y"}
    crossing = [stream for stream, x in bounds.items() if x[0] < end and low < x[1]]
    if isinstance(y, slice):
        if not crossing:
            return
        y = np.arange(low, end)
    steps = np.arange(y.size) // record.size("Y")
    writer = np.full(end - low, _NEVER)
    writer[y - low] = steps
    assert np.array_equal(writer[y - low], steps), "writes a byte twice"
    for stream in crossing:
        read = np.r_[places[stream]]
        own = np.arange(read.size) // record.size(stream)
        if record.sums:
            own //= record.run
        inside = (low <= read) & (read < end)
        late = writer[read[inside] - low] < own[inside]
        assert not late.any(), "reads what the same command has written"
