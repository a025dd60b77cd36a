"""Writes the result: computes the bursts of the output and sends its beats with byte strobes.

It never enables a byte outside the output and never starts a burst before its first beat is valid.
After a beat in error it writes nothing: an open burst ends with empty strobes.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import BEATS_PER_BLOCK, Mode
from ..addresses import AddressGenerator, Burst, Span, Splitter, Step, StreamSetup
from ..configuration import Configuration
from ..ports import WritePort
from ..ports.signatures import request, write_data
from ..streams import Fifo, StreamBuffer, ToWrite
from .stages import Stages

__all__ = ["Writer"]


class _Tag(data.StructLayout):
    """The layout of the elements of a span of the output.

    ``within``: a mask of the bits of a byte's offset that select the byte in its element; all ones
    if nothing is scattered. ``last``: the last element of a scattered run. ``end``: the last span
    of the command. ``searches``: its data come from the search array.
    """

    def __init__(self, configuration: Configuration) -> None:
        scatter = Mode.STRIDED in configuration.modes
        super().__init__(
            {
                "scatter": 1 if scatter else 0,
                "lane": 2 if scatter else 0,
                "within": configuration.data_bytes_log2 if scatter else 0,
                "last": 1 if scatter else 0,
                "end": 1,
                "searches": 1 if configuration.search else 0,
            }
        )


class _WriteBurst(data.StructLayout):
    """A burst whose response is due; ``end``: the last of its command."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"address": configuration.address_width, "end": 1})


