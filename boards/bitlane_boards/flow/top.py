"""The circuit of a board, without pins and clock: bridge, engine and memory. Wires only."""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.bus import (
    BankedMemory,
    BlockRam,
    SdramMemory,
    SdramPins,
    SharedSram,
    SinglePortRam,
    SramPort,
)
from bitlane_rtl.engine import Engine
from bitlane_rtl.ethernet import Gmii, NetworkBridge
from bitlane_rtl.ports import ReadArbiter, WriteArbiter
from bitlane_rtl.sdram_part import SdramTiming
from bitlane_rtl.serial import SerialBridge
from bitlane_rtl.streams import HalfRateRegister

from ..board import Board, MemoryKind

__all__ = ["BURSTS", "SINGLE_PORT", "Top"]

SINGLE_PORT = (MemoryKind.SPRAM, MemoryKind.BLOCK)
"""Memories that do one access a cycle."""

BURSTS = {kind: 4 if kind is MemoryKind.BANKS else 16 for kind in MemoryKind}
"""Bursts in flight that a port of a memory shares. Banks have three of one beat at most, and
without LUT RAM 16 are the longest path of the HX8K's circuit."""


class Top(wiring.Component):
    """An `Engine` and its memory behind a `SerialBridge` or a `NetworkBridge`.

    The bridge shares the engine's ports ``a`` and ``write``, burst by burst. On a serial line, a
    memory that does one access a cycle has a port for the bridge, a word wide.

    Members
    -------
    rx : ``In(1, init=1)``
        The serial line from the host; asynchronous.
    tx : ``Out(1, init=1)``
        The serial line to the host.
    received : ``In(Gmii())``, in the domain ``rx``; sent : ``Out(Gmii())``, in the domain ``tx``
        In place of these with an Ethernet port: the bytes from and to the PHY.
    busy, fault : ``Out(1)``
        The state of the engine, for LEDs. On a network, the last of the board's LEDs also blinks
        while the PHY reports a link that is not a gigabit.
    sdram : ``Out(SdramPins(board.sdram))``
        Only with such a chip.

    Needs a clock domain ``sync`` of ``board.clock_hz`` and, with an Ethernet port, ``rx`` and
    ``tx`` of 125 MHz. Needs no platform.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._has_host_port = not board.ethernet and board.memory in SINGLE_PORT
        if board.ethernet:
            line: dict[str, Any] = {"received": In(Gmii()), "sent": Out(Gmii())}
        else:
            line = {"rx": In(1, init=1), "tx": Out(1, init=1)}
        chip = {"sdram": Out(SdramPins(board.sdram))} if board.sdram else {}
        super().__init__(line | {"busy": Out(1), "fault": Out(1)} | chip)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = self._board.configuration
        m.submodules.engine = engine = Engine(configuration)
        m.submodules.bridge = bridge = self._bridge(m)
        m.submodules.memory = memory = self._memory(m)
        wiring.connect(m, bridge.control, engine.control)
        if self._has_host_port:
            wiring.connect(m, bridge.memory, memory.host)
            wiring.connect(m, engine.read_a, memory.a)
            wiring.connect(m, engine.write, memory.write)
        else:
            self._share(m, engine, bridge, memory)
        if configuration.two_ports:
            wiring.connect(m, engine.read_b, memory.b)
        lights: dict[str, Value] = {"busy": engine.busy, "fault": engine.fault}
        if self._board.ethernet:
            lights["busy" if self._board.fault_led is None else "fault"] |= bridge.blink
        m.d.comb += bridge.interrupt.eq(engine.irq)
        m.d.comb += [getattr(self, name).eq(light) for name, light in lights.items()]
        return m

    def _share(self, m: Module, engine: Engine, bridge: Any, memory: Any) -> None:
        """Let engine and bridge share two ports of the memory."""
        configuration = self._board.configuration
        widths = configuration.address_width, configuration.data_width
        bursts = BURSTS[self._board.memory]
        m.submodules.reads = reads = ReadArbiter(*widths, bursts)
        m.submodules.writes = writes = WriteArbiter(*widths, bursts)
        wiring.connect(m, engine.read_a, reads.a)
        wiring.connect(m, bridge.read, reads.b)
        wiring.connect(m, reads.port, memory.a)
        wiring.connect(m, engine.write, writes.a)
        # The bridge has a beat of 64 bits every second cycle. Without the slice, the longest path
        # is from the arbiter through the bridge to the received packets: 100 MHz instead of 108.
        m.submodules.beats = beats = HalfRateRegister(bridge.write.data.p.shape())
        wiring.connect(m, bridge.write.request, writes.b.request)
        wiring.connect(m, bridge.write.data, beats.i)
        wiring.connect(m, beats.o, writes.b.data)
        wiring.connect(m, writes.b.response, bridge.write.response)
        wiring.connect(m, writes.port, memory.write)

    def _bridge(self, m: Module) -> Any:
        """Return the bridge between the board's line, the engine and the memory."""
        board = self._board
        if board.ethernet:
            network = NetworkBridge(
                board.configuration, board.ethernet.addresses, clock_hz=board.clock_hz
            )
            wiring.connect(m, wiring.flipped(self.received), network.rx)
            wiring.connect(m, network.tx, wiring.flipped(self.sent))
            return network
        serial = SerialBridge(board.configuration, board.divider, bursts=not self._has_host_port)
        m.d.comb += [serial.rx.eq(self.rx), self.tx.eq(serial.tx)]
        return serial

    def _memory(self, m: Module) -> Any:
        """Return the board's memory."""
        board, configuration = self._board, self._board.configuration
        widths = configuration.address_width, configuration.data_width
        read_ports = 1 + configuration.two_ports
        if board.memory is MemoryKind.BANKS:
            return BankedMemory(*widths, board.words, banks=board.banks, read_ports=read_ports)
        if board.sdram:
            timing = SdramTiming.of(board.sdram, board.clock_hz)
            chip = SdramMemory(*widths, board.sdram, timing, read_ports=read_ports)
            wiring.connect(m, chip.pins, wiring.flipped(self.sdram))
            return chip
        adapter: Any = SharedSram if self._has_host_port else SramPort
        memory = adapter(*widths, board.words, read_ports=read_ports)
        if board.memory is MemoryKind.SPRAM:
            storage: Any = SinglePortRam(board.words)
        else:
            storage = BlockRam(board.words, configuration.data_width)
        m.submodules.storage = storage
        wiring.connect(m, memory.memory, storage.memory)
        return memory
