"""The runs of a command, beat by beat.

A long run is followed for some hundred beats, and many runs for some; the rest take the same rate.
"""

from bitlane_rtl.abi import Mode

from .cycles import CommandShape, Stream
from .stage_times import StageTimes
from .stream_times import ReaderTimes

_BEATS = 400
"""Beats of a run that are followed: several times what the FIFO of a reader holds."""

_ROUND = 32
"""Cycles of latency from which on a FIFO empties between two requests, so that its rounds, and not
beats, have a rate."""

_FOLLOWED = 2048
"""Beats of a command that are followed, before the runs behind them are extrapolated."""


class CommandRuns:
    """A command on its way through the stages."""

    def __init__(self, line: StageTimes, shape: CommandShape) -> None:
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

    def __init__(self, line: StageTimes, reader: ReaderTimes, stream: Stream, address: int) -> None:
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

    def __init__(self, line: StageTimes, shape: CommandShape, places: tuple[int, ...]) -> None:
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
        beats = _BEATS * (1 + self._line.memory.latency // _ROUND)
        followed = 512 if shape.strided else beats * self._size // shape.lane
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
