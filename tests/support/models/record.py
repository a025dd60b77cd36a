"""An interpreter of one command by the contract, on NumPy bytes, for tests.

It shares no code with the driver. It asserts that a record does not rely on anything that the
contract leaves open: a read of bytes that an unfinished command writes, or a byte written twice.
Its refusals are those of the model that judges the circuit.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import (
    BIT_OPS,
    RECORD,
    RECORD_WORDS,
    SHIFT_OPS,
    Lane,
    Mode,
    Op,
    Port,
    Status,
    record_words,
)
from bitlane_rtl.configuration import Search
from bitlane_sim.fields import Fields, Limits, refusals

Bytes = NDArray[np.uint8]

_DTYPES = {lane: np.dtype(f"<u{lane.bytes}") for lane in Lane}

_MODULUS = 1 << 32
"""Addresses wrap where a run starts."""

_FEW_RUNS = 64

_NEVER = np.iinfo(np.int64).max

_LOGIC = {0: np.bitwise_and, 1: np.bitwise_or, 2: np.bitwise_xor}
"""By the low two bits of an operation with two operands."""


def nearest(rows: Bytes, queries: Bytes, count: int) -> NDArray[np.uint32]:
    """Return the ``count`` nearest rows of each query, as (query, rank, {distance, index})."""
    found = np.full((len(queries), count, 2), 0xFFFFFFFF, np.uint32)
    for words, query in zip(found, queries, strict=True):
        distances = np.bitwise_count(rows ^ query).sum(axis=1, dtype=np.uint32)
        order = np.argsort(distances, kind="stable")[:count]
        words[: len(order), 0] = distances[order]
        words[: len(order), 1] = order
    return found


@dataclass
class Fault(Exception):
    """A command that ends with another status than OK."""

    status: Status
    port: Port = Port.NONE
    address: int = 0


_Stop = tuple[Status, Port, int]
"""The arguments of a `Fault`."""


@dataclass
class Stream:
    """One of A, B and Y as a record describes it, in bytes. A run has ``run`` elements."""

    port: Port
    base: int
    last: int
    mode: int
    stride: int
    jumps: list[int]
    size: int
    run: int

    @property
    def step(self) -> int:
        """The bytes from an element of a run to the next one."""
        return {Mode.DENSE: self.size, Mode.STRIDED: self.stride}.get(Mode(self.mode), 0)

    def bounds(self, starts: NDArray[np.int64]) -> tuple[int, int]:
        """Return the first byte of runs, and the byte behind their last one."""
        last = self.step * (self.run - 1)
        low, high = (starts.item(),) * 2 if starts.size == 1 else (starts.min(), starts.max())
        return int(low) + min(0, last), int(high) + max(0, last) + self.size

    def starts(self, counts: list[int], most: int) -> NDArray[np.int64]:
        """Return the addresses where the first ``most`` runs start, from the jumps."""
        if not counts:
            return np.array([self.base])
        number = np.arange(most)
        starts = np.full(most, self.base)
        # The distance that the loops inside a loop have covered when it advances.
        gone = self.stride * (self.run - 1) if self.mode == Mode.STRIDED else 0
        for count, jump in zip(counts, self.jumps, strict=True):
            step = (jump + gone) % _MODULUS
            number, digit = np.divmod(number, count)
            starts += digit * step
            gone += step * (count - 1)
        return starts % _MODULUS

    def index(self, starts: NDArray[np.int64]) -> slice | NDArray[np.int64]:
        """Return the addresses of all bytes of runs, element by element."""
        dense = self.mode == Mode.DENSE
        if dense and starts.size == 1:
            return slice(int(starts[0]), int(starts[0]) + self.size * self.run)
        within = (
            np.arange(self.size * self.run)
            if dense
            else (self.step * np.arange(self.run)[:, None] + np.arange(self.size)).reshape(-1)
        )
        return np.add.outer(starts, within).reshape(-1)


class Record:
    """The words of a record, taken apart."""

    def __init__(self, words: list[int]) -> None:
        self.words = words
        control = {bits.name: bits.extract(words[0]) for bits in RECORD["CONTROL"].bits}
        self.control = control
        self.op = control["OP"]
        self.loops = control["LOOPS"]
        self.modes = (control["A_MODE"], control["B_MODE"], control["Y_MODE"])
        self.run = words[RECORD["RUN"].word]

    def word(self, name: str) -> int:
        return self.words[RECORD[name].word]

    def signed(self, name: str) -> int:
        value = self.word(name)
        return value - (1 << 32) if value >> 31 else value

    @property
    def used(self) -> int:
        """The number of words that the circuit reads and seals."""
        return record_words(self.op, self.loops, self.modes)

    def uses(self, name: str) -> bool:
        """Return whether the circuit reads the word ``name``."""
        return RECORD[name].word < self.used

    @property
    def lane(self) -> Lane:
        return Lane(self.control["LANE"])

    @property
    def out_lane(self) -> Lane:
        return Lane(self.control["OUT_LANE"])

    @property
    def dense(self) -> bool:
        """Whether all three modes are DENSE."""
        return set(self.modes) == {Mode.DENSE}

    @property
    def sums(self) -> bool:
        """Whether Y is a SUM."""
        return bool(self.modes[2] == Mode.SUM)

    @property
    def streams(self) -> str:
        """The letters of the command's streams; ``op`` must exist."""
        return "ABY" if Op(self.op).reads_b else "AY"

    @property
    def counts(self) -> list[int]:
        return [self.word(f"COUNT_{loop}") for loop in range(1, self.loops)]

    def stream(self, name: str, port: Port, size: int) -> Stream:
        return Stream(
            port,
            self.word(f"{name}_BASE"),
            self.word(f"{name}_LAST"),
            self.control[f"{name}_MODE"],
            self.signed(f"{name}_STRIDE"),
            [self.signed(f"{name}_JUMP_{loop}") for loop in range(1, self.loops)],
            size,
            1 if self.control[f"{name}_MODE"] == Mode.SUM else self.run,
        )


