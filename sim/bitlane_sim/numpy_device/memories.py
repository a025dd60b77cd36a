"""The memories of a prediction: when they accept requests and beats, and send beats and responses.

Each class here has the rules of one component of the circuit, named in its docstring.
"""

from dataclasses import dataclass
from math import inf

from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.sdram_part import SdramPart, SdramTiming

from .cycles import Latencies
from .stream_times import PortTimes, ReadBurst, WriterTimes, remembered

LONGEST_LATENCY = 255
"""Cycles: that of the simulated memory, beside which predictions are tested."""

_SDRAM_SHARE = 0.957
"""Share of an SDRAM chip's words that streams get beside refreshes and turns of the data lines, as
`bitlane bench` measures a XOR of 256 KiB (`bench.sdram`)."""

_ROUND = 32
"""Cycles of latency from which on a FIFO empties between two requests, so that its rounds, and not
beats, have a rate."""

Turns = tuple[int, ...]
"""The registers of a memory's arbiters."""


class MemoryTimes:
    """The state of a memory that accepts each request and beat at once."""

    def __init__(self, ports: list[PortTimes], y: WriterTimes, latency: int = 0) -> None:
        self._ports, self._y, self._latency = ports, y, latency

    def advance(self) -> bool:
        """Transfer all that waits for nothing unknown; return whether anything was."""
        y, moved = self._y, False
        while (number := len(y.entered)) < len(y.sent):
            burst, time = y.entering, y.sent[number] + 1
            y.enter(time)
            if number == burst.first:
                y.requested.append(time)
            if number == burst.last:
                y.respond(time + 1 + self._latency)
            moved = True
        return moved

    def serve(self) -> bool:
        """Execute the earliest access of those that wait; return whether there was any."""
        waiting = [port for port in self._ports if port.requests() < inf]
        if not waiting:
            return False
        port = min(waiting, key=PortTimes.requests)
        request = port.requests()
        burst = port.accept(request)
        valid = request + 1 + self._latency
        for _ in range(burst.length):
            port.beat = burst.reader.take(max(valid, port.beat + 1), burst)
        return True

    @property
    def turns(self) -> Turns:
        """The registers of the arbiters, which stay as they are between jobs."""
        return (self._ports[0].turn,)

    @turns.setter
    def turns(self, turns: Turns) -> None:
        (self._ports[0].turn,) = turns

    def shift(self, cycles: float) -> None:
        """Let all that has happened so far be ``cycles`` later."""


class _OneRamTimes(MemoryTimes):
    """The state of `SramPort`: an access a cycle, reads and writes in turn."""

    def __init__(self, ports: list[PortTimes], y: WriterTimes, order: int) -> None:
        super().__init__([PortTimes.joined(ports)], y)
        self._order = order if len(ports) == 1 and len(ports[0].readers) == 2 else 0
        self._read = self._write = -inf  # the last access
        self._shown = -inf  # when the burst that is read was requested
        self._prefers_write = 0

    def advance(self) -> bool:
        return False

    def _next_write(self) -> float:
        y, number = self._y, len(self._y.entered)
        return max(y.sent[number] + 1, self._write + 1) if number < len(y.sent) else inf

    def serve(self) -> bool:
        (port,) = self._ports
        busy = max(self._read, self._write) + 1
        # A word that its reader does not accept is held, and nothing is read.
        read = max(port.requests(), busy, port.beat)
        write = max(self._next_write(), busy)
        access = min(read, write)
        if access == inf:
            return False
        if write > access or (read == access and not self._prefers_write):
            self._fetch(port, access)
        else:
            self._store(access)
        return True

    def _fetch(self, port: PortTimes, access: float) -> None:
        burst = port.burst
        if not burst.taken:
            self._shown = port.requests()
        if burst.taken == burst.length - 1:
            port.accept(access)
        self._read = access
        self._prefers_write = 1
        port.beat = burst.reader.take(max(access + 1, self._shown + self._order), burst)

    def _store(self, access: float) -> None:
        y = self._y
        self._write = access
        self._prefers_write = 0
        last = len(y.entered) == y.entering.last
        y.enter(access)
        if last:
            y.requested.append(access)
            y.respond(access + 1)

    @property
    def turns(self) -> Turns:
        return self._ports[0].turn, self._prefers_write

    @turns.setter
    def turns(self, turns: Turns) -> None:
        self._ports[0].turn, self._prefers_write = turns

    def shift(self, cycles: float) -> None:
        self._read += cycles
        self._write += cycles
        self._shown += cycles


