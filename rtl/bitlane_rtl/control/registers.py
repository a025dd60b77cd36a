"""The control window: the registers, and access to the completions and the command ring.

Offsets, fields and access rights come from `abi`. Reads have no side effects.
"""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import (
    ABI_VERSION,
    COMPLETION_OFFSET,
    IDENTITY,
    RECORD_BYTES,
    RING_OFFSET,
    WORD_BYTES,
    Port,
    register,
)
from ..capabilities import capabilities, geometry, search
from ..command import FaultReport
from ..configuration import Configuration
from ..ports import ControlPort
from .ring import RingWrite

__all__ = ["EVENTS", "Registers"]

EVENTS = {
    "busy": "BUSY_CYCLES",
    "a_beat": "A_BEATS",
    "a_stall": "A_STALLS",
    "b_beat": "B_BEATS",
    "b_stall": "B_STALLS",
    "y_beat": "Y_BEATS",
    "y_stall": "Y_STALLS",
}
"""Inputs that are counted, and the registers that count the cycles in which they are 1."""

_WORD_BITS = exact_log2(WORD_BYTES)


def _at(address: Value, name: str) -> Value:
    """Return whether ``address`` is the address of the register ``name``."""
    return address[_WORD_BITS:] == register(name).offset // WORD_BYTES


def _within(address: Value, offset: int, words: int) -> Value:
    """Return whether ``address`` is in ``words`` words, a power of two, from ``offset`` on."""
    bits = exact_log2(words * WORD_BYTES)
    return address[bits:] == offset >> bits


def _word(name: str, **fields: Value) -> Value:
    """Return the word of the register ``name`` with its ``fields``, and zeros between them."""
    parts: list[Value] = []
    width = 0
    for bits in sorted(register(name).bits, key=lambda bits: bits.low):
        parts += [Const(0, bits.low - width), fields[bits.name][: bits.width]]
        width = bits.low + len(parts[-1])
    return Cat(*parts)


def _field(word: Value, name: str, field: str) -> Value:
    """Return a field of one bit of a word that is written to the register ``name``."""
    return word[register(name)[field].low]