class Writer(wiring.Component):
    """Writes the output of each command in turn.

    A beat of a burst is sent when these conditions hold:

    ===================== ============================================ ========= ==============
    Beat of the burst     It is sent (``fire``) if                     ``i``     Strobes
    ===================== ============================================ ========= ==============
    first (``~inside``)   the burst is in range, all three buffers     accepted  bytes of the
                          are ready, and ``i`` is valid and good                 span
    other (``inside``)    ``beats`` is ready, and ``i`` is valid and   accepted  bytes of the
                          good                                                   span
    first, ``aborting``   never                                        waits     --
    other, ``aborting``   ``beats`` is ready                           waits     none
    ===================== ============================================ ========= ==============

    Members
    -------
    setup, steps
        The ports ``setup`` and ``i`` of `AddressGenerator`.
    i
        Beats, aligned like the output; those of a scattered run start at byte 0.
    searches
        The next beat comes from the search array. Only with a search array.
    stop
        Start no burst from the next cycle on; end the open one with empty strobes.
    port
        The write port of the memory.
    retire
        The last response of a command arrives without an error, and none of its beats was in
        error. Undefined after ``failed``.
    answered
        A response is accepted in this cycle.
    failed
        A response reports an error, in this cycle.
    poisoned
        A beat was in error, or its burst is outside the memory. From then on nothing is written.
    out_of_range
        The first such beat was of a burst outside the memory.
    drained
        No burst is open.
    waiting
        A response is due, or a request or a beat is not accepted.
    address
        Address of the burst whose response is due next, or that is outside the memory.

    Latency: 1 cycle from a beat to the port; from a step to its first beat those of `stages`
    and 1 more. Throughput: a beat a cycle; scattered, an element a cycle; no cycle
    between bursts, runs or commands.
    Bound of the clock: beat valid -> beat fires -> next burst.
    """

    def __init__(self, configuration: Configuration, stages: Stages) -> None:
        self._configuration = configuration
        self._stages = stages
        width = configuration.address_width
        super().__init__(
            {
                "setup": In(StreamSetup(configuration, has_offset=False)),
                "steps": In(stream.Signature(Step(configuration))),
                "i": In(stream.Signature(ToWrite(configuration.data_width))),
                **({"searches": Out(1)} if configuration.search else {}),
                "stop": In(1),
                "port": Out(WritePort(width, configuration.data_width)),
                "retire": Out(1),
                "answered": Out(1),
                "failed": Out(1),
                "poisoned": Out(1),
                "out_of_range": Out(1),
                "drained": Out(1),
                "waiting": Out(1),
                "address": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        m.submodules.requests = requests = self._stages.write_requests(
            request(config.address_width)
        )
        m.submodules.beats = beats = self._stages.beats(write_data(config.data_width))
        m.submodules.open = opened = Fifo(
            _WriteBurst(config), config.bursts, block_ram=config.block_ram
        )
        wiring.connect(m, requests.o, wiring.flipped(self.port.request))
        wiring.connect(m, beats.o, wiring.flipped(self.port.data))
        bursts = self._bursts(m)
        aborted = self._send(m, bursts, requests, beats, opened)
        self._respond(m, bursts, opened, aborted)
        m.d.comb += [
            # A burst enters `opened` and the requests together, and leaves the requests first.
            self.drained.eq(~(requests.o.valid | beats.o.valid | opened.o.valid)),
            self.waiting.eq(~self.drained),
        ]
        return m

    def _bursts(self, m: Module) -> stream.Interface:
        config = self._configuration
        m.submodules.addresses = addresses = AddressGenerator(config, has_offset=False)
        m.submodules.splitter = splitter = Splitter(config, _Tag(config))
        # Addresses are ahead of the data by the latency of readers and bit unit.
        m.submodules.spans = spans = self._stages.spans(Span(config, _Tag(config)))
        run, span = addresses.o.p, spans.i.p
        wiring.connect(m, wiring.flipped(self.setup), addresses.setup)
        wiring.connect(m, wiring.flipped(self.steps), addresses.i)
        wiring.connect(m, spans.o, splitter.i)
        extent = Signal(config.length_bits, reset_less=True)
        with m.If(self.setup.idle):
            m.d.sync += extent.eq(self.setup.begin.extent)
        m.d.comb += [
            spans.i.valid.eq(addresses.o.valid),
            addresses.o.ready.eq(spans.i.ready),
            span.address.eq(run.address),
            span.extent.eq(extent),
            span.tag.end.eq(run.end),
        ]
        if Mode.STRIDED in config.modes:
            strided = Signal(reset_less=True)
            with m.If(self.setup.idle):
                m.d.sync += strided.eq(self.setup.begin.mode == Mode.STRIDED)
                with m.If(self.setup.begin.mode == Mode.STRIDED):
                    m.d.sync += extent.eq(0)
            element = Signal(3)
            m.d.comb += [
                element.eq((1 << self.setup.form.out_lane) - 1),
                span.extent.eq(extent | Mux(strided, element, 0)),
                span.tag.scatter.eq(strided),
                span.tag.lane.eq(self.setup.form.out_lane),
                span.tag.within.eq(Mux(strided, element, -1)),
                span.tag.last.eq(run.last),
            ]
        m.submodules.bursts = bursts = self._stages.bursts(Burst(config, _Tag(config)))
        wiring.connect(m, splitter.o, bursts.i)
        if config.search:
            m.d.comb += [
                span.tag.searches.eq(self.setup.form.searches),
                self.searches.eq(bursts.o.valid & bursts.o.p.tag.searches),
            ]
        return bursts.o

    def _send(
        self,
        m: Module,
        bursts: stream.Interface,
        requests: StreamBuffer,
        beats: StreamBuffer,
        opened: Fifo,
    ) -> Signal:
        """Send the beats of bursts. Return whether the newest burst is aborted, see `_abort`."""
        burst, entering = bursts.p, beats.i.p
        inside = Signal()
        left = Signal(range(BEATS_PER_BLOCK), reset_less=True)
        more = Signal(reset_less=True)
        aborting = Signal()
        good = Signal()
        may_begin = Signal()
        # Kept, because synthesis would put all of it behind the beat, which arrives late.
        may_fire = Signal(attrs={"keep": 1})
        ends = Signal()
        begins = Signal()
        fire = Signal()
        poisons = Signal()
        leaves_range = Signal()
        m.d.comb += [
            begins.eq(~inside),
            leaves_range.eq(bursts.valid & burst.outside & begins),
            poisons.eq(self.i.valid & (self.i.p.error | leaves_range)),
            ends.eq(Mux(inside, ~more, burst.single)),
            # Only the beat arrives late in the cycle: all else is in registers.
            good.eq(self.i.valid & ~self.i.p.error),
            may_begin.eq(requests.i.ready & opened.i.ready & ~(aborting | burst.outside)),
            may_fire.eq(bursts.valid & beats.i.ready & (inside | may_begin)),
            # While aborting, an open burst continues without data.
            fire.eq(may_fire & (good | (inside & aborting))),
            beats.i.valid.eq(fire),
            entering.last.eq(ends),
            requests.i.valid.eq(may_fire & begins & good),
            requests.i.p.address.eq(burst.address),
            requests.i.p.length.eq(burst.length),
            opened.i.valid.eq(requests.i.valid),
            opened.i.p.address.eq(burst.address),
            opened.i.p.end.eq(burst.final & burst.tag.end),
            bursts.ready.eq(fire & ends),
        ]
        with m.If(fire):
            m.d.sync += inside.eq(~ends)
            with m.If(inside):
                m.d.sync += [left.eq(left - 1), more.eq(left != 1)]
            with m.Else():
                m.d.sync += [left.eq(burst.length - 1), more.eq(burst.length != 1)]
        aborted = self._abort(m, aborting, poisons, leaves_range, inside)
        for byte, is_in_span in enumerate(self._span(m, burst, begins, ends)):
            m.d.comb += entering.strobe[byte].eq(is_in_span & ~aborting)
        self._fill(m, burst.tag, beats, fire, aborting)
        return aborted

    def _span(self, m: Module, burst: Any, begins: Signal, ends: Signal) -> list[Value]:
        """Return which bytes of the beat belong to the span."""
        first = Signal()
        final = Signal()
        m.d.comb += [first.eq(burst.first & begins), final.eq(burst.final & ends)]
        return [
            (~first | (burst.begin <= byte)) & (~final | (burst.finish >= byte))
            for byte in range(self._configuration.data_bytes)
        ]

    def _abort(
        self, m: Module, aborting: Signal, poisons: Signal, leaves_range: Signal, inside: Signal
    ) -> Signal:
        """Stop writing after the beat that ``poisons``. Return whether the newest burst is aborted:
        then it ends with empty strobes, and its command must not retire."""
        aborted = Signal()
        # One cycle after `stop`, to keep the path to `fire` short.
        m.d.sync += aborting.eq(self.stop | self.poisoned | poisons)
        with m.If(poisons & ~self.poisoned):
            m.d.sync += [self.poisoned.eq(1), self.out_of_range.eq(leaves_range & ~self.i.p.error)]
        with m.If(aborting & inside):
            m.d.sync += aborted.eq(1)
        return aborted

    def _fill(
        self, m: Module, tag: Any, beats: StreamBuffer, fire: Signal, aborting: Signal
    ) -> None:
        """Connect the data of the beat."""
        if Mode.STRIDED in self._configuration.modes:
            self._scatter(m, tag, beats, fire, aborting)
        else:
            m.d.comb += [
                beats.i.p.data.eq(self.i.p.data),
                self.i.ready.eq(fire & ~aborting),
            ]

    def _scatter(
        self, m: Module, tag: Any, beats: StreamBuffer, fire: Signal, aborting: Signal
    ) -> None:
        """Send one element of a beat at a time, copied to every position that it can have."""
        config = self._configuration
        log2 = config.data_bytes_log2
        position = Signal(log2)
        following = Signal(log2 + 1)
        m.d.comb += following.eq(position + (1 << tag.lane))
        # Elements are aligned to their size. So each bit of the index of a byte's source is that of
        # the byte, within the element, or that of `position`, which is 0 if nothing is scattered.
        moved = self.i.p.data
        for bit in range(log2):
            one, zero = tag.within[bit] | position[bit], ~tag.within[bit] & position[bit]
            parts = [moved.word_select(byte, 8) for byte in range(config.data_bytes)]
            moved = Signal(config.data_width, name=f"moved_{bit}")
            m.d.comb += moved.eq(
                Cat(
                    Mux(
                        one if byte >> bit & 1 else zero,
                        parts[byte | 1 << bit],
                        parts[byte & ~(1 << bit)],
                    )
                    for byte in range(config.data_bytes)
                )
            )
        m.d.comb += [
            beats.i.p.data.eq(moved),
            self.i.ready.eq(fire & ~aborting & (~tag.scatter | tag.last | following[-1])),
        ]
        with m.If(fire & tag.scatter):
            m.d.sync += position.eq(Mux(tag.last, 0, following))

    def _respond(self, m: Module, bursts: stream.Interface, opened: Fifo, aborted: Signal) -> None:
        response = self.port.response
        answered = self.answered
        newest = Signal()
        m.d.comb += [
            response.ready.eq(opened.o.valid),
            answered.eq(response.valid & opened.o.valid),
            opened.o.ready.eq(answered),
            self.failed.eq(answered & response.payload),
            newest.eq(opened.level == 1),
            self.retire.eq(answered & opened.o.p.end & ~response.payload & ~(aborted & newest)),
            self.address.eq(Mux(self.out_of_range, bursts.p.address, opened.o.p.address)),
        ]
