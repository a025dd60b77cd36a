"""Moves what was read to where the output wants it, and joins neighbouring beats. Drops no byte."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .abi import Lane, Mode
from .beats import Edge
from .configuration import Configuration

__all__ = ["Aligned", "Joiner", "Word", "replicate", "rotate"]


class Word(data.StructLayout):
    """A beat of memory in a reader's FIFO, rotated so that its bytes stand where they will go.

    Without ``prime`` the word completes an output beat: bytes from ``split`` on are its own, those
    before it the previous word's. ``flush``: one more output beat holds the rest of this word.
    ``merge``: the output beat stays as the previous word of the next (gather). ``repeat``: the word
    is the output for the whole run, whose first byte stands at ``split``.

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
                "edge": Edge,
            }
        )


class Aligned(data.StructLayout):
    """A beat of an operand, aligned like the output."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"data": configuration.data_width, "edge": Edge})


def rotate(m: Module, value: Value, count: Value, name: str) -> Value:
    """Add a rotator to ``m``: byte 0 of ``value`` moves to byte ``count``. Returns the result."""
    for bit in range(len(count)):
        rotated = Signal(len(value), name=f"{name}_{bit}")
        m.d.comb += rotated.eq(Mux(count[bit], value.rotate_left(8 << bit), value))
        value = rotated
    return value


def replicate(m: Module, value: Value, lane: Value, lanes: frozenset[Lane], name: str) -> Signal:
    """Add a multiplexer to ``m`` that fills a beat with the element in ``value``'s low bits."""
    filled = Signal(len(value), name=name)
    with m.Switch(lane):
        for each in sorted(lanes):
            if each.bits <= len(value):
                with m.Case(each):
                    m.d.comb += filled.eq(value[: each.bits].replicate(len(value) // each.bits))
    return filled


class Joiner(wiring.Component):
    """Joins the words of a reader's FIFO into output beats.

    Members
    -------
    i : ``In(stream.Signature(Word(configuration)))``
    extents : ``In(stream.Signature(length_bits))``
        Bytes of a run, less one, of each command in turn; ignored unless runs can REPEAT.
    o : ``Out(stream.Signature(Aligned(configuration)))``

    Latency: 0 cycles; 1 if runs can REPEAT. Throughput: an output beat a cycle; a ``prime``
    word costs a cycle unless the run before it ends with a ``flush`` at that moment, and in a
    gather that is every word but the last of a beat.
    Bound of the clock: FIFO -> ``split`` -> byte multiplexer -> bit unit.
    """

    i: stream.Interface
    extents: stream.Interface
    o: stream.Interface

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "i": In(stream.Signature(Word(configuration))),
                "extents": In(stream.Signature(configuration.length_bits)),
                "o": Out(stream.Signature(Aligned(configuration))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = self._configuration.data_width
        word: Any = Signal(Word(self._configuration))
        valid = Signal()
        more = Signal()
        take = Signal()
        flushing = Signal()
        if Mode.REPEAT in self._configuration.modes:
            self._stage(m, word, valid, more, take, flushing)
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
            take.eq(valid & Mux(flushing | ~word.prime, self.o.ready & ~more, 1)),
        ]
        with m.If(flushing):
            m.d.comb += [
                self.o.p.edge.eq(held),
                self.o.p.edge.error.eq(spoiled),
                take.eq(valid & self.o.ready & word.prime),
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
        return m

    def _stage(
        self, m: Module, word: Any, valid: Signal, more: Signal, take: Signal, flushing: Signal
    ) -> None:
        """Register words, and count the output beats that a repeated one still has to give."""
        beats = Signal(
            self._configuration.length_bits + 1 - self._configuration.data_bytes_log2,
            reset_less=True,
        )
        total = Signal(self._configuration.length_bits + 1)
        stage = Signal(Word(self._configuration), reset_less=True)
        full = Signal()
        left = Signal()
        m.d.comb += [
            word.eq(stage),
            valid.eq(full),
            more.eq(left),
            total.eq(self.i.p.split + self.extents.payload),
            self.i.ready.eq(~full | take),
            self.extents.ready.eq(self.i.valid & self.i.ready & self.i.p.edge.end),
        ]
        with m.If(self.i.ready):
            counted = total[self._configuration.data_bytes_log2 :]
            m.d.sync += [
                full.eq(self.i.valid),
                stage.eq(self.i.p),
                beats.eq(counted),
                left.eq(self.i.p.repeat & (counted != 0)),
            ]
        with m.Elif(full & self.o.ready & left & ~flushing):
            m.d.sync += [beats.eq(beats - 1), left.eq(beats != 1)]
