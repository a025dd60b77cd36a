"""When each request, beat and response of the engine's streams is transferred.

Each stage here is a process: a generator that goes on until it needs a time that is not known yet.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Self

from bitlane_rtl.abi import BEATS_PER_BLOCK

from .cycles import Latencies

_REMEMBERED = 1100
"""Handshakes that later ones can wait for: the deepest FIFO has 1,024 beats."""

Process = Iterator[None]
"""A stage of the engine. Each ``next`` lets it go on as far as it can."""


class StreamSpan(NamedTuple):
    """A contiguous segment of a stream, in beats, whose step is valid from ``step`` on.

    ``prime``: its first beat completes no beat of the output. ``flush``: its last one completes
    two. ``begin`` and ``finish``: offsets in their beats of its first byte, and of the byte behind
    its last one.
    """

    step: float
    address: int
    beats: int
    prime: bool = False
    flush: bool = False
    begin: int = 0
    finish: int = 0

    def later(self, cycles: float) -> Self:
        return self._replace(step=self.step + cycles)


@dataclass(slots=True)
class ReadBurst:
    """A burst that a reader requests from ``valid`` on."""

    reader: "ReaderTimes"
    valid: float
    address: int
    length: int
    prime: bool
    flush: bool
    accepted: float = inf
    taken: int = 0
    """Beats of it that the reader has accepted."""


class PortTimes:
    """A read port of the engine, and the readers that share it: `ReadArbiter`."""

    def __init__(self) -> None:
        self.readers: list[ReaderTimes] = []
        self.beat = -inf  # when the last beat was transferred
        self.turn = 0  # the reader that is granted first if both request: `round_robin`
        self._free = -inf

    @classmethod
    def joined(cls, ports: "list[PortTimes]") -> "PortTimes":
        """Return one port for the readers of ``ports``, which a memory arbitrates alike."""
        if len(ports) == 1:
            return ports[0]
        joined = cls()
        joined.readers = [reader for port in ports for reader in port.readers]
        return joined

    def requests(self) -> float:
        """Return when the next burst is requested; ``inf`` while no request has been computed."""
        return max(self._free, min(reader.requests for reader in self.readers))

    @property
    def burst(self) -> ReadBurst:
        """The burst that is granted when the next one is requested."""
        first = self.readers[self.turn]
        reader = first if first.requests <= self.requests() else self.readers[1 - self.turn]
        return reader.waiting[0]

    def accept(self, time: float) -> ReadBurst:
        """Accept the request at ``time``."""
        burst = self.burst
        burst.reader.accept(time)
        if len(self.readers) == 2:
            self.turn = 1 - self.readers.index(burst.reader)
        self._free = time + 1
        return burst

    def shift(self, cycles: float) -> None:
        self.beat += cycles
        self._free += cycles


class ReaderTimes:
    """A `Reader`: its requests, and the arrival of the words of its spans."""

    def __init__(self, times: Latencies, data_bytes: int, port: PortTimes) -> None:
        self._times, self.data_bytes = times, data_bytes
        port.readers.append(self)
        self.spans: deque[StreamSpan] = deque()
        self.steps = 0  # spans, so far
        self.accepted: list[float] = []  # when the splitter accepted spans
        self.waiting: deque[ReadBurst] = deque()  # requests that the port has not accepted
        self.due: deque[ReadBurst] = deque()  # bursts whose beats are due
        self.left: list[float] = []  # when claimed beats of the FIFO were free again
        self.arrived: list[float] = []  # words
        self.consumed = 0  # of these, by runs that have been paired
        self.stalls = 0.0
        self._requested: list[float] = []  # when the port accepted requests
        self._ends: list[float] = []  # when bursts ended
        self._issued = self._last = -inf
        self._claimed = 0  # beats of the FIFO that bursts have claimed
        self._waits = 0  # cycles that the realigner needs for the flush of the last span

    def send(self, span: StreamSpan) -> None:
        """Send a span."""
        self.spans.append(span)
        self.steps += 1

    @property
    def known(self) -> int:
        """The number of times of its stages that have been computed."""
        requests = len(self._requested) + len(self.waiting)
        return self.steps + len(self.accepted) + requests + len(self.left)

    @property
    def requests(self) -> float:
        """When the next request is valid; ``inf`` if that is not known."""
        return self.waiting[0].valid if self.waiting else inf

    def process(self) -> Process:
        """Request the bursts of spans, one after the other."""
        while True:
            while not self.spans:
                yield
            span = self.spans.popleft()
            accepted = max(span.step, self._issued + self._times.spans)
            self.accepted.append(accepted)
            block, left = span.address // self.data_bytes, span.beats
            while left:
                while (issued := self._issues()) is None:
                    yield
                length = min(left, BEATS_PER_BLOCK - block % BEATS_PER_BLOCK)
                flush = length == left and span.flush
                prime = span.prime and left == span.beats
                self._issued = issued
                self._claimed += length + flush
                address = block * self.data_bytes
                self.waiting.append(ReadBurst(self, issued + 1, address, length, prime, flush))
                block, left = block + length, left - length

    def _issues(self) -> float | None:
        """Return when the next request enters its buffer, or None if that is not known."""
        number, times = len(self._requested) + len(self.waiting), self._times
        buffered, full = number - times.slices, self._claimed - times.fifo
        opened = number - times.bursts
        if max(buffered - len(self._requested), opened - len(self._ends)) >= 0:
            return None
        if full > len(self.left):
            return None
        issued = max(self.accepted[-1] + 1, self._issued + 1)
        if buffered >= 0:
            issued = max(issued, self._requested[buffered] + 1)
        if full > 0:
            issued = max(issued, self.left[full - 1] + 2)
        if opened >= 0:
            issued = max(issued, self._ends[opened] + (1 if times.bursts == 2 else 2))
        if times.bursts > 2 and opened >= -1 and issued > self._issued + 1:
            # One burst may be requested before the number of open ones shows the one before.
            if opened + 1 == len(self._ends):
                return None
            issued = max(issued, self._ends[opened + 1] + 2)
        return issued

    def accept(self, time: float) -> None:
        """Note that the port has accepted the next request."""
        burst = self.waiting.popleft()
        burst.accepted = time
        self._requested.append(time)
        self.due.append(burst)

    def take(self, valid: float, burst: ReadBurst) -> float:
        """Take a beat that is valid from ``valid`` on; return when."""
        first, final = not burst.taken, burst.taken == burst.length - 1
        waits = self._waits if first and not burst.prime else 0
        arrives = max(valid, self._last + 1 + waits)
        before = max(self._last, burst.accepted) if first else self._last
        if before < inf:
            self.stalls += max(0.0, arrives - before - 1)
        self._last = arrives
        self.arrived.append(arrives)
        burst.taken += 1
        if first and burst.prime:
            # It fills no beat of the FIFO, which is counted when it has arrived.
            insort(self.left, arrives)
        if final:
            self._ends.append(arrives)
            self._waits = int(burst.flush and not self._times.dual)
            self.due.popleft()
        return arrives

    def shift(self, cycles: float) -> None:
        """Let all handshakes so far be ``cycles`` later."""
        self._issued += cycles
        self._last += cycles
        for burst in (*self.waiting, *self.due):
            burst.valid += cycles
            burst.accepted += cycles
        self.spans = deque(span.later(cycles) for span in self.spans)
        for record in (self.left, self.accepted, self.arrived, self._ends, self._requested):
            remembered(record, cycles)


@dataclass(slots=True)
class WriteBurst:
    """A burst that the splitter of a writer sends at ``cut``: the numbers of its beats.

    ``partial``: beats from its first one of which only some bytes are written to the last such one.
    """

    cut: float
    address: int
    first: int
    last: int
    partial: int


class WriterTimes:
    """A `Writer` and its address generator: when it sends beats, and when they are answered."""

    def __init__(self, times: Latencies, data_bytes: int) -> None:
        self._times, self.data_bytes = times, data_bytes
        self.spans: list[StreamSpan] = []
        self.accepted: list[float] = []  # when spans entered the FIFO `spans`
        self.bursts: list[WriteBurst] = []
        self.sent: list[float] = []  # when beats were sent
        self.entered: list[float] = []  # when the port accepted beats
        self.requested: list[float] = []  # and requests
        self.answers: list[float] = []
        self.stalls = 0.0
        self._split: list[float] = []  # when the splitter accepted spans
        self._cut = -inf  # when it sent its last burst
        self._sending = self._entering = 0  # bursts

    @property
    def steps(self) -> int:
        """Spans, so far."""
        return len(self.spans)

    @property
    def known(self) -> int:
        """The number of times of its stages that have been computed."""
        spans = len(self.spans) + len(self.accepted) + len(self._split)
        return spans + len(self.bursts) + len(self.sent)

    @property
    def answered(self) -> float:
        """When the last response arrived."""
        return self.answers[-1] if self.answers else -inf

    @property
    def entering(self) -> WriteBurst:
        """The burst of the next beat that the port accepts."""
        return self.bursts[self._entering]

    @property
    def bursts_entered(self) -> int:
        """Bursts whose last beat the port has accepted."""
        return self._entering

    def spans_process(self) -> Process:
        """Enter spans into the FIFO `spans`."""
        while True:
            number = len(self.accepted)
            before = number - self._times.ahead
            while number == len(self.spans) or before >= len(self._split):
                yield
            step = self.spans[number].step
            if before >= 0:
                step = max(step, self._split[before] + 1)
            if number:
                step = max(step, self.accepted[-1] + 1)
            self.accepted.append(step)

    def bursts_process(self) -> Process:
        """Cut spans into bursts."""
        size, first = self.data_bytes, 0
        while True:
            number = len(self._split)
            while number == len(self.accepted):
                yield
            span = self.spans[number]
            self._cut = max(self.accepted[number] + 2, self._cut)
            self._split.append(self._cut)
            block, left = span.address // size, span.beats
            while left:
                before = len(self.bursts) - self._times.slices
                while before >= 0 and len(self.sent) <= self.bursts[before].last:
                    yield
                ended = self.sent[self.bursts[before].last] + 1 if before >= 0 else -inf
                self._cut = max(self._cut + 1, ended)
                length = min(left, BEATS_PER_BLOCK - block % BEATS_PER_BLOCK)
                begins = left == span.beats and span.begin > 0
                ends = left == length and span.finish < size
                partial = length if begins and ends else int(begins or ends)
                last = first + length - 1
                self.bursts.append(WriteBurst(self._cut, block * size, first, last, partial))
                first, block, left = last + 1, block + length, left - length

    @property
    def answering(self) -> int:
        """Bursts whose last beat was sent."""
        return self._sending

    def ready(self) -> bool:
        """Return whether all times that the next beat waits for, but its data's, are computed."""
        number, at, times = len(self.sent), self._sending, self._times
        if at == len(self.bursts) or len(self.entered) < number - 1:
            return False
        return self.bursts[at].first < number or (
            len(self.requested) > at - times.slices and len(self.answers) > at - times.bursts
        )

    def send(self, valid: float) -> float:
        """Send a beat that is valid from ``valid`` on; return when."""
        number, at, times = len(self.sent), self._sending, self._times
        burst, sent = self.bursts[at], valid
        if number:
            sent = max(sent, self.sent[-1] + 1)
        if number > 1:
            # A `SkidBuffer` holds two beats.
            sent = max(sent, self.entered[number - 2] + 1)
        if number == burst.first:
            sent = max(sent, burst.cut + 1)
            if at >= times.slices:
                sent = max(sent, self.requested[at - times.slices] + 1)
            if at >= times.bursts:
                sent = max(sent, self.answers[at - times.bursts] + 1)
        self.sent.append(sent)
        self._sending += number == burst.last
        return sent

    def enter(self, time: float) -> None:
        """Note that the port has accepted a beat."""
        number = len(self.entered)
        valid = self.sent[number] + 1
        if number:
            valid = max(valid, self.entered[-1] + 1)
        self.stalls += time - valid
        self.entered.append(time)
        self._entering += number == self.entering.last

    def respond(self, time: float) -> None:
        """Note the response of a burst."""
        self.answers.append(max(time, self.answered + 1))

    def shift(self, cycles: float) -> None:
        """Let all handshakes so far be ``cycles`` later."""
        self._cut += cycles
        first = len(self.accepted)
        self.spans[first:] = [each.later(cycles) for each in self.spans[first:]]
        for burst in self.bursts[-_REMEMBERED:]:
            burst.cut += cycles
        for record in (self.accepted, self._split):
            remembered(record, cycles)
        for record in (self.sent, self.entered, self.requested, self.answers):
            remembered(record, cycles)


def remembered(record: list[float], cycles: float) -> None:
    """Let the handshakes of ``record`` that others can wait for be ``cycles`` later."""
    first = max(0, len(record) - _REMEMBERED)
    record[first:] = [time + cycles for time in record[first:]]
