"""An SDRAM chip behind the engine's memory ports: joins what picks, opens, accesses and keeps up.

Its registers towards the pins are marked for the pins' own cells, so no logic is behind them.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...ports.byte_access import ByteAccess
from ...ports.memory_port import ReadPort, WritePort
from ...streams.queue import Hold
from .accesses import Accesses
from .arbiter import Arbiter
from .burst import ChipLayout, Requester
from .host import Host
from .part import SdramPart, SdramTiming
from .pins import ALL_BANKS, ChipCommand, SdramPins
from .reading import Reading
from .refresher import Refresher
from .row_manager import RowManager
from .writing import Writing

__all__ = ["SdramMemory"]

_AT_PIN = {"syn_useioff": 1}


class SdramMemory(wiring.Component):
    """Serves an engine's ports, and the host byte by byte, from an SDRAM chip.

    Parameters
    ----------
    address_width, data_width
        Of the ports, in bits. A beat is 2, 4 or 8 words of the chip.
    part
        The chip. Address bits above its size are ignored.
    timing
        The chip's times in cycles of this clock.
    read_ports
        1 or 2.

    Members
    -------
    a, b : ``In(ReadPort(address_width, data_width))``
        ``b`` only with two read ports.
    write : ``In(WritePort(address_width, data_width))``
    host : ``In(ByteAccess(address_width))``
    pins : ``Out(SdramPins(part))``
    started : ``Out(1)``
        The chip can be accessed; before that, all ports wait.

    Latency: a beat comes ``cas + words + 8`` cycles after its burst was asked for if its row is
    open, else tRCD more, and tRP again if another row is. A response comes 2 cycles after its
    burst's last WRITE was given.
    Throughput: bursts one behind the other have the data lines all the time, if their banks differ
    or their row is one. Lost are ``cas + 2`` cycles from reads to writes, ``cas`` back again, and
    tRP + tRFC and what it takes to open rows again at each refresh.
    Undefined: the order of reads and writes that wait for each other at the same time. Each reader
    must take its beats without waiting for the other's.

    Raises ``ValueError`` on other parameters.
    """

    a: Any
    b: Any
    write: Any
    host: Any
    pins: Any
    started: Signal

    def __init__(
        self,
        address_width: int,
        data_width: int,
        part: SdramPart,
        timing: SdramTiming,
        *,
        read_ports: int = 2,
    ) -> None:
        if read_ports not in (1, 2):
            raise ValueError(f"read_ports: {read_ports} is neither 1 nor 2")
        self._layout = ChipLayout(part, data_width)
        self._timing = timing
        self._read_ports = read_ports
        self._address_width = address_width
        reader = ReadPort(address_width, data_width)
        super().__init__(
            {"a": In(reader)}
            | ({"b": In(reader)} if read_ports == 2 else {})
            | {
                "write": In(WritePort(address_width, data_width)),
                "host": In(ByteAccess(address_width)),
                "pins": Out(SdramPins(part)),
                "started": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout, timing = self._layout, self._timing
        m.submodules.arbiter = arbiter = Arbiter(layout)
        m.submodules.rows = rows = RowManager(layout, timing)
        m.submodules.accesses = accesses = Accesses(layout, timing)
        m.submodules.refresher = refresher = Refresher(timing)
        m.submodules.reading = reading = Reading(layout, timing, self._read_ports)
        m.submodules.writing = writing = Writing(layout)
        m.submodules.host = host = Host(layout, self._address_width)
        wiring.connect(m, wiring.flipped(self.host), host.port)
        self._ask(m, arbiter, reading, writing, host)
        wiring.connect(m, arbiter.o, rows.i)
        wiring.connect(m, rows.o, accesses.i)
        # A cycle late: once no burst is picked, what is quiet stays quiet.
        m.d.sync += refresher.quiet.eq(~(arbiter.o.valid | rows.busy | accesses.busy))
        m.d.comb += [
            arbiter.stop.eq(refresher.stop),
            rows.kept.eq(accesses.kept),
            rows.bus.eq(~accesses.goes),
            rows.close_all.eq(refresher.command == ChipCommand.PRECHARGE),
            accesses.opens.eq((rows.command == ChipCommand.ACTIVATE) << rows.o.p.bank),
            self.started.eq(refresher.started),
        ]
        beat = accesses.beat
        of_host = beat.requester == Requester.HOST
        reads, writes = accesses.goes & ~beat.write, accesses.goes & beat.write
        m.d.comb += [
            reading.begins.eq(reads),
            reading.requester.eq(beat.requester),
            reading.last.eq(accesses.last),
            writing.begins.eq(writes),
            writing.last.eq(accesses.last),
            writing.host.eq(of_host),
            writing.host_data.eq(host.data),
            writing.host_strobe.eq(host.strobe),
            host.written.eq(writes & of_host),
            host.came.eq(reading.host),
            host.beat.eq(reading.beat),
        ]
        self._command(m, rows, accesses, refresher)
        self._move(m, accesses, refresher, reading, writing)
        return m

    def _ask(
        self, m: Module, arbiter: Arbiter, reading: Reading, writing: Writing, host: Host
    ) -> None:
        """Show the arbiter what waits at the ports, and tell these what it took."""
        readers = [self.a, self.b] if self._read_ports == 2 else [self.a]
        for requester, port in zip((Requester.A, Requester.B), readers, strict=False):
            self._show(m, arbiter, requester, port.request, reading.room)
        for port, beats in zip(readers, reading.data, strict=True):
            wiring.connect(m, beats, wiring.flipped(port.data))
        self._show(m, arbiter, Requester.WRITE, self.write.request, writing.whole)
        wiring.connect(m, wiring.flipped(self.write.data), writing.data)
        wiring.connect(m, writing.response, wiring.flipped(self.write.response))
        m.d.comb += [
            writing.picked.eq(arbiter.taken[Requester.WRITE.value]),
            reading.picked.eq(arbiter.taken[Requester.A.value] | arbiter.taken[Requester.B.value]),
            reading.length.eq(arbiter.o.p.length),
            arbiter.asks[Requester.HOST.value].eq(host.asks),
            host.picked.eq(arbiter.taken[Requester.HOST.value]),
        ]
        self._place(m, arbiter.bursts[Requester.HOST.value], Requester.HOST, host.address)
        m.d.comb += arbiter.bursts[Requester.HOST.value].write.eq(host.write)

    def _show(
        self, m: Module, arbiter: Arbiter, requester: Requester, request: Any, may: Value
    ) -> None:
        burst = arbiter.bursts[requester.value]
        # Separates the engine's logic from the arbiter's; requests are at most that frequent.
        m.submodules[f"request_{requester.name.lower()}"] = hold = Hold(request.payload.shape())
        wiring.connect(m, wiring.flipped(request), hold.i)
        self._place(m, burst, requester, hold.o.p.address)
        m.d.comb += [
            burst.write.eq(requester is Requester.WRITE),
            burst.length.eq(hold.o.p.length),
            arbiter.asks[requester.value].eq(hold.o.valid & may),
            hold.o.ready.eq(arbiter.taken[requester.value]),
        ]

    def _place(self, m: Module, burst: Any, requester: Requester, address: Value) -> None:
        bank, row, column = self._layout.parts(address)
        m.d.comb += [
            burst.requester.eq(requester),
            burst.bank.eq(bank),
            burst.row.eq(row),
            burst.column.eq(column),
        ]

    def _command(
        self, m: Module, rows: RowManager, accesses: Accesses, refresher: Refresher
    ) -> None:
        """From whoever gives a command to the pins."""
        part, timing = self._layout.part, self._timing
        mode = self._layout.word_bits | timing.cas << 4
        given = Signal(ChipCommand)
        bank = Signal(part.bank_bits)
        address = Signal(part.row_bits)
        m.d.comb += [
            given.eq(refresher.command | rows.command),
            bank.eq(rows.o.p.bank),
            address.eq(rows.o.p.row),
        ]
        with m.If(rows.command == ChipCommand.PRECHARGE):
            m.d.comb += address.eq(0)
        with m.If(refresher.command != ChipCommand.NONE):
            m.d.comb += [bank.eq(0), address.eq(1 << ALL_BANKS)]
            with m.If(refresher.command == ChipCommand.SET_MODE):
                m.d.comb += address.eq(mode)
        with m.If(accesses.goes):
            m.d.comb += [
                given.eq(Mux(accesses.beat.write, ChipCommand.WRITE, ChipCommand.READ)),
                bank.eq(accesses.beat.bank),
                address.eq(accesses.beat.column << self._layout.word_bits),
            ]
        for name, value in {"bank": bank, "address": address}.items():
            self._register(m, name, value)
        for bit, name in enumerate(("ras_n", "cas_n", "we_n")):
            self._register(m, name, ~given[bit], init=1)

    def _move(
        self,
        m: Module,
        accesses: Accesses,
        refresher: Refresher,
        reading: Reading,
        writing: Writing,
    ) -> None:
        """Words, between the pins and who has them."""
        self._register(m, "o", writing.word)
        mask = Mux(accesses.drives, writing.mask, 0) | (~refresher.started).replicate(
            len(writing.mask)
        )
        self._register(m, "mask", mask)
        drives, driven = Signal(), Signal()
        word = Signal.like(self.pins.i, reset_less=True, attrs=_AT_PIN)
        m.d.sync += [drives.eq(accesses.drives), driven.eq(drives), word.eq(self.pins.i)]
        m.d.comb += [self.pins.oe.eq(driven), reading.word.eq(word)]

    def _register(self, m: Module, name: str, value: Value, *, init: int | None = None) -> None:
        """Two registers towards a pin: what decides is far from where the pins are.

        Without ``init`` what is in them after reset does not matter.
        """
        pin = getattr(self.pins, name)
        width, start, free = len(pin), init or 0, init is None
        decided = Signal(width, name=f"{name}_decided", init=start, reset_less=free)
        at_pin = Signal(width, name=f"{name}_at_pin", init=start, reset_less=free, attrs=_AT_PIN)
        m.d.sync += [decided.eq(value), at_pin.eq(decided)]
        m.d.comb += pin.eq(at_pin)
