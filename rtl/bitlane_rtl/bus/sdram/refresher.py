"""Initializes the chip after power-up and refreshes it periodically."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ...sdram_part import SdramTiming
from .pins import ChipCommand

__all__ = ["Refresher"]


class _State(enum.Enum):
    """The command that is issued next, once ``wait`` is 0 and no access is in flight."""

    CLOSE = 0
    """PRECHARGE of all banks, then REFRESH."""
    REFRESH = 1
    """REFRESH. Then WORK; before that, in the initialization, more of them and SET_MODE."""
    SET_MODE = 2
    """SET MODE, then WORK."""
    WORK = 3
    """No command: the ports may access the chip. CLOSE follows when a refresh is due."""


class Refresher(wiring.Component):
    """Issues the commands for initialization and refresh.

    After reset: a pause, PRECHARGE of all banks, some REFRESH, SET MODE. From then on, whenever a
    refresh is due: PRECHARGE of all banks and REFRESH, after the accesses in flight have ended.

    Latency: a refresh takes tRP + tRFC. It may be delayed by at most 2**row_bits cycles, because
    ``SdramTiming.refresh_interval`` is one cycle shorter than the chip allows.
    """

    stop: Out(1)
    """Begin no access from this cycle on. Driven by a register."""
    quiet: In(1)
    """No access is in flight, and every bank may be closed."""
    command: Out(ChipCommand)
    """The command of this cycle. It is NONE unless ``quiet`` is 1 or ``started`` is 0."""
    started: Out(1)
    """The chip has been initialized."""

    def __init__(self, timing: SdramTiming) -> None:
        self._timing = timing
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing = self._timing
        state = Signal(_State)
        wait = Signal(range(timing.pause), init=timing.pause - 1)
        refreshes = Signal(range(timing.first_refreshes), init=timing.first_refreshes - 1)
        interval = Signal(range(timing.refresh_interval))
        due = Signal()
        may = Signal()
        stop = Signal(init=1)
        m.d.comb += [may.eq((wait == 0) & (self.quiet | ~self.started)), self.stop.eq(stop)]
        m.d.sync += stop.eq(due | ~self.started | (state != _State.WORK) | wait[1:].any())
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        m.d.sync += interval.eq(Mux(interval == 0, timing.refresh_interval - 1, interval - 1))
        with m.If(interval == 0):
            m.d.sync += due.eq(1)
        with m.If(may):
            with m.Switch(state):
                with m.Case(_State.CLOSE):
                    m.d.comb += self.command.eq(ChipCommand.PRECHARGE)
                    m.d.sync += [state.eq(_State.REFRESH), wait.eq(timing.precharge - 1)]
                with m.Case(_State.REFRESH):
                    m.d.comb += self.command.eq(ChipCommand.REFRESH)
                    m.d.sync += [wait.eq(timing.refresh_cycle - 1), refreshes.eq(refreshes - 1)]
                    with m.If(self.started):
                        m.d.sync += [due.eq(0), state.eq(_State.WORK)]
                    with m.Elif(refreshes == 0):
                        m.d.sync += state.eq(_State.SET_MODE)
                with m.Case(_State.SET_MODE):
                    m.d.comb += self.command.eq(ChipCommand.SET_MODE)
                    m.d.sync += [wait.eq(timing.mode_cycle - 1), state.eq(_State.WORK)]
                with m.Case(_State.WORK):
                    m.d.sync += self.started.eq(1)
                    with m.If(due & stop & self.started):
                        m.d.sync += state.eq(_State.CLOSE)
        return m
