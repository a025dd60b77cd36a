"""Moves a run of bytes by less than a word. It knows neither addresses nor beats."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import WORD_BYTES
from ..serial.byte_counter import SIZE_BITS

__all__ = ["AlignedWord", "WordAligner"]

_WORD_BITS = exact_log2(WORD_BYTES)


class AlignedWord(data.Struct):
    """A word of a run; ``strobe`` marks its bytes, the others are 0; ``last``: the run ends."""

    data: 32
    strobe: WORD_BYTES
    last: 1


class WordAligner(wiring.Component):
    """Moves a run of bytes from an offset in its first word to offset 0, or from 0 to an offset.

    In each step a word is taken, or one is output, or both. The word that is output joins the bytes
    of the word that is taken with those of the word before, all rotated to their places.

    ===========================  ==========================  =======================================
    Run                          First step                  Last step
    ===========================  ==========================  =======================================
    ``outward``, from offset 0   as any other                takes none, if more words are output
                                                             than taken
    from offset 0 to 0           as any other                as any other
    from another offset to 0     outputs none                takes none, if as many words are output
                                                             as taken
    ===========================  ==========================  =======================================

    Members
    -------
    enable : ``In(1)``
        A run lasts. 0 for a cycle or more before each run.
    outward : ``In(1)``
        The run is moved to ``offset``, not from it.
    drop : ``In(1)``
        Take the words of the run and output none. Only if ``outward``.
    offset : ``In(range(WORD_BYTES))``
    size_less_1 : ``In(SIZE_BITS)``
        Bytes of the run less one. These four are valid from the cycle before ``enable`` on.
    i : ``In(stream.Signature(32))``
        The words of the run. Bytes outside of it may have any value.
    o : ``Out(stream.Signature(AlignedWord))``
    done : ``Out(1)``
        The last step is taken in this cycle; ``enable`` must be 0 in the next one.

    Latency: 0 cycles. Throughput: a word a cycle.
    Paths through it: from ``i.valid`` to ``o.valid``, and from ``o.ready`` to ``i.ready``.
    Area: 189 LUT4, 10 CCU2C and 42 flip-flops on ECP5.
    """

    enable: In(1)
    outward: In(1)
    drop: In(1)
    offset: In(range(WORD_BYTES))
    size_less_1: In(SIZE_BITS)
    i: In(stream.Signature(32))
    o: Out(stream.Signature(AlignedWord))
    done: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        misaligned = self.offset != 0
        end = Signal(_WORD_BITS + 1)  # the run's last byte in its last word at the offset
        one_more = Mux(self.outward, end[-1], misaligned)  # step than words at offset 0
        last_takes_none = Signal(reset_less=True)
        m.d.comb += end.eq(self.offset + self.size_less_1[:_WORD_BITS])
        m.d.sync += last_takes_none.eq(Mux(self.outward, end[-1], misaligned & ~end[-1]))

        left = Signal(SIZE_BITS - 1, reset_less=True)  # steps behind this one
        first = Signal(reset_less=True)
        silent = Signal(reset_less=True)  # no word is output in this step
        last, takes, steps = Signal(), Signal(), Signal()
        with m.If(~self.enable):
            m.d.sync += [
                left.eq(self.size_less_1[_WORD_BITS:] + one_more),
                first.eq(1),
                silent.eq(Mux(self.outward, self.drop, misaligned)),
            ]
        with m.Elif(steps):
            m.d.sync += [left.eq(left - 1), first.eq(0), silent.eq(silent & self.outward)]
        sourced = self.enable & (self.i.valid | ~takes)
        m.d.comb += [
            last.eq(left == 0),
            takes.eq(~(last & last_takes_none)),
            steps.eq(sourced & (self.o.ready | silent)),
            self.i.ready.eq(self.enable & takes & (self.o.ready | silent)),
            self.o.valid.eq(sourced & ~silent),
            self.o.p.last.eq(last),
            self.done.eq(steps & last),
        ]
        self._join(m, steps, first, last, end)
        return m

    def _join(self, m: Module, steps: Value, first: Value, last: Value, end: Value) -> None:
        """Drive the word that is output."""
        # Rotated by 0 to 3 bytes, where the lower ones of the next word come.
        turn = Signal(_WORD_BITS, reset_less=True)
        begin = Signal(_WORD_BITS, reset_less=True)
        finish = Signal(_WORD_BITS, reset_less=True)
        m.d.sync += [
            turn.eq(Mux(self.outward, self.offset, -self.offset)),
            begin.eq(Mux(self.outward, self.offset, 0)),
            finish.eq(Mux(self.outward, end, self.size_less_1)),
        ]
        rotated = Signal(32)
        before = Signal(32, reset_less=True)
        with m.Switch(turn):
            for number in range(WORD_BYTES):
                with m.Case(number):
                    m.d.comb += rotated.eq(self.i.payload.rotate_left(8 * number))
        with m.If(steps):
            m.d.sync += before.eq(rotated)
        for byte in range(WORD_BYTES):
            bits = slice(8 * byte, 8 * byte + 8)
            inside = self.o.p.strobe[byte]
            joined = Mux(turn <= byte, rotated[bits], before[bits])
            m.d.comb += [
                inside.eq((~first | (begin <= byte)) & (~last | (finish >= byte))),
                self.o.p.data[bits].eq(joined & inside.replicate(8)),
            ]
