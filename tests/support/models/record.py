"""An interpreter of one command by the contract, on NumPy bytes, for tests.

It is straightforward and shares no code with the driver. It asserts that a record does not rely on
anything that the contract leaves open: a read of bytes that an unfinished command writes, or a byte
written twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import (
    BIT_OPS,
    RECORD,
    RECORD_SEAL,
    SHIFT_OPS,
    Lane,
    Mode,
    Op,
    Port,
    Status,
    record_words,
)
from bitlane_rtl.configuration import Search

__all__ = ["Bytes", "Fault", "Interpreter", "Record", "Stream", "nearest"]

Bytes = NDArray[np.uint8]

_DTYPES = {lane: np.dtype(f"<u{lane.bytes}") for lane in Lane}

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


@dataclass
class Stream:
    """One of A, B and Y as a record describes it, in bytes."""

    port: Port
    base: int
    last: int
    mode: int
    stride: int
    jumps: list[int]
    size: int

    def run(self, start: int, count: int) -> NDArray[np.int64]:
        """Return the addresses of the elements of a run that starts at ``start``."""
        if self.mode == Mode.SUM:
            return np.array([start])
        step = {Mode.DENSE: self.size, Mode.STRIDED: self.stride, Mode.REPEAT: 0}[Mode(self.mode)]
        return start + step * np.arange(count, dtype=np.int64)

    def final(self, start: int, count: int) -> int:
        """Return the last address that a run generates."""
        return start + (self.stride * (count - 1) if self.mode == Mode.STRIDED else 0)


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
        self.ops = self.ops & BIT_OPS | ({Op.SEARCH} if self.search else set())
        self.memory: Bytes = np.zeros(self.memory_bytes, np.uint8)
        self.forget_flights()

    def forget_flights(self) -> None:
        """Treat every command so far as finished."""
        self.read_in_flight = np.zeros(self.memory_bytes, bool)
        self.written_in_flight = np.zeros(self.memory_bytes, bool)

    def execute(self, record: Record) -> None:
        """Execute a record. Raises ``Fault`` where the circuit stops."""
        status = self.refusal(record)
        if status is not Status.OK:
            raise Fault(status)
        op, lane, out_lane = Op(record.op), record.lane, record.out_lane
        if op is Op.SEARCH:
            self._search(record)
            return
        inputs = [record.stream("A", Port.READ_A, lane.bytes)]
        if op.reads_b:
            inputs.append(record.stream("B", Port.READ_B, lane.bytes))
        y = record.stream("Y", Port.WRITE, out_lane.bytes)
        if record.control["FENCE"]:
            self.forget_flights()
        written = np.full(self.memory_bytes, False)
        reads = np.full(self.memory_bytes, False)
        streams = [*inputs, y]
        touched = [-1, -1, -1]
        for starts in _runs(record, streams):
            places = [x.run(start, record.run) for x, start in zip(streams, starts, strict=True)]
            operands = []
            for stream, elements in zip(inputs, places, strict=False):
                index = self._bytes(elements, stream, self.fail_reads, Status.READ_ERROR)
                assert not self.written_in_flight[index].any(), "reads what is still being written"
                assert not written[index].any(), "reads what the same command has written"
                reads[index] = True
                operands.append(self.memory[index].reshape(-1).view(_DTYPES[lane]))
            result = _compute(op, lane, out_lane, operands, record.control)
            if record.sums:
                result = result.sum(dtype=np.uint32, keepdims=True)
            else:
                self._expect_order(inputs, places, y)
            index = self._bytes(places[-1], y, self.fail_writes, Status.WRITE_ERROR)
            assert np.unique(index).size == index.size, "writes a byte twice in a run"
            assert not written[index].any(), "writes a byte twice"
            assert not self.written_in_flight[index].any(), "writes what is still being written"
            assert not self.read_in_flight[index].any(), "writes what is still being read"
            written[index] = True
            self.memory[index] = result.view(np.uint8).reshape(index.shape)
            for k, (stream, elements) in enumerate(zip(streams, places, strict=True)):
                touched[k] = max(touched[k], int(elements.max()) + stream.size - 1)
        for stream, last in zip(streams, touched, strict=False):
            assert stream.last == last, f"{stream.port.name}: LAST is {stream.last}, not {last}"
        self.written_in_flight |= written
        self.read_in_flight |= reads

    def refusal(self, record: Record) -> Status:
        """Return the first reason of ``Status`` to refuse a command, or OK."""
        sealed = np.array(record.words[: record.used], "<u4").view(np.uint8)
        if np.bitwise_xor.reduce(sealed) != RECORD_SEAL:
            return Status.BAD_SEAL
        if record.op not in self.ops:
            return Status.BAD_OP
        checks = {
            Status.BAD_LANE: self._bad_lane,
            Status.BAD_CONTROL: self._bad_control,
            Status.BAD_SIZE: self._bad_size,
            Status.MISALIGNED: _misaligned,
            Status.PAST_MEMORY: self._past_memory,
        }
        return next((status for status, check in checks.items() if check(record)), Status.OK)

    def _bad_lane(self, record: Record) -> bool:
        op, lane, out_lane = Op(record.op), record.lane, record.out_lane
        counted = (Lane.BITS_32,) if record.sums else (Lane.BITS_8, Lane.BITS_32)
        if op is Op.SEARCH:
            return (lane, out_lane) != (Lane.BITS_8, Lane.BITS_32)
        if out_lane not in (counted if op.counts else (lane,)):
            return True
        a_mode, b_mode, y_mode = record.modes
        # A SUM of A or B, which no circuit has, counts as STRIDED here.
        by_elements = {a_mode, b_mode} != {Mode.DENSE} or y_mode in (Mode.STRIDED, Mode.REPEAT)
        if lane not in self.lanes and (op.splits_lanes or by_elements):
            return True
        return by_elements and lane.bytes > self.data_bytes

    def _bad_control(self, record: Record) -> bool:
        a_mode, b_mode, y_mode = record.modes
        known = sum(((1 << bits.width) - 1) << bits.low for bits in RECORD["CONTROL"].bits)
        return bool(
            record.words[0] & ~known
            or not {a_mode, b_mode, y_mode} <= self.modes
            or y_mode == Mode.REPEAT
            or Mode.SUM in (a_mode, b_mode)
            or (record.sums and not Op(record.op).counts)
            or (not Op(record.op).reads_b and b_mode != Mode.DENSE)
            or not 1 <= record.loops <= self.loops
            or (record.uses("RESERVED") and record.word("RESERVED"))
            or (record.op == Op.SEARCH and not (record.dense and record.loops == 1))
        )

    def _bad_size(self, record: Record) -> bool:
        only_lane = record.sums or record.op == Op.SEARCH
        lanes = (record.lane,) if only_lane else (record.lane, record.out_lane)
        bytes_in_run = record.run * max(lanes).bytes
        return not (
            0 < bytes_in_run < 1 << self.length_bits
            and all(0 < count < 1 << self.count_bits for count in record.counts)
            and (record.op != Op.SEARCH or self._can_search(record))
        )

    def _can_search(self, record: Record) -> bool:
        """Return whether the sizes of a SEARCH fit together."""
        assert self.search is not None
        row = self.search.row_bits // 8
        b, y = (record.word(f"{x}_LAST") - record.word(f"{x}_BASE") + 1 for x in "BY")
        return (
            record.run % row == b % row == 0
            and 0 < b <= self.search.queries * row
            and y == b // row * self.search.nearest * 8
        )

    def _search(self, record: Record) -> None:
        """Find the nearest rows; assert that inputs and output are in the memory and disjoint."""
        assert self.search is not None
        row = self.search.row_bits // 8
        at = {name: record.word(f"{name}_BASE") - self.memory_base for name in "ABY"}
        b = record.word("B_LAST") - record.word("B_BASE") + 1
        rows = self.memory[at["A"] :][: record.run].reshape(-1, row)
        queries = self.memory[at["B"] :][:b].reshape(-1, row)
        found = nearest(rows, queries, self.search.nearest).reshape(-1).view(np.uint8)
        self.memory[at["Y"] :][: found.size] = found

    def _past_memory(self, record: Record) -> bool:
        names = [f"{name}_{end}" for name in record.streams for end in ("BASE", "LAST")]
        end = self.memory_base + self.memory_bytes
        return any(not self.memory_base <= record.word(name) < end for name in names)

    def _bytes(
        self, elements: NDArray[np.int64], stream: Stream, failing: frozenset[int], status: Status
    ) -> NDArray[np.int64]:
        """Return the indices in ``memory`` of the bytes of elements, a row for each element."""
        index = elements[:, None] + np.arange(stream.size) - self.memory_base
        assert index.min() >= 0, f"{stream.port.name} passes the memory downwards"
        if index.max() >= self.memory_bytes:
            # As far as tests go: walks that leave with the first beat of a run.
            first = self.memory_base + int(index.min())
            raise Fault(Status.PAST_MEMORY, stream.port, first - first % self.data_bytes)
        if failing:
            for address in (index + self.memory_base).reshape(-1).tolist():
                if address in failing:
                    raise Fault(status, stream.port, address - address % self.data_bytes)
        return index

    @staticmethod
    def _expect_order(inputs: list[Stream], places: list[NDArray[np.int64]], y: Stream) -> None:
        """Assert that no element reads, within a run, a byte that an earlier element writes."""
        target = places[-1]
        first, last = int(target.min()), int(target.max()) + y.size
        for stream, elements in zip(inputs, places, strict=False):
            if int(elements.max()) + stream.size <= first or int(elements.min()) >= last:
                continue
            if stream.size == y.size and np.array_equal(elements, target):
                continue
            order = {
                int(place) + byte: i for i, place in enumerate(target) for byte in range(y.size)
            }
            for i, place in enumerate(elements.tolist()):
                for byte in range(stream.size):
                    assert order.get(place + byte, i) >= i, "reads what its own run has written"


def _misaligned(record: Record) -> bool:
    """Return whether a stream's address is misaligned to its element where alignment matters."""
    if record.op == Op.SEARCH:
        return bool(record.word("Y_BASE") % 8)
    for name in record.streams:
        if name == "Y":
            bytes_of_element = record.out_lane.bytes
            matters = Op(record.op).splits_lanes or not record.dense
        else:
            bytes_of_element = record.lane.bytes
            matters = record.control[f"{name}_MODE"] != Mode.DENSE
        words = [f"{name}_BASE", f"{name}_STRIDE"]
        words += [f"{name}_JUMP_{loop}" for loop in range(1, record.loops)]
        if matters and any(record.word(x) % bytes_of_element for x in words if record.uses(x)):
            return True
    return False


def _runs(record: Record, streams: list[Stream]) -> Iterator[list[int]]:
    """Yield the address of every stream at the start of each run, from the jumps alone."""
    current = [stream.base for stream in streams]
    previous: tuple[int, ...] | None = None
    # product() turns its last argument fastest, and that is the innermost loop.
    for index in product(*(range(count) for count in reversed(record.counts))):
        if previous is not None:
            turned = next(k for k, (x, y) in enumerate(zip(previous, index, strict=True)) if x != y)
            loop = len(index) - turned
            current = [
                (stream.final(at, record.run) + stream.jumps[loop - 1]) % (1 << 32)
                for stream, at in zip(streams, current, strict=True)
            ]
        previous = index
        yield current


def _compute(
    op: Op, lane: Lane, out_lane: Lane, operands: list[NDArray[Any]], control: dict[str, int]
) -> NDArray[Any]:
    a, *rest = operands
    result: NDArray[Any]
    if op.counts:
        ones = a if op is Op.COUNT else _LOGIC[op & 3](a, rest[0])
        result = np.bitwise_count(ones).astype(_DTYPES[out_lane])
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