class Registers(wiring.Component):
    """Decodes the control window of an engine.

    Members
    -------
    control
        The port of the window. Unmapped words read 0 and ignore writes. The command ring reads 0,
        and read-only registers ignore writes.
    ring
        A word for the ring, in the cycle after ``control.write``.
    completion_address
        Slot whose completion may be read, in the cycle of ``control.read``.
    completion_data
        Its word, one cycle later (`ring.Completions`).
    doorbell
        DOORBELL: commands submitted. Changes in the cycle after it is written.
    doorbell_write, doorbell_data
        ``doorbell`` will be ``doorbell_data`` in the next cycle.
    rung
        DOORBELL was written in the cycle before.
    bad_doorbell
        In the cycle before, DOORBELL was written with a number that exceeds ``retired`` by more
        than the slots, or that is behind the number that it had.
    clear
        CLEAR was written: 1 from the cycle after that until the one that has ``flush``.
    flush
        The engine starts afresh in this cycle. DOORBELL becomes 0.
    timeout
        TIMEOUT, in cycles. Changes 2 cycles after it is written.
    irq
        The interrupt line, a level.
    interrupt_set
        A command with INTERRUPT retired, or the engine stopped with a fault, in the cycle before.
        Setting PENDING wins over clearing it.
    busy, fault, drained
        Bits of STATUS.
    report
        FAULT and FAULT_ADDRESS. Both read 0 while ``fault`` is 0, and FAULT_ADDRESS reads 0 while
        ``report.port`` is NONE: ``report.address`` has no meaning then.
    retired
        RETIRED, and the index in FAULT.
    a_beat, a_stall, b_beat, b_stall, y_beat, y_stall
        Counted one cycle later, if the configuration has counters; so is ``busy``. Counters wrap.

    Latency: ``control.read_data`` is valid in the cycle after ``control.read`` and shows the values
    of that cycle. Throughput: an access a cycle. Undefined: ``read_data`` in other cycles.
    Area on ECP5: 177 LUT4, 11 CCU2C and 126 flip-flops; with counters 344 LUT4, 123 CCU2C and 365
    flip-flops.
    Clock: 232 MHz on ECP5-6, bound by the path from ``control.address`` to DOORBELL; with counters
    194 MHz, bound by a path into DOORBELL.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._ring_words = configuration.slots * RECORD_BYTES // WORD_BYTES
        super().__init__(
            {
                "control": Out(ControlPort()),
                "ring": Out(RingWrite(configuration.slots)),
                "completion_address": Out(range(configuration.slots)),
                "completion_data": In(32),
                "doorbell": Out(register("DOORBELL")["COUNT"].width),
                "doorbell_write": Out(1),
                "doorbell_data": Out(register("DOORBELL")["COUNT"].width),
                "rung": Out(1),
                "bad_doorbell": Out(1),
                "clear": Out(1),
                "flush": In(1),
                "timeout": Out(32),
                "irq": Out(1),
                "interrupt_set": In(1),
                "fault": In(1),
                "drained": In(1),
                "report": In(FaultReport(configuration)),
                "retired": In(register("RETIRED")["COUNT"].width),
            }
            | dict.fromkeys(EVENTS, In(1))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # DOORBELL is written at once. Every other write takes a cycle more, which no read can
        # observe, so that the bus's paths end at its decoding.
        late_data = Signal(32, reset_less=True)
        m.d.sync += late_data.eq(self.control.write_data)
        self._ring(m, late_data)
        self._clear(m, late_data)
        words = self._state() | {
            "DOORBELL": self._doorbell(m),
            "TIMEOUT": self._timeout(m, late_data),
            "INTERRUPT": self._interrupt(m, late_data),
        }
        if self._configuration.search:
            words["SEARCH"] = Const(search(self._configuration), 32)
        if self._configuration.counters:
            words |= self._counters(m, late_data)
        m.d.comb += [
            self.completion_address.eq(self.control.address[_WORD_BITS:]),
            self.control.read_data.eq(self._read(m, words)),
        ]
        return m

    def _written(self, m: Module, name: str) -> Value:
        """Return whether the write of the cycle before was to the register ``name``."""
        strobe = Signal(name=f"write_{name.lower()}")
        m.d.sync += strobe.eq(self.control.write & _at(self.control.address, name))
        return strobe

    def _ring(self, m: Module, late_data: Signal) -> None:
        address = self.control.address
        m.d.sync += [
            self.ring.enable.eq(
                self.control.write & _within(address, RING_OFFSET, self._ring_words)
            ),
            self.ring.address.eq(address[_WORD_BITS:]),
        ]
        m.d.comb += self.ring.data.eq(late_data)

    def _doorbell(self, m: Module) -> Value:
        m.d.comb += [
            self.doorbell_write.eq(self.control.write & _at(self.control.address, "DOORBELL")),
            self.doorbell_data.eq(self.control.write_data),
        ]
        with m.If(self.doorbell_write):
            m.d.sync += self.doorbell.eq(self.doorbell_data)
        with m.If(self.flush):
            m.d.sync += self.doorbell.eq(0)
        self._judge_doorbell(m)
        return _word("DOORBELL", COUNT=self.doorbell)

    def _judge_doorbell(self, m: Module) -> None:
        """Compute ``bad_doorbell``. DOORBELL moves by -slots to slots if it is not too far ahead,
        so a few bits distinguish the directions."""
        slots_log2 = exact_log2(self._configuration.slots)
        ahead = Signal(len(self.doorbell), reset_less=True)
        step = Signal(slots_log2 + 2, reset_less=True)
        # The write of DOORBELL arrives late in its cycle: the differences are computed in every
        # cycle, and compared in the next one.
        m.d.sync += [
            self.rung.eq(self.doorbell_write),
            ahead.eq(self.doorbell_data - self.retired),
            step.eq(self.doorbell_data - self.doorbell),
        ]
        too_far = ahead[slots_log2 + 1 :].any() | (ahead[slots_log2] & ahead[:slots_log2].any())
        m.d.comb += self.bad_doorbell.eq(self.rung & (too_far | step[-1]))

    def _clear(self, m: Module, late_data: Signal) -> None:
        cleared = Signal()
        requested = self._written(m, "CLEAR") & _field(late_data, "CLEAR", "CLEAR")
        m.d.comb += self.clear.eq(cleared | requested)
        m.d.sync += cleared.eq(self.clear & ~self.flush)

    def _timeout(self, m: Module, late_data: Signal) -> Value:
        timeout = Signal(32, init=register("TIMEOUT").reset or 0)
        m.d.comb += self.timeout.eq(timeout)
        with m.If(self._written(m, "TIMEOUT")):
            m.d.sync += timeout.eq(late_data)
        return timeout

    def _interrupt(self, m: Module, late_data: Signal) -> Value:
        enable = Signal()
        pending = Signal()
        m.d.comb += self.irq.eq(enable & pending)
        with m.If(self._written(m, "INTERRUPT")):
            m.d.sync += enable.eq(_field(late_data, "INTERRUPT", "ENABLE"))
            with m.If(_field(late_data, "INTERRUPT", "PENDING")):
                m.d.sync += pending.eq(0)
        with m.If(self.interrupt_set):
            m.d.sync += pending.eq(1)
        return _word("INTERRUPT", ENABLE=enable, PENDING=pending)

    def _state(self) -> dict[str, Value]:
        """Return the registers of the engine's state."""
        return {
            "STATUS": _word("STATUS", BUSY=self.busy, FAULT=self.fault, DRAINED=self.drained),
            "RETIRED": _word("RETIRED", COUNT=self.retired),
            "FAULT": _word(
                "FAULT", CODE=self.report.code, PORT=self.report.port, INDEX=self.retired
            ),
            "FAULT_ADDRESS": self.report.address,
        }

    def _counters(self, m: Module, late_data: Signal) -> dict[str, Value]:
        """Count all events. Return the counts by register."""
        clear = self._written(m, "COUNTERS_CLEAR") & _field(late_data, "COUNTERS_CLEAR", "CLEAR")
        counters: dict[str, Value] = {}
        for event, name in EVENTS.items():
            counter = Signal(32, name=name.lower())
            # Events end long paths of the engine, so a register takes them first.
            happened = Signal(name=f"{event}_happened")
            m.d.sync += happened.eq(getattr(self, event))
            with m.If(happened):
                m.d.sync += counter.eq(counter + 1)
            with m.If(clear):
                m.d.sync += counter.eq(0)
            counters[name] = counter
        return counters

    def _read(self, m: Module, words: Mapping[str, Value]) -> Value:
        """Return the word that was read in the cycle before.

        The address is decoded into one register for each word. The next cycle ANDs each word with
        its register and ORs them: a third of the LUTs of a multiplexer, and shallow on both sides.
        """
        address = self.control.address
        constants = {
            "IDENTITY": IDENTITY,
            "VERSION": ABI_VERSION,
            "CAPABILITIES": capabilities(self._configuration),
            "GEOMETRY": geometry(self._configuration),
            "MEMORY_BASE": self._configuration.memory_base,
            "MEMORY_LAST": self._configuration.memory_last,
        }
        index_bits = max(register(name).offset for name in constants).bit_length() - _WORD_BITS
        constant_index = Signal(index_bits, reset_less=True)
        constant = Signal(32)
        m.d.sync += constant_index.eq(address[_WORD_BITS:])
        with m.Switch(constant_index):
            for name, value in constants.items():
                with m.Case(register(name).offset // WORD_BYTES):
                    m.d.comb += constant.eq(value)
        constant_words = 1 << index_bits
        terms: list[tuple[Value, Value, str]] = [
            (_within(address, 0, constant_words), constant, "constant")
        ]
        slots = self._configuration.slots
        terms += [(_within(address, COMPLETION_OFFSET, slots), self.completion_data, "completion")]
        shown = {
            "FAULT": self.fault,
            "FAULT_ADDRESS": self.fault & (self.report.port != Port.NONE),
        }
        for name, word in words.items():
            chosen = _at(address, name)
            if name in shown:
                chosen &= shown[name]
            terms.append((chosen, word, name.lower()))
        result: Value = Const(0, 32)
        for chosen, word, name in terms:
            select = Signal(name=f"select_{name}")
            m.d.sync += select.eq(chosen)
            result |= Mux(select, word, 0)
        return result
