"""The line between host and board, in this process, with delays, noise and faults.

`ModelPort` is the port of a serial line, `ModelSocket` the socket of a network. Time is simulated:
it advances while the host waits, and is exact to the byte.
"""

import os
import tty
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EBADF
from itertools import groupby
from math import inf, log
from random import Random
from select import select
from threading import Event, Thread
from typing import Any, Self

import numpy as np

from bitlane.links import Batch, RemoteLink, SerialLink, UdpLink
from bitlane_rtl.abi import CONTROL_BASE
from support.board.model import BoardModel
from support.ethernet.datagrams import frames_in
from support.host.model_link import ModelLink
from support.host.network import ServedRules
from support.host.replies import packets_of
from support.serial.frames import DELIMITER, Asked, asked, request_in

BYTE_SECONDS = 10 / 3_000_000

Fault = Callable[[list[bytes]], list[bytes]]
"""Changes the frames, or the datagrams, that pass at a time."""


class Noise:
    """Noise that drops, doubles, inserts and flips bytes, each at a quarter of ``rate``."""

    def __init__(self, rate: float, seed: int) -> None:
        self._random = Random(seed)
        self._rate = rate
        self.hits = 0
        self._gap = self._next_gap()

    def _next_gap(self) -> int:
        """Return the number of bytes before the next one that is hit."""
        if self._rate == 0:
            return 1 << 60
        return int(log(1 - self._random.random()) / log(1 - self._rate))

    def __call__(self, data: bytes) -> bytes:
        result = bytearray()
        start = 0
        while start + self._gap < len(data):
            place = start + self._gap
            result += data[start:place]
            byte = data[place]
            result += (
                b"",
                bytes((byte, byte)),
                bytes((byte, self._random.randrange(256))),
                bytes((byte ^ 1 << self._random.randrange(8),)),
            )[self._random.randrange(4)]
            self.hits += 1
            start = place + 1
            self._gap = self._next_gap()
        self._gap -= len(data) - start
        return bytes(result + data[start:])


class ModelLine(ABC):
    """A line with ``board`` behind it, as a link uses it.

    ``up`` and ``down`` change what passes to and from the board. ``latency`` is the computer's
    delay in each direction in seconds, ``byte_seconds`` the time of one byte.
    """

    up: Any
    down: Any

    def __init__(self, board: Any, latency: float, byte_seconds: float) -> None:
        self.board = board
        self.latency = latency
        self.byte_seconds = byte_seconds
        self.now = 0.0
        self.up_bytes = 0
        """Bytes that the host has sent."""
        self.down_bytes = 0
        """Bytes that the board has sent."""
        self.broken = False
        """The cable is pulled: reads and writes raise."""
        self.mute = False
        """If set, what the board sends is lost."""
        self.closed = False
        self.break_after: int | None = None
        """Number of sent bytes after which the cable is pulled, or None."""
        self.countdown = 0
        """At which access from now on the host is interrupted by Control-C; 0: at none."""
        self.talk: Callable[[], bytes] | None = None
        """What a peer says all the time in place of the board, if there is one."""
        self.pause = 0.002
        """Seconds between its words."""
        self._spoken = 0.0
        self._arrivals: deque[tuple[float, bytes]] = deque()
        self._deliveries: deque[tuple[float, bytes]] = deque()
        self._up_free = 0.0
        self._down_free = 0.0
        self._taken_at = 0.0

    @abstractmethod
    def link(self, timeout: float = 10.0) -> RemoteLink:
        """Open a link over this line, in its time."""

    @property
    @abstractmethod
    def requests(self) -> list[Asked]:
        """The requests that the host has sent, repetitions included."""

    @abstractmethod
    def hit(self, way: str, fault: Fault) -> None:
        """Let ``fault`` change all frames, or datagrams, that pass on the way "up" or "down"."""

    def again(self, seconds: float = 0.0) -> Self:
        """Return another line to the same board, ``seconds`` later."""
        make: Any = type(self)
        line: Self = make(self.board)
        line.now = self.now + seconds
        return line

    def clock(self) -> float:
        """Return the simulated time in seconds."""
        return self.now

    def close(self) -> None:
        self.closed = True

    def _expect_alive(self) -> None:
        if self.broken:
            raise OSError(5, "Input/output error")

    def _count(self, size: int) -> None:
        """Count bytes that the host sends."""
        self._expect_alive()
        self.up_bytes += size
        if self.break_after is not None and self.up_bytes >= self.break_after:
            self.broken = True

    def _put(self, size: int, unit: bytes | None) -> None:
        """Let a frame or a datagram, or a part of one, take the line for its ``size``."""
        self._up_free = max(self.now + self.latency, self._up_free) + size * self.byte_seconds
        if unit is not None:
            self._arrivals.append((self._up_free, unit))

    def _wait(self, seconds: float) -> bool:
        """Let up to ``seconds`` pass until something has arrived; return whether it has."""
        self.countdown -= 1
        if self.countdown == 0:
            raise KeyboardInterrupt
        deadline = self.now + seconds
        while not self._here():
            time = min(self._next_event(), self._deliveries[0][0] if self._deliveries else inf)
            if time > deadline:
                self.now = deadline
                return False
            self.now = max(self.now, time)
        return True

    def _here(self) -> list[bytes]:
        """Return what has arrived at the host."""
        self._expect_alive()
        self._advance(self.now)
        return [data for time, data in self._deliveries if time <= self.now]

    # --- the board --------------------------------------------------------------------------------

    def _next_event(self) -> float:
        if self.talk:
            return self._spoken + self.pause
        execution = max(self._down_free, self._taken_at) if self.board.busy else inf
        return min(execution, self._arrivals[0][0] if self._arrivals else inf)

    def _advance(self, until: float) -> None:
        while (time := self._next_event()) <= until:
            if self.talk:
                self._spoken = max(time, self.now)
                assert self._spoken < 100, "the host listens for ever"
                self._answer(time, [self.talk()])
            elif self._arrivals and self._arrivals[0][0] <= time:
                _, unit = self._arrivals.popleft()
                if not self.board.busy:
                    self._taken_at = time
                self._answer(time, self.board.take(unit))
            else:
                self._answer(time, self.board.execute())

    def _answer(self, time: float, units: list[bytes]) -> None:
        for unit in units:
            self.down_bytes += len(unit)
            self._down_free = max(time, self._down_free) + len(unit) * self.byte_seconds
            for passed in self._passed_down(unit):
                if passed and not self.mute:
                    self._deliveries.append((self._down_free + self.latency, passed))

    @abstractmethod
    def _passed_down(self, unit: bytes) -> Sequence[bytes]:
        """Return what arrives of a frame or datagram of the board."""


