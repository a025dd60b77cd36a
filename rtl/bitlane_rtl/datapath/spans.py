"""From the commands of one operand to spans of bytes, and where each goes. Requests nothing."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Mode, Op
from ..configuration import Configuration
from ..walk.bursts import Span
from ..walk.loops import Loops, Track
from ..walk.walker import Start, Walker
from .joiner import Placement

__all__ = ["Spans"]


class Spans(wiring.Component):
    """Walks an operand's runs and places each like the output.

    A span is a dense run, or an element of a STRIDED or REPEAT one.

    Members
    -------
    i : ``In(stream.Signature(Start(configuration)))``
        Commands.
    loops, track, offsets
        As for `walker.Walker`.
    o : ``Out(stream.Signature(Span(configuration, Placement(configuration))))``
    walking : ``Out(1)``
        See `walker.Walker`.

    Latency and throughput: those of `walker.Walker`.
    Bound of the clock: offset -> place -> how far the byte network has to move.
    """

    i: stream.Interface
    loops: Any
    track: Any
    offsets: Any
    o: stream.Interface
    walking: Signal

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        track = Track(configuration.address_width, configuration.loops)
        super().__init__(
            {
                "i": In(stream.Signature(Start(configuration))),
                "loops": In(Loops(configuration)),
                "track": In(track),
                "offsets": In(track),
                "o": Out(stream.Signature(Span(configuration, Placement(configuration)))),
                "walking": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        log2 = config.data_bytes_log2
        m.submodules.walker = walker = Walker(config, has_offset=True)
        run, start = walker.o.p, walker.o.p.start
        span, place = self.o.p, self.o.p.tag
        wiring.connect(m, wiring.flipped(self.i), walker.i)
        m.d.comb += [
            walker.loops.eq(self.loops),
            walker.track.eq(self.track),
            walker.offsets.eq(self.offsets),
            self.walking.eq(walker.walking),
            self.o.valid.eq(walker.o.valid),
            walker.o.ready.eq(self.o.ready),
            span.address.eq(start.address),
            span.extent.eq(start.extent),
            place.last.eq(run.last),
            place.end.eq(run.end),
        ]

        # Elements are cut down before the walker, as the splitter has long sums to do. Only `rest`
        # is needed of the extent then.
        rest: Value = start.extent[:log2]
        if len(config.modes) > 1:
            with m.If(self.i.p.strided | self.i.p.repeat):
                m.d.comb += walker.i.p.extent.eq(0)
            rest = Signal(log2, reset_less=True)
            if walker.walks:
                with m.If(walker.i.ready):
                    m.d.sync += rest.eq(self.i.p.extent)
            else:
                m.d.comb += rest.eq(self.i.p.extent)

        # Where the run's first byte goes: the output's offset, scaled to the input's lanes.
        scaled = Signal(log2 + 3)
        target, source = Signal(log2), start.address[:log2]
        m.d.comb += [scaled.eq(start.offset), target.eq(scaled)]
        if Op.COUNT in config.ops:
            narrowed, widened = start.offset >> start.ratio, start.offset << start.ratio
            m.d.comb += scaled.eq(Mux(start.widens, narrowed, widened))
            m.d.comb += place.slot.eq(scaled[log2:])
        self._dense(m, source, target, rest)
        if Mode.STRIDED in config.modes:
            self._gather(m, walker, source, target)
        if Mode.REPEAT in config.modes:
            with m.If(start.repeat):
                self._repeat(m, source, start.lane)
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

    def _gather(self, m: Module, walker: Walker, source: Value, target: Signal) -> None:
        """Put each element of a STRIDED run beside the one before."""
        log2 = len(target)
        run, start, tag = walker.o.p, walker.o.p.start, self.o.p.tag
        behind = Signal(log2, reset_less=True)
        place = Signal(log2)
        following = Signal(log2 + 1)
        m.d.comb += [
            place.eq(Mux(run.first, target, behind)),
            following.eq(place + (1 << start.lane)),
        ]
        with m.If(walker.o.valid & walker.o.ready):
            m.d.sync += behind.eq(following)
        with m.If(start.strided):
            m.d.comb += [
                tag.merge.eq(1),
                tag.split.eq(place),
                tag.odd.eq(place - source),
                tag.even.eq(place - source),
                tag.prime.eq(~(run.last | following[-1])),
                tag.flush.eq(0),
            ]
            if len(tag.final):
                m.d.comb += tag.final.eq(place[log2 - 2 :])

    def _repeat(self, m: Module, source: Value, lane: Value) -> None:
        """Let an element fill its beat: double the half that it stands in, step by step."""
        place = self.o.p.tag
        m.d.comb += [place.repeat.eq(1), place.split.eq(0), place.prime.eq(0), place.flush.eq(0)]
        m.d.comb += [place.odd.eq(0), place.even.eq(0)]
        for step in range(len(place.odd)):
            within = min(step, max(Lane))
            with m.If(lane <= within):
                m.d.comb += [place.odd[step].eq(~source[step]), place.even[step].eq(source[step])]
