"""The timeline of an engine: when each handshake of queued commands takes place, and the counters.

A handshake takes place at the latest of the times that it waits for; `cycles` has the terms. A long
run is followed for some hundred beats, and many runs for some; the rest take the same rate.
"""

from math import inf

from bitlane_rtl.abi import BEATS_PER_BLOCK, Mode, Op
from bitlane_rtl.configuration import Configuration

from .cycles import CommandShape, CounterValues, Latencies, Memory, Stream, search_cycles

_BEATS = 400
"""Beats of a run that are followed: several times what the FIFO of a reader holds."""

_FOLLOWED = 2048
"""Beats of a command that are followed, before the runs behind them are extrapolated."""

_REMEMBERED = 1100
"""Handshakes that later ones can wait for: the deepest FIFO has 1,024 beats."""


class _Port:
    """A read port: when it transferred its last request and beat."""

    def __init__(self) -> None:
        self.request = self.beat = -inf

    def shift(self, cycles: float) -> None:
        self.request += cycles
        self.beat += cycles


class _Reader:
    """A `Reader`: the arrival of the words of its spans."""

    def __init__(self, times: Latencies, memory: Memory, data_bytes: int, port: _Port) -> None:
        self._times, self._memory, self._data_bytes = times, memory, data_bytes
        self._port = port
        self.left: list[float] = []  # when beats left the FIFO
        self.accepted = [-inf, -inf]  # when the splitter accepted the last two spans
        self.arrivals: list[float] = []  # of the words of the present span
        self.stalls = 0.0
        self._ends: list[float] = []  # when bursts ended
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
            self._burst()
        return self.arrivals[number]

    def _burst(self) -> None:
        """Request the next burst of the span."""
        times = self._times
        length = min(self._pending, BEATS_PER_BLOCK - self._position)
        first, final = not self.arrivals, length == self._pending
        issued = max(self.accepted[1] + 1, self._issued + 1)
        full = self._claimed - times.fifo
        if full > 0:
            issued = max(issued, self.left[full - 1] + 2)
        open_bursts = len(self._ends) - times.bursts
        if open_bursts >= 0:
            issued = max(issued, self._ends[open_bursts] + 2)
        if open_bursts >= -1 and issued > self._issued + 1:
            # One burst may be requested before the number of open ones shows the one before.
            issued = max(issued, self._ends[open_bursts + 1] + 2)
        request = max(issued + 1, self._port.request + 1)
        arrives = max(
            request + 1 + self._memory.latency,
            self._port.beat + 1 + (0 if first and self._prime else self._waits),
        )
        self.stalls += max(0.0, arrives - max(self._last, request) - 1)
        self._waits = int(final and self._flush and not times.dual)
        self.arrivals += [arrives + beat for beat in range(length)]
        self._issued, self._port.request = issued, request
        self._last = self._port.beat = arrives + length - 1
        self._ends.append(self._last)
        self._claimed += length - (first and self._prime) + (final and self._flush)
        self._pending -= length
        self._position = 0

    def shift(self, cycles: float) -> None:
        """Let all handshakes so far be ``cycles`` later."""
        self._issued += cycles
        self._last += cycles
        for record in (self.left, self.accepted, self.arrivals, self._ends):
            _shift(record, cycles)


class _Writer:
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
            _shift(record, cycles)


def _shift(record: list[float], cycles: float) -> None:
    first = max(0, len(record) - _REMEMBERED)
    record[first:] = [time + cycles for time in record[first:]]