class ModelPort(ModelLine):
    """A serial port. ``up`` and ``down`` damage the bytes to and from the board."""

    def __init__(
        self,
        board: BoardModel | None = None,
        *,
        up: Noise | None = None,
        down: Noise | None = None,
        latency: float = 0.0005,
        byte_seconds: float = BYTE_SECONDS,
    ) -> None:
        super().__init__(board or BoardModel(), latency, byte_seconds)
        self.timeout: float | None = None
        self.up = up or Noise(0, 0)
        self.down = down or Noise(0, 0)
        self.sent = bytearray()
        """The bytes that the host has sent, before noise."""
        self._rest = b""

    def link(self, timeout: float = 10.0) -> SerialLink:
        return SerialLink(self, description="model board", timeout=timeout, clock=self.clock)

    @property
    def requests(self) -> list[Asked]:
        found = [request_in(block) for block in bytes(self.sent).split(DELIMITER) if block]
        return [asked(each) for each in found if each]

    def hit(self, way: str, fault: Fault) -> None:
        def apply(data: bytes) -> bytes:
            *frames, rest = data.split(DELIMITER)
            return b"".join([*fault([each + DELIMITER for each in frames]), rest])

        setattr(self, way, apply)

    def _expect_alive(self) -> None:
        assert not self.closed, "the port is used after it was closed"
        super()._expect_alive()

    # --- pyserial's interface ---------------------------------------------------------------------

    @property
    def in_waiting(self) -> int:
        return sum(map(len, self._here()))

    def read(self, size: int, /) -> bytes:
        assert self.timeout is not None
        assert size == max(1, self.in_waiting), "read asks for all that waits, and at least a byte"
        if not self._wait(self.timeout):
            return b""
        result = b""
        while len(result) < size and self._deliveries and self._deliveries[0][0] <= self.now:
            time, data = self._deliveries.popleft()
            room = size - len(result)
            result += data[:room]
            if data[room:]:
                self._deliveries.appendleft((time, data[room:]))
        return result

    def write(self, data: bytes, /) -> int:
        self._count(len(data))
        self.sent += data
        *blocks, rest = self.up(data).split(DELIMITER)
        for block in blocks:
            self._put(len(block) + 1, self._rest + block)
            self._rest = b""
        self._rest += rest
        self._put(len(rest), None)
        return len(data)

    def _passed_down(self, unit: bytes) -> Sequence[bytes]:
        return [self.down(unit)]


