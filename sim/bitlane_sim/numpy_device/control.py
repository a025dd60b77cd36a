"""The control window: registers, completions and the ring, in front of an `Interpreter`.

Commands run when the doorbell rings. When a call returns, none is pending but one that would take
hours and those behind it; CLEAR takes effect at once.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from bitlane_rtl.abi import (
    ABI_VERSION,
    COMPLETION,
    COMPLETION_OFFSET,
    CONTROL_SIZE,
    IDENTITY,
    RECORD,
    RECORD_BYTES,
    REGISTERS,
    RING_OFFSET,
    WORD_BYTES,
    Status,
    register,
)
from bitlane_rtl.capabilities import capabilities, geometry, search
from bitlane_rtl.configuration import Configuration

from .counters import PredictedCounters
from .interpreter import ENDLESS, Interpreter, Stop

_INDEXES = 1 << 16
"""Commands are counted modulo this."""

_INTERRUPT = next(bits for bits in RECORD["CONTROL"].bits if bits.name == "INTERRUPT")
_CODE, _INDEX = COMPLETION

_BUSY, _FAULTY, _DRAINED = (
    register("STATUS")[name].insert(1) for name in ("BUSY", "FAULT", "DRAINED")
)
_ENABLE, _PENDING = (register("INTERRUPT")[name].insert(1) for name in ("ENABLE", "PENDING"))

_COUNTERS = [entry.offset for entry in REGISTERS if entry.offset >= register("BUSY_CYCLES").offset]
"""Offsets of the counters, in the order of `CounterValues`."""


class ControlWindow:
    """The registers of a circuit and its ring. Words are read and written at offsets."""

    def __init__(self, interpreter: Interpreter, counters: PredictedCounters) -> None:
        self._interpreter = interpreter
        self._counters = counters
        self._window = bytearray(CONTROL_SIZE)
        self._slots = interpreter.configuration.slots
        self._ring_end = RING_OFFSET + RECORD_BYTES * self._slots
        self._completions_end = COMPLETION_OFFSET + WORD_BYTES * self._slots
        self._completions: dict[int, tuple[Status, int]] = {}
        """Status and index of the last command of each slot, by the offset of its word."""
        self._doorbell = self._retired = 0
        self._stop: Stop | None = None
        self._endless = False
        self._timeout = register("TIMEOUT").reset or 0
        self._enable = self._pending = False
        self._constants = _constants(interpreter.configuration)

    @property
    def interrupt(self) -> bool:
        """Whether the interrupt line is high."""
        return self._pending and self._enable

    def read(self, offset: int) -> int:
        """Return the word at ``offset``, a multiple of 4; 0 where there is nothing to read."""
        return self.words(offset, 1)[0]

    def words(self, offset: int, count: int) -> list[int]:
        """Return ``count`` words from ``offset`` on."""
        self._counters.read(count)
        return [self._word(at) for at in range(offset, offset + count * WORD_BYTES, WORD_BYTES)]

    def _word(self, offset: int) -> int:
        if reader := self._readers.get(offset):
            return reader(self)
        if COMPLETION_OFFSET <= offset < self._completions_end:
            self._counters.ended()
            status, index = self._completions.get(offset, (Status.OK, 0))
            return _CODE.insert(status) | _INDEX.insert(index)
        if offset in _COUNTERS and self._interpreter.configuration.counters:
            return self._counters.counts()[_COUNTERS.index(offset)] % (1 << 32)
        return self._constants.get(offset, 0)

    def write(self, offset: int, data: bytes) -> None:
        """Write whole words from ``offset`` on; words that cannot be written are ignored."""
        end = offset + len(data)
        in_ring = RING_OFFSET <= offset < self._ring_end
        self._counters.wrote(len(data) // WORD_BYTES, ring=in_ring)
        if in_ring and end <= self._ring_end:
            self._window[offset:end] = data
            return
        for at in range(offset, end, WORD_BYTES):
            word = data[at - offset : at - offset + WORD_BYTES]
            if writer := self._writers.get(at):
                writer(self, int.from_bytes(word, "little"))
            elif RING_OFFSET <= at < self._ring_end:
                self._window[at : at + WORD_BYTES] = word

    def _ended(self) -> int:
        """Return RETIRED, which like STATUS and FAULT shows whether commands have ended."""
        self._counters.ended()
        return self._retired

    def _status(self) -> int:
        busy = self._doorbell != self._ended()
        return _BUSY * busy | _FAULTY * (self._stop is not None) | _DRAINED

    def _fault(self) -> int:
        self._counters.ended()
        if self._stop is None:
            return 0
        bits, stop = register("FAULT"), self._stop
        values = {"CODE": stop.status, "PORT": stop.port, "INDEX": self._retired}
        return sum(bits[name].insert(value) for name, value in values.items())

    def _ring(self, word: int) -> None:
        before = (self._doorbell - self._retired) % _INDEXES
        self._doorbell = word % _INDEXES
        ahead = (self._doorbell - self._retired) % _INDEXES
        if self._stop:
            return
        if not before <= ahead <= self._slots:
            self._end(Stop(Status.BAD_DOORBELL))
            return
        self._counters.submitted(tuple(self._execute()))

    def _execute(self) -> list[bytes]:
        """Execute the commands that are pending. Return the records of those that retire."""
        records: list[bytes] = []
        while self._retired != self._doorbell and not self._stop and not self._endless:
            start = RING_OFFSET + self._retired % self._slots * RECORD_BYTES
            record = bytes(self._window[start : start + RECORD_BYTES])
            stop = self._interpreter.execute(record)
            if stop is ENDLESS:
                self._endless = True
                break
            self._end(stop)
            if not stop:
                control = int.from_bytes(record[:WORD_BYTES], "little")
                self._pending |= bool(_INTERRUPT.extract(control))
                self._retired = (self._retired + 1) % _INDEXES
                records.append(record)
        return records

    def _end(self, stop: Stop | None) -> None:
        """End the command RETIRED: note its completion, and stop the engine if it failed."""
        place = COMPLETION_OFFSET + self._retired % self._slots * WORD_BYTES
        self._completions[place] = (stop.status if stop else Status.OK), self._retired
        if stop:
            self._stop = stop
            self._pending = True

    def _clear(self, word: int) -> None:
        if word & 1:
            self._stop, self._endless = None, False
            self._doorbell = self._retired = 0

    def _clear_counters(self, word: int) -> None:
        if word & 1:
            self._counters.clear()

    def _set_timeout(self, word: int) -> None:
        self._timeout = word

    def _set_interrupt(self, word: int) -> None:
        self._enable = bool(word & _ENABLE)
        self._pending = self._pending and not word & _PENDING

    _readers: ClassVar[Mapping[int, Callable[[Any], int]]] = {
        register(name).offset: reader
        for name, reader in {
            "STATUS": _status,
            "DOORBELL": lambda self: self._doorbell,
            "RETIRED": _ended,
            "FAULT": _fault,
            "FAULT_ADDRESS": lambda self: self._stop.address if self._stop else 0,
            "TIMEOUT": lambda self: self._timeout,
            "INTERRUPT": lambda self: _ENABLE * self._enable | _PENDING * self._pending,
        }.items()
    }
    """Methods that return a register, by its offset."""

    _writers: ClassVar[Mapping[int, Callable[[Any, int], None]]] = {
        register(name).offset: writer
        for name, writer in {
            "DOORBELL": _ring,
            "CLEAR": _clear,
            "TIMEOUT": _set_timeout,
            "INTERRUPT": _set_interrupt,
            "COUNTERS_CLEAR": _clear_counters,
        }.items()
    }
    """Methods that write a register, by its offset."""


def _constants(circuit: Configuration) -> dict[int, int]:
    """Return the registers that do not change, by offset."""
    words = {
        "IDENTITY": IDENTITY,
        "VERSION": ABI_VERSION,
        "CAPABILITIES": capabilities(circuit),
        "GEOMETRY": geometry(circuit),
        "SEARCH": search(circuit),
        "MEMORY_BASE": circuit.memory_base,
        "MEMORY_LAST": circuit.memory_last,
    }
    return {register(name).offset: word for name, word in words.items()}