class Timeline:
    """An engine that has been idle. Times are cycles since its first DOORBELL was written."""

    def __init__(self, circuit: Configuration, memory: Memory) -> None:
        self._circuit = circuit
        self.times = times = Latencies.of(circuit)
        self.data_bytes = circuit.data_bytes
        port = _Port()
        shared = _Port() if circuit.two_ports else port
        self._ports = {port, shared}
        self.a = _Reader(times, memory, circuit.data_bytes, port)
        self.b = _Reader(times, memory, circuit.data_bytes, shared)
        self.y = _Writer(times, memory, circuit.data_bytes)
        self._paired = -inf  # when the pairing sent its last beat
        self._results: list[float] = []  # when results left their FIFO
        self._repacked = -inf
        self.written = [-inf, -inf]  # when the last two beats of `Repack` were sent to their end
        self._step = -inf  # when the loop nest sent its last step
        self.stepped = -inf  # when that was valid at the streams
        self._start = -inf  # when the last command started
        self._walked = -inf  # when the last step of all commands was accepted
        self.started: list[float] = []
        self.retired: list[float] = []  # when commands did
        self.counts = CounterValues()  # beats alone

    def command(self, shape: CommandShape, submitted: float, written: float = -inf) -> None:
        """Follow a command that is submitted at ``submitted``.

        ``written``: when the host wrote to the ring at last, if the record was fetched after that.
        """
        groups = -(-shape.words // self.times.fetch)
        taken = self._start + groups
        loop_groups = groups - 8 // self.times.fetch
        if loop_groups > 0:
            # The loop registers are in use until the command before has walked.
            taken = max(taken, self._walked + 1 + loop_groups)
        fetched = written + self.times.fetched + groups
        start = max(submitted, fetched, taken + 2, self._walked + 2)
        if shape.fence and self.retired:
            start = max(start, self.retired[-1] + 2)
        self._start = start
        self.started.append(start)
        self._step = start + (0 if shape.plain else self.times.nested) - 1
        if shape.op is Op.SEARCH:
            self._search(shape)
        else:
            _Command(self, shape).follow()
        self._walked = max(self.a.accepted[1], self.y.entered[-1])
        if shape.b:
            self._walked = max(self._walked, self.b.accepted[1])
        self.retired.append(self.y.answered)
        self.counts = self.counts.plus(shape.beats(self.data_bytes))

    def _search(self, shape: CommandShape) -> None:
        """Pass over a search: nothing of the next command is read before the rows are."""
        search = self._circuit.search
        assert search, "refused before"
        assert shape.b, "a search has queries"
        row = search.row_bits // 8
        rows, queries = shape.run // row, shape.b.walk.size // row
        end = self.step() + round(search_cycles(self._circuit, rows, queries))
        self._step = self._paired = self._repacked = end
        self.a.accepted = self.b.accepted = [end, end]
        self.y.enter(end)
        self.y.span(0, 1)
        self.y.send(end)

    def step(self) -> float:
        """Return when the next step is valid at all streams."""
        room = max(self.a.accepted[0], self.b.accepted[0], *self.y.entered[-2:-1], -inf)
        self._step = max(self._step + 1, room + 1)
        self.stepped = self._step + 1
        return self.stepped

    def pair(self, valid: float) -> float:
        """Send a beat of operands that are valid from ``valid`` on; return when."""
        sent = max(valid, self._paired + 1)
        taken = len(self._results) - self.times.results
        if taken >= 0:
            sent = max(sent, self._results[taken] + 2)
        self._paired = sent
        return sent

    def repack(self, valid: float, *, ends: bool) -> float:
        """Take a result that is valid from ``valid`` on; return when its beat is valid.

        ``ends``: it leaves the FIFO of results.
        """
        # `outputs` holds a beat, and `Repack`, too.
        room = self.written[0 if self.times.repack else 1]
        self._repacked = max(valid, self._repacked + 1, room + 1)
        if ends:
            self._results.append(self._repacked)
        return self._repacked + self.times.repack

    def absorb(self, valid: float) -> None:
        """Take a partial result, which sends nothing."""
        self._results.append(max(valid, self._results[-1] + 1) if self._results else valid)

    @property
    def now(self) -> float:
        """When the pairing sent its last beat."""
        return self._paired

    @property
    def stalls(self) -> tuple[float, float]:
        return self.a.stalls, self.b.stalls

    def skip(self, mark: tuple[float, float, float], scale: float) -> None:
        """Pass over what takes ``scale`` times as long as all since ``mark``.

        ``mark`` is `now` and `stalls` of then.
        """
        cycles = round((self.now - mark[0]) * scale)
        self.a.stalls += round((self.a.stalls - mark[1]) * scale)
        self.b.stalls += round((self.b.stalls - mark[2]) * scale)
        self._paired += cycles
        self._repacked += cycles
        self._step += cycles
        self.stepped += cycles
        for reader in (self.a, self.b):
            reader.shift(cycles)
        self.y.shift(cycles)
        for port in self._ports:
            port.shift(cycles)
        _shift(self._results, cycles)
        _shift(self.written, cycles)


class _Command:
    """A command on its way through a `Timeline`."""

    def __init__(self, line: Timeline, shape: CommandShape) -> None:
        self._line, self._shape = line, shape
        self._loads = [0, 0, 0, 0]  # words of A and B, beats paired and beats sent

    def follow(self) -> None:
        """Follow the first runs, and extrapolate the others."""
        shape, line, loads = self._shape, self._line, self._loads
        addresses = [stream.addresses() for stream in shape.streams]
        mark: tuple[float, float, float, list[int]] | None = None
        followed = 0
        for number, places in enumerate(zip(*addresses, strict=True), 1):
            run = _Run(line, shape, places)
            run.follow()
            followed += run.followed
            loads[:] = [load + more for load, more in zip(loads, run.loads, strict=True)]
            if mark is None and followed >= _FOLLOWED // 4:
                mark = line.now, *line.stalls, list(loads)
            if mark and followed >= _FOLLOWED and number < shape.runs:
                self._extrapolate(mark, number)
                return

    def _extrapolate(self, mark: tuple[float, float, float, list[int]], runs: int) -> None:
        """Skip the runs behind the first ``runs``. Those behind ``mark`` give the rate."""
        line, loads = self._line, self._loads
        totals = self._shape.beats(line.data_bytes)
        paired = round(loads[2] / runs * self._shape.runs)
        whole = (totals.a_beats, totals.b_beats, paired, totals.y_beats)
        rest = max(total - load for total, load in zip(whole, loads, strict=True))
        measured = max(load - before for load, before in zip(loads, mark[3], strict=True))
        line.skip(mark[:3], rest / measured)


class _Source:
    """An operand of a run: the beats that it gives to the pairing."""

    def __init__(self, line: Timeline, reader: _Reader, stream: Stream, address: int) -> None:
        self._reader, self._data, self._size = reader, line.times.data, line.data_bytes
        self.mode = stream.mode
        self._address = address
        self._step = stream.walk.steps[-1]
        self._prime = False
        self._last = 0.0

    def begin(self, step: float, span: int, target: int) -> int:
        """Accept a run of ``span`` bytes, unless by elements. Return its words."""
        if self.mode is Mode.STRIDED:
            return 0
        if self.mode is Mode.REPEAT:
            self._reader.begin(step, self._address, 1, prime=False, flush=False)
            return 1
        source = self._address % self._size
        words = (source + span - 1) // self._size + 1
        beats = (target + span - 1) // self._size + 1
        self._prime = target < source
        flush = beats > words - self._prime
        self._reader.begin(step, self._address, words, prime=self._prime, flush=flush)
        self._words = words
        return words

    def gather(self, step: float, number: int, *, ends: bool) -> None:
        """Read an element; ``ends``: it is the last of a beat."""
        address = self._address + number * self._step
        self._reader.begin(step, address, 1, prime=not ends, flush=False)
        self._last = self._reader.word(0)

    def beat(self, number: int) -> float:
        """Return when a beat of the run is valid at the pairing."""
        if self.mode is Mode.STRIDED:
            return self._last + self._data
        if self.mode is Mode.REPEAT:
            return self._reader.word(0) + self._data
        word = number + self._prime
        if word < self._words:
            return self._reader.word(word) + self._data
        return self._reader.word(self._words - 1) + 1 + self._data

    def leave(self, time: float, *, last: bool) -> None:
        """Let a beat leave the FIFO at ``time``; one that is repeated, with its ``last`` use."""
        if last or self.mode is not Mode.REPEAT:
            self._reader.left.append(time)


class _Run:
    """A run of a command, beat by beat."""

    def __init__(self, line: Timeline, shape: CommandShape, places: tuple[int, ...]) -> None:
        self._line, self._shape, self._y = line, shape, places[-1]
        size = self._size = line.data_bytes
        self._pairs = shape.pairs and size < shape.lane
        same = shape.sums or shape.lane == shape.out_lane
        self._widens = 1 if same else max(1, shape.out_lane // shape.lane)
        narrows = 1 if same else max(1, shape.lane // shape.out_lane)
        offset = self._y % size if shape.y.mode is Mode.DENSE else 0
        lanes = offset // self._widens * narrows
        self._target, slot = lanes % size, lanes // size
        counted = self._pairs and not same
        self._narrows = narrows // 2 if counted else narrows
        self._filled = slot // 2 if counted else slot
        self._counted = counted or (self._pairs and shape.sums)
        self._elements, self._periods = self._shorten(shape.run)
        self._stepped = self._written = 0
        self._sources = [_Source(line, line.a, shape.a, places[0])]
        if shape.b:
            self._sources.append(_Source(line, line.b, shape.b, places[1]))
        self.followed = 0
        self.loads = self._load(places)

    def _load(self, places: tuple[int, ...]) -> list[int]:
        """Return the words of A and B, the beats of operands and those of the output."""
        shape = self._shape
        loads = [0, 0, self._words(self._target, shape.run * shape.lane), 0]
        for number, (stream, place) in enumerate(zip(shape.streams, places, strict=True)):
            dense = stream.mode is Mode.DENSE
            load = self._words(place, stream.walk.size) if dense else stream.walk.counts[-1]
            loads[3 if stream is shape.y else number] = load
        return loads

    def _words(self, address: int, size: int) -> int:
        """Return the words of memory, or beats, that ``size`` bytes from ``address`` on touch."""
        return (address % self._size + size - 1) // self._size + 1

    def _shorten(self, run: int) -> tuple[int, int]:
        """Return the elements to follow, and how many periods are left out."""
        shape, period = self._shape, self._shape.period(self._size)
        followed = 512 if shape.strided else _BEATS * self._size // shape.lane
        periods = max(0, (run - followed) // period - 2)
        return run - periods * period, periods

    def follow(self) -> None:
        """Follow the beats of the run."""
        shape, line = self._shape, self._line
        span = self._elements * shape.lane
        beats = self.followed = self._words(self._target, span)
        period = shape.period(self._size) * shape.lane // self._size
        measured = beats // 2 // period * period
        first = beats - measured - period // 2
        step = line.step()
        for source in self._sources:
            source.begin(step, span, self._target)
        if shape.y.mode is not Mode.STRIDED:
            line.y.enter(step)
            size = 4 if shape.sums else self._elements * shape.out_lane
            line.y.span(self._y, self._words(self._y, size))
        self._enter(step, 0)
        mark = (0.0, 0.0, 0.0)
        for beat in range(beats):
            if self._periods and beat == first:
                mark = line.now, *line.stalls
            if self._periods and beat == first + measured:
                line.skip(mark, self._periods * period / measured)
            last = beat == beats - 1
            if shape.strided:
                self._advance(self._elements if last else self._elements_of(beat))
            sent = line.pair(max(source.beat(beat) for source in self._sources))
            for source in self._sources:
                source.leave(sent, last=last)
            self._finish(beat, sent + line.times.bit_unit, last=last)

    def _elements_of(self, beat: int) -> int:
        """Return the elements up to the end of a beat of operands."""
        return (self._size * (beat + 1) - self._target) // self._shape.lane

    def _advance(self, end: int) -> None:
        """Step through the elements before ``end``."""
        while self._stepped < end:
            self._enter(self._line.step() if self._stepped else self._line.stepped, self._stepped)

    def _enter(self, step: float, element: int) -> None:
        """Send the step of an element to the streams that are STRIDED."""
        if not self._shape.strided or element < self._stepped:
            return
        behind = self._target + (element + 1) * self._shape.lane
        ends = behind % self._size == 0 or element == self._elements - 1
        for source in self._sources:
            if source.mode is Mode.STRIDED:
                source.gather(step, element, ends=ends)
        if self._shape.y.mode is Mode.STRIDED:
            self._line.y.enter(step)
        self._stepped = element + 1

    def _finish(self, beat: int, valid: float, *, last: bool) -> None:
        """Pass a result on to the writer."""
        line, shape = self._line, self._shape
        first_half = self._pairs and beat % 2 == 0
        if (shape.sums and not last) or (self._counted and first_half):
            line.absorb(valid)
        elif self._pairs and not self._counted:
            if not first_half:
                for half in range(2):
                    self._send(line.repack(valid + half, ends=True))
        elif self._widens > 1:
            part = self._size // self._widens
            end = self._target + self._elements * shape.lane
            parts = ((end - 1) % self._size) // part + 1 if last else self._widens
            for number in range(parts):
                self._send(line.repack(valid, ends=number == parts - 1))
        else:
            self._filled += 1
            sends = last or self._filled == self._narrows
            valid = line.repack(valid, ends=True)
            if sends:
                self._filled = 0
                self._send(valid)

    def _send(self, valid: float) -> None:
        """Send a beat of the output, or its elements one by one."""
        line, sent = self._line, 0.0
        if self._shape.y.mode is not Mode.STRIDED:
            sent = line.y.send(valid)
        else:
            elements = self._size // self._shape.out_lane
            for _ in range(min(elements, self._elements - self._written)):
                line.y.span(0, 1)
                sent = line.y.send(valid)
                self._written += 1
        line.written = [line.written[1], sent]