@dataclass(kw_only=True)
class Interpreter:
    """A circuit of some geometry and its memory; it executes one record after the other.

    A command is in flight until the next one with FENCE. ``fail_reads`` and ``fail_writes`` are
    byte addresses that answer with an error.
    """

    memory_bytes: int = 1 << 20
    memory_base: int = 0
    data_bytes: int = 8
    loops: int = 4
    length_bits: int = 24
    count_bits: int = 24
    ops: frozenset[Op] = BIT_OPS
    search: Search | None = None
    lanes: frozenset[Lane] = frozenset(Lane)
    modes: frozenset[Mode] = frozenset(Mode)
    read_ports: int = 2
    fail_reads: frozenset[int] = frozenset()
    fail_writes: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self.lanes, self.modes = frozenset(self.lanes), frozenset(self.modes)
        self.ops = self.ops & BIT_OPS | ({Op.SEARCH} if self.search else set())
        self.memory: Bytes = np.zeros(self.memory_bytes, np.uint8)
        self.read_in_flight = np.zeros(self.memory_bytes, bool)
        self.written_in_flight = np.zeros(self.memory_bytes, bool)

    def forget_flights(self) -> None:
        """Treat every command so far as finished."""
        self.read_in_flight.fill(False)
        self.written_in_flight.fill(False)

    @property
    def memory_last(self) -> int:
        return self.memory_base + self.memory_bytes - 1

    def execute(self, record: Record) -> None:
        """Execute a record. Raises ``Fault`` where the circuit stops."""
        status = self.refusal(record)
        if status is not Status.OK:
            raise Fault(status)
        op, lane = Op(record.op), record.lane
        if op is Op.SEARCH:
            self._search(record)
            return
        if record.control["FENCE"]:
            self.forget_flights()
        ports = {"A": Port.READ_A, "B": Port.READ_B, "Y": Port.WRITE}
        streams = [
            record.stream(name, ports[name], (record.out_lane if name == "Y" else lane).bytes)
            for name in record.streams
        ]
        starts, stop = self._runs(record.counts, streams)
        if starts[0].size:
            self._perform(record, streams, starts)
        if stop:
            raise Fault(*stop)
        for stream, each in zip(streams, starts, strict=True):
            last = stream.bounds(each)[1] - 1
            assert stream.last == last, f"{stream.port.name}: LAST is {stream.last}, not {last}"

    def access(self, name: str, first: int, end: int) -> None:
        """Do nothing; called for the addresses from ``first`` to before ``end`` of each stream."""

    def refusal(self, record: Record) -> Status:
        """Return the first reason of ``Status`` to refuse a command, or OK."""
        return _refusal(tuple(record.words[: record.used]), Limits.of(self))

    def _runs(
        self, counts: list[int], streams: list[Stream]
    ) -> tuple[list[NDArray[np.int64]], _Stop | None]:
        """Return where the runs of streams start, up to the first that stops, and why it does.

        Looks at few runs first, since a walk may have 2**60 and leave the memory at once.
        """
        runs = prod(counts)
        # As each run writes bytes of its own, more runs do not end well.
        for most in (min(runs, _FEW_RUNS), min(runs, self.memory_bytes + 1)):
            starts = [stream.starts(counts, most) for stream in streams]
            if self.fail_reads or self.fail_writes or not all(map(self._within, streams, starts)):
                for number in range(most):
                    for stream, each in zip(streams, starts, strict=True):
                        if stop := self._stop_of(stream, each[number : number + 1]):
                            return [each[:number] for each in starts], stop
            if most == runs:
                break
        assert most == runs, "writes a byte twice"
        return starts, None

    def _within(self, stream: Stream, starts: NDArray[np.int64]) -> bool:
        """Return whether runs of a stream stay in the memory."""
        low, end = stream.bounds(starts)
        return self.memory_base <= low and end <= self.memory_base + self.memory_bytes

    def _stop_of(self, stream: Stream, start: NDArray[np.int64]) -> _Stop | None:
        """Return the fault of a run that leaves the memory or meets a failing byte.

        As far as tests go, walks leave the memory with the first beat of a run.
        """
        first = stream.bounds(start)[0]
        assert first >= self.memory_base, f"{stream.port.name} passes the memory downwards"
        if not self._within(stream, start):
            return Status.PAST_MEMORY, stream.port, first - first % self.data_bytes
        writes = stream.port is Port.WRITE
        failing = self.fail_writes if writes else self.fail_reads
        if failing:
            index = stream.index(start)
            every = range(index.start, index.stop) if isinstance(index, slice) else index.tolist()
            for address in every:
                if address in failing:
                    status = Status.WRITE_ERROR if writes else Status.READ_ERROR
                    return status, stream.port, address - address % self.data_bytes
        return None

    def _perform(
        self, record: Record, streams: list[Stream], starts: list[NDArray[np.int64]]
    ) -> None:
        """Execute runs that start at ``starts`` of each stream, all at once."""
        places = [
            stream.index(each - self.memory_base)
            for stream, each in zip(streams, starts, strict=True)
        ]
        inputs, y = places[:-1], places[-1]
        for stream, each in zip(streams, starts, strict=True):
            self.access(stream.port.name, *stream.bounds(each))
        self._expect_order(record, streams, places)
        for index in inputs:
            assert not self.written_in_flight[index].any(), "reads what is still being written"
        assert not self.written_in_flight[y].any(), "writes what is still being written"
        assert not self.read_in_flight[y].any(), "writes what is still being read"
        operands = [self.memory[index].view(_DTYPES[record.lane]) for index in inputs]
        result = _compute(Op(record.op), record.lane, record.out_lane, operands, record.control)
        if record.sums:
            result = result.reshape(-1, record.run).sum(axis=1, dtype=np.uint32)
        self.memory[y] = result.view(np.uint8)
        self.written_in_flight[y] = True
        for index in inputs:
            self.read_in_flight[index] = True

    @staticmethod
    def _expect_order(
        record: Record, streams: list[Stream], places: list[slice | NDArray[np.int64]]
    ) -> None:
        """Assert that no byte is written twice, or read in a step after the one that writes it.

        A step is an element, or of a sum a run.
        """
        y = places[-1]
        low, end = _bounds(y)
        bounds = [_bounds(index) for index in places[:-1]]
        crossing = [number for number, x in enumerate(bounds) if x[0] < end and low < x[1]]
        if isinstance(y, slice):
            if not crossing:
                return
            y = np.arange(low, end)
        steps = np.arange(y.size) // streams[-1].size
        writer = np.full(end - low, _NEVER)
        writer[y - low] = steps
        assert np.array_equal(writer[y - low], steps), "writes a byte twice"
        for number in crossing:
            index = places[number]
            read = np.arange(index.start, index.stop) if isinstance(index, slice) else index
            own = np.arange(read.size) // streams[number].size
            if record.sums:
                own //= record.run
            inside = (low <= read) & (read < end)
            late = writer[read[inside] - low] < own[inside]
            assert not late.any(), "reads what the same command has written"

    def _search(self, record: Record) -> None:
        """Find the nearest rows; assert that inputs and output are in the memory and disjoint."""
        assert self.search is not None
        row = self.search.row_bits // 8
        at = {name: record.word(f"{name}_BASE") - self.memory_base for name in "ABY"}
        b = record.word("B_LAST") - record.word("B_BASE") + 1
        rows = self.memory[at["A"] :][: record.run].reshape(-1, row)
        queries = self.memory[at["B"] :][:b].reshape(-1, row)
        found = nearest(rows, queries, self.search.nearest).reshape(-1).view(np.uint8)
        for name, size in (("A", record.run), ("B", b), ("Y", found.size)):
            self.access(name, record.word(f"{name}_BASE"), record.word(f"{name}_BASE") + size)
        self.memory[at["Y"] :][: found.size] = found


