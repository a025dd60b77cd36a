"""Moves what was read to where the output wants it, and joins neighbouring beats. Drops no byte."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Mode
from ..configuration import Configuration
from ..streams.beats import Edge

__all__ = ["Aligned", "Joiner", "Length", "Word", "as_it_is", "replicate", "rotate"]


class Word(data.StructLayout):
    """A beat of memory in a reader's FIFO, rotated so that its bytes stand where they will go.

    Without ``prime`` the word completes an output beat: bytes from ``split`` on are its own, those
    before it the previous word's. ``flush``: one more output beat holds the rest of this word.
    ``merge``: the output beat stays as the previous word of the next (gather). ``repeat``: the word
    is the output for the whole run, whose first byte stands at ``split``; ``extra``: which takes a
    beat more than its bytes would from byte 0 on.

    Fields that the configuration has no use for are 0 bits wide.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "data": configuration.data_width,
                "split": configuration.data_bytes_log2,
                "prime": 1,
                "flush": 1,
                "merge": 1 if Mode.STRIDED in configuration.modes else 0,
                "repeat": 1 if Mode.REPEAT in configuration.modes else 0,
                "extra": 1 if Mode.REPEAT in configuration.modes else 0,
                "edge": Edge,
            }
        )


class Aligned(data.StructLayout):
    """A beat of an operand, aligned like the output."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"data": configuration.data_width, "edge": Edge})


class Length(data.StructLayout):
    """How long a command's runs are: beats from byte 0 on, less one; ``several``: more than one."""

    def __init__(self, configuration: Configuration) -> None:
        beats = configuration.length_bits - configuration.data_bytes_log2
        super().__init__({"beats": beats, "several": 1})


def rotate(m: Module, value: Value, count: Value, name: str) -> Value:
    """Add a rotator to ``m``: byte 0 of ``value`` moves to byte ``count``. Returns the result."""
    for bit in range(len(count)):
        rotated = Signal(len(value), name=f"{name}_{bit}")
        m.d.comb += rotated.eq(Mux(count[bit], value.rotate_left(8 << bit), value))
        value = rotated
    return value


def as_it_is(data_width: int) -> int:
    """The lane that makes `replicate` a wire: that of a whole beat, or else one that is none."""
    return min(data_width.bit_length() - 4, max(Lane) + 1)


