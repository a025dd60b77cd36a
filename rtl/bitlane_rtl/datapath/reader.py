"""Reads one operand: walks its runs, requests their bursts, and aligns what comes like the output.

Never requests a beat that it has no room for, and so never holds up a port that it shares.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import BEATS_PER_BLOCK, Mode, Op
from ..configuration import Configuration
from ..ports.memory_port import ReadPort, request
from ..streams.queue import Hold, Queue, Skid, Slack
from ..walk.bursts import Burst, Splitter
from ..walk.loops import Loops, Track
from ..walk.walker import Start, Walker
from .joiner import Aligned, Joiner, Length, Word, as_it_is, replicate, rotate

__all__ = ["Reader"]


class _Tag(data.StructLayout):
    """What a span tells the words read for it; see `Word`.

    ``rotate``: bytes to move left; ``fill``: the lane of the element to fill each beat with.
    """

    def __init__(self, configuration: Configuration) -> None:
        word = Word(configuration)
        repeat = Mode.REPEAT in configuration.modes
        fields = {name: field.shape for name, field in word if name not in ("data", "edge")}
        super().__init__(
            {
                **fields,
                "rotate": word["split"].shape,
                "fill": as_it_is(configuration.data_width).bit_length() if repeat else 0,
                "last": 1,
                "end": 1,
                "slot": 3 if Op.COUNT in configuration.ops else 0,
                "final": 2 if Op.COUNT in configuration.ops else 0,
            }
        )


class Reader(wiring.Component):
    """Reads an operand of each command in turn.

    Parameters
    ----------
    configuration
        Widths, loops, modes and the depth of the FIFO.

    Members
    -------
    i : ``In(stream.Signature(Start(configuration)))``
        Commands.
    loops, track, offsets
        As for `walker.Walker`.
    stop : ``In(1)``
        Request no more from the next cycle on; what has been requested is still taken.
    port : ``Out(ReadPort(address_width, data_width))``
    o : ``Out(stream.Signature(Aligned(configuration)))``
        The operand's beats. After the first with ``edge.error`` all have it.
    walking : ``Out(1)``
        See `walker.Walker`.
    waiting : ``Out(1)``
        The memory owes an answer to a request, or does not take one.
    address : ``Out(address_width)``
        The first beat that came with an error; before that, the burst that is waited for.

    Latency: start to request 2 to 4 cycles (walker, splitter, skid); beat to output 1 to 3 (FIFO,
    `Joiner`), 2 more if `Configuration.pipelined`, or else 1 if ``operand_registers``.
    Throughput: a beat a cycle if the memory answers within ``fifo_beats`` cycles less two blocks; a
    gathered element a cycle if within ``min(bursts - 1, fifo_beats)``.
    Bound of the clock: the walker's address into the splitter, the rotator, and the `Joiner`.
    """

    i: stream.Interface
    loops: Any
    track: Any
    offsets: Any
    stop: Signal
    port: Any
    o: stream.Interface
    walking: Signal
    waiting: Signal
    address: Signal

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        width = configuration.address_width
        track = Track(width, configuration.loops)
        super().__init__(
            {
                "i": In(stream.Signature(Start(configuration))),
                "loops": In(Loops(configuration)),
                "track": In(track),
                "offsets": In(track),
                "stop": In(1),
                "port": Out(ReadPort(width, configuration.data_width)),
                "o": Out(stream.Signature(Aligned(configuration))),
                "walking": Out(1),
                "waiting": Out(1),
                "address": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.joiner = joiner = Joiner(self._configuration)
        if joiner.staged:
            # Else the bit unit's ready would reach through the joiner into the FIFO.
            parted = self._configuration.pipelined or self._configuration.operand_registers
            register = Skid if parted else Slack
            m.submodules.aligned = aligned = register(Aligned(self._configuration))
            wiring.connect(m, joiner.o, aligned.i)
            wiring.connect(m, aligned.o, wiring.flipped(self.o))
        else:
            wiring.connect(m, joiner.o, wiring.flipped(self.o))
        splitter = self._spans(m, joiner)
        self._requests(m, splitter, joiner)
        return m

    def _spans(self, m: Module, joiner: Joiner) -> Splitter:
        """From commands to tagged spans, cut into bursts."""
        config = self._configuration
        log2 = config.data_bytes_log2
        m.submodules.walker = walker = Walker(config, has_offset=True)
        # With single runs a burst takes two cycles at `Hold`, which hide the gap.
        m.submodules.splitter = splitter = Splitter(config, _Tag(config), gap=config.single_runs)
        m.d.comb += [
            walker.i.payload.eq(self.i.payload),
            walker.loops.eq(self.loops),
            walker.track.eq(self.track),
            walker.offsets.eq(self.offsets),
            self.walking.eq(walker.walking),
        ]
        if Mode.REPEAT in config.modes:
            m.submodules.lengths = lengths = Queue(Length(config), config.ahead)
            wiring.connect(m, lengths.o, joiner.lengths)
            beats = self.i.p.extent[log2:]
            m.d.comb += [
                lengths.i.p.beats.eq(beats),
                lengths.i.p.several.eq(beats.any()),
                lengths.i.valid.eq(self.i.valid & walker.i.ready),
                walker.i.valid.eq(self.i.valid & lengths.i.ready),
                self.i.ready.eq(walker.i.ready & lengths.i.ready),
            ]
        else:
            m.d.comb += [walker.i.valid.eq(self.i.valid), self.i.ready.eq(walker.i.ready)]

        run, start, span = walker.o.p, walker.o.p.start, splitter.i.p
        tag = span.tag
        m.d.comb += [
            splitter.i.valid.eq(walker.o.valid),
            walker.o.ready.eq(splitter.i.ready),
            span.address.eq(start.address),
            span.extent.eq(start.extent),
            tag.last.eq(run.last),
            tag.end.eq(run.end),
        ]

        # Spans of other than dense runs are elements, cut down before the walker, as the splitter
        # has long sums to do. Only `rest` is needed of the extent then.
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
        if Op.COUNT in config.ops:
            narrowed, widened = start.offset >> start.ratio, start.offset << start.ratio
            m.d.comb += [
                scaled.eq(Mux(start.widens, narrowed, widened)),
                tag.slot.eq(scaled[log2:]),
            ]
        else:
            m.d.comb += scaled.eq(start.offset)
        target = Signal(log2)
        source = start.address[:log2]
        m.d.comb += target.eq(scaled)

        target_end = Signal(log2 + 1)
        m.d.comb += target_end.eq(target + rest)
        if Op.COUNT in config.ops:
            m.d.comb += tag.final.eq(target_end[log2 - 2 : log2])
        source_end = Signal(log2 + 1)
        prime = Signal()
        m.d.comb += [
            source_end.eq(source + rest),
            prime.eq(target < source),
            tag.rotate.eq(target - source),
            tag.split.eq(target - source),
            tag.prime.eq(prime),
            # Beats out less beats in, where a prime word gives no beat.
            tag.flush.eq(
                Mux(prime, ~source_end[-1] | target_end[-1], ~source_end[-1] & target_end[-1])
            ),
        ]
        if Mode.STRIDED in config.modes:
            self._gather(m, walker, splitter, target)
        if Mode.REPEAT in config.modes:
            m.d.comb += [tag.fill.eq(as_it_is(config.data_width)), tag.extra.eq(target_end[-1])]
            with m.If(start.repeat):
                m.d.comb += [
                    tag.fill.eq(start.lane),
                    tag.repeat.eq(1),
                    tag.rotate.eq(-source),
                    tag.split.eq(target),
                    tag.prime.eq(0),
                    tag.flush.eq(0),
                ]
        return splitter

    def _gather(self, m: Module, walker: Walker, splitter: Splitter, target: Signal) -> None:
        """Let each element of a STRIDED run be a span of its own, put beside the one before."""
        log2 = self._configuration.data_bytes_log2
        run, start, span = walker.o.p, walker.o.p.start, splitter.i.p
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
                span.tag.merge.eq(1),
                span.tag.rotate.eq(place - start.address[:log2]),
                span.tag.split.eq(place),
                span.tag.prime.eq(~(run.last | following[-1])),
                span.tag.flush.eq(0),
            ]
            if Op.COUNT in self._configuration.ops:
                m.d.comb += span.tag.final.eq(place[log2 - 2 :])

    def _requests(self, m: Module, splitter: Splitter, joiner: Joiner) -> None:
        """From bursts to requests, and from the beats that come to tagged words."""
        config = self._configuration
        depth = config.fifo_beats
        # Bursts of a dense run have many beats, and the memory is asked well ahead of them.
        register = Hold if config.single_runs else Skid
        m.submodules.requests = requests = register(request(config.address_width))
        m.submodules.open = opened = Queue(
            Burst(config, _Tag(config)),
            config.bursts,
            block_ram=config.block_ram,
            registered=True,  # it steers the rotator
        )
        m.submodules.words = words = Queue(
            Word(config), depth, block_ram=config.block_ram, credit=True
        )
        wiring.connect(m, requests.o, wiring.flipped(self.port.request))
        wiring.connect(m, words.o, joiner.i)

        burst = splitter.o.p
        free = Signal(range(depth + 1), init=depth)
        free_next = Signal.like(free)
        room = Signal(init=1)
        go = Signal()
        left = Signal()
        opens: Value = opened.i.ready
        opens_next: Value = Const(1)
        if config.bursts > 2:
            # Room for two bursts more, as one may go in this cycle: so `room` says all.
            opens, opens_next = Const(1), ~(opened.level[-1] | opened.level[:-1].all())
        m.d.comb += [
            go.eq(room & opens),
            requests.i.valid.eq(splitter.o.valid & go),
            requests.i.p.address.eq(burst.address),
            requests.i.p.length.eq(burst.length),
            splitter.o.ready.eq(requests.i.ready & go),
            opened.i.valid.eq(splitter.o.valid & requests.i.ready & go),
            opened.i.payload.eq(burst),
        ]
        # A cycle late: the FIFO's ready comes from the far end of the data path.
        m.d.sync += left.eq(words.o.valid & words.o.ready)
        # One adder: ``-length - 1`` is the complement of ``length``, and ``left`` its carry.
        taken = Signal(len(free))
        with m.If(opened.i.valid):
            m.d.comb += taken.eq(~Cat(burst.length, Const(0, len(free) - len(burst.length))))
        m.d.comb += free_next.eq((Cat(1, free) + Cat(left, taken))[1:])
        m.d.sync += [
            free.eq(free_next),
            # Room for a whole block: cheaper than a comparison, and the FIFO holds several.
            room.eq(
                free_next[(BEATS_PER_BLOCK - 1).bit_length() :].any() & ~self.stop & opens_next
            ),
        ]

        descriptor, tag, beat = opened.o.p, opened.o.p.tag, self.port.data.p
        head = Signal(init=1)
        count = Signal.like(burst.length)
        word: Any = Signal(Word(config))
        arrives = Signal()
        final = Signal()
        # The rotator alone takes most of a cycle.
        m.d["sync" if config.pipelined else "comb"] += [
            words.i.valid.eq(arrives),
            words.i.payload.eq(word),
        ]
        m.d.comb += [
            self.port.data.ready.eq(opened.o.valid),
            arrives.eq(self.port.data.valid & opened.o.valid),
            opened.o.ready.eq(self.port.data.valid & beat.last),
            final.eq(beat.last & descriptor.final),
            word.edge.error.eq(beat.error),
            word.edge.last.eq(final & tag.last),
            word.edge.end.eq(final & tag.end),
        ]
        with m.If(arrives):
            m.d.sync += [head.eq(beat.last), count.eq(Mux(beat.last, 0, count + 1))]
        if len(tag.slot):
            m.d.comb += [word.edge.slot.eq(tag.slot), word.edge.final.eq(tag.final)]
        moved = rotate(m, beat.data, tag.rotate, "moved")
        m.d.comb += word.data.eq(moved)
        m.d.comb += [
            word.split.eq(tag.split),
            word.prime.eq(tag.prime & head & descriptor.first),
            word.flush.eq(tag.flush & final),
        ]
        if len(word.merge):
            m.d.comb += word.merge.eq(tag.merge)
        if len(word.repeat):
            m.d.comb += [
                word.repeat.eq(tag.repeat),
                word.extra.eq(tag.extra),
                word.data.eq(replicate(m, moved, tag.fill, config.lanes, "filled")),
            ]

        failed = Signal()
        at = Signal(config.address_width, reset_less=True)
        m.d.comb += [
            self.address.eq(at),
            # A burst that `opened` does not offer yet is still among the requests.
            self.waiting.eq(opened.o.valid | requests.o.valid),
        ]
        with m.If(arrives & beat.error):
            m.d.sync += failed.eq(1)
        # A cycle late, as is the watchdog, the only one to ask before a beat has failed.
        with m.If(~failed):
            low = config.data_bytes_log2
            high = low + len(count)
            address = descriptor.address
            m.d.sync += [
                at[:low].eq(0),
                at[low:high].eq(address[low:high] + count),  # a burst stays in its block
                at[high:].eq(address[high:]),
            ]
