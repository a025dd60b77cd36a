"""The stages of an engine, and the order in which their times become known."""

from collections import deque
from math import inf

from bitlane_rtl.configuration import Configuration

from .cycles import Latencies
from .memories import Memory, Turns
from .stream_times import PortTimes, Process, ReaderTimes, WriterTimes, remembered


class StageTimes:
    """The stages of an engine that has been idle. Times are in cycles.

    A handshake takes place at the latest of the times that it waits for. Every stage goes on until
    one of these times has not been computed. Then the memory executes its earliest access, because
    all times that depend on an access are later. ``turns``: the registers of its arbiters, by
    default those of a reset.
    """

    def __init__(self, circuit: Configuration, memory: Memory, turns: Turns = ()) -> None:
        self.times = times = Latencies.of(circuit)
        self.memory = memory
        self.data_bytes = circuit.data_bytes
        self._ports = [PortTimes()]
        if circuit.two_ports:
            self._ports.append(PortTimes())
        self.a = ReaderTimes(times, circuit.data_bytes, self._ports[0])
        self.b = ReaderTimes(times, circuit.data_bytes, self._ports[-1])
        self.y = WriterTimes(times, circuit.data_bytes)
        self._accesses = memory.begin(self._ports, self.y, times)
        if turns:
            self._accesses.turns = turns
        self.paired = -inf  # when the pairing sent its last beat
        self.pairs = 0  # beats that it sent
        self.operated: deque[float] = deque()  # when results are valid that wait for `Repack`
        self.results: list[float] = []  # when results left their FIFO
        self.repacked = -inf
        self.written = [-inf, -inf]  # when the last two beats of `Repack` were sent to their end
        self.stepped = -inf  # when the loop nest sent its last step

    @property
    def turns(self) -> Turns:
        """The registers of the memory's arbiters."""
        return self._accesses.turns

    @property
    def stalls(self) -> tuple[float, float, float]:
        return self.a.stalls, self.b.stalls, self.y.stalls

    def follow(self, *processes: Process) -> None:
        """Let all stages and ``processes`` go on until nothing happens any more."""
        stages = [*processes, self.y.spans_process(), self.y.bursts_process()]
        readers = [self.a.process(), self.b.process()]
        known = -1
        while True:
            # A request waits for the earliest of several events, so all others come first.
            for process in stages:
                next(process, None)
            if self._accesses.advance() or known < (known := self._known):
                continue
            for process in readers:
                next(process)
            if known == (known := self._known) and not self._accesses.serve():
                return

    @property
    def _known(self) -> int:
        """The number of times that have been computed."""
        return self.a.known + self.b.known + self.y.known + self.pairs + len(self.results)

    def step(self) -> Process:
        """Send the next step: set `stepped` to the cycle in which it is valid at all streams."""
        room = -inf
        for stream in (self.a, self.b, self.y):
            before = stream.steps - self.times.slices
            while before >= len(stream.accepted):
                yield
            if before >= 0:
                room = max(room, stream.accepted[before])
        # The step was sent the cycle before.
        self.stepped = max(self.stepped + 1, room + 2)

    def pair(self, valid: float) -> Process:
        """Send a beat of operands that are valid from ``valid`` on: set `paired` to the cycle."""
        before = self.pairs - self.times.results
        while before >= len(self.results):
            yield
        sent = max(valid, self.paired + 1)
        if before >= 0:
            sent = max(sent, self.results[before] + 2)
        self.paired = sent
        self.pairs += 1

    def repack(self, valid: float, *, ends: bool) -> None:
        """Take a result that is valid from ``valid`` on: set `repacked` to the cycle.

        ``ends``: it leaves the FIFO of results.
        """
        # `outputs` holds a beat, and `Repack`, too.
        room = self.written[0 if self.times.repack else 1]
        self.repacked = max(valid, self.repacked + 1, room + 1)
        if ends:
            self.results.append(self.repacked)

    def absorb(self, valid: float) -> None:
        """Take a partial result, which sends nothing."""
        self.results.append(max(valid, self.results[-1] + 1) if self.results else valid)

    def skip(self, mark: tuple[float, ...], scale: float) -> None:
        """Pass over what takes ``scale`` times as long as all since ``mark``, a `mark` of then."""
        cycles, a, b, y = (
            round((now - then) * scale) for now, then in zip(self.mark, mark, strict=True)
        )
        self.a.stalls += a
        self.b.stalls += b
        self.y.stalls += y
        self.paired += cycles
        self.repacked += cycles
        self.stepped += cycles
        for reader in (self.a, self.b):
            reader.shift(cycles)
        self.y.shift(cycles)
        for port in self._ports:
            port.shift(cycles)
        self._accesses.shift(cycles)
        self.operated = deque(valid + cycles for valid in self.operated)
        remembered(self.results, cycles)
        remembered(self.written, cycles)

    @property
    def mark(self) -> tuple[float, ...]:
        """When the pairing sent its last beat, and the stalls up to then."""
        return self.paired, *self.stalls
