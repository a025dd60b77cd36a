"""Reads one operand: requests the bursts of its runs, and aligns their bytes like the output.

It never requests a beat without room for it in its FIFO, so it never stalls a port that it shares.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import BEATS_PER_BLOCK
from ..addresses import Splitter, Step, StreamSetup
from ..configuration import Configuration
from ..ports import ReadPort
from ..ports.signatures import request
from ..streams import Fifo, TwoWriteFifo
from .placement import Placement, assign_part
from .realigner import Aligned, Realigner
from .spans import SpanGenerator
from .stages import Stages

__all__ = ["Reader"]


class _ReadBurst(data.StructLayout):
    """A burst whose beats are due, or that is ``outside`` the memory and was not requested."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "address": configuration.address_width,
                "outside": 1,
                "placement": Placement(configuration),
            }
        )


class _Request(data.StructLayout):
    """A request, which is not sent to the port if the burst is ``outside``: that is valid late."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"burst": request(configuration.address_width), "outside": 1})


class Reader(wiring.Component):
    """Reads an operand of each command in turn.

    Parameters
    ----------
    configuration
        Widths, loops, modes and the depth of the FIFO.
    stages
        The buffers ``requests``, ``moved``, ``words`` and ``operands``. ``words`` is the FIFO; its
        ``ready`` is not used. A `TwoWriteFifo` there lets the realigner accept a word every cycle.

    Members
    -------
    setup, steps
        The ports ``setup`` and ``i`` of `AddressGenerator`.
    stop
        Request nothing from the next cycle on; beats that are due are still accepted.
    port
        The read port of the memory.
    o
        Beats of the operand; with REPEAT, one for each run. All beats behind one with
        ``edge.error`` have it too.
    waiting
        A beat is due, or a request is not accepted.
    out_of_range
        The first beat in error was not read, because its burst is outside the memory.
    address
        Address of the burst with the first beat in error; before that, of the burst that is due.

    Latency: step to request 1 cycle and that of ``requests``; beat to output those of ``moved``,
    ``words`` and ``operands``.
    Throughput: a beat a cycle if the memory answers within ``fifo_beats`` cycles less two blocks; a
    gathered element a cycle if within ``bursts - 1`` and ``fifo_beats`` less a block and 6: an
    element reserves a beat of the FIFO until it arrives, even if it completes none.
    Bound of the clock: address generator -> splitter, and room for the next burst.
    """

    def __init__(self, configuration: Configuration, stages: Stages) -> None:
        self._configuration = configuration
        self._stages = stages
        width = configuration.address_width
        super().__init__(
            {
                "setup": In(StreamSetup(configuration, has_offset=True)),
                "steps": In(stream.Signature(Step(configuration))),
                "stop": In(1),
                "port": Out(ReadPort(width, configuration.data_width)),
                "o": Out(stream.Signature(Aligned(configuration))),
                "waiting": Out(1),
                "out_of_range": Out(1),
                "address": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        m.submodules.spans = spans = SpanGenerator(config)
        # With single runs, the half-rate register of requests hides the cycle between spans.
        splitter = Splitter(config, Placement(config), gap=config.single_runs)
        m.submodules.splitter = splitter
        wiring.connect(m, wiring.flipped(self.steps), spans.i)
        wiring.connect(m, spans.o, splitter.i)
        wiring.connect(m, wiring.flipped(self.setup), spans.setup)
        m.submodules.words = words = self._stages.words(Aligned(config))
        m.submodules.operands = operands = self._stages.operands(Aligned(config))
        wiring.connect(m, words.o, operands.i)
        wiring.connect(m, operands.o, wiring.flipped(self.o))
        primed = Signal()
        opened = self._request(m, splitter, words, primed)
        dual = isinstance(words, TwoWriteFifo)
        m.submodules.realigner = realigner = Realigner(config, self._stages.moved, dual=dual)
        entrances: Any = words.i if dual else [words.i]
        for beats, i in zip(realigner.o, entrances, strict=True):
            m.d.comb += [i.valid.eq(beats.valid), i.payload.eq(beats.payload)]
        self._take(m, opened, realigner, primed)
        return m

    def _request(
        self, m: Module, splitter: Splitter, words: Fifo | TwoWriteFifo, primed: Signal
    ) -> stream.Interface:
        """Request bursts while there is room. Return the bursts whose beats are due."""
        config = self._configuration
        m.submodules.requests = requests = self._stages.requests(_Request(config))
        m.submodules.open = opened = Fifo(
            _ReadBurst(config),
            config.bursts,
            block_ram=config.block_ram,
            registered=True,  # it steers the byte network
        )
        issued, port = requests.o.p, self.port.request
        burst, placement = splitter.o.p, opened.i.p.placement
        assign_part(m, placement, burst.tag, first=burst.first, last=burst.final)
        room = Signal(init=1)
        go = Signal()
        m.d.comb += [
            # `opened` has room for two more bursts if `room`, because one may fire in this cycle.
            go.eq(room & (opened.i.ready if config.bursts == 2 else 1)),
            requests.i.valid.eq(splitter.o.valid & go),
            requests.i.p.burst.address.eq(burst.address),
            requests.i.p.burst.length.eq(burst.length),
            requests.i.p.outside.eq(burst.outside),
            port.valid.eq(requests.o.valid & ~issued.outside),
            port.payload.eq(issued.burst),
            requests.o.ready.eq(port.ready | issued.outside),
            splitter.o.ready.eq(requests.i.ready & go),
            opened.i.valid.eq(splitter.o.valid & requests.i.ready & go),
            opened.i.p.address.eq(burst.address),
            opened.i.p.outside.eq(burst.outside),
            # A burst enters `opened` and the requests together, and leaves the requests first.
            self.waiting.eq(opened.o.valid | requests.o.valid),
        ]
        left = words.o.valid & words.o.ready
        # A burst fills as many beats of the FIFO as it has, and one more for a flush. A prime fills
        # none, which is counted when it has arrived.
        changed = left + primed - (opened.i.valid & placement.flush)
        self._count(m, room, opened, burst.length, changed)
        return opened.o

    def _count(self, m: Module, room: Signal, opened: Fifo, length: Value, changed: Value) -> None:
        """Assert ``room`` if the FIFO has room for a burst of any length.

        ``length``: of the burst that is requested. ``changed``: the beats that other events free.
        ``free`` counts the beats of the FIFO that no event has claimed, less two::

            Event                         free              Counted
            a burst is requested          - (length + 1)    in this cycle
            it ends a span with a flush   - 1               one cycle later, by `changed`
            a prime word arrives          + 1               one cycle later, by `changed`
            a beat leaves the FIFO        + 1               one cycle later, by `changed`

        Two beats less, because two flushes may not be counted yet: that of the next burst, and that
        of the burst before.
        """
        config = self._configuration
        depth = config.fifo_beats
        # One cycle later, because `ready` of the FIFO comes from the far end of the data path.
        changed_late = Signal(signed(3), name="changed")
        m.d.sync += changed_late.eq(changed)
        # ``-length - 1`` is the complement of ``length``. A carry-save step makes two numbers of
        # three, then one adder sums them: two adders in a row would take twice as long.
        # One bit more than `depth` needs, because `free` can become negative by `changed`.
        taken = Signal(range(2 * depth))
        free = Signal.like(taken, init=depth - 2)
        free_next = Signal.like(taken)
        spread = Signal.like(free)
        with m.If(opened.i.valid):
            m.d.comb += taken.eq(~Cat(length, Const(0, len(free) - len(length))))
        odd = free ^ taken ^ spread
        carry = (free & taken) | (free & spread) | (taken & spread)
        m.d.comb += [spread.eq(changed_late), free_next.eq(odd + (carry << 1))]
        may_open = 1 if config.bursts == 2 else ~(opened.level[-1] | opened.level[:-1].all())
        block = free_next[exact_log2(BEATS_PER_BLOCK) : -1].any() & ~free_next[-1]
        m.d.sync += [
            free.eq(free_next),
            room.eq(block & ~self.stop & may_open),
        ]

    def _take(
        self, m: Module, opened: stream.Interface, realigner: Realigner, primed: Signal
    ) -> None:
        """Pass each beat to the realigner. ``primed``: a word arrives that completes no beat."""
        beat, word = self.port.data.p, realigner.i.p
        head = Signal(init=1)
        last = Signal()
        arrives = Signal()
        failed = Signal()
        m.d.comb += [
            # A burst outside the memory has one beat, which was not requested.
            realigner.i.valid.eq(opened.valid & (self.port.data.valid | opened.p.outside)),
            self.port.data.ready.eq(opened.valid & realigner.i.ready & ~opened.p.outside),
            arrives.eq(realigner.i.valid & realigner.i.ready),
            last.eq(beat.last | opened.p.outside),
            opened.ready.eq(arrives & last),
            word.data.eq(beat.data),
            word.error.eq(beat.error | opened.p.outside),
            primed.eq(arrives & word.placement.prime),
        ]
        # A burst outside the memory must complete a beat, which reports the fault.
        primes = head & ~opened.p.outside
        assign_part(m, word.placement, opened.p.placement, first=primes, last=last)
        with m.If(arrives):
            m.d.sync += head.eq(last)
        with m.If(arrives & word.error):
            m.d.sync += failed.eq(1)
        # A register: before a failure only the watchdog uses `address`, and it is also one cycle
        # late.
        with m.If(~failed):
            m.d.sync += [self.address.eq(opened.p.address), self.out_of_range.eq(opened.p.outside)]
