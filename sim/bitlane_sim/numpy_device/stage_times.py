"""When the stages that all streams share send their beats: from the loop nest to `Repack`."""

from math import inf

from bitlane_rtl.configuration import Configuration

from .cycles import Latencies, Memory
from .stream_times import PortTimes, ReaderTimes, WriterTimes, shift_times


class StageTimes:
    """The stages of an engine that has been idle. Times are in cycles.

    A handshake takes place at the latest of the times that it waits for. ``turn``: the reader that
    a shared port grants first if both request.
    """

    def __init__(self, circuit: Configuration, memory: Memory, turn: int = 0) -> None:
        self.times = times = Latencies.of(circuit)
        self.memory = memory
        self.data_bytes = circuit.data_bytes
        port = PortTimes()
        shared = PortTimes() if circuit.two_ports else port
        self._ports = {port, shared}
        self.a = ReaderTimes(times, memory, circuit.data_bytes, port)
        self.b = ReaderTimes(times, memory, circuit.data_bytes, shared)
        self.y = WriterTimes(times, memory, circuit.data_bytes)
        port.turn = turn
        self._paired = -inf  # when the pairing sent its last beat
        self._results: list[float] = []  # when results left their FIFO
        self._repacked = -inf
        self.written = [-inf, -inf]  # when the last two beats of `Repack` were sent to their end
        self._step = -inf  # when the loop nest sent its last step
        self.stepped = -inf  # when that was valid at the streams

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
    def turn(self) -> int:
        """The reader that a shared port grants next if both request: 0 for A."""
        return self.a.port.turn

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
        shift_times(self._results, cycles)
        shift_times(self.written, cycles)
