"""Retirement: counts commands in and out, latches the first fault, and recovers from it.

Decides how each command ends and writes its completion. It must never let a command retire after
a fault, and must never flush while a bus transaction is open. It moves no data.
"""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import Port, Status
from ..command import FaultReport
from ..configuration import Configuration
from ..primitives import step

__all__ = ["Retirement"]


class Retirement(wiring.Component):
    """Tracks commands from start to completion, and stops the engine at the first fault.

    ==========  ==================================================  ================================
    State       Signals                                             Next
    ==========  ==================================================  ================================
    running     ``stop`` is 0; commands start and retire            stopping, after a fault, a
                                                                    refusal or CLEAR
    stopping    ``stop`` is 1; open bus transactions end; nothing   flushing, once CLEAR is written
                retires after a fault                               and ``drained`` is 1
    flushing    ``flush`` is 1 for one cycle; all numbers return    running
                to 0
    ==========  ==================================================  ================================

    Members
    -------
    start
        The sequencer starts a command in this cycle.
    interrupt
        That command raises an interrupt when it retires.
    retire
        The last response of the oldest command is good, in this cycle.
    failed, failure
        The oldest command fails, in this cycle. Not before the cycle after its ``start``.
    refused, refusal
        The next record cannot be executed, and no command runs; its `abi.Status`.
    doorbell
        Commands submitted.
    rung
        DOORBELL was written in the cycle before.
    bad_doorbell
        That write was invalid.
    clear
        CLEAR was written; held until ``flush``.
    drained
        No bus transaction is open. Valid from the second cycle of ``stop``.
    idle
        Every command that was started has retired. Falls in the cycle after ``start``, rises 2
        cycles after the last ``retire``.
    stop
        No transaction may be opened.
    flush
        Reset everything that holds a part of a command.
    busy
        A submitted command has not retired.
    fault, report
        The first fault since the last flush. ``report`` is undefined while ``fault`` is 0.
    retired
        Commands retired since the last flush, modulo 2**16: the index of the one that failed.
    completion, completion_index, completion_status
        A command ended in the cycle before: its index modulo 2**16, and its `abi.Status`.
    completion_interrupt
        This completion raises an interrupt. Every fault does.

    Latency: ``retired`` changes and ``completion`` rises in the cycle after ``retire``; ``stop``
    rises 1 cycle after ``failed`` and ``fault`` 2 cycles after; both 1 cycle after a refusal, and
    ``stop`` 1, ``fault`` 2 cycles after ``bad_doorbell``.
    Throughput: a start and an end a cycle.
    Undefined: more than ``slots`` commands between start and end, and an end in the cycle of its
    start.
    Bound of the clock: the last response of the memory -> ``retired``.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._slots = configuration.slots
        report = FaultReport(configuration)
        super().__init__(
            {
                "start": In(1),
                "interrupt": In(1),
                "retire": In(1),
                "failed": In(1),
                "failure": In(report),
                "refused": In(1),
                "refusal": In(8),
                "doorbell": In(16),
                "rung": In(1),
                "bad_doorbell": In(1),
                "clear": In(1),
                "drained": In(1),
                "idle": Out(1, init=1),
                "stop": Out(1),
                "flush": Out(1),
                "busy": Out(1),
                "fault": Out(1),
                "report": Out(report),
                "retired": Out(16),
                "completion": Out(1),
                "completion_index": Out(16),
                "completion_status": Out(8),
                "completion_interrupt": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Values of the cycle before, because those of this cycle arrive late in it.
        failed, bad_doorbell = Signal(), Signal()
        stopped = Signal()
        refuses, faults, retires = Signal(), Signal(), Signal()
        m.d.comb += [
            self.busy.eq(self.doorbell != self.retired),
            # A refusal counts only after the cycle that checks DOORBELL.
            refuses.eq(bad_doorbell | (self.refused & ~self.rung)),
            faults.eq(~self.fault & (failed | refuses)),
            retires.eq(self.retire & ~(self.fault | failed | bad_doorbell)),
        ]
        m.d.sync += [
            failed.eq(self.failed),
            bad_doorbell.eq(self.bad_doorbell & ~self.flush),
            # A command that a bad doorbell submits is started in the cycle before `stop`, and a
            # request takes 3 cycles: nothing of it reaches the bus.
            self.stop.eq(self.fault | self.failed | self.bad_doorbell | faults | self.clear),
            # What readers request in the first cycle of `stop` shows in `drained` in the next.
            stopped.eq(self.stop),
            # A cycle late, as it reaches every flip-flop; a stopped data path starts nothing.
            self.flush.eq(
                self.stop & (stopped | self.idle) & self.clear & self.drained & ~self.flush
            ),
        ]
        with m.If(faults):
            m.d.sync += self.fault.eq(1)
        refusal = Mux(bad_doorbell, Status.BAD_DOORBELL, self.refusal)
        with m.If(~(self.fault | failed)):
            m.d.sync += [
                self.report.code.eq(Mux(refuses, refusal, self.failure.code)),
                self.report.port.eq(Mux(refuses, Port.NONE, self.failure.port)),
                self.report.address.eq(self.failure.address),
            ]
        self._count(m, retires)
        self._complete(m, faults, retires)
        with m.If(self.flush):
            m.d.sync += [self.fault.eq(0), failed.eq(0)]
        return m

    def _count(self, m: Module, retires: Signal) -> None:
        """Count the commands that retired and those that run."""
        running = Signal(range(self._slots + 1))
        # A register, because the last response arrives late in its cycle; `idle` may lag.
        ended = Signal()
        m.d.sync += ended.eq(retires)
        step(m, running, self.start, ended)
        with m.If(self.start ^ ended):
            m.d.sync += self.idle.eq(ended & (running == 1))
        with m.If(retires):
            m.d.sync += self.retired.eq(self.retired + 1)
        with m.If(self.flush):
            m.d.sync += [self.retired.eq(0), running.eq(0), self.idle.eq(1)]

    def _complete(self, m: Module, faults: Signal, retires: Signal) -> None:
        """Report each end, and whether the command raises an interrupt."""
        slot_bits = ceil_log2(self._slots)
        started = Signal(16)
        interrupts = Array(Signal(name=f"interrupt_{slot}") for slot in range(self._slots))
        # Registers, because starts and ends arrive late in their cycles. No command ends in the
        # cycle of its start.
        noted, noted_slot, interrupt = Signal(), Signal(slot_bits), Signal()
        with m.If(self.start):
            m.d.sync += started.eq(started + 1)
        with m.If(noted):
            m.d.sync += interrupts[noted_slot].eq(interrupt)
        m.d.sync += [
            noted.eq(self.start),
            noted_slot.eq(started),
            interrupt.eq(self.interrupt),
            # A refusal in the very cycle of a flush is dropped with its command.
            self.completion.eq((faults | retires) & ~self.flush),
            self.completion_index.eq(self.retired),
        ]
        slot = self.completion_index[:slot_bits]
        m.d.comb += [
            # Nothing retires in the cycle of a fault, nor after it.
            self.completion_status.eq(Mux(self.fault, self.report.code, Status.OK)),
            self.completion_interrupt.eq(self.completion & (self.fault | interrupts[slot])),
        ]
        with m.If(self.flush):
            m.d.sync += started.eq(0)
