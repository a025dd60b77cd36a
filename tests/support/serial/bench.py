"""A compiled serial bridge between a line and storage, for long tests at its pins.

The line has a level in every cycle, as on a board. UART and frames belong to the test.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, LINK_VERSION, SEQUENCES, Answer
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.serial import SerialBridge
from cppsim import Model, StorageAccess, StoragePort
from support.board.model import BoardRules, MemoryDevice
from support.serial.frames import Levels, Reply, frame, hello, replies, uart_bytes, uart_levels

CONFIGURATION = Configuration(
    data_width=32, address_width=17, memory_base=0, memory_bytes=1 << 16, block_ram=True
)
DIVIDER = 8

LAG = 8
"""Cycles by which ``rx`` lags the levels that are played."""

_LINE_ADDRESS_BITS = 20
_EVENT_ADDRESS_BITS = 16

_STROBE = 20
"""The bit of the address of an event of the memory at which its strobe starts."""


@dataclass(frozen=True)
class Event:
    """A write by the bridge: a byte of memory or a word of the control window."""

    address: int
    data: int


class _Bench(wiring.Component):
    """The bridge; a player and a recorder of its line; stalls and a log of its memory's writes."""

    def __init__(self, configuration: Configuration, divider: int) -> None:
        self._bridge = SerialBridge(configuration, divider)
        width = configuration.address_width
        super().__init__(
            {
                "stalls": In(1),
                "interrupt": In(1),
                "line_enable": Out(1),
                "line_address": Out(_LINE_ADDRESS_BITS),
                "line_data": In(8),
                "record_enable": Out(1),
                "record_data": Out(8),
                "memory_read": Out(1),
                "memory_address": Out(width - 2),
                "memory_data": In(32),
                "memory_write": Out(1),
                "memory_write_data": Out(32),
                "memory_mask": Out(4),
                "window_read": Out(1),
                "window_address": Out(12),
                "window_data": In(32),
                "window_write": Out(1),
                "window_write_data": Out(32),
                "window_mask": Out(4, init=0xF),
                "event_enable": Out(1),
                "event_address": Out(_EVENT_ADDRESS_BITS),
                "event_data": Out(64),
                "event_mask": Out(8, init=0xFF),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        io: Any = self
        m.submodules.bridge = bridge = self._bridge
        cycle = Signal(_LINE_ADDRESS_BITS + 3)
        player = Signal(8, init=0xFF)
        recorder = Signal(8)
        m.d.comb += [
            # The first cycle of each eight requests the levels of the next eight.
            io.line_enable.eq(cycle[:3] == 0),
            io.line_address.eq(cycle[3:]),
            bridge.rx.eq(player[0]),
            bridge.interrupt.eq(io.interrupt),
            io.record_enable.eq(cycle[:3] == 7),
            io.record_data.eq(Cat(recorder[1:], bridge.tx)),
        ]
        m.d.sync += [
            cycle.eq(cycle + 1),
            player.eq(Mux(cycle[:3] == 7, io.line_data, Cat(player[1:], 1))),
            recorder.eq(io.record_data),
        ]

        memory, control = bridge.memory, bridge.control
        width = len(memory.address)
        noise = Signal(16, init=1)
        m.d.sync += noise.eq(Cat(noise[1:], noise[0] ^ noise[2] ^ noise[3] ^ noise[5]))
        access = Signal()
        m.d.comb += [
            memory.ready.eq(~io.stalls | noise[:2].all()),
            access.eq(memory.enable & memory.ready),
            io.memory_read.eq(access & ~memory.strobe.any()),
            io.memory_write.eq(access & memory.strobe.any()),
            io.memory_address.eq(memory.address[2:]),
            io.memory_write_data.eq(memory.write_data),
            io.memory_mask.eq(memory.strobe),
            io.window_read.eq(control.read),
            io.window_write.eq(control.write),
            io.window_address.eq(control.address[2:]),
            io.window_write_data.eq(control.write_data),
            io.event_enable.eq(io.memory_write | io.window_write),
        ]
        with m.If(io.window_write):
            m.d.comb += io.event_data.eq(
                Cat(control.write_data, Const(CONTROL_BASE, 32) | control.address)
            )
        with m.Else():
            m.d.comb += io.event_data.eq(
                Cat(memory.write_data, memory.address, Const(0, _STROBE - width), memory.strobe)
            )
        with m.If(io.event_enable):
            m.d.sync += io.event_address.eq(io.event_address + 1)
        # Read data are valid for one cycle only.
        data_due = Signal()
        word_due = Signal()
        m.d.sync += [data_due.eq(io.memory_read), word_due.eq(control.read)]
        m.d.comb += [
            memory.read_data.eq(Mux(data_due, io.memory_data, Cat(noise, noise))),
            control.read_data.eq(Mux(word_due, io.window_data, Cat(noise, noise))),
        ]
        return m


_READ, _WRITE = StorageAccess.READ, StorageAccess.WRITE
_STORAGE = tuple(
    StoragePort(buffer=buffer, access=access, enable=enable, address=address, data=data, mask=mask)
    for buffer, access, enable, address, data, mask in (
        ("line", _READ, "line_enable", "line_address", "line_data", ""),
        ("record", _WRITE, "record_enable", "line_address", "record_data", "record_enable"),
        ("memory", _READ, "memory_read", "memory_address", "memory_data", ""),
        ("memory", _WRITE, "memory_write", "memory_address", "memory_write_data", "memory_mask"),
        ("window", _READ, "window_read", "window_address", "window_data", ""),
        ("window", _WRITE, "window_write", "window_address", "window_write_data", "window_mask"),
        ("events", _WRITE, "event_enable", "event_address", "event_data", "event_mask"),
    )
)


class SerialBench:
    """A bench that plays levels on the bridge's ``rx``, and records its actions.

    ``memory`` and ``window`` hold random bytes, which reads see and writes change. The first byte
    of ``memory`` has address 0.
    """

    def __init__(
        self,
        configuration: Configuration = CONFIGURATION,
        divider: int = DIVIDER,
        seed: int = 0,
        *,
        stalls: bool = False,
    ) -> None:
        self.divider = divider
        self.configuration = configuration
        generator = np.random.default_rng(seed)
        self.memory = generator.integers(0, 256, configuration.memory_last + 1, dtype=np.uint8)
        self.window = generator.integers(0, 256, CONTROL_SIZE, dtype=np.uint8)
        self._line = np.full(1 << _LINE_ADDRESS_BITS, 0xFF, np.uint8)
        self._record = np.zeros(1 << _LINE_ADDRESS_BITS, np.uint8)
        self._events = np.zeros(8 << _EVENT_ADDRESS_BITS, np.uint8)
        self._events_seen = 0
        self._evaluator = Model(
            _Bench(configuration, divider),
            storage=_STORAGE,
            buffers={
                "line": self._line,
                "record": self._record,
                "memory": self.memory,
                "window": self.window,
                "events": self._events,
            },
        )
        self.stall(stalls)

    def stall(self, stalls: bool) -> None:
        """Set whether the memory is ready in about a quarter of all cycles only."""
        self._evaluator.set("stalls", stalls)

    def interrupt(self, level: bool) -> None:
        self._evaluator.set("interrupt", level)

    def play(self, levels: Levels, quiet: int = 6000) -> Levels:
        """Play ``levels``, then idle until ``tx`` has been idle for ``quiet`` cycles, too.

        Returns ``tx`` in each of these cycles and in 8 before them, by which ``rx`` lags.
        """
        parts = [self._play(levels)]
        while len(levels) or not parts[-1].all():
            levels = np.ones(quiet, np.uint8)
            parts.append(self._play(levels))
            levels = levels[:0]
        return np.concatenate(parts)

    def _play(self, levels: Levels) -> Levels:
        packed = np.packbits(levels, bitorder="little")
        if len(levels) % 8:
            packed[-1] |= 0xFF << len(levels) % 8 & 0xFF
        assert len(packed) <= len(self._line), f"{len(levels)} cycles are too many"
        first = self._evaluator.cycles // 8
        places = np.arange(first, first + len(packed)) % len(self._line)
        self._line[places] = packed
        self._evaluator.step(8 * len(packed))
        self._line[places] = 0xFF
        return np.unpackbits(self._record[places], bitorder="little")

    def exchange(self, line: bytes, gap: int = 0) -> bytes:
        """Send bytes with ``gap`` idle cycles before each; return the bytes that came back."""
        return self.exchange_levels(uart_levels(line, self.divider, gap))

    def exchange_levels(self, levels: Levels) -> bytes:
        """Play ``levels``; return the bytes that came back."""
        return uart_bytes(self.play(levels), self.divider)[0]

    def events(self) -> list[Event]:
        """Return the writes since the last call."""
        words = self._events.view(np.uint32).reshape(-1, 2)
        last = self._evaluator.get("event_address")
        size = 1 << _EVENT_ADDRESS_BITS
        count = (last - self._events_seen) % size
        places = np.arange(self._events_seen, self._events_seen + count) % size
        self._events_seen = last
        return [event for word, address in words[places] for event in _events(address, word)]


def _events(address: int, word: int) -> Iterator[Event]:
    """Yield a write of the window, or those of the bytes of a word of memory."""
    if address >= CONTROL_BASE:
        yield Event(int(address), int(word))
        return
    strobe, first = int(address) >> _STROBE, int(address) % (1 << _STROBE) & ~3
    for lane, byte in enumerate(int(word).to_bytes(4, "little")):
        if strobe >> lane & 1:
            yield Event(first + lane, byte)


def _memory_of(rules: BoardRules) -> MemoryDevice:
    assert isinstance(rules.device, MemoryDevice)
    return rules.device


def assert_same_answers(bench: SerialBench, rules: BoardRules, line: bytes, gap: int = 0) -> None:
    """Send ``line``, and assert that the answers follow the rules."""
    expected = rules.answers(line)
    assert replies(bench.exchange(line, gap), expected) == expected, line.hex()


def assert_same_storage(bench: SerialBench, rules: BoardRules) -> None:
    device = _memory_of(rules)
    assert bench.memory[device.memory_base :].tobytes() == device.memory
    assert bench.window.tobytes() == device.window


def assert_same_events(bench: SerialBench, rules: BoardRules) -> None:
    """Assert that the writes since the last call, and the storage after them, follow the rules."""
    device = _memory_of(rules)
    assert len(bench.events()) == device.changes
    device.written.clear()
    device.window_writes.clear()
    assert_same_storage(bench, rules)


def start(bench: SerialBench, expected: int = 0) -> BoardRules:
    """Begin a session in which ``expected`` is the next number."""
    nonce = 0x1234_5678
    [answer] = replies(bench.exchange(b"\0" + frame(hello(expected - 1, nonce))))
    data = bytes([LINK_VERSION, 0, 0, 8]) + nonce.to_bytes(4, "little")
    assert answer == Reply((expected - 1) % SEQUENCES, Answer.DONE, data)
    bench.events()
    device = MemoryDevice(bench.configuration.memory_base, bench.configuration.memory_bytes)
    device.memory[:] = bench.memory[device.memory_base :].tobytes()
    device.window[:] = bench.window.tobytes()
    return BoardRules(device, expected=expected)
