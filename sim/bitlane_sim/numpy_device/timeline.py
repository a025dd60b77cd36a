"""The timeline of an engine: when queued commands start and retire; `cycles` has the terms."""

from math import inf

from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration

from .cycles import CommandShape, CounterValues, Memory, search_cycles
from .run_times import CommandRuns
from .stage_times import StageTimes


class Timeline(StageTimes):
    """An engine that has been idle. Times are cycles since its first DOORBELL was written."""

    def __init__(self, circuit: Configuration, memory: Memory, turn: int = 0) -> None:
        super().__init__(circuit, memory, turn)
        self._circuit = circuit
        self._start = -inf  # when the last command started
        self._walked = -inf  # when the last step of all commands was accepted
        self.started: list[float] = []
        self.retired: list[float] = []  # when commands did
        self.moved: list[int] = []  # beats of all commands up to each
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
            CommandRuns(self, shape).follow()
        self._walked = max(self.a.accepted[1], self.y.entered[-1])
        if shape.b:
            self._walked = max(self._walked, self.b.accepted[1])
        self.retired.append(self.y.answered)
        self.counts = self.counts.plus(shape.beats(self.data_bytes))
        self.moved.append(self.counts.beats)

    def _search(self, shape: CommandShape) -> None:
        """Pass over a search: nothing of the next command is read before the rows are."""
        search = self._circuit.search
        assert search, "refused before"
        assert shape.b, "a search has queries"
        row = search.row_bits // 8
        rows, queries = shape.run // row, shape.b.walk.size // row
        step = self.step()
        self.y.enter(step)
        self.y.span(0, 1)
        # A query's first beat: the splitter, the request, the beat and the stages to the pairing.
        begin = step + 3 + self.times.data
        end = begin + round(search_cycles(self._circuit, rows, queries))
        self._step = self._paired = self._repacked = end
        self.a.accepted = self.b.accepted = [end, end]
        self.y.send(end)
