"""Moves what was read to where the output wants it, and joins neighbouring beats. Drops no byte."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode
from ..configuration import Configuration
from ..streams.beats import Edge
from ..streams.stage import Stage

__all__ = ["Aligned", "Joiner", "Placement", "Word"]


class Placement(data.StructLayout):
    """Where the bytes of a span go. Fields that the configuration has no use for are 0 bits wide.

    ``odd`` and ``even``: the steps of the byte network, see `Joiner`. ``split``: bytes of a word
    from there on belong to the output beat that it completes, those before it to the next one.
    ``prime``: the span's first word completes no beat. ``flush``: a beat holds what is left of its
    last word. ``merge``: the word adds to the beat that the words before it began (gather).
    ``repeat``: the beat stands for a whole run; ``extra``: which has a beat more than its bytes
    would have from byte 0 on; ``last`` is 0 then unless it has a single one. ``last``, ``end``,
    ``slot``, ``final``: the `Edge` of the span's last beat.
    """

    def __init__(self, configuration: Configuration) -> None:
        log2 = configuration.data_bytes_log2
        merge = 1 if Mode.STRIDED in configuration.modes else 0
        repeat = 1 if Mode.REPEAT in configuration.modes else 0
        count = 1 if configuration.counts else 0
        super().__init__(
            {
                "odd": log2,
                "even": log2,
                "split": log2,
                "prime": 1,
                "flush": 1,
                "merge": merge,
                "repeat": repeat,
                "extra": repeat,
                "last": 1,
                "end": 1,
                "slot": 3 * count,
                "final": 2 * count,
            }
        )


class Word(data.StructLayout):
    """A beat of memory and where it goes; ``prime``, ``flush``, ``last`` and ``end`` are its own,
    and not those of its span. ``error``: ``data`` could not be read."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {"data": configuration.data_width, "error": 1, "place": Placement(configuration)}
        )


class Aligned(data.StructLayout):
    """A beat of an operand, aligned like the output; see `Placement` for ``repeat``, ``extra``."""

    def __init__(self, configuration: Configuration) -> None:
        repeat = 1 if Mode.REPEAT in configuration.modes else 0
        super().__init__(
            {"data": configuration.data_width, "edge": Edge, "repeat": repeat, "extra": repeat}
        )


class Joiner(wiring.Component):
    """Makes output beats of the words of spans.

    The byte network moves bytes in steps of half a beat, a quarter, and so on down to one byte.
    Each step takes a byte from that far below, going round, or leaves it; ``odd[k]`` says which for
    the bytes whose place has bit ``k`` set, ``even[k]`` for the others. Where both are equal bytes
    rotate; where they differ one half is doubled, and so an element fills the beat.

    Parameters
    ----------
    configuration
        Widths and modes.
    register
        The stage behind the byte network; it must always be ready.
    twin
        Whether two beats can leave in a cycle; else a word waits while the beat of a ``flush``
        leaves.

    Members
    -------
    i : ``In(stream.Signature(Word(configuration)))``
        ``ready`` is always 1 with ``twin``; else it is 0 only in the cycle after a word with
        ``flush``, for one without ``prime``.
    o : ``Out(stream.Signature(Aligned(configuration), always_ready=True)).array(1 + twin)``
        With ``twin`` beats leave here and there in turn, from ``o[0]`` on.

    Latency: that of the stage behind the network. Throughput: a word a cycle, and without ``twin``
    an output beat a cycle.
    Undefined: bytes outside the output's run.
    Bound of the clock: byte network -> byte multiplexer, or whichever is longer with a register.
    """

    i: stream.Interface
    o: list[stream.Interface]

    def __init__(self, configuration: Configuration, register: Stage, *, twin: bool) -> None:
        self._configuration = configuration
        self._register = register
        self._twin = twin
        beats = stream.Signature(Aligned(configuration), always_ready=True)
        super().__init__(
            {
                "i": In(stream.Signature(Word(configuration))),
                "o": Out(beats).array(1 + twin),
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
        if not self._twin:
            flushes = Signal()
            m.d.sync += flushes.eq(moved.i.valid & self.i.p.place.flush)
            m.d.comb += self.i.ready.eq(~flushes | self.i.p.place.prime)
        self._join(m, moved.o.valid, moved.o.p)
        return m

    def _move(self, m: Module) -> Value:
        """The bytes of the word where its place wants them."""
        moved: Value = self.i.p.data
        size, place = len(moved) // 8, self.i.p.place
        # From the far step to the near one: what a doubling step takes from beyond is double too.
        for step in reversed(range(len(place.odd))):
            below = moved.rotate_left(8 << step)
            stepped = Signal(len(moved), name=f"moved_{step}")
            for byte in range(size):
                bits = slice(8 * byte, 8 * byte + 8)
                goes = place.odd[step] if byte >> step & 1 else place.even[step]
                m.d.comb += stepped[bits].eq(Mux(goes, below[bits], moved[bits]))
            moved = stepped
        return moved

    def _join(self, m: Module, valid: Value, word: Any) -> None:
        """Put together what is left of the words before with this one."""
        place = word.place
        previous = Signal(len(word.data), reset_less=True)
        held: Any = Signal(Edge, reset_less=True)
        # What is left of the word before goes now, whatever comes, and before it.
        flushing = Signal()
        spoiled = Signal()
        m.d.sync += flushing.eq(valid & place.flush)
        with m.If(valid):
            m.d.sync += [spoiled.eq(spoiled | word.error), held.last.eq(place.last)]
            m.d.sync += [held.end.eq(place.end), held.slot.eq(place.slot)]
            m.d.sync += held.final.eq(place.final)
        merge = place.merge if len(place.merge) else Const(0)
        own = Signal(len(word.data) // 8)
        for byte, bits in enumerate(_bytes(previous)):
            m.d.comb += own[byte].eq(place.split <= byte)
            with m.If(valid & (own[byte] | ~merge)):
                m.d.sync += bits.eq(_bytes(word.data)[byte])

        def beat(flush: Value, name: str) -> Any:
            """What is left of the words before; else that with this word."""
            made: Any = Signal(Aligned(self._configuration), name=name)
            m.d.comb += [
                made.edge.last.eq(Mux(flush, held.last, place.last & ~place.flush)),
                made.edge.end.eq(Mux(flush, held.end, place.end & ~place.flush)),
                made.edge.error.eq(spoiled | (word.error & ~flush)),
                made.edge.slot.eq(Mux(flush, held.slot, place.slot)),
                made.edge.final.eq(Mux(flush, held.final, place.final)),
            ]
            if len(place.repeat):
                m.d.comb += [made.repeat.eq(place.repeat & ~flush), made.extra.eq(place.extra)]
            both = zip(_bytes(word.data), _bytes(previous), own, strict=True)
            m.d.comb += made.data.eq(Cat(Mux(ours & ~flush, new, old) for new, old, ours in both))
            return made

        joins = valid & ~place.prime
        turn = Signal()
        if self._twin:
            m.d.sync += turn.eq(turn ^ flushing ^ joins)
        for number, o in enumerate(self.o):
            first = turn == number
            m.d.comb += [
                o.valid.eq(Mux(first, flushing | joins, flushing & joins)),
                o.payload.eq(beat(flushing & first, f"beat_{number}")),
            ]


def _bytes(word: Value) -> list[Value]:
    return [word[low : low + 8] for low in range(0, len(word), 8)]
