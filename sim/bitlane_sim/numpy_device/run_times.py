"""The runs of a command, beat by beat.

A long run is followed for some hundred beats, and many runs for some; the rest take the same rate.
"""

from bisect import insort

from bitlane_rtl.abi import Mode

from .cycles import CommandShape, Stream
from .stage_times import StageTimes
from .stream_times import Process, ReaderTimes, StreamSpan

_BEATS = 400
"""Beats of a run that are followed: several times what the FIFO of a reader holds."""

_FOLLOWED = 2048
"""Beats of a command that are followed, before the runs behind them are extrapolated."""


class CommandRuns:
    """A command on its way through the stages."""

    def __init__(self, line: StageTimes, shape: CommandShape) -> None:
        self._line = line
        self.runs: list[RunTimes] = []
        addresses = [stream.addresses() for stream in shape.streams]
        followed, most = 0, _FOLLOWED * line.memory.followed
        marks: list[int] = []
        loads: list[tuple[int, ...]] = [(0, 0, 0, 0)]
        for places in zip(*addresses, strict=True):
            run = RunTimes(line, shape, places)
            self.runs.append(run)
            followed += run.beats
            loads.append(tuple(map(sum, zip(loads[-1], run.loads, strict=True))))
            if followed >= most * (1 + len(marks)) // 4:
                marks.append(len(self.runs))
            if followed >= most:
                break
        rest = shape.runs - len(self.runs)
        self._from = self._to = -1
        if rest:
            # Runs behind the first ones and before the last ones give the rate.
            self._from, self._to = marks[0], marks[-2]
            totals, last = shape.beats(line.data_bytes), loads[-1]
            paired = round(last[2] / len(self.runs) * shape.runs)
            whole = (totals.a_beats, totals.b_beats, paired, totals.y_beats)
            left = max(total - load for total, load in zip(whole, last, strict=True))
            pairs = zip(loads[self._to], loads[self._from], strict=True)
            self._scale = left / max(1, max(load - before for load, before in pairs))

    def steps(self) -> Process:
        """Send the steps of all runs."""
        for run in self.runs:
            yield from run.steps()

    def outputs(self) -> Process:
        """Pass the results of all runs on to the writer."""
        for run in self.runs:
            yield from run.outputs()

    def operands(self) -> Process:
        """Pair the operands of all runs."""
        mark = self._line.mark
        for number, run in enumerate(self.runs):
            if number == self._from:
                mark = self._line.mark
            if number == self._to:
                self._line.skip(mark, self._scale)
            yield from run.operands()


class _Source:
    """An operand of a run: the beats that it gives to the pairing."""

    def __init__(self, line: StageTimes, reader: ReaderTimes, stream: Stream, address: int) -> None:
        self._reader, self._data, self._size = reader, line.times.data, line.data_bytes
        self.mode = stream.mode
        self._address = address
        self._step = stream.walk.steps[-1]
        self._prime = False
        self._words = self._base = 0

    def begin(self, step: float, span: int, target: int) -> None:
        """Accept a run of ``span`` bytes, unless by elements."""
        if self.mode is Mode.STRIDED:
            return
        words = 1
        flush = False
        if self.mode is not Mode.REPEAT:
            source = self._address % self._size
            words = (source + span - 1) // self._size + 1
            beats = (target + span - 1) // self._size + 1
            self._prime = target < source
            flush = beats > words - self._prime
        self._words = words
        self._reader.send(StreamSpan(step, self._address, words, self._prime, flush))

    def gather(self, step: float, number: int, *, ends: bool) -> None:
        """Read an element; ``ends``: it is the last of a beat."""
        address = self._address + number * self._step
        self._reader.send(StreamSpan(step, address, 1, prime=not ends))

    def word(self, number: int, elements: int) -> int:
        """Return the word of the run that completes a beat, the one with ``elements`` so far."""
        if self.mode is Mode.STRIDED:
            return elements - 1
        if self.mode is Mode.REPEAT:
            return 0
        return min(number + self._prime, self._words - 1)

    def open(self) -> None:
        """Begin with the words of the run."""
        self._base = self._reader.consumed

    def arrived(self, word: int) -> bool:
        """Return whether the arrival of a word of the run has been computed."""
        return self._base + word < len(self._reader.arrived)

    def beat(self, number: int, word: int) -> float:
        """Return when a beat of the run is valid at the pairing."""
        # A flush follows the last word.
        flushed = self.mode is Mode.DENSE and number + self._prime > word
        return self._reader.arrived[self._base + word] + flushed + self._data

    def leave(self, time: float, *, last: bool, words: int) -> None:
        """Let a beat leave the FIFO at ``time``; one that is repeated, with its ``last`` use."""
        if last or self.mode is not Mode.REPEAT:
            insort(self._reader.left, time)
        if last:
            self._reader.consumed += words if self.mode is Mode.STRIDED else self._words