class _BankTimes(MemoryTimes):
    """The state of `BankedMemory`: a beat a cycle for each port, unless both reads need a bank."""

    def __init__(self, ports: list[PortTimes], y: WriterTimes, banks: int, order: int) -> None:
        super().__init__(ports, y)
        self._banks = banks
        self._order = order if len(ports[0].readers) == 2 else 0
        self._fired = [-inf, -inf]  # the last read of each port
        self._moved = [-inf, -inf]  # when its word entered the register of the port
        self._shown = [-inf, -inf]
        self._b_first = 0
        self._ended = -inf  # when A or B ended a burst

    def serve(self) -> bool:
        times = [
            max(port.requests(), self._fired[number] + 1, self._moved[number])
            for number, port in enumerate(self._ports)
        ]
        fires = min(times)
        if fires == inf:
            return False
        number = times.index(fires)
        if len(times) == 2 and times[0] == times[1] and self._bank(0) == self._bank(1):
            number = self._b_first
            self._fired[1 - number] = fires
        self._fetch(number, fires)
        return True

    def _bank(self, number: int) -> int:
        port = self._ports[number]
        return port.burst.address // (self._y.data_bytes * BEATS_PER_BLOCK) % self._banks

    def _fetch(self, number: int, fires: float) -> None:
        port = self._ports[number]
        burst = port.burst
        if not burst.taken:
            self._shown[number] = port.requests()
        if burst.taken == burst.length - 1:
            port.accept(fires)
            # If both end a burst at once, B is first.
            self._b_first = int(number == 0 or self._ended == fires)
            self._ended = fires
        self._fired[number] = fires
        self._moved[number] = max(fires + 1, port.beat)
        valid = max(self._moved[number] + 1, self._shown[number] + self._order)
        port.beat = burst.reader.take(valid, burst)

    @property
    def turns(self) -> Turns:
        return self._ports[0].turn, self._b_first

    @turns.setter
    def turns(self, turns: Turns) -> None:
        self._ports[0].turn, self._b_first = turns

    def shift(self, cycles: float) -> None:
        self._ended += cycles
        for times in (self._fired, self._moved, self._shown):
            times[:] = [time + cycles for time in times]


@dataclass(frozen=True, slots=True)
class _Place:
    """The row of a burst, and the beats that it has there."""

    bank: int
    row: int
    length: int


_WRITE = 2
"""The number of the writer, behind those of the two readers: `Requester`."""

_FIFO = 2 * BEATS_PER_BLOCK
"""Beats in the FIFO of `ReadPath`, and in that of `WritePath`."""