def replicate(m: Module, value: Value, lane: Value, lanes: frozenset[Lane], name: str) -> Signal:
    """Add a multiplexer to ``m`` that fills a beat with the element in ``value``'s low bits.

    ``lane`` is the element's, or ``as_it_is(len(value))`` to leave ``value`` alone.
    """
    filled = Signal(len(value), name=name)
    m.d.comb += filled.eq(value)
    with m.Switch(lane):
        for each in sorted(lanes):
            if each.bits < len(value):
                with m.Case(each):
                    m.d.comb += filled.eq(value[: each.bits].replicate(len(value) // each.bits))
    return filled


class Joiner(wiring.Component):
    """Joins the words of a reader's FIFO into output beats.

    Members
    -------
    i : ``In(stream.Signature(Word(configuration)))``
    lengths : ``In(stream.Signature(Length(configuration)))``
        One of each command in turn, 2 cycles before its first word or earlier; ignored unless runs
        can REPEAT.
    o : ``Out(stream.Signature(Aligned(configuration)))``

    Latency: 0 cycles with a single DENSE run a command, else 1. Throughput: an output beat a
    cycle. A ``prime`` word is taken together with the word or the ``flush`` before it, and costs a
    cycle only after a run that was not behind its words; in a gather every word but the last of a
    beat costs one.
    Bound of the clock: front word -> ``split`` -> byte multiplexer -> what follows; and whether the
    front word leaves, back into the FIFO.
    """

    i: stream.Interface
    lengths: stream.Interface
    o: stream.Interface

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.staged = not configuration.single_runs
        """Whether a command can have runs that need more than a look at the FIFO's output."""
        super().__init__(
            {
                "i": In(stream.Signature(Word(configuration))),
                "lengths": In(stream.Signature(Length(configuration))),
                "o": Out(stream.Signature(Aligned(configuration))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        width = config.data_width
        word: Any = Signal(Word(config))
        spare: Any = Signal(Word(config), reset_less=True)
        valid = Signal()
        more = Signal()
        take = Signal()
        absorb = Signal()
        flushing = Signal()
        if self.staged:
            self._stage(m, word, valid, more, take, flushing, spare, absorb)
        else:
            m.d.comb += [word.eq(self.i.p), valid.eq(self.i.valid), self.i.ready.eq(take)]

        previous = Signal(width, reset_less=True)
        held = Signal(Edge, reset_less=True)
        spoiled = Signal()

        emits = Signal()
        m.d.comb += [
            emits.eq(valid & ~word.prime),
            self.o.valid.eq(flushing | emits),
            self.o.p.edge.eq(word.edge),
            self.o.p.edge.last.eq(word.edge.last & ~word.flush & ~more),
            self.o.p.edge.end.eq(word.edge.end & ~word.flush & ~more),
            self.o.p.edge.error.eq(word.edge.error | spoiled),
            # `o.ready`, the last to be known, enters once; while flushing `word` repeats nothing.
            take.eq(
                valid
                & ((word.prime & ~flushing) | (self.o.ready & Mux(flushing, word.prime, ~more)))
            ),
        ]
        with m.If(flushing):
            m.d.comb += [
                self.o.p.edge.eq(held),
                self.o.p.edge.error.eq(spoiled),
            ]
        for byte in range(width // 8):
            part = slice(8 * byte, 8 * byte + 8)
            own = Cat(word.repeat, word.split <= byte).any() & ~flushing
            m.d.comb += self.o.p.data[part].eq(Mux(own, word.data[part], previous[part]))

        with m.If(flushing & self.o.ready):
            m.d.sync += flushing.eq(0)
        with m.If(take):
            m.d.sync += [
                # While flushing, the output is the run before's and not what this word adds to.
                previous.eq(Mux(word.merge & ~flushing, self.o.p.data, word.data)),
                flushing.eq(word.flush),
                held.eq(word.edge),
                spoiled.eq(spoiled | word.edge.error),
            ]
            with m.If(absorb):
                m.d.sync += [
                    previous.eq(spare.data),
                    flushing.eq(spare.flush),
                    held.eq(spare.edge),
                    spoiled.eq(spoiled | word.edge.error | spare.edge.error),
                ]
        return m

    def _stage(
        self,
        m: Module,
        word: Any,
        valid: Signal,
        more: Signal,
        take: Signal,
        flushing: Signal,
        spare: Any,
        absorb: Signal,
    ) -> None:
        """Register words, one spare, and count the beats that a repeated one still has to give.

        The spare keeps the output a word behind after a flush, so that the next run's ``prime``
        word, which gives no output, can be absorbed beside the output of the word before it.
        """
        config = self._configuration
        front: Any = Signal(Word(config), reset_less=True)
        incoming: Any = Signal(Word(config))
        full = Signal()
        spare_full = Signal()
        load = Signal()
        loads = Signal()
        past_spare = Signal()
        absorbs = Signal()
        # Of the words, what is needed first.
        front_plain = Signal(reset_less=True)
        spare_joins = Signal(reset_less=True)
        m.d.comb += [
            word.eq(front),
            valid.eq(full),
            load.eq(~full | take),
            # Not the end of a command, so that a cycle never ends two. With these, `o.ready` is
            # what `take` depends on.
            absorbs.eq(full & front_plain & ~flushing & ~more & spare_full & spare_joins),
            absorb.eq(absorbs & self.o.ready),
            past_spare.eq(~spare_full | absorb),
            loads.eq((spare_full & ~absorb) | self.i.valid),
            incoming.eq(Mux(past_spare, self.i.p, spare)),
            self.i.ready.eq(~spare_full | load),
        ]
        with m.If(self.i.ready):
            m.d.sync += [spare.eq(self.i.p), spare_joins.eq(self.i.p.prime & ~self.i.p.edge.end)]
        with m.If(load):
            m.d.sync += [
                front.eq(incoming),
                front_plain.eq(~incoming.prime & ~incoming.flush),
                full.eq(loads),
                spare_full.eq(spare_full & ~absorb & self.i.valid),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += spare_full.eq(1)

        if Mode.REPEAT not in config.modes:
            return
        # Of the command that the front word belongs to; what follows its last word is the next's.
        length: Any = Signal(Length(config), reset_less=True)
        held = Signal()
        ends = Signal()
        m.d.comb += [
            ends.eq(front.edge.end & take),
            self.lengths.ready.eq(~held | ends),
        ]
        with m.If(self.lengths.ready):
            m.d.sync += [length.eq(self.lengths.payload), held.eq(self.lengths.valid)]
        coming: Any = Signal(Length(config))
        m.d.comb += coming.eq(Mux(full & front.edge.end, self.lengths.p, length))

        beats = Signal(len(length.beats), reset_less=True)
        extra = Signal(reset_less=True)
        left = Signal()
        m.d.comb += more.eq(left)
        with m.If(load):
            m.d.sync += [
                beats.eq(coming.beats),
                extra.eq(incoming.extra),
                left.eq(incoming.repeat & (coming.several | incoming.extra)),
            ]
        with m.Elif(full & self.o.ready & left & ~flushing):
            m.d.sync += [
                extra.eq(0),
                beats.eq(Mux(extra, beats, beats - 1)),
                left.eq(Mux(extra, beats != 0, beats != 1)),
            ]
