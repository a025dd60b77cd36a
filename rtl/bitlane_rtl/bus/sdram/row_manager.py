"""Opens the row of the next burst while the burst before it uses the data lines."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ...sdram_part import SdramTiming
from .burst import ChipLayout, PlacedBurst
from .pins import ChipCommand

__all__ = ["RowManager"]


class _State(enum.Enum):
    """The state of the burst that is stored."""

    EMPTY = 0
    """No burst is stored."""
    LOOK = 1
    """The row is compared with the bank's open row: a hit is valid at ``o``."""
    CLOSE = 2
    """Another row of the bank is open: PRECHARGE follows."""
    OPEN = 3
    """No row of the bank is open: ACTIVATE follows, after tRP."""
    WAIT = 4
    """The row is being opened: the burst is valid at ``o`` after tRCD."""


class RowManager(wiring.Component):
    """Opens the row of each burst in its bank, with PRECHARGE and ACTIVATE.

    A row stays open until a burst needs another row of the bank, or all rows are closed.

    Members
    -------
    i, o
        A burst is valid at ``o`` once its row may be accessed from the next cycle on.
    held
        Banks that must not be closed in this cycle.
    bus
        The command pins are free in this cycle.
    command
        PRECHARGE, ACTIVATE or NONE, for bank and row of ``o``.
    close_all
        The refresher closes all rows in this cycle.
    busy
        A burst is stored.

    Latency: 1 cycle if the row is open; tRCD more if no row of the bank is; tRCD + tRP more if
    another row is. Throughput: one burst per latency.
    """

    def __init__(self, layout: ChipLayout, timing: SdramTiming) -> None:
        self._layout = layout
        self._timing = timing
        burst = stream.Signature(PlacedBurst(layout))
        super().__init__(
            {
                "i": In(burst),
                "o": Out(burst),
                "held": In(1 << layout.part.bank_bits),
                "bus": In(1),
                "command": Out(ChipCommand),
                "close_all": In(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing, part = self._timing, self._layout.part
        # The burst before takes at least two cycles, so tRRD is two cycles shorter here.
        opening = max(timing.activate_to_access, timing.activate_to_activate - 2)
        state = Signal(_State)
        burst = Signal(PlacedBurst(self._layout), reset_less=True)
        is_open = Signal(1 << part.bank_bits)
        rows = Array(
            Signal(part.row_bits, name=f"row_{bank}", reset_less=True)
            for bank in range(1 << part.bank_bits)
        )
        wait = Signal(range(max(opening, timing.precharge)))
        # Compared as the burst enters: no row is opened between then and LOOK, and behind LOOK the
        # multiplexer and the comparison of the rows would bound the clock.
        hit = Signal(reset_less=True)
        bank_is_open = is_open.bit_select(burst.bank, 1)
        m.d.comb += [
            self.busy.eq(state != _State.EMPTY),
            self.o.payload.eq(burst),
            self.o.valid.eq(
                ((state == _State.LOOK) & bank_is_open & hit)
                | ((state == _State.WAIT) & (wait == 0))
            ),
            self.i.ready.eq((state == _State.EMPTY) | (self.o.valid & self.o.ready)),
        ]
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.Switch(state):
            with m.Case(_State.LOOK):
                with m.If(~bank_is_open):
                    m.d.sync += state.eq(_State.OPEN)
                with m.Elif(~hit):
                    m.d.sync += state.eq(_State.CLOSE)
            with m.Case(_State.CLOSE):
                with m.If(self.bus & ~self.held.bit_select(burst.bank, 1)):
                    m.d.comb += self.command.eq(ChipCommand.PRECHARGE)
                    m.d.sync += [state.eq(_State.OPEN), wait.eq(timing.precharge - 1)]
            with m.Case(_State.OPEN):
                with m.If(self.bus & (wait == 0)):
                    m.d.comb += self.command.eq(ChipCommand.ACTIVATE)
                    m.d.sync += [
                        state.eq(_State.WAIT),
                        wait.eq(max(opening - 2, 0)),
                        rows[burst.bank].eq(burst.row),
                        is_open.bit_select(burst.bank, 1).eq(1),
                    ]
        with m.If(self.i.ready):
            m.d.sync += [
                burst.eq(self.i.payload),
                hit.eq(rows[self.i.p.bank] == self.i.p.row),
                state.eq(_State.EMPTY),
            ]
            with m.If(self.i.valid):
                m.d.sync += state.eq(_State.LOOK)
        with m.If(self.close_all):
            m.d.sync += is_open.eq(0)
        return m