@lru_cache(1 << 14)
def _refusal(words: tuple[int, ...], limits: Limits) -> Status:
    unused = (0,) * (RECORD_WORDS - len(words))
    return Status(refusals(Fields(words + unused), limits))


def _bounds(index: slice | NDArray[np.int64]) -> tuple[int, int]:
    """Return the lowest address, and the one behind the highest."""
    if isinstance(index, slice):
        return index.start, index.stop
    return int(index.min()), int(index.max()) + 1


def _compute(
    op: Op, lane: Lane, out_lane: Lane, operands: list[NDArray[Any]], control: dict[str, int]
) -> NDArray[Any]:
    a, *rest = operands
    result: NDArray[Any]
    if op.counts:
        ones = a if op is Op.COUNT else _LOGIC[op & 3](a, rest[0])
        result = np.bitwise_count(ones).astype(_DTYPES[out_lane])
        if control["TEST"]:
            result = (result == 0 if control["NEGATE"] else result != 0).astype(_DTYPES[out_lane])
    elif op is Op.COPY:
        result = a.copy()
    elif op is Op.NOT:
        result = np.invert(a)
    elif op in SHIFT_OPS:
        result = _shift(op, lane, a, rest[0], control)
    else:
        result = _LOGIC[op & 3](a, rest[0])
        if op & 4:
            result = np.invert(result)
    return result


def _shift(
    op: Op, lane: Lane, a: NDArray[Any], b: NDArray[Any], control: dict[str, int]
) -> NDArray[Any]:
    result: NDArray[Any]
    most = np.array(lane.bits - 1, b.dtype)
    count = b if control["SATURATE"] else np.bitwise_and(b, most)
    if op is Op.SHIFT_LEFT:
        result = np.left_shift(a, count)
    elif control["ARITHMETIC"]:
        signed = np.dtype(f"<i{lane.bytes}")
        result = np.right_shift(a.view(signed), np.minimum(count, most).view(signed)).view(a.dtype)
    else:
        result = np.right_shift(a, count)
    return result
