"""The SDRAM controller: connects arbiter, row manager, column commands, data paths and refresher.

The registers at the pins have an attribute that places them in the I/O cells.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ...ports.signatures import memory_members
from ...sdram_part import SdramPart, SdramTiming
from ...streams import HalfRateRegister
from .arbiter import Arbiter
from .burst import ChipLayout, Requester
from .column_commands import ColumnCommands
from .pins import ALL_BANKS, ChipCommand, SdramPins
from .read_path import ReadPath
from .refresher import Refresher
from .row_manager import RowManager
from .write_path import WritePath

__all__ = ["SdramMemory"]

_AT_PIN = {"syn_useioff": 1}


class SdramMemory(wiring.Component):
    """Serves an engine's ports from an SDRAM chip.

    Parameters
    ----------
    address_width, data_width
        Widths of the ports, in bits. A beat is 1, 2, 4 or 8 words of the chip.
    part
        The chip. Address bits above its size are ignored.
    timing
        The chip's times in cycles of this clock.
    read_ports
        Number of read ports, 1 or 2.

    Latency: a beat arrives ``cas + words + 8`` cycles after its request if its row is open; tRCD
    later if no row is open in its bank; tRCD + tRP later if another row is. A response arrives 2
    cycles after the burst's last WRITE.
    Throughput: the data lines are always busy if consecutive bursts lie in different banks or in
    one row; beats of one word wait a cycle for each PRECHARGE and ACTIVATE. A turn from reads to
    writes costs ``cas + 2`` cycles, a turn back ``cas``; a refresh costs tRP + tRFC and the time to
    open the rows again. Without masks, a burst with partial beats costs a read and two turns more.
    Undefined: the order of reads and writes that wait at the same time. Each reader must accept its
    beats without waiting for the other reader.

    Raises ``ValueError`` on other parameters.
    """

    a: Any
    """The first read port."""
    b: Any
    """The second read port; exists only with two."""
    write: Any
    """The write port."""
    pins: Any
    """The pins of the chip."""
    started: Signal
    """The chip has been initialized. Before that, all ports wait."""

    def __init__(
        self,
        address_width: int,
        data_width: int,
        part: SdramPart,
        timing: SdramTiming,
        *,
        read_ports: int = 2,
    ) -> None:
        self._layout = ChipLayout(part, data_width)
        self._timing = timing
        self._read_ports = read_ports
        super().__init__(
            memory_members(address_width, data_width, read_ports)
            | {
                "pins": Out(SdramPins(part)),
                "started": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout, timing = self._layout, self._timing
        m.submodules.arbiter = arbiter = Arbiter(layout)
        m.submodules.rows = rows = RowManager(layout, timing)
        m.submodules.columns = columns = ColumnCommands(layout, timing)
        m.submodules.refresher = refresher = Refresher(timing)
        m.submodules.read_path = read_path = ReadPath(layout, timing, self._read_ports)
        m.submodules.write_path = write_path = WritePath(layout)
        self._connect_requests(m, arbiter, read_path, write_path)
        wiring.connect(m, arbiter.o, rows.i)
        wiring.connect(m, rows.o, columns.i)
        # Registered: while the arbiter is stopped, an idle pipeline stays idle.
        m.d.sync += refresher.quiet.eq(~(arbiter.o.valid | rows.busy | columns.busy))
        m.d.comb += [
            arbiter.stop.eq(refresher.stop),
            rows.held.eq(columns.held),
            rows.close_all.eq(refresher.command == ChipCommand.PRECHARGE),
            columns.opens.eq((rows.command == ChipCommand.ACTIVATE) << rows.o.p.bank),
            self.started.eq(refresher.started),
        ]
        if layout.words == 1:
            # A READ or WRITE in every cycle would let no row be opened until a burst has ended.
            m.d.comb += [rows.bus.eq(1), columns.stall.eq(rows.command != ChipCommand.NONE)]
        else:
            m.d.comb += rows.bus.eq(~columns.fires)
        beat = columns.beat
        m.d.comb += [
            read_path.begins.eq(columns.fires & ~beat.write),
            read_path.requester.eq(beat.requester),
            read_path.last.eq(columns.last),
            write_path.begins.eq(columns.fires & beat.write),
            write_path.last.eq(columns.last),
            write_path.arrived.eq(read_path.write),
            write_path.beat.eq(read_path.beat),
            write_path.arrived_last.eq(read_path.beat_last),
        ]
        self._issue(m, rows, columns, refresher)
        self._connect_data(m, columns, refresher, read_path, write_path)
        return m

    def _connect_requests(
        self, m: Module, arbiter: Arbiter, read_path: ReadPath, write_path: WritePath
    ) -> None:
        """Connect the requests of all ports to the arbiter, and its grants to the ports."""
        readers = [self.a, self.b] if self._read_ports == 2 else [self.a]
        for requester, port in zip((Requester.A, Requester.B), readers, strict=False):
            self._connect_request(m, arbiter, requester, port.request, read_path.room)
        for port, beats in zip(readers, read_path.data, strict=True):
            wiring.connect(m, beats, wiring.flipped(port.data))
        request = self._connect_request(
            m, arbiter, Requester.WRITE, self.write.request, write_path.whole
        )
        self._read_partial_beats(m, request, arbiter.bursts[Requester.WRITE.value], write_path)
        wiring.connect(m, wiring.flipped(self.write.data), write_path.data)
        wiring.connect(m, write_path.response, wiring.flipped(self.write.response))
        m.d.comb += [
            write_path.granted.eq(arbiter.granted[Requester.WRITE.value]),
            read_path.granted.eq(
                arbiter.granted[Requester.A.value] | arbiter.granted[Requester.B.value]
            ),
            read_path.length.eq(arbiter.o.p.length),
        ]

    def _connect_request(
        self, m: Module, arbiter: Arbiter, requester: Requester, request: Any, may: Value
    ) -> Any:
        """Connect a port's requests, made while ``may``; return the stream that holds the next."""
        burst = arbiter.bursts[requester.value]
        # A half-rate slice cuts the engine's paths; the arbiter takes no more than that.
        m.submodules[f"request_{requester.name.lower()}"] = hold = HalfRateRegister(
            request.payload.shape()
        )
        wiring.connect(m, wiring.flipped(request), hold.i)
        self._locate(m, burst, requester, hold.o.p.address)
        m.d.comb += [
            burst.write.eq(requester is Requester.WRITE),
            burst.length.eq(hold.o.p.length),
            arbiter.requests[requester.value].eq(hold.o.valid & may),
            hold.o.ready.eq(arbiter.granted[requester.value]),
        ]
        return hold.o

    def _read_partial_beats(
        self, m: Module, request: Any, burst: Any, write_path: WritePath
    ) -> None:
        """Read partial beats of a burst to write, whose ``request`` stays: see `PartialBeats`."""
        # A burst stays in its block, so the column's other bits do not change.
        beat = slice(0, self._layout.beat_bits)
        _, _, column = self._layout.parts(request.p.address)
        with m.If(~write_path.write):
            m.d.comb += [
                burst.write.eq(0),
                burst.column[beat].eq(column[beat] + write_path.first),
                burst.length.eq(write_path.length),
                request.ready.eq(0),
            ]

    def _locate(self, m: Module, burst: Any, requester: Requester, address: Value) -> None:
        bank, row, column = self._layout.parts(address)
        m.d.comb += [
            burst.requester.eq(requester),
            burst.bank.eq(bank),
            burst.row.eq(row),
            burst.column.eq(column),
        ]

    def _issue(
        self, m: Module, rows: RowManager, columns: ColumnCommands, refresher: Refresher
    ) -> None:
        """Select the command of this cycle and drive the command and address pins."""
        part, timing = self._layout.part, self._timing
        mode = self._layout.word_bits | timing.cas << 4
        command = Signal(ChipCommand)
        bank = Signal(part.bank_bits)
        address = Signal(part.row_bits)
        m.d.comb += [
            command.eq(refresher.command | rows.command),
            bank.eq(rows.o.p.bank),
            address.eq(rows.o.p.row),
        ]
        with m.If(rows.command == ChipCommand.PRECHARGE):
            m.d.comb += address.eq(0)
        with m.If(refresher.command != ChipCommand.NONE):
            m.d.comb += [bank.eq(0), address.eq(1 << ALL_BANKS)]
            with m.If(refresher.command == ChipCommand.SET_MODE):
                m.d.comb += address.eq(mode)
        with m.If(columns.fires):
            m.d.comb += [
                command.eq(Mux(columns.beat.write, ChipCommand.WRITE, ChipCommand.READ)),
                bank.eq(columns.beat.bank),
                address.eq(columns.beat.column << self._layout.word_bits),
            ]
        for name, value in {"bank": bank, "address": address}.items():
            self._register(m, name, value)
        for bit, name in enumerate(("ras_n", "cas_n", "we_n")):
            self._register(m, name, ~command[bit], init=1)

    def _connect_data(
        self,
        m: Module,
        columns: ColumnCommands,
        refresher: Refresher,
        read_path: ReadPath,
        write_path: WritePath,
    ) -> None:
        """Connect the data and mask pins to the read and write data paths."""
        self._register(m, "o", write_path.word)
        if self._layout.part.masks:
            mask = Mux(columns.drives, write_path.mask, 0) | (~refresher.started).replicate(
                len(write_path.mask)
            )
            self._register(m, "mask", mask)
        drives, driven = Signal(), Signal()
        word = Signal.like(self.pins.i, reset_less=True, attrs=_AT_PIN)
        m.d.sync += [drives.eq(columns.drives), driven.eq(drives), word.eq(self.pins.i)]
        m.d.comb += [self.pins.oe.eq(driven), read_path.word.eq(word)]

    def _register(self, m: Module, name: str, value: Value, *, init: int | None = None) -> None:
        """Drive a pin from two registers in a row, because pins are far from the logic.

        Without ``init`` the registers have no reset.
        """
        pin = getattr(self.pins, name)
        width, start, free = len(pin), init or 0, init is None
        decided = Signal(width, name=f"{name}_decided", init=start, reset_less=free)
        at_pin = Signal(width, name=f"{name}_at_pin", init=start, reset_less=free, attrs=_AT_PIN)
        m.d.sync += [decided.eq(value), at_pin.eq(decided)]
        m.d.comb += pin.eq(at_pin)
