"""The control window: registers, completions and the ring, in front of an `Interpreter`.

Commands run when the doorbell rings. When a call returns, none is pending but one that would take
hours and those behind it; CLEAR takes effect at once.
"""

from collections.abc import Callable, Iterator

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

_COUNTERS = [entry.offset for entry in REGISTERS if entry.offset >= register("BUSY_CYCLES").offset]
"""Offsets of the counters, in the order of `CounterValues`."""

_STATE = {register(name).offset for name in ("STATUS", "RETIRED", "FAULT")}
"""Registers that show whether commands have ended."""


class ControlWindow:
    """The registers of a circuit and its ring. Words are read and written at offsets."""

    def __init__(self, interpreter: Interpreter, counters: PredictedCounters) -> None:
        self._interpreter = interpreter
        self._counters = counters
        self._window = bytearray(CONTROL_SIZE)
        self._slots = interpreter.configuration.slots
        self._doorbell = self._retired = 0
        self._stop: Stop | None = None
        self._endless = False
        self._timeout = register("TIMEOUT").reset or 0
        self._enable = self._pending = False
        self._constants = _constants(interpreter.configuration)
        self._readers: dict[int, Callable[[], int]] = {
            register(name).offset: reader
            for name, reader in {
                "STATUS": self._status,
                "DOORBELL": lambda: self._doorbell,
                "RETIRED": lambda: self._retired,
                "FAULT": self._fault,
                "FAULT_ADDRESS": lambda: self._stop.address if self._stop else 0,
                "TIMEOUT": lambda: self._timeout,
                "INTERRUPT": lambda: _word("INTERRUPT", ENABLE=self._enable, PENDING=self._pending),
            }.items()
        }
        self._writers: dict[int, Callable[[int], None]] = {
            register(name).offset: writer
            for name, writer in {
                "DOORBELL": self._ring,
                "CLEAR": self._clear,
                "TIMEOUT": self._set_timeout,
                "INTERRUPT": self._set_interrupt,
                "COUNTERS_CLEAR": self._clear_counters,
            }.items()
        }

    @property
    def interrupt(self) -> bool:
        """Whether the interrupt line is high."""
        return self._pending and self._enable

    def read(self, offset: int) -> int:
        """Return the word at ``offset``, a multiple of 4; 0 where there is nothing to read."""
        self._counters.read(1)
        if COMPLETION_OFFSET <= offset < COMPLETION_OFFSET + WORD_BYTES * self._slots:
            self._counters.ended()
            return int.from_bytes(self._window[offset : offset + WORD_BYTES], "little")
        if offset in _STATE:
            self._counters.ended()
        if reader := self._readers.get(offset):
            return reader()
        if offset in _COUNTERS and self._interpreter.configuration.counters:
            return self._counters.counts()[_COUNTERS.index(offset)] % (1 << 32)
        return self._constants.get(offset, 0)

    def write(self, offset: int, data: bytes) -> None:
        """Write whole words from ``offset`` on; words that cannot be written are ignored."""
        ring, end = RING_OFFSET, RING_OFFSET + RECORD_BYTES * self._slots
        self._counters.wrote(len(data) // WORD_BYTES, ring=ring <= offset < end)
        if ring <= offset and offset + len(data) <= end:
            self._window[offset : offset + len(data)] = data
            return
        for place in range(0, len(data), WORD_BYTES):
            word = data[place : place + WORD_BYTES]
            at = offset + place
            if writer := self._writers.get(at):
                writer(int.from_bytes(word, "little"))
            elif ring <= at < end:
                self._window[at : at + WORD_BYTES] = word

    def _status(self) -> int:
        busy = self._doorbell != self._retired
        return _word("STATUS", BUSY=busy, FAULT=self._stop is not None, DRAINED=True)

    def _fault(self) -> int:
        if self._stop is None:
            return 0
        return _word("FAULT", CODE=self._stop.status, PORT=self._stop.port, INDEX=self._retired)

    def _ring(self, word: int) -> None:
        before = (self._doorbell - self._retired) % _INDEXES
        self._doorbell = word % _INDEXES
        ahead = (self._doorbell - self._retired) % _INDEXES
        if self._stop:
            return
        if not before <= ahead <= self._slots:
            self._end(Stop(Status.BAD_DOORBELL))
            return
        records = tuple(self._execute())
        self._counters.submitted(records)

    def _execute(self) -> Iterator[bytes]:
        """Execute the commands that are pending. Yield the records of those that retire."""
        while self._retired != self._doorbell and not self._stop:
            if self._endless:
                return
            start = RING_OFFSET + self._retired % self._slots * RECORD_BYTES
            record = bytes(self._window[start : start + RECORD_BYTES])
            stop = self._interpreter.execute(record)
            self._endless = stop is ENDLESS
            if self._endless:
                return
            self._end(stop)
            if not self._stop:
                control = int.from_bytes(record[:WORD_BYTES], "little")
                self._pending |= bool(_INTERRUPT.extract(control))
                self._retired = (self._retired + 1) % _INDEXES
                yield record

    def _end(self, stop: Stop | None) -> None:
        """End the command RETIRED: write its completion, and stop the engine if it failed."""
        status = stop.status if stop else Status.OK
        word = _CODE.insert(status) | _INDEX.insert(self._retired)
        place = COMPLETION_OFFSET + self._retired % self._slots * WORD_BYTES
        self._window[place : place + WORD_BYTES] = word.to_bytes(WORD_BYTES, "little")
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
        bits = register("INTERRUPT")
        self._enable = bool(bits["ENABLE"].extract(word))
        self._pending = self._pending and not bits["PENDING"].extract(word)


def _word(name: str, **values: int) -> int:
    bits = register(name)
    return sum(bits[field].insert(int(value)) for field, value in values.items())


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
