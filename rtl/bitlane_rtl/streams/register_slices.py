"""Register slices: stream buffers of one or two registers, each of which cuts other paths.

=================  =======================  ===============  =======
Class              Cuts the paths of        Payloads/cycle   Latency
=================  =======================  ===============  =======
`Wire`             nothing                  1                0
`ForwardRegister`  ``valid``, ``payload``   1                1
`Slack`            ``ready``                1                0
`Hold`             all                      1/2              1
`Skid`             all                      1                1
=================  =======================  ===============  =======
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring

from .buffer import StreamBuffer

__all__ = ["ForwardRegister", "Hold", "Skid", "Slack", "Wire"]


class Wire(StreamBuffer):
    """Nothing between its two sides.

    Members
    -------
    i : ``In(stream.Signature(shape))``
    o : ``Out(stream.Signature(shape))``

    Latency: 0 cycles. Throughput: 1 payload a cycle. Holds none. Area: none.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


class ForwardRegister(StreamBuffer):
    """One entry of registers that cuts the paths of ``valid`` and ``payload``, not of ``ready``.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        ``ready`` is 1 where ``o.ready`` is.
    o : ``Out(stream.Signature(shape))``
        ``valid`` and ``payload`` come straight from registers.

    Latency: 1 cycle. Throughput: 1 payload a cycle. Holds 1 payload.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``width + 1`` flip-flops and 1 LUT4; none where ``o.ready`` is always 1.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        held = Signal(len(leaving), reset_less=True)
        full = Signal()
        m.d.comb += [
            self.i.ready.eq(~full | self.o.ready),
            self.o.valid.eq(full),
            leaving.eq(held),
        ]
        with m.If(self.i.ready):
            m.d.sync += [full.eq(self.i.valid), held.eq(entering)]
        return m


class Slack(StreamBuffer):
    """One spare entry that cuts the path of ``ready`` and adds no latency.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        ``ready`` comes straight from a register.
    o : ``Out(stream.Signature(shape))``
        ``valid`` and ``payload`` come through from ``i``, or from the spare entry.

    Latency: 0 cycles. Throughput: 1 payload a cycle. Holds 1 payload.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``width + 1`` flip-flops and about ``width + 2`` LUT4.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        spare = Signal(len(leaving), reset_less=True)
        full = Signal()
        m.d.comb += [
            self.i.ready.eq(~full),
            self.o.valid.eq(full | self.i.valid),
            leaving.eq(Mux(full, spare, entering)),
        ]
        m.d.sync += full.eq(self.o.valid & ~self.o.ready)
        with m.If(~full):
            m.d.sync += spare.eq(entering)
        return m


class Hold(StreamBuffer):
    """One entry of registers that cuts every path between its two sides, at half the rate.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        ``ready`` comes straight from a register.
    o : ``Out(stream.Signature(shape))``
        ``valid`` and ``payload`` come straight from registers.

    Latency: 1 cycle. Throughput: a payload every 2 cycles. Holds 1 payload.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``width + 1`` flip-flops and 2 LUT4.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        held = Signal(len(leaving), reset_less=True)
        full = Signal()
        m.d.comb += [self.i.ready.eq(~full), self.o.valid.eq(full), leaving.eq(held)]
        with m.If(~full):
            m.d.sync += [full.eq(self.i.valid), held.eq(entering)]
        with m.Elif(self.o.ready):
            m.d.sync += full.eq(0)
        return m


class Skid(StreamBuffer):
    """Two entries of registers that cut every path between their two sides.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        ``ready`` comes straight from a register.
    o : ``Out(stream.Signature(shape))``
        ``valid`` and ``payload`` come straight from registers.

    Latency: 1 cycle from ``i`` to ``o``. Throughput: 1 payload a cycle. Holds 2 payloads.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``2 * width + 2`` flip-flops and about ``width + 4`` LUT4; 386 MHz on ECP5-6 at 32 bits.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        front = Signal(len(leaving), reset_less=True)
        spare = Signal(len(leaving), reset_less=True)
        front_full = Signal()
        spare_full = Signal()
        m.d.comb += [
            self.i.ready.eq(~spare_full),
            self.o.valid.eq(front_full),
            leaving.eq(front),
        ]
        with m.If(~spare_full):
            m.d.sync += spare.eq(entering)
        with m.If(~front_full | self.o.ready):
            m.d.sync += front.eq(Mux(spare_full, spare, entering))
        # Equations, not conditions: an enable and a reset would stand behind `ready`.
        waits = front_full & ~self.o.ready
        m.d.sync += [
            front_full.eq(waits | spare_full | self.i.valid),
            spare_full.eq(waits & (spare_full | self.i.valid)),
        ]
        return m
