"""Makes packets of results: data through `Repack`, and beside it TKEEP, TLAST and the user bits."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..datapath import OUT_LANES, Repack, ResultDecoder
from ..stream_configuration import StreamConfiguration
from .packets import OutputBeat, PacketFlags, PacketResult

__all__ = ["PacketAssembler"]


class PacketAssembler(wiring.Component):
    """Packs counts side by side, and gives each beat of Y its bytes, its end and its flags.

    Members
    -------
    i
        Results, in order.
    o
        ``user`` and ``flags`` of the last result in the beat.

    Latency: 0 cycles without counts, else 1, from the result that fills the beat or ends the
    packet. Throughput: a result a cycle.
    """

    def __init__(self, configuration: StreamConfiguration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "i": In(stream.Signature(PacketResult(configuration))),
                "o": Out(stream.Signature(OutputBeat(configuration))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, side, o = self._configuration, self.i.p.sideband, self.o.p
        built = config.data_width, config.lanes, config.ops
        m.submodules.decoder = decoder = ResultDecoder(*built)
        m.submodules.repack = repack = Repack(*built, widens=False)
        wiring.connect(m, decoder.o, repack.i)
        m.d.comb += [
            decoder.i.valid.eq(self.i.valid),
            decoder.i.p.eq(self.i.p.result),
            self.i.ready.eq(decoder.i.ready),
            self.o.valid.eq(repack.o.valid),
            repack.o.ready.eq(self.o.ready),
            o.data.eq(repack.o.p.data),
        ]
        flags = self._flags(m)
        if not config.counts:
            m.d.comb += [o[name].eq(side[name]) for name in ("keep", "last", "user")]
            m.d.comb += o.flags.eq(flags)
            return m
        # The registers of `Repack` load now, and those beside them with them.
        loads = Signal()
        m.d.comb += loads.eq(self.i.valid & self.i.ready & ~self.i.p.result.partial)
        with m.If(loads):
            m.d.sync += [o[name].eq(side[name]) for name in ("last", "user")]
            m.d.sync += o.flags.eq(flags)
        self._keep(m, decoder.o.p, loads)
        if config.reduces:
            self._reduce(m, loads)
        return m

    def _flags(self, m: Module) -> Any:
        """Return the flags of the packet up to this result."""
        side = self.i.p.sideband
        before: Any = Signal(PacketFlags)
        now: Any = Signal(PacketFlags)
        some = Signal()
        m.d.comb += [
            now.refused.eq(side.refused),
            now.unequal.eq(before.unequal | side.unequal),
            now.holes.eq(before.holes | side.holes),
            now.empty.eq(side.last & ~(some | side.some)),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                before.eq(Mux(side.last, 0, now.as_value())),
                some.eq((some | side.some) & ~side.last),
            ]
        return now

    def _keep(self, m: Module, decoded: Any, loads: Signal) -> None:
        """Collect the bytes of an output beat from the results that fill it."""
        side, o = self.i.p.sideband, self.o.p
        part = Signal(3)
        placed = Signal(len(side.keep))
        ends = side.last | ~decoded.narrows | (part == decoded.last_part)
        m.d.comb += placed.eq(side.keep)
        with m.Switch(Cat(decoded.result.lane, decoded.result.out_lane)):
            for lane in sorted(self._configuration.lanes):
                for out_lane in OUT_LANES:
                    if lane > out_lane:
                        with m.Case(lane | out_lane << 2):
                            m.d.comb += placed.eq(self._place(lane.bytes, out_lane.bytes, part))
        with m.If(loads):
            m.d.sync += [
                part.eq(Mux(ends, 0, part + 1)),
                o.keep.eq(placed | Mux(part == 0, 0, o.keep)),
            ]
        if self._configuration.reduces:
            with m.If(side.sums):
                m.d.comb += placed.eq(Mux(side.truth, 0b1, 0b1111))

    def _place(self, wide: int, narrow: int, part: Signal) -> Value:
        """Return the bytes of the elements, ``narrow`` for each ``wide``, in ``part`` of a beat."""
        size, ratio = self._configuration.data_bytes, wide // narrow
        keep = self.i.p.sideband.keep
        elements = Cat(keep[low].replicate(narrow) for low in range(0, size, wide))
        number = part[: (ratio - 1).bit_length()]
        return Cat(Mux(number == k, elements, 0) for k in range(ratio))

    def _reduce(self, m: Module, loads: Signal) -> None:
        """Put the truth value of a packet into the lowest byte."""
        side, low = self.i.p.sideband, self.o.p.data[:8]
        # A sum can come back to 0 modulo 2**32. So all sums on the way to it are looked at.
        found, before = Signal(), Signal()
        truth, value = Signal(), Signal(reset_less=True)
        m.d.comb += found.eq(before | self.i.p.result.data[:32].any())
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += before.eq(found & ~side.last)
        with m.If(loads):
            m.d.sync += [truth.eq(side.sums & side.truth), value.eq(found ^ side.negate)]
        with m.If(truth):
            m.d.comb += low.eq(value)
