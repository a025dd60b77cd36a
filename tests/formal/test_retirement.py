"""Every command ends once, in order, with one completion; nothing ends after a fault."""

from dataclasses import replace

from amaranth.hdl import Assert, Assume, Module, Mux, Signal

from bitlane_rtl.abi import Port, Status
from bitlane_rtl.configurations import copy
from bitlane_rtl.control import Retirement
from support.formal.proof import Bounded, Claim, Contract, before, proofs

CONFIGURATION = replace(copy(), slots=2, memory_bytes=1 << 12, length_bits=12)


class EndsInOrder(Contract):
    """Commands start, retire and fail whenever the sequencer and the data path can do so."""

    def claim(self, m: Module) -> None:
        m.submodules.retirement = dut = Retirement(CONFIGURATION)
        for name, width in (("start", 1), ("interrupt", 1), ("retire", 1), ("failed", 1)):
            m.d.comb += getattr(dut, name).eq(self.anything(width, name))
        m.d.comb += [
            dut.failure.code.eq(self.anything(8, "failure_code")),
            dut.failure.port.eq(self.anything(2, "failure_port")),
            dut.failure.address.eq(self.anything(CONFIGURATION.address_width, "failure_address")),
            dut.refused.eq(self.anything(1, "refused")),
            dut.refusal.eq(self.anything(8, "refusal")),
            dut.doorbell.eq(self.anything(16, "doorbell")),
            dut.rung.eq(self.anything(1, "rung")),
            dut.bad_doorbell.eq(self.anything(1, "bad_doorbell")),
            dut.clear.eq(self.anything(1, "clear")),
            dut.drained.eq(self.anything(1, "drained")),
        ]
        running = self._environment(m, dut)
        self._ends(m, dut, running)
        self._interrupts(m, dut)
        self._report(m, dut)
        self._stops(m, dut, running)

    def _environment(self, m: Module, dut: Retirement) -> Signal:
        """Assume what sequencer, data path and registers keep to. Return the commands started that
        have not retired."""
        running, oldest_age = Signal(range(CONFIGURATION.slots + 1)), Signal(2)
        m.d.sync += running.eq(running + dut.start - dut.retire)
        # A retired command's successor may be older than its turn; only the first matters here.
        with m.If(running == 0):
            m.d.sync += oldest_age.eq(0)
        with m.Elif(oldest_age != 3):
            m.d.sync += oldest_age.eq(oldest_age + 1)
        last_start = before(m, dut.start)
        ready_to_end = (running > last_start) & (oldest_age != 0)
        m.d.comb += [
            Assume(~dut.start | ((running != CONFIGURATION.slots) & ~dut.stop)),
            Assume(~dut.retire | ready_to_end),
            Assume(~dut.failed | (running != 0)),
            Assume(~dut.refused | (dut.idle & ~dut.start & ~last_start)),
            Assume(~dut.bad_doorbell | dut.rung),
            Assume(dut.clear | ~before(m, dut.clear & ~dut.flush)),
        ]
        with m.If(dut.flush):
            m.d.sync += running.eq(0)
            m.d.comb += [Assume(~(dut.start | dut.retire | dut.failed | dut.refused))]
        return running

    def _ends(self, m: Module, dut: Retirement, running: Signal) -> None:
        """Claim that completions carry the numbers 0, 1, … until a fault, which is the last."""
        ended, over = Signal(16), Signal()
        good = dut.completion_status == Status.OK
        failure = before(m, before(m, dut.failed))
        with m.If(dut.completion):
            m.d.comb += [Assert(dut.completion_index == ended), Assert(~over)]
            m.d.comb += Assert(dut.fault | good)
            with m.If(dut.fault):
                m.d.sync += over.eq(1)
            with m.Else():
                m.d.sync += ended.eq(ended + 1)
        with m.If(dut.flush):
            m.d.sync += [ended.eq(0), over.eq(0)]
        stable = before(m, ~(dut.fault | dut.flush | dut.bad_doorbell), init=1)
        spoiled = before(m, before(m, dut.failed | dut.bad_doorbell | dut.flush))
        m.d.comb += [
            # A good response is a completion in the next cycle, unless a fault was first.
            Assert(~(before(m, dut.retire) & stable & ~spoiled & ~dut.completion)),
            Assert(~(dut.completion & ~dut.fault) | before(m, dut.retire)),
            # A failure is a completion two cycles later, or another fault was first.
            Assert(~failure | dut.fault | before(m, dut.flush) | before(m, before(m, dut.flush))),
            Assert(dut.retired == ended + (dut.completion & ~dut.fault)),
        ]

    def _interrupts(self, m: Module, dut: Retirement) -> None:
        """Claim that a good completion raises an interrupt if its command wanted one."""
        started, follows, wants = Signal(16), Signal(), Signal()
        followed = Signal(16)
        with m.If(dut.start):
            m.d.sync += started.eq(started + 1)
            with m.If(~follows & self.anything(1, "follow_this")):
                m.d.sync += [follows.eq(1), followed.eq(started), wants.eq(dut.interrupt)]
        with m.If(dut.completion):
            with m.If(follows & (dut.completion_index == followed)):
                m.d.sync += follows.eq(0)
                m.d.comb += Assert(dut.completion_interrupt == (wants | dut.fault))
            with m.If(dut.fault):
                m.d.comb += Assert(dut.completion_interrupt)
        with m.Else():
            m.d.comb += Assert(~dut.completion_interrupt)
        with m.If(dut.flush):
            m.d.sync += [started.eq(0), follows.eq(0)]

    def _report(self, m: Module, dut: Retirement) -> None:
        """Claim that the report names the first cause and stays."""
        rises = dut.fault & ~before(m, dut.fault)
        failed = before(m, before(m, dut.failed))
        first = before(m, before(m, dut.failure.as_value()))
        bad_doorbell = before(m, before(m, dut.bad_doorbell & ~dut.flush))
        refusal = before(m, dut.refusal)
        with m.If(rises & failed):
            m.d.comb += Assert(dut.report.as_value() == first)
        with m.Elif(rises):
            code = Mux(bad_doorbell, Status.BAD_DOORBELL, refusal)
            m.d.comb += [Assert(dut.report.code == code), Assert(dut.report.port == Port.NONE)]
        report = before(m, dut.report.as_value())
        m.d.comb += Assert(~(dut.fault & before(m, dut.fault)) | (dut.report.as_value() == report))

    def _stops(self, m: Module, dut: Retirement, running: Signal) -> None:
        """Claim when the engine is idle, stops and is flushed."""
        none_runs = (running == 0) & ~dut.start
        ended_well = before(m, before(m, none_runs) & ~(dut.fault | dut.failed)) & none_runs
        m.d.comb += [
            Assert(~dut.idle | (running == 0) | dut.fault | before(m, dut.failed)),
            Assert(dut.idle | ~ended_well | dut.fault | before(m, dut.flush)),
            Assert(dut.stop | ~before(m, dut.failed | dut.bad_doorbell | dut.clear)),
            Assert(~dut.fault | dut.stop | before(m, dut.flush)),
            Assert(~dut.flush | before(m, dut.stop & dut.clear & dut.drained)),
            Assert(~(before(m, dut.flush) & (dut.fault | dut.busy) & (dut.doorbell == 0))),
        ]


BUGS = {
    "retires after a fault": ("(self.fault | failed | bad_doorbell)", "failed"),
    "retires in the cycle after a failure": (
        "(self.fault | failed | bad_doorbell)",
        "(self.fault | bad_doorbell)",
    ),
    "a second fault is latched": ("m.If(~(self.fault | failed))", "m.If(~self.fault)"),
    "a bad doorbell stops late": ("self.bad_doorbell | faults |", "faults |"),
    "a flush does not wait": ("self.clear & self.drained &", "self.clear &"),
    "a flush keeps the number of starts": ("m.d.sync += started.eq(0)", "pass"),
    "two commands at once count as one": (
        "step(m, running, self.start, ended)",
        "step(m, running, self.start & ~ended, ended)",
    ),
    "the next command's interrupt": (
        "slot = self.completion_index[:slot_bits]",
        "slot = self.retired[:slot_bits]",
    ),
}


test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(EndsInOrder, Bounded(20), module="control.retirement", bugs=BUGS, within=12),
)
