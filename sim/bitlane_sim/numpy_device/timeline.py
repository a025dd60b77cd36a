"""The timeline of an engine: when queued commands start and retire; `cycles` has the terms."""

from collections import deque
from math import inf

from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration

from .cycles import CommandShape, CounterValues, search_cycles
from .memories import Memory, Turns
from .run_times import CommandRuns
from .stage_times import StageTimes
from .stream_times import Process, StreamSpan


class _Search:
    """A search, whose accesses are not followed."""

    def __init__(self, line: "Timeline", shape: CommandShape) -> None:
        self._line, self._shape = line, shape
        self._end = inf

    def steps(self) -> Process:
        """Pass over the search: nothing of the next command is read before the rows are."""
        line, shape, search = self._line, self._shape, self._line.circuit.search
        assert search, "refused before"
        assert shape.b, "a search has queries"
        row = search.row_bits // 8
        rows, queries = shape.run // row, shape.b.walk.size // row
        yield from line.step()
        line.y.spans.append(StreamSpan(line.stepped, 0, 1, finish=line.data_bytes))
        beats = shape.beats(line.data_bytes).beats
        cycles = search_cycles(line.circuit, rows, queries)
        # A query's first beat: the splitter, the request, the beat and the stages to the pairing.
        begin = line.stepped + 3 + line.times.data
        self._end = begin + round(max(cycles, line.memory.least(beats, line.data_bytes)))
        line.stepped = self._end + 1
        for reader in (line.a, line.b):
            reader.accepted += [self._end] * line.times.slices
            reader.steps += line.times.slices

    def operands(self) -> Process:
        while self._end == inf:
            yield
        self._line.paired = self._end

    def outputs(self) -> Process:
        line = self._line
        while self._end == inf or not line.y.ready():
            yield
        line.repacked = self._end
        line.y.send(self._end)


class Timeline(StageTimes):
    """An engine that has been idle. Times are cycles since its first DOORBELL was written."""

    def __init__(self, circuit: Configuration, memory: Memory, turns: Turns = ()) -> None:
        super().__init__(circuit, memory, turns)
        self.circuit = circuit
        self.started: list[float] = []
        self.retired: list[float] = []  # when commands did
        self.counts = CounterValues()  # beats alone
        self._commands: list[tuple[CommandShape, float, float]] = []
        self._paired: deque[CommandRuns | _Search] = deque()
        self._output: deque[CommandRuns | _Search] = deque()
        self._last: list[int] = []  # bursts of each command, so far
        self._walked = -inf  # when the last step of all commands was accepted

    def command(self, shape: CommandShape, submitted: float, written: float = -inf) -> None:
        """Add a command that is submitted at ``submitted``.

        ``written``: when the host wrote to the ring at last, if the record was fetched after that.
        """
        self._commands.append((shape, submitted, written))
        self.counts = self.counts.plus(shape.beats(self.data_bytes))

    def run(self) -> None:
        """Follow all commands."""
        self.follow(self._retire(), self._start(), self._pair(), self._send())

    def _start(self) -> Process:
        """Start commands, one after the other, and send their steps."""
        for shape, submitted, written in self._commands:
            while shape.fence and len(self.retired) < len(self.started):
                yield
            start = max(self._starts(shape, submitted, written), submitted)
            self.started.append(start)
            self.stepped = start + (0 if shape.plain else self.times.nested)
            search = shape.op is Op.SEARCH
            command = _Search(self, shape) if search else CommandRuns(self, shape)
            self._paired.append(command)
            self._output.append(command)
            yield from command.steps()
            for stream in (self.a, self.b, self.y):
                while len(stream.accepted) < stream.steps:
                    yield
                if stream.accepted:
                    self._walked = max(self._walked, stream.accepted[-1])

    def _starts(self, shape: CommandShape, submitted: float, written: float) -> float:
        """Return when a command starts, if its record is in the ring."""
        groups = -(-shape.words // self.times.fetch)
        taken = (self.started[-1] if self.started else -inf) + groups
        loop_groups = groups - 8 // self.times.fetch
        if loop_groups > 0:
            # The loop registers are in use until the command before has walked.
            taken = max(taken, self._walked + 1 + loop_groups)
        fetched = written + self.times.fetched + groups
        start = max(submitted, fetched, taken + 2, self._walked + 2)
        if shape.fence and self.retired:
            start = max(start, self.retired[-1] + 2)
        return start

    def _pair(self) -> Process:
        while True:
            while not self._paired:
                yield
            yield from self._paired[0].operands()
            self._paired.popleft()

    def _send(self) -> Process:
        while True:
            while not self._output:
                yield
            yield from self._output[0].outputs()
            self._output.popleft()
            self._last.append(self.y.answering)

    def _retire(self) -> Process:
        """Note the last response of each command."""
        while True:
            number = len(self.retired)
            while number == len(self._last) or len(self.y.answers) < self._last[number]:
                yield
            self.retired.append(self.y.answers[self._last[number] - 1])
