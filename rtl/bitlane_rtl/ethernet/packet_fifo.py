"""A FIFO between two clocks that passes on packets as wholes, in any order of their words."""

from collections.abc import Sequence

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..primitives import Ram

__all__ = ["PACKET_WORDS", "PacketFifo", "PacketWrites"]

PACKET_WORDS = 512
"""Words of a packet, at most this less 1: more than those of the longest frame."""


_RAM_BITS = 18 * 1024
"""Bits of a block RAM of ECP5."""


class PacketWrites(wiring.Signature):
    """Signature of writes of packets, from the side of the writer.

    Parameters
    ----------
    shape
        Shape of a word; may be a data layout.
    packet_words
        The words of a packet are at most this less 1: a power of two.

    Members
    -------
    room
        A packet of any size fits. Valid from the third cycle after ``commit`` on. While 0, nothing
        may be written or committed.
    write, offset, word
        Write ``word`` at ``offset`` of the packet, in any order.
    commit, words
        The packet is complete with the ``word`` of this cycle, and has ``words`` words.
    """

    def __init__(self, shape: ShapeLike, packet_words: int = PACKET_WORDS) -> None:
        super().__init__(
            {
                "room": In(1),
                "write": Out(1),
                "offset": Out(range(packet_words)),
                "word": Out(shape),
                "commit": Out(1),
                "words": Out(range(packet_words)),
            }
        )


class PacketFifo(wiring.Component):
    """Stores a packet at offsets of its start; once it is committed, outputs it word by word.

    The output must not see a pointer that changes in several bits of its Gray code at once. So the
    end of the committed packets is walked to, a word in each cycle of the writer.

    Parameters
    ----------
    shape
        Shape of a word; may be a data layout.
    depth
        Words: a power of two, at least twice ``packet_words``.
    packet_words
        See `PacketWrites`.

    Members
    -------
    i
        Packets to store.
    o
        The words of the packets.

    The domain ``write`` clocks the input, ``read`` the output.

    Latency: from ``commit`` to the first word 3 cycles of the writer and 5 of the reader; one more
    of the reader for the crossing, if the clocks differ.
    Throughput: a word in each cycle of the reader, if its clock is not faster than the writer's.
    A word that was never written is undefined.
    Area (33 bits, depth 1,024): ECP5 70 LUT4, 30 CCU2C, 191 flip-flops and two block RAMs. Clock:
    ECP5-6 171 MHz of the writer, 134 MHz of the reader, which the RAM's output bounds.

    Raises ``ValueError`` if ``depth`` is not such a power of two.
    """

    def __init__(self, shape: ShapeLike, depth: int, packet_words: int = PACKET_WORDS) -> None:
        if depth < 2 * packet_words or depth & (depth - 1):
            raise ValueError(f"depth: {depth} is not a power of two, {2 * packet_words} or more")
        self._depth = depth
        writes = PacketWrites(shape, packet_words)
        super().__init__({"i": In(writes), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Reads and writes never collide: only words of committed packets are read.
        width = Shape.cast(self.o.payload.shape()).width
        # A block RAM has all words of some bits: no multiplexer follows its output.
        step = max(1, _RAM_BITS // self._depth)
        columns = range(0, width, step)
        rams = [Ram(min(step, width - first), self._depth, style="block") for first in columns]
        for number, ram in enumerate(rams):
            m.submodules[f"storage_{number}"] = DomainRenamer("write")(ram.memory)
        end = Signal(range(self._depth))  # of the packets that the reader may see
        start = Signal(range(self._depth))  # of the packet that is written
        end_code = Signal.like(end)
        read_code = Signal.like(end)
        seen_end = Signal.like(end)
        seen_read = Signal.like(end)
        m.submodules.to_read = FFSynchronizer(end_code, seen_end, o_domain="read")
        m.submodules.to_write = FFSynchronizer(read_code, seen_read, o_domain="write")

        read = Signal.like(end)  # as the writer sees it
        used = Signal.like(end)
        # A packet must not fill the FIFO to the last word, or the FIFO would look empty.
        m.d.comb += self.i.room.eq(~used[len(self.i.offset) :].all())
        m.d.write += [
            # Registers, because block RAMs are far apart: with them a packet's last word is written
            # when `end` takes the first step.
            Cat(ram.write.data for ram in rams).eq(self.i.word),
            [ram.write.addr.eq(start + self.i.offset) for ram in rams],
            [ram.write.en.eq(self.i.write) for ram in rams],
            end.eq(end + (end != start)),
            end_code.eq(end ^ end[1:]),
            read.eq(Cat(seen_read[bit:].xor() for bit in range(len(read)))),
            used.eq(start - read),
        ]
        with m.If(self.i.commit):
            m.d.write += start.eq(start + self.i.words)
        self._read(m, rams, seen_end, read_code)
        return m

    def _read(self, m: Module, rams: Sequence[Ram], end_code: Value, code: Signal) -> None:
        """Output the words before the address with the Gray code ``end_code``.

        Drives ``code``, the Gray code of the next word's address.
        """
        address = Signal(range(self._depth))
        following = Signal.like(address, init=1)  # the code of the address behind it
        more = Signal()  # the word at the address may be read
        loaded = Signal()
        loads = Signal()
        # A block RAM takes 5.8 ns to output a word, and so nothing but a register follows it.
        leaves = ~self.o.valid | self.o.ready
        m.d.comb += [
            [ram.read.addr.eq(address) for ram in rams],
            loads.eq(more & (~loaded | leaves)),
        ]
        m.d.read += [
            more.eq(Mux(loads, following != end_code, code != end_code)),
            loaded.eq(loads | (loaded & ~leaves)),
        ]
        second = Signal.like(address)
        m.d.comb += second.eq(address + 2)
        with m.If(loads):
            m.d.read += [
                address.eq(address + 1),
                code.eq(following),
                following.eq(second ^ second[1:]),
                [ram.load() for ram in rams],
            ]
        with m.If(leaves):
            word = Cat(ram.output for ram in rams)
            m.d.read += [self.o.valid.eq(loaded), Value.cast(self.o.payload).eq(word)]
