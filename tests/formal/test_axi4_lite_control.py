"""The AXI4-Lite subordinate obeys the bus protocol; each access reads or writes a register once."""

from typing import Any

from amaranth.hdl import Assert, Module, Mux, Signal

from bitlane_rtl.bus import OKAY, SLVERR, Axi4LiteControl
from support.formal.proof import Claim, Contract, Induction, before, proofs, taken
from support.rtl.streams import channel

DEPTH = 12
"""Depth of the search for a bug, in cycles; induction as deep takes a hundred times as long."""
ALL_BYTES = 0b1111


class KeepsTheBusRules(Contract):
    """A manager may do all that AXI4-Lite allows; registers return any data."""

    def claim(self, m: Module) -> None:
        m.submodules.subordinate = subordinate = Axi4LiteControl()
        bus, control = subordinate.bus, subordinate.control
        m.d.comb += [
            control.read_data.eq(self.anything(32, "read_data")),
            Assert(~(control.read & control.write)),
        ]
        for name, fields in (("aw", ["addr"]), ("w", ["data", "strb"]), ("ar", ["addr"])):
            self.offers(m, channel(bus, name, *fields))
        b, r = channel(bus, "b", "resp"), channel(bus, "r", "data", "resp")
        self.takes(m, b)
        self.takes(m, r)
        self._writes(m, bus, control, b)
        self._reads(m, bus, control, r)

    def _writes(self, m: Module, bus: Any, control: Any, b: Any) -> None:
        both = taken(channel(bus, "aw"))
        good = (bus.wstrb == ALL_BYTES) & (bus.awaddr[:2] == 0)
        m.d.comb += [
            Assert(both == taken(channel(bus, "w"))),
            Assert(control.write == (both & good)),
        ]
        with m.If(control.write):
            m.d.comb += [
                Assert(control.address == bus.awaddr),
                Assert(control.write_data == bus.wdata),
            ]

        open_write, response = Signal(), Signal(2)
        m.d.comb += [Assert(bus.bvalid == open_write), Assert(~(both & bus.bvalid & ~bus.bready))]
        with m.If(both):
            m.d.sync += [open_write.eq(1), response.eq(Mux(good | (bus.wstrb == 0), OKAY, SLVERR))]
        with m.Elif(taken(b)):
            m.d.sync += open_write.eq(0)
        with m.If(bus.bvalid):
            m.d.comb += Assert(bus.bresp == response)

        # A write that can be accepted is accepted a cycle later, or two cycles later behind a read.
        waits = bus.awvalid & bus.wvalid & ~bus.awready & (~bus.bvalid | bus.bready)
        m.d.comb += Assert(~(waits & before(m, waits) & before(m, before(m, waits))))

    def _reads(self, m: Module, bus: Any, control: Any, r: Any) -> None:
        asked = taken(channel(bus, "ar"))
        open_read, address = Signal(), Signal(len(bus.araddr))
        with m.If(asked):
            m.d.sync += [open_read.eq(1), address.eq(bus.araddr)]
        with m.Elif(taken(r)):
            m.d.sync += open_read.eq(0)
        # A read accesses its register once, a cycle after its address, and answers in the third.
        once, twice = before(m, asked), before(m, before(m, asked))
        word = Signal(32)
        with m.If(twice):
            m.d.sync += word.eq(control.read_data)
        m.d.comb += [
            Assert(~(asked & open_read)),
            Assert(control.read == once),
            Assert(bus.rvalid == (open_read & ~once & ~twice)),
        ]
        with m.If(control.read):
            m.d.comb += Assert(control.address == address)
        with m.If(bus.rvalid):
            m.d.comb += [
                Assert(bus.rdata == word),
                Assert(bus.rresp == Mux(address[:2] == 0, OKAY, SLVERR)),
            ]


BUGS = {
    "answer does not wait": ("taken | (responding & ~bus.bready)", "taken"),
    "part of a word is written": ("writes.eq(both & ~reads & whole)", "writes.eq(both & ~reads)"),
    "write is taken over an answer": ("& (~responding | bus.bready)", ""),
    "read and write meet": ("taken.eq(both & ~reads),", "taken.eq(both),"),
    "word comes a cycle early": ("with m.If(fetching):", "with m.If(reading):"),
    "good is told of bad": ("writes | (bus.wstrb == 0)", "writes | bus.wstrb.any()"),
    "read overtakes": ("~reading & ~fetching & ~answering", "~reading & ~fetching"),
}


test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(KeepsTheBusRules, Induction(4), module="bus.axi4_lite", bugs=BUGS, within=DEPTH),
)
