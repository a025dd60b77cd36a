"""Writes whole beats only, for memories behind a bus that cannot write single bytes.

It is for one writer: bytes of a partial beat that another manager writes meanwhile are lost.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import BEATS_PER_BLOCK
from ..ports import ReadPort, WritePort
from ..ports.signatures import request, write_data
from ..streams import Fifo, SkidBuffer
from .axi4 import Axi4, Axi4ReadManager, Axi4WriteManager, join_channels
from .sdram.partial_beats import PartialBeats, replaced

__all__ = ["Axi4WholeBeats", "WholeBeats"]

_DUE = 15
"""Highest number of bursts whose response is due."""


class WholeBeats(wiring.Component):
    """A write port on a memory without byte enables: partial beats are read first, and merged.

    A burst is sent when all its beats are in a FIFO. If some are partial, it waits until the memory
    has responded to all earlier bursts, reads the burst from its first partial beat to its last
    one, and sends it with these bytes. `PartialBeats` has the rule. A burst that could not be read
    is not written; its response is an error.

    Parameters
    ----------
    address_width, data_width
        Bits of an address and of a beat.
    block
        Beats of the longest burst, a power of two. Only proofs make it small.

    Members
    -------
    write
        The writer. The beats of a burst may come before or after its request.
    whole
        The memory. All bits of ``strobe`` are always 1. A response means that a read which is
        requested later returns the new bytes.
    old
        The memory again. It is read only while ``whole`` owes no response.

    Latency: a burst of whole beats leaves a cycle after its last beat came. With partial beats
    it leaves after ``d + l + r + 1`` cycles, of which ``d`` pass until the responses of earlier
    bursts are here, ``l`` from the request of a read to its first beat, and ``r`` beats are read.
    Throughput: a beat a cycle, if all beats are whole.
    Undefined: a burst that crosses a block; partial beats that another manager writes too.
    Area (32 bits, ECP5): 245 LUT4, 21 CCU2C, 34 LUT RAMs, 152 flip-flops.
    Bound of the clock: the RAM's output, to ``whole.data``.
    """

    def __init__(self, address_width: int, data_width: int, block: int = BEATS_PER_BLOCK) -> None:
        self._address_width = address_width
        self._data_width = data_width
        self._block = block
        super().__init__(
            {
                "write": In(WritePort(address_width, data_width)),
                "whole": Out(WritePort(address_width, data_width)),
                "old": Out(ReadPort(address_width, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = self._data_width
        stored = data.StructLayout({"beat": write_data(width), "marked": 1})
        m.submodules.requests = requests = SkidBuffer(request(self._address_width))
        m.submodules.beats = beats = Fifo(stored, 2 * self._block)
        m.submodules.partial = partial = PartialBeats(width, self._block)
        wiring.connect(m, wiring.flipped(self.write.request), requests.i)
        coming, beat = self.write.data, beats.o.p.beat
        given = Signal()
        m.d.comb += [
            beats.i.valid.eq(partial.enters),
            beats.i.p.beat.eq(coming.payload),
            beats.i.p.marked.eq(partial.marked),
            # The FIFO of `PartialBeats` has room for as many bursts as there are beats in this one,
            # but not for another one whose request alone waits.
            coming.ready.eq(beats.i.ready & ~given),
            partial.enters.eq(coming.valid & coming.ready),
            partial.strobe.eq(coming.p.strobe),
            partial.last.eq(coming.p.last),
            partial.is_marked.eq(beats.o.p.marked),
            partial.begins.eq(beats.o.ready),
            self.whole.data.p.data.eq(replaced(partial.o, beat.data, beat.strobe)),
            self.whole.data.p.strobe.eq(-1),
            self.whole.data.p.last.eq(beat.last),
        ]
        due = Signal(range(_DUE + 1))
        failed = self._read(m, requests.o, partial, due)
        leaves = requests.o.valid & partial.whole & partial.write
        may = leaves & ~failed & (due != _DUE)
        sends, sent = self._send(m, requests.o, may, beat.last, given)
        drops, dropped = self._respond(m, leaves & failed, beat.last)
        m.d.comb += [
            beats.o.ready.eq(sends | drops),
            requests.o.ready.eq(sent | dropped),
            partial.granted.eq(sent | dropped | (self.old.request.valid & self.old.request.ready)),
        ]
        m.d.sync += due.eq(due + sent - (self.whole.response.valid & self.whole.response.ready))
        with m.If(dropped):
            m.d.sync += failed.eq(0)
        return m

    def _read(self, m: Module, burst: stream.Interface, partial: Any, due: Signal) -> Signal:
        """Read the next burst's partial beats. Return whether one of them is in error."""
        asks, comes = self.old.request, self.old.data
        failed = Signal()
        at = ceil_log2(self._data_width // 8)
        end = at + ceil_log2(self._block)
        address = burst.p.address
        m.d.comb += [
            # No earlier write may be on its way, because reads could overtake it.
            asks.valid.eq(burst.valid & partial.whole & ~partial.write & (due == 0)),
            # A burst stays in its block.
            asks.p.address.eq(
                Cat(address[:at], (address[at:end] + partial.first)[: end - at], address[end:])
            ),
            asks.p.length.eq(partial.length),
            comes.ready.eq(1),
            partial.arrived.eq(comes.valid),
            partial.old.eq(comes.p.data),
            partial.old_last.eq(comes.p.last),
        ]
        with m.If(comes.valid & comes.p.error):
            m.d.sync += failed.eq(1)
        return failed

    def _send(
        self, m: Module, burst: stream.Interface, may: Any, last: Signal, given: Signal
    ) -> tuple[Signal, Signal]:
        """Send the next burst while it ``may``. Return whether a beat leaves, and the burst ends.

        Request and beats are offered together, as a memory may wait for either (AXI4 A3.3.1).
        ``given`` becomes 1 while all beats have left and the request has not.
        """
        asks, gives = self.whole.request, self.whole.data
        asked, sends, asks_now, gave, sent = (Signal() for _ in range(5))
        m.d.comb += [
            asks.valid.eq(may & ~asked),
            asks.payload.eq(burst.payload),
            gives.valid.eq(may & ~given),
            asks_now.eq(asks.valid & asks.ready),
            sends.eq(gives.valid & gives.ready),
            gave.eq(sends & last),
            sent.eq((asked | asks_now) & (given | gave)),
        ]
        m.d.sync += [
            asked.eq((asked | asks_now) & ~sent),
            given.eq((given | gave) & ~sent),
        ]
        return sends, sent

    def _respond(self, m: Module, may_drop: Any, last: Signal) -> tuple[Signal, Signal]:
        """Pass responses on; drop the next burst while it may. Return whether a beat is dropped,
        and it is the last one, for which an error is the response."""
        m.submodules.responses = responses = SkidBuffer(1)
        answer = self.whole.response
        drops, dropped = Signal(), Signal()
        m.d.comb += [
            drops.eq(may_drop & responses.i.ready),
            dropped.eq(drops & last),
            # A burst was read because no response was due: the two never meet.
            responses.i.valid.eq(answer.valid | dropped),
            responses.i.payload.eq(answer.payload | dropped),
            answer.ready.eq(responses.i.ready),
        ]
        wiring.connect(m, responses.o, wiring.flipped(self.write.response))
        return drops, dropped


class Axi4WholeBeats(wiring.Component):
    """`WholeBeats` with AXI4 on both sides.

    Members
    -------
    s_axi
        Bursts of type INCR, of whole beats, up to 16 of them, which cross no block of 16 beats.
        Size, burst type, PROT and CACHE are not looked at.
    m_axi
        All bits of ``wstrb`` are always 1.

    Latency, throughput and what is undefined: those of `WholeBeats`; the AXI ports are wires. No
    combinational path leads from an input to an output (A3.1.1).
    """

    def __init__(self, address_width: int, data_width: int) -> None:
        self._widths = address_width, data_width
        super().__init__(
            {
                "s_axi": In(Axi4(address_width, data_width, read=False)),
                "m_axi": Out(Axi4(address_width, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.beats = beats = WholeBeats(*self._widths)
        m.submodules.writes = writes = Axi4WriteManager(*self._widths)
        m.submodules.reads = reads = Axi4ReadManager(*self._widths)
        wiring.connect(m, beats.whole, writes.port)
        wiring.connect(m, beats.old, reads.port)
        join_channels(m, writes.axi, self.m_axi)
        join_channels(m, reads.axi, self.m_axi)
        axi, asks, gives = self.s_axi, beats.write.request, beats.write.data
        answers = beats.write.response
        m.d.comb += [
            asks.valid.eq(axi.awvalid),
            asks.p.address.eq(axi.awaddr),
            asks.p.length.eq(axi.awlen),
            axi.awready.eq(asks.ready),
            gives.valid.eq(axi.wvalid),
            gives.p.data.eq(axi.wdata),
            gives.p.strobe.eq(axi.wstrb),
            gives.p.last.eq(axi.wlast),
            axi.wready.eq(gives.ready),
            # SLVERR.
            axi.bresp.eq(Cat(0, answers.payload)),
            axi.bvalid.eq(answers.valid),
            answers.ready.eq(axi.bready),
        ]
        return m
