"""The realigner: rotates words of memory to the bytes of the output, and joins them into beats."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode
from ..configuration import Configuration
from ..streams import Edge, Stage
from .placement import Placement

__all__ = ["Aligned", "Realigner", "Word"]


class Word(data.StructLayout):
    """A word of memory and its `Placement`. ``error``: ``data`` could not be read."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {"data": configuration.data_width, "error": 1, "placement": Placement(configuration)}
        )


class Aligned(data.StructLayout):
    """A beat of an operand, aligned like the output; `Placement` has ``repeat`` and ``extra``."""

    def __init__(self, configuration: Configuration) -> None:
        repeat = 1 if Mode.REPEAT in configuration.modes else 0
        super().__init__(
            {"data": configuration.data_width, "edge": Edge, "repeat": repeat, "extra": repeat}
        )


class Realigner(wiring.Component):
    """Assembles output beats from the words of spans.

    The byte network is a rotator: step ``k``, from the widest down to 0, takes a byte from ``2**k``
    bytes below, or leaves it. ``odd[k]`` decides for the bytes whose number has bit ``k`` set, and
    ``even[k]`` for the others. If both are equal, the bytes rotate. If they differ, one half is
    copied over the other; so REPEAT fills a beat with one element.

    Behind the network, byte ``b`` of a beat is the word's own if ``b >= split``, else the byte that
    waits. These are the beats that a word completes, and what waits behind it:

    ======================= ============================ =========================
    Word                    Beats                        Waiting bytes
    ======================= ============================ =========================
    neither                 the joined one               the word
    ``prime``               none                         the word
    ``flush``               the joined one, then a flush none
    ``prime`` and ``flush`` a flush                      none
    ``merge``               as above                     the word's own are added
    ======================= ============================ =========================

    Parameters
    ----------
    configuration
        Widths and modes.
    register
        The stage behind the byte network; it must always be ready.
    dual
        Two beats can leave in a cycle; without it, a word waits while the beat of a ``flush``
        leaves.

    Members
    -------
    i
        ``ready`` is always 1 with ``dual``; else it is 0 only in the cycle after a word with
        ``flush``, for one without ``prime``.
    o
        With ``dual``, beats leave at ``o[0]`` and ``o[1]`` in turn.

    Latency: that of the stage behind the network. Throughput: a word a cycle, and without ``dual``
    an output beat a cycle.
    Undefined: bytes outside the output's run.
    Bound of the clock: byte network -> byte multiplexer; with a register between them, the longer
    of the two.
    """

    def __init__(self, configuration: Configuration, register: Stage, *, dual: bool) -> None:
        self._configuration = configuration
        self._register = register
        self._dual = dual
        beats = stream.Signature(Aligned(configuration), always_ready=True)
        super().__init__(
            {
                "i": In(stream.Signature(Word(configuration))),
                "o": Out(beats).array(1 + dual),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.moved = moved = self._register(Word(self._configuration))
        m.d.comb += [
            self.i.ready.eq(1),
            moved.i.valid.eq(self.i.valid & self.i.ready),
            moved.i.payload.eq(self.i.payload),
            moved.i.p.data.eq(self._move(m)),
            moved.o.ready.eq(1),
        ]
        if not self._dual:
            flushes = Signal()
            m.d.sync += flushes.eq(moved.i.valid & self.i.p.placement.flush)
            m.d.comb += self.i.ready.eq(~flushes | self.i.p.placement.prime)
        self._join(m, moved.o.valid, moved.o.p)
        return m

    def _move(self, m: Module) -> Value:
        """Return the word, rotated as its placement says."""
        moved: Value = self.i.p.data
        size, placement = len(moved) // 8, self.i.p.placement
        # From the widest step down: a narrower step then copies within the half that is filled.
        for step in reversed(range(len(placement.odd))):
            below = moved.rotate_left(8 << step)
            stepped = Signal(len(moved), name=f"moved_{step}")
            for byte in range(size):
                bits = slice(8 * byte, 8 * byte + 8)
                moves = placement.odd[step] if byte >> step & 1 else placement.even[step]
                m.d.comb += stepped[bits].eq(Mux(moves, below[bits], moved[bits]))
            moved = stepped
        return moved

    def _join(self, m: Module, valid: Value, word: Any) -> None:
        """Join the waiting bytes with those of the word."""
        placement = word.placement
        previous = Signal(len(word.data), reset_less=True)
        held: Any = Signal(Edge, reset_less=True)
        # The flush of the word before leaves now, ahead of any beat of this word.
        flushing = Signal()
        spoiled = Signal()
        m.d.sync += flushing.eq(valid & placement.flush)
        with m.If(valid):
            m.d.sync += [spoiled.eq(spoiled | word.error), held.last.eq(placement.last)]
            m.d.sync += [held.end.eq(placement.end), held.slot.eq(placement.slot)]
            m.d.sync += held.final.eq(placement.final)
        merge = placement.merge if len(placement.merge) else Const(0)
        own = Signal(len(word.data) // 8)
        for byte, bits in enumerate(_bytes(previous)):
            m.d.comb += own[byte].eq(placement.split <= byte)
            with m.If(valid & (own[byte] | ~merge)):
                m.d.sync += bits.eq(_bytes(word.data)[byte])

        def beat(flush: Value, name: str) -> Any:
            """Return the waiting bytes if ``flush``; else these joined with the word."""
            made: Any = Signal(Aligned(self._configuration), name=name)
            m.d.comb += [
                made.edge.last.eq(Mux(flush, held.last, placement.last & ~placement.flush)),
                made.edge.end.eq(Mux(flush, held.end, placement.end & ~placement.flush)),
                made.edge.error.eq(spoiled | (word.error & ~flush)),
                made.edge.slot.eq(Mux(flush, held.slot, placement.slot)),
                made.edge.final.eq(Mux(flush, held.final, placement.final)),
            ]
            if len(placement.repeat):
                m.d.comb += [
                    made.repeat.eq(placement.repeat & ~flush),
                    made.extra.eq(placement.extra),
                ]
            both = zip(_bytes(word.data), _bytes(previous), own, strict=True)
            m.d.comb += made.data.eq(Cat(Mux(ours & ~flush, new, old) for new, old, ours in both))
            return made

        joins = valid & ~placement.prime
        turn = Signal()
        if self._dual:
            m.d.sync += turn.eq(turn ^ flushing ^ joins)
        for number, o in enumerate(self.o):
            first = turn == number
            m.d.comb += [
                o.valid.eq(Mux(first, flushing | joins, flushing & joins)),
                o.payload.eq(beat(flushing & first, f"beat_{number}")),
            ]


def _bytes(word: Value) -> list[Value]:
    return [word[low : low + 8] for low in range(0, len(word), 8)]