class _SdramTimes(MemoryTimes):
    """The state of `SdramMemory`, whose rows are all closed in the beginning."""

    def __init__(
        self, ports: list[PortTimes], y: WriterTimes, chip: "SdramRows", part: SdramPart
    ) -> None:
        super().__init__(ports, y)
        self._part, self._timing = part, SdramTiming.of(part, chip.clock_hz)
        half = self._timing.refresh_interval // 2
        self._due = float(half if chip.due is None else chip.due)
        self._shared = chip.shared
        self._register = int(not part.masks)  # before the FIFO, so that partial beats are found
        self._size = y.data_bytes
        self._words = self._size * 8 // part.width
        self._held: list[tuple[float, ReadBurst] | None] = [None for _ in ports]
        self._free = [-inf, -inf, -inf]  # when the slices of requests are empty
        self._written = 0  # bursts that were granted to the writer
        self._merged = -inf  # when the partial beats of the next one have been read
        self._fires: list[float] = []  # WRITEs
        self._beats: list[float] = []  # beats that readers have accepted
        self._first = 0  # of the round robin
        self._passed_over = 0
        self._bank = 0  # of the burst before
        self._grant = -inf  # when the arbiter can grant a burst
        self._moved = -inf  # when the last burst left the row manager
        self._column = -inf  # the last READ or WRITE
        self._first_column = -inf  # that of the same burst
        self._wrote = False  # whether it was a WRITE
        self._rows: dict[int, int] = {}
        self._closable = [-inf] * (1 << part.bank_bits)

    def advance(self) -> bool:
        y, moved = self._y, False
        for number, port in enumerate(self._ports):
            if self._held[number] is None and port.requests() < inf:
                request = max(port.requests(), self._free[number])
                self._held[number] = request + 1, port.accept(request)
                moved = True
        if len(y.requested) == self._written < len(y.bursts):
            first = y.bursts[self._written].first
            passed = self._passed(self._written)
            if first < len(y.sent) and passed < inf:
                y.requested.append(max(y.sent[first] + 1, self._free[_WRITE], passed))
                moved = True
        depth = _FIFO + self._register
        while (number := len(y.entered)) < len(y.sent) and number - depth < len(self._fires):
            time = y.sent[number] + 1
            if number:
                time = max(time, y.entered[-1] + 1)
            if number >= depth:
                time = max(time, self._fires[number - depth] + 1)
            if number == y.entering.first:
                time = max(time, self._passed(y.bursts_entered))
            if time == inf:
                break
            y.enter(time)
            moved = True
        return moved

    def _passed(self, number: int) -> float:
        """Return when `WriteArbiter` has passed the burst before; ``inf`` if not known."""
        y = self._y
        if not self._shared or not number:
            return -inf
        last = y.bursts[number - 1].last
        if len(y.requested) < number or len(y.entered) <= last:
            return inf
        return max(y.requested[number - 1], y.entered[last]) + 1

    def serve(self) -> bool:
        times = self._times()
        if min(times) == inf:
            return False
        # No burst is granted in the cycle after a refresh is due.
        while max(min(times), self._grant) > self._due:
            self._refresh()
        grant = max(min(times), self._grant)
        places = [
            self._place(number) if time <= grant else None for number, time in enumerate(times)
        ]
        number = self._choose(places)
        place = places[number]
        assert place
        self._bank = place.bank
        reads = number != _WRITE or self._merges()
        columns = self._access(grant, place, write=not reads)
        if number != _WRITE:
            self._deliver(number, grant, columns)
        elif reads:
            # `PartialBeats` is a cycle behind the last beat.
            self._merged = columns[-1] + self._timing.cas + self._words + 3
        else:
            self._free[_WRITE] = grant + 1
            self._written += 1
            self._merged = -inf
            self._fires += columns
            self._y.respond(columns[-1] + 2)
        return True

    def _times(self) -> list[float]:
        """Return when each requester asks the arbiter."""
        y = self._y
        claimed = len(self._beats) - BEATS_PER_BLOCK
        room = self._beats[claimed - 1] + 2 if claimed > 0 else -inf
        times = [inf if each is None else max(each[0], room) for each in self._held]
        times += [inf] * (_WRITE - len(times))
        if len(y.requested) > self._written and len(y.entered) > (
            last := y.bursts[self._written].last
        ):
            whole = y.entered[last] + 1 + self._register
            times.append(max(y.requested[self._written] + 1, whole, self._merged))
        else:
            times.append(inf)
        return times

    def _place(self, number: int) -> _Place:
        """Return the row of a requester's burst: `ChipLayout.parts`."""
        if number == _WRITE:
            burst = self._y.bursts[self._written]
            address, length = burst.address, burst.last - burst.first + 1
            if self._merges():
                length = burst.partial
        else:
            held = self._held[number]
            assert held
            address, length = held[1].address, held[1].length
        block = address // (self._size * BEATS_PER_BLOCK)
        blocks = (1 << self._part.column_bits) // (self._words * BEATS_PER_BLOCK)
        bank, above = block % len(self._closable), block // len(self._closable)
        return _Place(bank, above // blocks, length)

    def _merges(self) -> bool:
        """Return whether beats of the writer's burst are read before it is written."""
        if self._part.masks or self._merged > -inf:
            return False
        return self._y.bursts[self._written].partial > 0

    def _choose(self, places: list[_Place | None]) -> int:
        """Return the requester that `Arbiter` grants."""
        order = [(self._first + number) % 3 for number in range(3)]
        waiting = [number for number in order if places[number]]
        apart = [
            number for number in waiting if (place := places[number]) and place.bank != self._bank
        ]
        fair = waiting[0]
        passes = bool(apart) and not self._passed_over and apart[0] != fair
        self._passed_over = int(passes)
        if passes:
            return apart[0]
        self._first = (fair + 1) % 3
        return fair

    def _access(self, grant: float, place: _Place, *, write: bool) -> list[float]:
        """Open the row; return the cycles of the READs or WRITEs."""
        timing, words, bank = self._timing, self._words, place.bank
        entered = max(grant + 1, self._moved)
        self._grant = entered + 1
        ready = entered + 1
        if self._rows.get(bank) != place.row:
            opened = ready + 1
            if bank in self._rows:
                closed = self._command(max(opened, self._closable[bank]))
                opened = closed + timing.precharge
            opened = self._command(opened)
            self._rows[bank] = place.row
            self._closable[bank] = max(self._closable[bank], opened + timing.active)
            opening = max(timing.activate_to_access, timing.activate_to_activate - 2)
            ready = opened + 1 + max(opening - 2, 0)
        moved = self._moved = max(ready, self._column)
        first = max(moved + 1, self._column + words)
        if write and not (self._wrote and moved + 1 <= self._column + words):
            # The data lines are driven a cycle before, and not beside the words of a READ.
            turned = -inf if self._wrote else self._column + 1 + timing.cas + words
            first = max(first, max(moved + 1, turned) + 1)
        self._wrote = write
        columns = [first + beat * words for beat in range(place.length)]
        self._first_column, self._column = first, columns[-1]
        rest = timing.active - timing.activate_to_access
        after = words - 1 + timing.write_recovery if write else words
        self._closable[bank] = max(self._closable[bank], columns[-1] + max(after, rest))
        return columns

    def _command(self, cycle: float) -> float:
        """Return the first cycle from ``cycle`` on in which no READ or WRITE takes the pins."""
        inside = self._first_column <= cycle <= self._column
        return cycle + (inside and (cycle - self._first_column) % self._words == 0)

    def _deliver(self, number: int, grant: float, columns: list[float]) -> None:
        """Send the beats of a burst to its reader."""
        held = self._held[number]
        assert held
        self._held[number] = None
        self._free[number] = grant + 1
        latency = self._timing.cas + self._words + 4
        for column in columns:
            valid = max(column + latency, self._beats[-1] + 1 if self._beats else -inf)
            self._beats.append(held[1].reader.take(valid, held[1]))

    def _refresh(self) -> None:
        """Close all rows and refresh, once no access is in flight: `Refresher`."""
        timing, due = self._timing, self._due
        # `quiet` is a register.
        quiet = max(self._moved + 1, self._column + 1, *self._closable) + 1
        closes = max(due + 2, quiet if quiet <= due + 1 else quiet + 1)
        self._grant = max(self._grant, closes + timing.precharge + timing.refresh_cycle)
        self._rows.clear()
        self._due = due + timing.refresh_interval

    @property
    def turns(self) -> Turns:
        return self._ports[0].turn, self._first, self._passed_over, self._bank

    @turns.setter
    def turns(self, turns: Turns) -> None:
        self._ports[0].turn, self._first, self._passed_over, self._bank = turns

    def shift(self, cycles: float) -> None:
        self._held = [each and (each[0] + cycles, each[1]) for each in self._held]
        for times in (self._free, self._closable):
            times[:] = [time + cycles for time in times]
        for record in (self._fires, self._beats):
            remembered(record, cycles)
        self._merged += cycles
        self._grant += cycles
        self._moved += cycles
        self._column += cycles
        self._first_column += cycles
        self._due += cycles


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory that accepts each request and beat at once.

    ``latency``: cycles that a first beat or a response takes beyond the least possible one.
    """

    latency: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.latency <= LONGEST_LATENCY:
            raise ValueError(f"latency: {self.latency}; expected 0 to {LONGEST_LATENCY}")

    @property
    def followed(self) -> int:
        """Beats after which what the memory does repeats, in units of `run_times`."""
        return 1 + self.latency // _ROUND

    @property
    def extent(self) -> int:
        """Bytes after which addresses behave alike: the largest block, 16 beats of 16 bytes."""
        return 256

    @property
    def row_set(self) -> int:
        """Bytes of the rows of one number in all banks; 0 if no row has to be open."""
        return 0

    def least(self, beats: int, data_bytes: int) -> float:
        """Return the cycles that ``beats`` of all streams take at least."""
        del beats, data_bytes
        return 0.0

    def begin(self, ports: list[PortTimes], y: WriterTimes, times: Latencies) -> MemoryTimes:
        """Return the state of the memory before any access."""
        del times
        return MemoryTimes(ports, y, self.latency)


@dataclass(frozen=True, slots=True)
class OneRam(Memory):
    """One RAM with one port for all streams: `SramPort` and `SharedSram`."""

    def least(self, beats: int, data_bytes: int) -> float:
        del data_bytes
        return beats

    def begin(self, ports: list[PortTimes], y: WriterTimes, times: Latencies) -> MemoryTimes:
        return _OneRamTimes(ports, y, times.order)


@dataclass(frozen=True, slots=True)
class RamBanks(Memory):
    """Block RAM in banks: `BankedMemory`."""

    banks: int = 2

    @property
    def extent(self) -> int:
        return 256 * self.banks

    def begin(self, ports: list[PortTimes], y: WriterTimes, times: Latencies) -> MemoryTimes:
        return _BankTimes(ports, y, self.banks, times.order)


@dataclass(frozen=True, slots=True)
class SdramRows(Memory):
    """An SDRAM chip: `SdramMemory`.

    ``due``: the cycle after the first DOORBELL of a job in which a refresh is due; by default, in
    the middle of the interval, because nobody knows it. ``shared``: a link shares the ports, by
    `ReadArbiter` and `WriteArbiter`.
    """

    part: SdramPart | None = None
    clock_hz: int = 0
    due: int | None = None
    shared: bool = False

    @property
    def _known(self) -> SdramPart:
        assert self.part
        return self.part

    @property
    def followed(self) -> int:
        return 8

    @property
    def extent(self) -> int:
        return self._known.size

    @property
    def row_set(self) -> int:
        return 1 << self._known.rows.size_log2

    def least(self, beats: int, data_bytes: int) -> float:
        return beats * data_bytes * 8 / self._known.width / _SDRAM_SHARE

    def begin(self, ports: list[PortTimes], y: WriterTimes, times: Latencies) -> MemoryTimes:
        del times
        return _SdramTimes(ports, y, self, self._known)
