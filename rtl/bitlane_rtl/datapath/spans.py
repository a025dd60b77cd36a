"""From the steps of one operand to spans of bytes, and where each goes. Requests nothing."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Mode
from ..command import StreamFormat, StreamStart, Strides
from ..configuration import Configuration
from ..walk.address_generator import AddressGenerator
from ..walk.bursts import Span
from ..walk.loop_nest import Step
from .joiner import Placement

__all__ = ["Spans"]


class Spans(wiring.Component):
    """Follows an operand's runs and places each like the output.

    A span is a dense run, or an element of a STRIDED or REPEAT one.

    Members
    -------
    idle, begin, form, track, offsets, i
        As for `address_generator.AddressGenerator`.
    o : ``Out(stream.Signature(Span(configuration, Placement(configuration))))``

    Latency: 0 cycles. Throughput: a span a cycle.
    Bound of the clock: offset -> whether a beat is left over behind the run.
    """

    idle: Signal
    begin: Any
    form: Any
    track: Any
    offsets: Any
    i: stream.Interface
    o: stream.Interface

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        track = Strides(configuration.address_width, configuration.loops)
        super().__init__(
            {
                "idle": In(1),
                "begin": In(StreamStart(configuration)),
                "form": In(StreamFormat()),
                "track": In(track),
                "offsets": In(track),
                "i": In(stream.Signature(Step(configuration))),
                "o": Out(stream.Signature(Span(configuration, Placement(configuration)))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, form = self._configuration, self.form
        log2 = config.data_bytes_log2
        m.submodules.follower = follower = AddressGenerator(config, has_offset=True)
        run, span, place = follower.o.p, self.o.p, self.o.p.tag
        wiring.connect(m, wiring.flipped(self.i), follower.i)
        # Elements are cut down here, as the splitter has long sums to do: only `rest` is needed of
        # a run's extent then.
        mode = Signal(2, reset_less=True)
        extent = Signal(config.length_bits, reset_less=True)
        rest = Signal(log2, reset_less=True)
        several = Signal(reset_less=True)
        with m.If(self.idle):
            m.d.sync += [
                mode.eq(self.begin.mode),
                extent.eq(Mux(self.begin.mode == Mode.DENSE, self.begin.extent, 0)),
                rest.eq(self.begin.extent),
                several.eq(self.begin.extent[log2:].any()),
            ]
        m.d.comb += [
            follower.idle.eq(self.idle),
            follower.begin.eq(self.begin),
            follower.form.eq(form),
            follower.track.eq(self.track),
            follower.offsets.eq(self.offsets),
            self.o.valid.eq(follower.o.valid),
            follower.o.ready.eq(self.o.ready),
            span.address.eq(run.address),
            span.extent.eq(extent),
            place.last.eq(run.last),
            place.end.eq(run.end),
        ]

        target, source = Signal(log2), run.address[:log2]
        m.d.comb += target.eq(run.offset)
        if config.counts:
            m.d.comb += place.slot.eq(run.offset[log2:])
        self._dense(m, source, target, rest)
        if Mode.STRIDED in config.modes:
            with m.If(mode == Mode.STRIDED):
                self._gather(m, run.first, source, target)
        if Mode.REPEAT in config.modes:
            with m.If(mode == Mode.REPEAT):
                self._repeat(m, source, form.lane)
                m.d.comb += place.last.eq(~(several | place.extra))
        return m

    def _dense(self, m: Module, source: Value, target: Signal, rest: Value) -> None:
        """Place a run; ``rest``: its bytes less one, within a beat."""
        place = self.o.p.tag
        log2 = len(target)
        source_end, target_end = Signal(log2 + 1), Signal(log2 + 1)
        m.d.comb += [
            source_end.eq(source + rest),
            target_end.eq(target + rest),
            place.split.eq(target - source),
            place.odd.eq(target - source),
            place.even.eq(target - source),
            place.prime.eq(target < source),
            # Beats out less beats in, where a prime word gives no beat.
            place.flush.eq(
                Mux(
                    place.prime,
                    ~source_end[-1] | target_end[-1],
                    ~source_end[-1] & target_end[-1],
                )
            ),
        ]
        if len(place.extra):
            m.d.comb += place.extra.eq(target_end[-1])
        if len(place.final):
            m.d.comb += place.final.eq(target_end[log2 - 2 : log2])

    def _gather(self, m: Module, first: Value, source: Value, target: Signal) -> None:
        """Put an element of a STRIDED run beside the one before."""
        log2, tag = len(target), self.o.p.tag
        behind = Signal(log2, reset_less=True)
        place = Signal(log2)
        following = Signal(log2 + 1)
        m.d.comb += [
            place.eq(Mux(first, target, behind)),
            following.eq(place + (1 << self.form.lane)),
            tag.merge.eq(1),
            tag.split.eq(place),
            tag.odd.eq(place - source),
            tag.even.eq(place - source),
            tag.prime.eq(~(tag.last | following[-1])),
            tag.flush.eq(0),
        ]
        if len(tag.final):
            m.d.comb += tag.final.eq(place[log2 - 2 :])
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += behind.eq(following)

    def _repeat(self, m: Module, source: Value, lane: Value) -> None:
        """Let an element fill its beat: double the half that it stands in, step by step."""
        place = self.o.p.tag
        m.d.comb += [place.repeat.eq(1), place.split.eq(0), place.prime.eq(0), place.flush.eq(0)]
        m.d.comb += [place.odd.eq(0), place.even.eq(0)]
        for step in range(len(place.odd)):
            within = min(step, max(Lane))
            with m.If(lane <= within):
                m.d.comb += [place.odd[step].eq(~source[step]), place.even[step].eq(source[step])]
