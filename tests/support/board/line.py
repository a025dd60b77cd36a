"""The line between host and board, as a port in this process, with delays, noise and faults.

Time is simulated: it advances while the host waits, and is exact to the byte.
"""

from collections import deque
from math import inf, log
from random import Random

from bitlane.links.serial_link import SerialLink
from support.board.model import BoardModel

BYTE_SECONDS = 10 / 3_000_000


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


class ModelPort:
    """A serial port with ``board`` behind it, as the host link uses it.

    ``up`` and ``down`` damage the bytes to and from the board. ``latency`` is the computer's delay
    in each direction in seconds, ``byte_seconds`` the time of one byte.
    """

    def __init__(
        self,
        board: BoardModel,
        *,
        up: Noise | None = None,
        down: Noise | None = None,
        latency: float = 0.0005,
        byte_seconds: float = BYTE_SECONDS,
    ) -> None:
        self.board = board
        self.timeout: float | None = None
        self.up = up or Noise(0, 0)
        self.down = down or Noise(0, 0)
        self.latency = latency
        self.byte_seconds = byte_seconds
        self.now = 0.0
        self.up_bytes = 0
        """Bytes that the host has sent."""
        self.down_bytes = 0
        """Bytes that the board has sent."""
        self.sent = bytearray()
        """The bytes that the host has sent, before noise."""
        self.broken = False
        """The cable is pulled: reads and writes raise."""
        self.mute = False
        """If set, the bytes that the board sends are lost."""
        self.closed = False
        self.break_after: int | None = None
        """Number of sent bytes after which the cable is pulled, or None."""
        self._rest = b""
        self._arrivals: deque[tuple[float, bytes]] = deque()
        self._deliveries: deque[tuple[float, bytes]] = deque()
        self._up_free = 0.0
        self._down_free = 0.0
        self._taken_at = 0.0

    def clock(self) -> float:
        """Return the simulated time in seconds."""
        return self.now

    # --- pyserial's interface ---------------------------------------------------------------------

    @property
    def in_waiting(self) -> int:
        self._expect_alive()
        self._advance(self.now)
        return sum(len(data) for time, data in self._deliveries if time <= self.now)

    def read(self, size: int, /) -> bytes:
        assert self.timeout is not None
        deadline = self.now + self.timeout
        while not self.in_waiting:
            time = min(self._next_event(), self._deliveries[0][0] if self._deliveries else inf)
            if time > deadline:
                self.now = deadline
                return b""
            self.now = max(self.now, time)
        result = b""
        while len(result) < size and self._deliveries and self._deliveries[0][0] <= self.now:
            time, data = self._deliveries.popleft()
            room = size - len(result)
            result += data[:room]
            if data[room:]:
                self._deliveries.appendleft((time, data[room:]))
        return result

    def write(self, data: bytes, /) -> int:
        self._expect_alive()
        self.up_bytes += len(data)
        self.sent += data
        noisy = self.up(data)
        time = max(self.now + self.latency, self._up_free)
        *blocks, rest = noisy.split(b"\0")
        for block in blocks:
            time += (len(block) + 1) * self.byte_seconds
            self._arrivals.append((time, self._rest + block))
            self._rest = b""
        self._rest += rest
        self._up_free = time + len(rest) * self.byte_seconds
        if self.break_after is not None and self.up_bytes >= self.break_after:
            self.broken = True
        return len(data)

    def close(self) -> None:
        self.closed = True

    def _expect_alive(self) -> None:
        assert not self.closed, "the port is used after it was closed"
        if self.broken:
            raise OSError(5, "Input/output error")

    # --- the board --------------------------------------------------------------------------------

    def _next_event(self) -> float:
        execution = max(self._down_free, self._taken_at) if self.board.busy else inf
        return min(execution, self._arrivals[0][0] if self._arrivals else inf)

    def _advance(self, until: float) -> None:
        while (time := self._next_event()) <= until:
            if self._arrivals and self._arrivals[0][0] <= time:
                _, block = self._arrivals.popleft()
                if not self.board.busy:
                    self._taken_at = time
                self._answer(time, self.board.take(block))
            else:
                self._answer(time, self.board.execute())

    def _answer(self, time: float, data: bytes) -> None:
        if not data:
            return
        self.down_bytes += len(data)
        self._down_free = max(time, self._down_free) + len(data) * self.byte_seconds
        noisy = self.down(data)
        if noisy and not self.mute:
            self._deliveries.append((self._down_free + self.latency, noisy))


def connected(port: ModelPort, timeout: float = 10.0) -> SerialLink:
    """Return a link over ``port``, in the port's time."""
    return SerialLink(port, description="model board", timeout=timeout, clock=port.clock)
