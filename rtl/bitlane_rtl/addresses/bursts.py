"""The splitter: cuts spans of bytes into bursts. It handles neither data nor bus signals."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import BEATS_PER_BLOCK
from ..configuration import Configuration

__all__ = ["Burst", "Span", "Splitter"]


class Span(data.StructLayout):
    """A contiguous segment of ``extent + 1`` bytes from ``address``; ``tag`` travels with it."""

    def __init__(self, configuration: Configuration, tag: ShapeLike) -> None:
        super().__init__(
            {
                "address": configuration.address_width,
                "extent": configuration.length_bits,
                "tag": tag,
            }
        )


class Burst(data.StructLayout):
    """A burst of ``length + 1`` beats.

    ``address``: byte address of its first beat. ``begin``, ``finish``: offsets of the span's first
    and last byte in their beats. ``first``, ``final``: it is the first or last burst of the span.
    ``single``: ``length`` is 0; a register holds this, while ``length`` is computed.
    ``outside``: it leaves the memory that commands may touch, and must never be issued.
    """

    def __init__(self, configuration: Configuration, tag: ShapeLike) -> None:
        super().__init__(
            {
                "address": configuration.address_width,
                "length": exact_log2(BEATS_PER_BLOCK),
                "begin": configuration.data_bytes_log2,
                "finish": configuration.data_bytes_log2,
                "first": 1,
                "final": 1,
                "single": 1,
                "outside": 1,
                "tag": tag,
            }
        )


class Splitter(wiring.Component):
    """Cuts spans at blocks of ``abi.BEATS_PER_BLOCK`` beats.

    A block never crosses 4 KiB, so neither does a burst (AXI4 A3.4.1), and no address needs to be
    compared: a burst's length is a difference of four bits.

    Parameters
    ----------
    configuration, tag
        The parameters of `Span`.
    gap
        Make ``i.ready`` depend on a register alone. Costs one cycle between spans.

    Members
    -------
    i
        The spans to cut.
    o
        The bursts of each span, in the order of their addresses.

    The length of the final burst is ``rest``; every other burst ends at the end of its block.
    ``index`` counts blocks from 0 and ``following`` from 1: counters that start at a constant need
    no multiplexer to load a copy of the address, and no sum is compared.

    Latency: 1 cycle. Throughput: a burst a cycle; the next span follows without a gap, or after a
    cycle with ``gap``.
    Bound of the clock: whether the next burst is the final one.
    """

    def __init__(self, configuration: Configuration, tag: ShapeLike, *, gap: bool = False) -> None:
        self._configuration = configuration
        self._tag = tag
        self._gap = gap
        super().__init__(
            {
                "i": In(stream.Signature(Span(configuration, tag))),
                "o": Out(stream.Signature(Burst(configuration, tag))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_low = self._configuration.data_bytes_log2
        block_low = beat_low + exact_log2(BEATS_PER_BLOCK)
        entering = self.i.p.address[beat_low:block_low]
        finish, ends_here, beats = self._measure(m, beat_low, block_low)
        valid = Signal()
        first = Signal(reset_less=True)
        final = Signal(reset_less=True)
        block = Signal(self._configuration.address_width - block_low, reset_less=True)
        index = Signal(len(finish) - block_low, reset_less=True)
        following = Signal(len(index), reset_less=True)
        start = Signal(block_low - beat_low, reset_less=True)
        rest = Signal(len(start), reset_less=True)
        blocks = Signal(len(index), reset_less=True)
        single = Signal(reset_less=True)
        tag = Signal(self._tag, reset_less=True)
        begin = Signal(beat_low, reset_less=True)
        end = Signal(beat_low, reset_less=True)
        m.d.comb += [
            self.o.valid.eq(valid),
            self.o.p.address[beat_low:block_low].eq(start),
            self.o.p.address[block_low:].eq(block + index),
            self.o.p.length.eq(Mux(final, rest, ~start)),
            self.o.p.begin.eq(begin),
            self.o.p.finish.eq(end),
            self.o.p.first.eq(first),
            self.o.p.final.eq(final),
            self.o.p.single.eq(single),
            self.o.p.tag.eq(tag),
            self.o.p.outside.eq(self._outside(self.o.p.address[block_low:], block_low)),
            self.i.ready.eq(~valid if self._gap else ~valid | (self.o.ready & final)),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                valid.eq(self.i.valid),
                first.eq(1),
                final.eq(ends_here),
                block.eq(self.i.p.address[block_low:]),
                index.eq(0),
                following.eq(1),
                start.eq(entering),
                rest.eq(Mux(ends_here, beats, finish)[beat_low:block_low]),
                single.eq(Mux(ends_here, beats[beat_low:block_low] == 0, entering.all())),
                blocks.eq(finish[block_low:]),
                tag.eq(self.i.p.tag),
                begin.eq(self.i.p.address[:beat_low]),
                end.eq(finish[:beat_low]),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += [
                valid.eq(~final),
                first.eq(0),
                final.eq(following == blocks),
                single.eq((following == blocks) & (rest == 0)),
                index.eq(following),
                following.eq(following + 1),
                start.eq(0),
            ]
        return m

    def _measure(self, m: Module, beat_low: int, block_low: int) -> tuple[Value, Value, Value]:
        """Return the span's end, counted from its first block; whether it ends in that block; and
        the sum whose beat number is the burst's length if it does."""
        finish = Signal(max(self._configuration.length_bits, block_low) + 1)
        m.d.comb += finish.eq(self.i.p.address[:block_low] + self.i.p.extent)
        extent = self.i.p.extent
        # The carry of a short sum decides this in parallel with the long one.
        in_block = Signal(block_low + 1)
        # Kept, because synthesis takes a carry for early: it would put most of this OR behind it,
        # and take 14 LUT4 more (ECP5).
        long = Signal(attrs={"keep": 1})
        ends_here = Signal()
        beats = Signal(block_low + 1)
        m.d.comb += [
            beats.eq(self.i.p.address[:beat_low] + extent[:block_low]),
            in_block.eq(self.i.p.address[:block_low] + extent[:block_low]),
            long.eq(extent[block_low:].any()),
            ends_here.eq(~(long | in_block[-1])),
        ]
        return finish, ends_here, beats

    def _outside(self, block: Value, low: int) -> Value:
        """Return whether ``block``, an address without its ``low`` bits, is outside the memory.

        This check covers every access, because the engine accesses memory by bursts alone.
        """
        first = self._configuration.memory_base >> low
        last = self._configuration.memory_last >> low
        blocks = last - first + 1
        if blocks & (blocks - 1) == 0 and first % blocks == 0:
            same = exact_log2(blocks)
            return block[same:] != first >> same
        return (block < first) | (block > last)
