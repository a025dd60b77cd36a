"""When each request, beat and response of the engine's streams is transferred."""

from bisect import insort
from math import inf

from bitlane_rtl.abi import BEATS_PER_BLOCK

from .cycles import Latencies, Memory

_REMEMBERED = 1100
"""Handshakes that later ones can wait for: the deepest FIFO has 1,024 beats."""


class PortTimes:
    """A read port, and the readers that share it: when it transferred its last request and beat."""

    def __init__(self) -> None:
        self.request = self.beat = -inf
        self.readers: list[ReaderTimes] = []
        self.turn = 0  # the reader that is granted first if both request: `round_robin`

    def grant(self, reader: "ReaderTimes") -> None:
        """Accept the next request in the order of time, while ``reader`` waits for a word."""
        if len(self.readers) == 2:
            first = self.readers[self.turn]
            second = self.readers[1 - self.turn]
            reader = first if first.requests() <= second.requests() else second
            self.turn = 1 - self.readers.index(reader)
        reader.burst()

    def shift(self, cycles: float) -> None:
        self.request += cycles
        self.beat += cycles


class ReaderTimes:
    """A `Reader`: the arrival of the words of its spans."""

    def __init__(self, times: Latencies, memory: Memory, data_bytes: int, port: PortTimes) -> None:
        self._times, self._memory, self._data_bytes = times, memory, data_bytes
        self.port = port
        port.readers.append(self)
        self.left: list[float] = []  # when claimed beats of the FIFO were free again
        self.accepted = [-inf, -inf]  # when the splitter accepted the last two spans
        self.arrivals: list[float] = []  # of the words of the present span
        self.stalls = 0.0
        self._ends: list[float] = []  # when bursts ended
        self._requested = [-inf, -inf]  # when the port accepted the last two requests
        self._issued = self._last = -inf
        self._claimed = 0  # beats of the FIFO that bursts have claimed
        self._waits = 0  # cycles that the realigner needs for the flush of the last span
        self._pending = self._position = 0
        self._prime = self._flush = False

    def begin(self, step: float, address: int, words: int, prime: bool, flush: bool) -> None:
        """Accept a span of ``words``, whose step is valid from ``step`` on."""
        self.accepted = [self.accepted[1], max(step, self._issued + self._times.spans)]
        self.arrivals = []
        self._pending = words
        self._position = address // self._data_bytes % BEATS_PER_BLOCK
        self._prime, self._flush = prime, flush

    def word(self, number: int) -> float:
        """Return when a word of the span arrives."""
        while len(self.arrivals) <= number:
            self.port.grant(self)
        return self.arrivals[number]

    def requests(self) -> float:
        """Return when the port accepts the next burst of the span, unless it accepts another one.

        That is never without one, or if it waits for an event behind those that are known.
        """
        if not self._pending or self._claimed - self._times.fifo > len(self.left):
            return inf
        return max(self._issues() + 1, self.port.request + 1)

    def _issues(self) -> float:
        """Return when the next burst enters the buffer of requests."""
        times = self._times
        issued = max(self.accepted[1] + 1, self._issued + 1, self._requested[0] + 1)
        full = self._claimed - times.fifo
        if full > 0:
            issued = max(issued, self.left[full - 1] + 2)
        open_bursts = len(self._ends) - times.bursts
        if open_bursts >= 0:
            issued = max(issued, self._ends[open_bursts] + 2)
        if open_bursts >= -1 and issued > self._issued + 1:
            # One burst may be requested before the number of open ones shows the one before.
            issued = max(issued, self._ends[open_bursts + 1] + 2)
        return issued

    def burst(self) -> None:
        """Request the next burst of the span."""
        times = self._times
        length = min(self._pending, BEATS_PER_BLOCK - self._position)
        first, final = not self.arrivals, length == self._pending
        issued = self._issues()
        request = max(issued + 1, self.port.request + 1)
        arrives = max(
            request + 1 + self._memory.latency,
            self.port.beat + 1,
            self._last + 1 + (0 if first and self._prime else self._waits),
        )
        self.stalls += max(0.0, arrives - max(self._last, request) - 1)
        self._waits = int(final and self._flush and not times.dual)
        self.arrivals += [arrives + beat for beat in range(length)]
        self._issued, self.port.request = issued, request
        self._requested = [self._requested[1], request]
        self._last = self.port.beat = arrives + length - 1
        self._ends.append(self._last)
        self._claimed += length + (final and self._flush)
        if first and self._prime:
            # It fills no beat of the FIFO, which is counted when it has arrived.
            insort(self.left, arrives)
        self._pending -= length
        self._position = 0

    def shift(self, cycles: float) -> None:
        """Let all handshakes so far be ``cycles`` later."""
        self._issued += cycles
        self._last += cycles
        for record in (self.left, self.accepted, self.arrivals, self._ends, self._requested):
            shift_times(record, cycles)


class WriterTimes:
    """A `Writer` and its address generator: when it sends beats, and when they are answered."""

    def __init__(self, times: Latencies, memory: Memory, data_bytes: int) -> None:
        self._times, self._memory, self._data_bytes = times, memory, data_bytes
        self.entered: list[float] = []  # when spans entered the FIFO `spans`
        self.sent = [-inf, -inf]  # when the last two beats were sent
        self.answered = -inf
        self._split: list[float] = []  # when the splitter accepted spans
        self._cut = -inf  # when it sent its last burst
        self._ended = [-inf, -inf]  # when the last two bursts ended
        self._answers: list[float] = []
        self._left = self._pending = self._position = 0
        self._begins = 0.0

    def enter(self, step: float) -> None:
        """Enter a span, whose step is valid from ``step`` on, into the FIFO `spans`."""
        before = len(self.entered) - self._times.ahead
        # Spans of the same beat of results are followed later, and do not wait for each other.
        if 0 <= before < len(self._split):
            step = max(step, self._split[before] + 1)
        self.entered.append(max(step, self.entered[-1] + 1) if self.entered else step)

    def span(self, address: int, words: int) -> None:
        """Begin the next span."""
        self._split.append(max(self.entered[len(self._split)] + 2, self._cut))
        self._pending = words
        self._position = address // self._data_bytes % BEATS_PER_BLOCK
        self._cut = max(self._cut, self._split[-1])

    def send(self, valid: float) -> float:
        """Send a beat that is valid from ``valid`` on; return when."""
        sent = max(valid, self.sent[1] + 1)
        if not self._left:
            self._left = min(self._pending, BEATS_PER_BLOCK - self._position)
            self._pending -= self._left
            self._position = 0
            # A `SkidBuffer` holds two bursts.
            self._cut = max(self._cut + 1, self._ended[0] + 1)
            sent = max(sent, self._cut + 1)
            open_bursts = len(self._answers) - self._times.bursts
            if open_bursts >= 0:
                sent = max(sent, self._answers[open_bursts] + 1)
        self.sent = [self.sent[1], sent]
        self._left -= 1
        if not self._left:
            self._ended = [self._ended[1], sent]
            # `beats` takes a cycle, and the response one more than the memory's latency.
            self.answered = max(sent + 2 + self._memory.latency, self.answered + 1)
            self._answers.append(self.answered)
        return sent

    def shift(self, cycles: float) -> None:
        """Let all handshakes so far be ``cycles`` later."""
        self.answered += cycles
        self._cut += cycles
        for record in (self.entered, self.sent, self._split, self._ended, self._answers):
            shift_times(record, cycles)


def shift_times(record: list[float], cycles: float) -> None:
    first = max(0, len(record) - _REMEMBERED)
    record[first:] = [time + cycles for time in record[first:]]