class ModelSocket(ModelLine):
    """A socket of a network. ``up`` and ``down`` change the datagrams to and from the board.

    The host takes ``turn`` seconds for each call, which returns all that has arrived.
    """

    description = "model"
    turn = 1e-4

    def __init__(
        self,
        board: ServedRules | None = None,
        *,
        up: Fault = list,
        down: Fault = list,
        latency: float = 1e-5,
        byte_seconds: float = 8e-9,
    ) -> None:
        super().__init__(board or ServedRules(), latency, byte_seconds)
        self.board.clock = self.clock
        self.up, self.down = up, down
        self.sent: list[bytes] = []
        """The datagrams that the host has sent."""

    def link(self, timeout: float = 10.0, **options: Any) -> UdpLink:
        given: Any = self
        return UdpLink(
            given, description="model board", timeout=timeout, clock=self.clock, **options
        )

    @property
    def requests(self) -> list[Asked]:
        return [asked(each) for packet in self.sent for each in frames_in(packet) or ()]

    def hit(self, way: str, fault: Fault) -> None:
        setattr(self, way, fault)

    def _expect_alive(self) -> None:
        # A link that is dropped sends its farewell to a closed socket, too.
        if self.closed:
            raise OSError(EBADF, "Bad file descriptor")
        super()._expect_alive()

    # --- a link's socket --------------------------------------------------------------------------

    def send(self, batches: Sequence[Batch]) -> None:
        packets = packets_of(batches)
        self.sent += packets
        for packet in packets:
            self._count(len(packet))
        for packet in self.up(packets):
            self._put(len(packet), packet)

    def receive(self, seconds: float) -> list[Batch]:
        if not self._wait(max(0.0, seconds)):
            return []
        self.now += self.turn
        arrived = self._here()
        for _ in arrived:
            self._deliveries.popleft()
        return [Batch(b"".join(group), size) for size, group in groupby(arrived, len)]

    def _passed_down(self, unit: bytes) -> Sequence[bytes]:
        passed: list[bytes] = self.down([unit])
        return passed


def connected(port: ModelPort, timeout: float = 10.0) -> SerialLink:
    """Return a link over ``port``, in the port's time."""
    return port.link(timeout)


class Terminal:
    """The board's side of a pseudo-terminal, served by a thread.

    ``serve`` maps the bytes that the host sends to the bytes of the answer.
    """

    def __init__(self, serve: Callable[[bytes], bytes], down: Noise) -> None:
        self._serve = serve
        self._down = down
        self._end = Event()
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        # A host that reads no answers does not keep the thread from its end.
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self.error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                if select([self._master], [], [], 0.01)[0]:
                    answers = self._down(self._serve(os.read(self._master, 4096)))
                    while answers and not self._end.is_set():
                        if select([], [self._master], [], 0.01)[1]:
                            answers = answers[os.write(self._master, answers) :]
        except BaseException as error:  # noqa: BLE001, the test's own thread raises it
            self.error = error

    def pull(self) -> None:
        """Pull the cable: close both ends. May be called again."""
        if not self._end.is_set():
            self._end.set()
            self._thread.join()
            with suppress(OSError):
                os.close(self._slave)
            with suppress(OSError):
                os.close(self._master)


@contextmanager
def terminal(serve: Callable[[bytes], bytes], down: Noise | None = None) -> Iterator[Terminal]:
    """Yield a terminal whose cable is pulled at the end; raise the errors of ``serve``."""
    result = Terminal(serve, down or Noise(0, 0))
    try:
        yield result
    finally:
        result.pull()
    if result.error is not None:
        raise result.error


class DriverDevice:
    """A `ModelLink`, as the device behind a board's link.

    An unsupported access to the registers is an error of the driver, and fails the test.
    """

    steady = False

    def __init__(self, make: Callable[..., ModelLink] = ModelLink, **options: Any) -> None:
        self.link = make(**options)
        self.memory_base = self.link.memory_base
        self.memory_bytes = self.link.memory_bytes
        self.writes: list[tuple[int, int]] = []
        """Address and size of every write to the control window."""

    @property
    def interrupt(self) -> bool:
        return self.link.interrupt

    def read(self, address: int, size: int) -> bytes:
        return np.asarray(self.link.read(address, size)).tobytes()

    def write(self, address: int, data: bytes) -> None:
        if address >= CONTROL_BASE:
            self.writes.append((address, len(data)))
        self.link.write(address, data)