class RunTimes:
    """A run of a command, beat by beat."""

    def __init__(self, line: StageTimes, shape: CommandShape, places: tuple[int, ...]) -> None:
        self._line, self._shape, self._y = line, shape, places[-1]
        size = self._size = line.data_bytes
        self._halves = shape.pairs and size < shape.lane
        same = shape.sums or shape.lane == shape.out_lane
        self._widens = 1 if same else max(1, shape.out_lane // shape.lane)
        narrows = 1 if same else max(1, shape.lane // shape.out_lane)
        offset = self._y % size if shape.y.mode is Mode.DENSE else 0
        lanes = offset // self._widens * narrows
        self._target, slot = lanes % size, lanes // size
        counted = self._halves and not same
        self._narrows = narrows // 2 if counted else narrows
        self._filled = slot // 2 if counted else slot
        self._counted = counted or (self._halves and shape.sums)
        self._elements, self._periods = self._shorten(shape.run)
        self.beats = self._words(self._target, self._elements * shape.lane)
        self._written = 0
        self._sources = [_Source(line, line.a, shape.a, places[0])]
        if shape.b:
            self._sources.append(_Source(line, line.b, shape.b, places[1]))
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
        beats = _BEATS * self._line.memory.followed
        followed = 512 if shape.strided else beats * self._size // shape.lane
        periods = max(0, (run - followed) // period - 2)
        return run - periods * period, periods

    def steps(self) -> Process:
        """Send the steps of the run to the streams: one, or one for each element."""
        shape, line = self._shape, self._line
        yield from line.step()
        for source in self._sources:
            source.begin(line.stepped, self._elements * shape.lane, self._target)
        if shape.y.mode is not Mode.STRIDED:
            size = 4 if shape.sums else self._elements * shape.out_lane
            self._enter(self._y, size)
        if not shape.strided:
            return
        for element in range(self._elements):
            if element:
                yield from line.step()
            behind = self._target + (element + 1) * shape.lane
            ends = behind % self._size == 0 or element == self._elements - 1
            for source in self._sources:
                if source.mode is Mode.STRIDED:
                    source.gather(line.stepped, element, ends=ends)
            if shape.y.mode is Mode.STRIDED:
                address = self._y + element * shape.y.walk.steps[-1]
                self._enter(address, shape.out_lane)

    def _enter(self, address: int, size: int) -> None:
        """Send a span of the output."""
        line, begin = self._line, address % self._size
        finish = (begin + size - 1) % self._size + 1
        words = self._words(address, size)
        line.y.spans.append(StreamSpan(line.stepped, address, words, begin=begin, finish=finish))

    def operands(self) -> Process:
        """Pair the operands of the run."""
        shape, line, beats = self._shape, self._line, self.beats
        period = shape.period(self._size) * shape.lane // self._size
        measured = beats // 2 // period * period
        first = beats - measured - period // 2
        mark = line.mark
        for source in self._sources:
            source.open()
        for beat in range(beats):
            if self._periods and beat == first:
                mark = line.mark
            if self._periods and beat == first + measured:
                line.skip(mark, self._periods * period / measured)
            last = beat == beats - 1
            elements = self._elements if last else self._elements_of(beat)
            words = [source.word(beat, elements) for source in self._sources]
            while not all(map(_Source.arrived, self._sources, words)):
                yield
            valid = [each.beat(beat, word) for each, word in zip(self._sources, words, strict=True)]
            yield from line.pair(max(valid))
            for source in self._sources:
                source.leave(line.paired, last=last, words=elements)
            line.operated.append(line.paired + line.times.bit_unit)

    def _elements_of(self, beat: int) -> int:
        """Return the elements up to the end of a beat of operands."""
        return (self._size * (beat + 1) - self._target) // self._shape.lane

    def outputs(self) -> Process:
        """Pass the results of the run on to the writer."""
        for beat in range(self.beats):
            while not self._line.operated:
                yield
            yield from self._finish(beat, last=beat == self.beats - 1)
            self._line.operated.popleft()

    def _finish(self, beat: int, *, last: bool) -> Process:
        """Pass a result on to the writer."""
        line, shape = self._line, self._shape
        valid = line.operated[0]
        first_half = self._halves and beat % 2 == 0
        if (shape.sums and not last) or (self._counted and first_half):
            line.absorb(valid)
        elif self._halves and not self._counted:
            for half in range(0 if first_half else 2):
                line.repack(line.operated[0] + half, ends=True)
                yield from self._send()
        elif self._widens > 1:
            part = self._size // self._widens
            end = self._target + self._elements * shape.lane
            parts = ((end - 1) % self._size) // part + 1 if last else self._widens
            for number in range(parts):
                line.repack(line.operated[0], ends=number == parts - 1)
                yield from self._send()
        else:
            self._filled += 1
            sends = last or self._filled == self._narrows
            line.repack(valid, ends=True)
            if sends:
                self._filled = 0
                yield from self._send()

    def _send(self) -> Process:
        """Send a beat of the output, or its elements one by one."""
        line, sent, beats = self._line, 0.0, 1
        if self._shape.y.mode is Mode.STRIDED:
            elements = self._size // self._shape.out_lane
            beats = min(elements, self._elements - self._written)
        for _ in range(beats):
            while not line.y.ready():
                yield
            sent = line.y.send(line.repacked + line.times.repack)
            self._written += 1
        line.written = [line.written[1], sent]
