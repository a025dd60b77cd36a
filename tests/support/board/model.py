"""A board as the serial link's contract describes it, in Python, to test the host's side against.

Takes frames off the line and puts answers on it; its COBS is its own, byte by byte. It fails the
test where the host breaks a rule that the board relies on: more on the way than it buffers, a
repetition that differs from the first time, a read that gives something else when repeated.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Protocol
from zlib import crc32

from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE
from bitlane_rtl.abi.link import (
    FRAME_DATA_BYTES,
    LINK_VERSION,
    RECEIVE_BYTES,
    REPETITIONS,
    Answer,
    Request,
)

__all__ = [
    "BoardModel",
    "Device",
    "MemoryDevice",
    "backward_cobs",
    "cobs_decoded",
]


def cobs_decoded(block: bytes) -> bytes | None:
    """What a request's ``block`` holds; None if it is no COBS."""
    result = bytearray()
    left = 0
    code = 255
    for byte in block:
        if byte == 0:
            return None
        if left == 0:
            if code != 255:
                result.append(0)
            code = byte
            left = byte - 1
        else:
            result.append(byte)
            left -= 1
    return None if left else bytes(result)


def backward_cobs(content: bytes) -> bytes:
    """An answer's block, made as a circuit makes it that knows only the bytes so far."""
    result = bytearray()
    code = 1
    for byte in content:
        if byte == 0:
            result.append(code)
            code = 1
            continue
        result.append(byte)
        code += 1
        if code == 255:
            result.append(code)
            code = 1
    result.append(code)
    return bytes(result)


class Device(Protocol):
    """What stands behind the link."""

    memory_base: int
    """Of memory that only writes through the link change, apart from what the device computes."""
    memory_bytes: int
    steady: bool
    """Whether the control window reads the same until it is written."""

    @property
    def interrupt(self) -> bool: ...
    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...


@dataclass
class MemoryDevice:
    """Memory, and a control window of words that keep what was written."""

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
        """How often each range of memory, address and size, has been written."""

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


@dataclass
class BoardModel:
    """The board's end of the link before ``device``.

    ``take`` is its receiver, ``execute`` what it does next whenever its transmitter is free.
    """

    device: Device = field(default_factory=MemoryDevice)
    version: int = LINK_VERSION
    receive_bytes: int = RECEIVE_BYTES
    expected: int = 77
    """The next sequence number, before the first HELLO whatever it was."""

    taken: int = 0
    repetitions: int = 0
    damaged: int = 0
    """Frames that were dropped for damage."""
    out_of_turn: int = 0

    def __post_init__(self) -> None:
        self._rest = b""
        self._complained = False
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._first: dict[int, bytes] = {}
        self._given: dict[int, bytes] = {}

    @property
    def busy(self) -> bool:
        """Whether there is something to execute."""
        return bool(self._waiting)

    def take(self, block: bytes) -> bytes:
        """A frame without its delimiter has come; what to answer at once, ahead of the rest."""
        if not block:
            return b""
        content = cobs_decoded(block)
        if content is None or len(content) < 12 or not _sound(content):
            self.damaged += 1
            return self._complain()
        request = content[:-4]
        sequence, kind = request[0], request[1]
        size = int.from_bytes(request[2:4], "little")
        if len(request) - 8 != (size if kind == Request.WRITE else 0) or size > FRAME_DATA_BYTES:
            self.damaged += 1
            return self._complain()
        if kind == Request.HELLO:
            self.expected = sequence
            self._first.clear()
            self._given.clear()
        new = sequence == self.expected
        if not new and (self.expected - sequence) % 256 > REPETITIONS:
            self.out_of_turn += 1
            return self._complain()
        if not self._has_room(request, new):
            self.damaged += 1
            return self._complain()
        if new:
            self.taken += 1
            self.expected = (self.expected + 1) % 256
            self._first[sequence] = request
        else:
            self.repetitions += 1
            assert self._first[sequence] == request, "a repetition differs from the first time"
        self._complained = False
        self._waiting.append((request, new))
        return b""

    def execute(self) -> bytes:
        """Execute the oldest request; its answer as it goes on the line."""
        request, new = self._waiting.popleft()
        sequence, kind = request[0], request[1]
        size = int.from_bytes(request[2:4], "little")
        address = int.from_bytes(request[4:8], "little")
        if kind == Request.HELLO and size == 0:
            room = self.receive_bytes.to_bytes(2, "little")
            data = bytes((self.version, 0)) + room + request[4:8]
            return self._answer(sequence, Answer.DONE, data)
        if kind not in (Request.READ, Request.WRITE) or not self._has(address, size):
            return self._answer(sequence, Answer.REFUSED)
        if kind == Request.WRITE:
            if new:
                self.device.write(address, request[8:])
            return self._answer(sequence, Answer.DONE)
        interrupt = self.device.interrupt
        data = self.device.read(address, size) if size else b""
        if not new and (self.device.steady or address < CONTROL_BASE):
            assert data == self._given[sequence], "a repeated read gives something else"
        self._given[sequence] = data
        return self._answer(sequence, Answer.DONE, data, interrupt)

    def feed(self, data: bytes) -> bytes:
        """The answers to what the line carries, at once."""
        answers = b""
        *blocks, self._rest = (self._rest + data).split(b"\0")
        for block in blocks:
            answers += self.take(block)
            while self._waiting:
                answers += self.execute()
        return answers

    def _has_room(self, request: bytes, new: bool) -> bool:
        size = len(request) + 4
        if new:
            used = size + sum(len(x) + 4 for x, first in self._waiting if first)
            assert used <= self.receive_bytes, f"the host has {used} bytes on the way"
        # Repetitions may fill the buffer and cost one more, which is as if it were damaged.
        return size + sum(len(x) + 4 for x, _ in self._waiting) <= self.receive_bytes

    def _has(self, address: int, size: int) -> bool:
        if size == 0:
            return True
        if address >= CONTROL_BASE:
            return address % 4 == size % 4 == 0 and address + size <= CONTROL_BASE + CONTROL_SIZE
        first = address - self.device.memory_base
        return first >= 0 and first + size <= self.device.memory_bytes

    def _complain(self) -> bytes:
        if self._complained:
            return b""
        self._complained = True
        return self._answer(self.expected, Answer.EXPECTED)

    def _answer(
        self, sequence: int, kind: Answer, data: bytes = b"", interrupt: bool | None = None
    ) -> bytes:
        level = self.device.interrupt if interrupt is None else interrupt
        content = bytes((sequence, kind | level << 7)) + data
        return backward_cobs(content + crc32(content).to_bytes(4, "little")) + b"\0"


def _sound(content: bytes) -> bool:
    return crc32(content[:-4]) == int.from_bytes(content[-4:], "little")
