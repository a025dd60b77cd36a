"""A board as the serial link's contract describes it, in Python, to test either side against.

`BoardRules` answers frames, for tests of the circuit. `BoardModel` adds a board's buffers, for
tests of the host. It asserts that the host keeps the rules that boards rely on: no more bytes
in flight than the board buffers, repetitions equal to their first request, and the same data when
a read is repeated.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Protocol

from bitlane_rtl.abi import (
    CONTROL_BASE,
    CONTROL_SIZE,
    FRAME_DATA_BYTES,
    LINK_VERSION,
    RECEIVE_BYTES,
    REPETITIONS,
    SEQUENCES,
    Answer,
    Request,
)
from support.serial.frames import DELIMITER, Reply, answer_line, asked, request_in


class Device(Protocol):
    """The device behind the link."""

    memory_base: int
    """First address of memory that only writes over the link, or the device's commands, change."""
    memory_bytes: int
    steady: bool
    """Whether the control window reads the same until it is written."""

    @property
    def interrupt(self) -> bool: ...
    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...


@dataclass
class MemoryDevice:
    """A memory, and a control window whose words retain what was written."""

    memory_base: int = 0x1000
    memory_bytes: int = 1 << 17
    steady: bool = True
    interrupt: bool = False
    window_writes: list[tuple[int, bytes]] = field(default_factory=list)
    """Every write to the control window: offset and data."""

    def __post_init__(self) -> None:
        self.memory = bytearray(self.memory_bytes)
        self.window = bytearray(CONTROL_SIZE)
        self.written: Counter[tuple[int, int]] = Counter()
        """The number of writes to each range of memory, by address and size."""

    def read(self, address: int, size: int) -> bytes:
        if address >= CONTROL_BASE:
            return bytes(self.window[address - CONTROL_BASE :][:size])
        return bytes(self.memory[address - self.memory_base :][:size])

    def write(self, address: int, data: bytes) -> None:
        if address >= CONTROL_BASE:
            offset = address - CONTROL_BASE
            self.window[offset : offset + len(data)] = data
            self.window_writes.append((offset, data))
        else:
            first = address - self.memory_base
            self.memory[first : first + len(data)] = data
            self.written[address, len(data)] += 1

    @property
    def changes(self) -> int:
        """The bytes of memory and words of the control window that have been written."""
        words = sum(len(data) // 4 for _, data in self.window_writes)
        return words + sum(size * count for (_, size), count in self.written.items())


@dataclass
class BoardRules:
    """The answers of a board to each frame, by the contract."""

    device: Device = field(default_factory=MemoryDevice)
    version: int = LINK_VERSION
    receive_bytes: int = RECEIVE_BYTES
    expected: int = 77
    """The next sequence number; any number before the first HELLO."""
    complained: bool = False
    """Whether the board has sent a complaint since it last accepted a frame."""
    accepted: int | None = None
    """Requests since the last HELLO, which alone have repetitions; None: any number behind has."""

    @property
    def memory_device(self) -> MemoryDevice:
        """``device``, which is a memory."""
        assert isinstance(self.device, MemoryDevice)
        return self.device

    def answers(self, line: bytes) -> list[Reply]:
        """Return the answers to the whole frames of ``line``; ignore a partial one at its end."""
        given = (self._answer_to(block) for block in line.split(DELIMITER)[:-1] if block)
        return [answer for answer in given if answer]

    def _answer_to(self, block: bytes) -> Reply | None:
        request = request_in(block)
        new = None if request is None else self.is_new(request)
        if request is None or new is None:
            return self.complaint()
        self.taken_in(new)
        return self.answer(request, new)

    def is_new(self, request: bytes) -> bool | None:
        """Return True for the next request, False for a repetition, and ``None`` for any other."""
        number = asked(request).number
        if request[1] == Request.HELLO:
            self.expected = number
            if self.accepted is not None:
                self.accepted = -1
        behind = (self.expected - number) % SEQUENCES
        most = REPETITIONS if self.accepted is None else min(self.accepted, REPETITIONS)
        return behind == 0 if behind <= max(most, 0) else None

    def taken_in(self, new: bool) -> None:
        self.complained = False
        if self.accepted is not None:
            self.accepted += new
        self.expected = (self.expected + new) % SEQUENCES

    def complaint(self) -> Reply | None:
        """Return the answer to a dropped frame: a complaint about the first one in a row."""
        if self.complained:
            return None
        self.complained = True
        return Reply(self.expected, Answer.EXPECTED, interrupt=self.device.interrupt)

    def answer(self, request: bytes, new: bool) -> Reply:
        """Execute a request and return its answer."""
        number, kind, size, address, written = asked(request)
        data = b""
        interrupt = self.device.interrupt
        if kind == Request.HELLO and size == 0:
            room = self.receive_bytes.to_bytes(2, "little")
            data = bytes((self.version, 0)) + room + request[4:8]
        elif kind not in (Request.READ, Request.WRITE) or not self._has(address, size):
            return Reply(number, Answer.REFUSED, interrupt=interrupt)
        elif kind == Request.READ:
            data = self.device.read(address, size) if size else b""
        elif new:
            self.device.write(address, written)
            interrupt = self.device.interrupt
        offset_of = address if kind == Request.READ else 0
        return Reply(number, Answer.DONE, data, interrupt, offset_of)

    def _has(self, address: int, size: int) -> bool:
        if size == 0 or size > FRAME_DATA_BYTES:
            return size == 0
        if address >= CONTROL_BASE:
            return address % 4 == size % 4 == 0 and address + size <= CONTROL_BASE + CONTROL_SIZE
        first = address - self.device.memory_base
        return first >= 0 and first + size <= self.device.memory_bytes


@dataclass
class Watch:
    """Asserts that a host repeats a request as it was, and that a repeated read gives the same."""

    first: dict[int, bytes] = field(default_factory=dict)
    """The requests of the session by number, as they came first."""
    given: dict[int, bytes] = field(default_factory=dict)
    """The data of their answers."""
    repetitions: int = 0

    def restart(self) -> None:
        """Forget all requests: the numbers begin anew."""
        self.first.clear()
        self.given.clear()

    def expect(self, request: bytes, new: bool, answer: Reply, *, steady: bool) -> None:
        """Take note of a request. ``steady``: whether a repetition of it returns the same data."""
        number, kind, *_ = asked(request)
        if new:
            self.first[number] = request
        else:
            self.repetitions += 1
            assert self.first[number] == request, "a repetition differs from the first time"
        if kind == Request.READ and steady:
            assert new or self.given[number] == answer.data, "a repeated read gives something else"
            self.given[number] = answer.data


@dataclass
class BoardModel(BoardRules):
    """The board's end of the link, in front of ``device``.

    ``take`` models its receiver; ``execute`` is called whenever its transmitter is free.
    """

    taken: int = 0
    damaged: int = 0
    """Frames that were dropped for damage."""
    out_of_turn: int = 0
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        self._rest = b""
        self._waiting: deque[tuple[bytes, bool]] = deque()

    @property
    def repetitions(self) -> int:
        """The requests that came again."""
        return self.watch.repetitions

    @property
    def busy(self) -> bool:
        """Whether a request is waiting to be executed."""
        return bool(self._waiting)

    def take(self, block: bytes) -> list[bytes]:
        """Accept a frame less its delimiter; return an answer that precedes those in the queue."""
        if not block:
            return []
        request = request_in(block)
        if request is None:
            self.damaged += 1
            return self.complain()
        new = self.is_new(request)
        if new is None:
            self.out_of_turn += 1
            return self.complain()
        if not self._has_room(request, new):
            self.damaged += 1
            return self.complain()
        self.taken_in(new)
        self.taken += new
        self._waiting.append((request, new))
        return []

    def execute(self) -> list[bytes]:
        """Execute the oldest request; return its answer as it is on the line."""
        request, new = self._waiting.popleft()
        if request[1] == Request.HELLO:
            self.watch.restart()
        answer = self.answer(request, new)
        steady = self.device.steady or asked(request).address < CONTROL_BASE
        self.watch.expect(request, new, answer, steady=steady)
        return [answer_line(answer.content)]

    def feed(self, data: bytes) -> bytes:
        """Feed bytes of the line to the board; return all answers at once."""
        answers = []
        *blocks, self._rest = (self._rest + data).split(DELIMITER)
        for block in blocks:
            answers += self.take(block)
            while self._waiting:
                answers += self.execute()
        return b"".join(answers)

    def complain(self) -> list[bytes]:
        complaint = self.complaint()
        return [answer_line(complaint.content)] if complaint else []

    def _has_room(self, request: bytes, new: bool) -> bool:
        size = len(request) + 4
        if new:
            used = size + sum(len(x) + 4 for x, first in self._waiting if first)
            assert used <= self.receive_bytes, f"the host has {used} bytes on the way"
        # Repetitions may fill the buffer; one more is dropped as if it were damaged.
        return size + sum(len(x) + 4 for x, _ in self._waiting) <= self.receive_bytes
