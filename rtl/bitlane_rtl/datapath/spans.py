"""The span generator: turns the steps of one operand into spans of bytes and their placements."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Mode
from ..addresses import AddressGenerator, Span, Step, StreamSetup
from ..configuration import Configuration
from .placement import Placement

__all__ = ["SpanGenerator"]


class SpanGenerator(wiring.Component):
    """Computes the spans of an operand, and how their bytes are aligned to the output.

    A span is a dense run, or one element of a STRIDED or REPEAT run. Its placement depends on the
    mode. Let S be the offset of its first byte in a word of memory, T that of the run's first byte
    in the output's beat, and P that of the next gathered element:

    ============= ======================== ========================= ==========================
    Field         DENSE                    STRIDED (gather)          REPEAT
    ============= ======================== ========================= ==========================
    odd, even     rotate by T - S          rotate by P - S           copy the element, then its
                                                                     copies, into the whole beat
    split         T - S                    P                         0
    prime         T < S                    the element does not end  0
                                           a beat, nor the run
    flush         a beat more leaves than  0                         0
                  words arrive, prime
                  words not counted
    merge, repeat 0, 0                     1, 0                      0, 1
    last          from the step            from the step             the run has a single beat
    ============= ======================== ========================= ==========================

    Members
    -------
    setup, i
        The ports of `AddressGenerator` with these names.
    o
        The spans, each with the placement of its bytes.

    Latency: 0 cycles. Throughput: a span a cycle.
    Bound of the clock: offset -> whether a beat is left over behind the run.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "setup": In(StreamSetup(configuration, has_offset=True)),
                "i": In(stream.Signature(Step(configuration))),
                "o": Out(stream.Signature(Span(configuration, Placement(configuration)))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, form = self._configuration, self.setup.form
        log2 = config.data_bytes_log2
        m.submodules.addresses = addresses = AddressGenerator(config, has_offset=True)
        run, span, placement = addresses.o.p, self.o.p, self.o.p.tag
        wiring.connect(m, wiring.flipped(self.setup), addresses.setup)
        wiring.connect(m, wiring.flipped(self.i), addresses.i)
        # The extent of an element is set to 0 in front of the register, because the splitter's long
        # sums follow it. Of a run's own extent, only `rest` and `several` are needed beside it.
        mode = Signal(2, reset_less=True)
        extent = Signal(config.length_bits, reset_less=True)
        rest = Signal(log2, reset_less=True)
        several = Signal(reset_less=True)
        with m.If(self.setup.idle):
            m.d.sync += [
                mode.eq(self.setup.begin.mode),
                extent.eq(Mux(self.setup.begin.mode == Mode.DENSE, self.setup.begin.extent, 0)),
                rest.eq(self.setup.begin.extent),
                several.eq(self.setup.begin.extent[log2:].any()),
            ]
        m.d.comb += [
            self.o.valid.eq(addresses.o.valid),
            addresses.o.ready.eq(self.o.ready),
            span.address.eq(run.address),
            span.extent.eq(extent),
            placement.last.eq(run.last),
            placement.end.eq(run.end),
        ]

        target, source = Signal(log2), run.address[:log2]
        m.d.comb += target.eq(run.offset)
        if config.counts:
            m.d.comb += placement.slot.eq(run.offset[log2:])
        self._dense(m, source, target, rest)
        if Mode.STRIDED in config.modes:
            with m.If(mode == Mode.STRIDED):
                self._gather(m, run.first, source, target)
        if Mode.REPEAT in config.modes:
            with m.If(mode == Mode.REPEAT):
                self._repeat(m, source, form.lane)
                m.d.comb += placement.last.eq(~(several | placement.extra))
        return m

    def _dense(self, m: Module, source: Value, target: Signal, rest: Value) -> None:
        """Compute the placement of a run; ``rest``: its bytes less one, within a beat."""
        placement = self.o.p.tag
        log2 = len(target)
        source_end, target_end = Signal(log2 + 1), Signal(log2 + 1)
        m.d.comb += [
            source_end.eq(source + rest),
            target_end.eq(target + rest),
            placement.split.eq(target - source),
            placement.odd.eq(target - source),
            placement.even.eq(target - source),
            placement.prime.eq(target < source),
            # Beats out less beats in, where a prime word completes no beat.
            placement.flush.eq(
                Mux(
                    placement.prime,
                    ~source_end[-1] | target_end[-1],
                    ~source_end[-1] & target_end[-1],
                )
            ),
        ]
        if len(placement.extra):
            m.d.comb += placement.extra.eq(target_end[-1])
        if len(placement.final):
            m.d.comb += placement.final.eq(target_end[log2 - 2 : log2])

    def _gather(self, m: Module, first: Value, source: Value, target: Signal) -> None:
        """Compute the placement of an element of a STRIDED run, behind the previous one."""
        log2, placement = len(target), self.o.p.tag
        behind = Signal(log2, reset_less=True)
        position = Signal(log2)
        following = Signal(log2 + 1)
        m.d.comb += [
            position.eq(Mux(first, target, behind)),
            following.eq(position + (1 << self.setup.form.lane)),
            placement.merge.eq(1),
            placement.split.eq(position),
            placement.odd.eq(position - source),
            placement.even.eq(position - source),
            placement.prime.eq(~(placement.last | following[-1])),
            placement.flush.eq(0),
        ]
        if len(placement.final):
            m.d.comb += placement.final.eq(position[log2 - 2 :])
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += behind.eq(following)

    def _repeat(self, m: Module, source: Value, lane: Value) -> None:
        """Fill the beat with one element: each step doubles the part that is filled."""
        placement = self.o.p.tag
        m.d.comb += [
            placement.repeat.eq(1),
            placement.split.eq(0),
            placement.prime.eq(0),
            placement.flush.eq(0),
        ]
        m.d.comb += [placement.odd.eq(0), placement.even.eq(0)]
        for step in range(len(placement.odd)):
            within = min(step, max(Lane))
            with m.If(lane <= within):
                m.d.comb += [
                    placement.odd[step].eq(~source[step]),
                    placement.even[step].eq(source[step]),
                ]
