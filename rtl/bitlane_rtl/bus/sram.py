"""A single-port synchronous memory behind the engine's memory ports. It stores nothing itself."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..ports.memory_port import ReadPort, WritePort
from ..ports.read_arbiter import in_turn

__all__ = ["Sram", "SramPort"]


class Sram(wiring.Signature):
    """Signature of a single-port memory, seen from its user.

    Members
    -------
    address : ``Out(range(words))``
        Word to access.
    enable : ``Out(1)``
        Access it in this cycle.
    strobe : ``Out(data_width // 8)``
        Bytes to write. If none, the access is a read.
    write_data : ``Out(data_width)``
    read_data : ``In(data_width)``
        What was read, in the cycle after; undefined in all other cycles.
    """

    def __init__(self, words: int, data_width: int) -> None:
        super().__init__(
            {
                "address": Out(range(words)),
                "enable": Out(1),
                "strobe": Out(data_width // 8),
                "write_data": Out(data_width),
                "read_data": In(data_width),
            }
        )


@dataclass
class _Access:
    """What a read or a write needs of the memory.

    Requests stay at the ports until their last word, and only the words done are counted.
    """

    possible: Value
    address: Value
    """Of the burst, in bytes."""
    offset: Signal
    """Words of the burst that are done."""


class SramPort(wiring.Component):
    """Serves read ports and a write port from one memory, a word a cycle.

    Reads and writes that wait for each other are served in turn, and so are bursts of two readers.
    Each reader must take the beats that it asked for without waiting for the other's: a beat that
    is not taken holds up all reads.

    Parameters
    ----------
    address_width, data_width
        Of the ports, in bits.
    words
        Beats that the memory holds. Address bits above them are ignored, so the memory's first
        address must be a multiple of its size rounded up to a power of two.
    read_ports
        1 or 2.

    Members
    -------
    a : ``In(ReadPort(address_width, data_width))``
    b : ``In(ReadPort(address_width, data_width))``
        Only with two read ports.
    write : ``In(WritePort(address_width, data_width))``
    hold : ``In(1)``
        No access in this cycle: the memory is another's.
    memory : ``Out(Sram(words, data_width))``

    Latency: the first word is accessed in the cycle in which its burst is requested, and its beat
    comes 1 cycle later; a write's response 1 cycle after its last beat. A request is taken together
    with its last word, so that its beats come before it is taken.
    Throughput: an access in every cycle without ``hold`` in which a port has work and takes its
    answers, whatever the lengths of the bursts; so three busy streams have a third each.
    There are no errors. Undefined: accesses past the memory.
    Area (32 bits, two readers): ECP5 149 LUT4 and 47 flip-flops, at 176 MHz; iCE40 112 LUT4 and 47
    flip-flops, at 157 MHz on HX.
    Paths through it: from ``valid`` of all requests, ``data.ready`` and ``response.ready`` to the
    memory's ``address``; from these and ``hold`` to ``enable`` and to ``ready`` of requests and
    write data.

    Raises ``ValueError`` if ``read_ports`` is neither 1 nor 2.
    """

    a: Any
    b: Any
    write: Any
    hold: Signal
    memory: Any

    def __init__(
        self, address_width: int, data_width: int, words: int, *, read_ports: int = 2
    ) -> None:
        if read_ports not in (1, 2):
            raise ValueError(f"read_ports: {read_ports} is neither 1 nor 2")
        self._data_width = data_width
        self._read_ports = read_ports
        reader = ReadPort(address_width, data_width)
        super().__init__(
            {"a": In(reader)}
            | ({"b": In(reader)} if read_ports == 2 else {})
            | {
                "write": In(WritePort(address_width, data_width)),
                "hold": In(1),
                "memory": Out(Sram(words, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reads = Signal()
        writes = Signal()
        read = self._read(m, reads)
        write = self._write(m, writes)
        # Whose turn it is, and so the address, does not depend on `hold`, which comes late.
        turn = in_turn(m, read.possible, write.possible, ~self.hold)

        # A burst does not leave its block, so nothing is carried into the address above it. The two
        # are kept apart, or in a simulator of whole words the address would depend on itself.
        byte_bits = ceil_log2(self._data_width // 8)
        block_bits = byte_bits + len(read.offset)
        word = Mux(turn, write.address[byte_bits:block_bits], read.address[byte_bits:block_bits])
        block = Mux(turn, write.address[block_bits:], read.address[block_bits:])
        in_block = Signal.like(read.offset, init=0)
        beat: Any = self.write.data.payload
        m.d.comb += [
            in_block.eq(word + Mux(turn, write.offset, read.offset)),
            reads.eq(read.possible & ~turn & ~self.hold),
            writes.eq(turn & ~self.hold),
            self.memory.enable.eq((read.possible | write.possible) & ~self.hold),
            self.memory.address.eq(Cat(in_block, block)),
            self.memory.strobe.eq(beat.strobe & turn.replicate(self._data_width // 8)),
            self.memory.write_data.eq(beat.data),
        ]
        return m

    def _read(self, m: Module, reads: Signal) -> _Access:
        """Choose a reader until the end of its burst, and give it the beats."""
        offset = Signal.like(self.a.request.payload.length, name="read_offset", init=0)
        done = Signal()
        a = self.a.request
        if self._read_ports == 2:
            b = self.b.request
            grant_b: Signal | Const = in_turn(m, a.valid, b.valid, done)
            asked = a.valid | b.valid
            address = Mux(grant_b, b.payload.address, a.payload.address)
            length = Mux(grant_b, b.payload.length, a.payload.length)
            m.d.comb += b.ready.eq(done & grant_b)
        else:
            grant_b = Const(0)
            asked, address, length = a.valid, a.payload.address, a.payload.length
        last = offset == length
        beat_taken = self._give(m, reads, last, grant_b)
        m.d.comb += [done.eq(reads & last), a.ready.eq(done & ~grant_b)]
        with m.If(reads):
            m.d.sync += offset.eq(Mux(last, 0, offset + 1))
        return _Access(asked & beat_taken, address, offset)

    def _give(self, m: Module, reads: Signal, last: Value, to_b: Value) -> Value:
        """Give out the words that are read. Returns whether another may be."""
        readers = [self.a, self.b] if self._read_ports == 2 else [self.a]
        # A word that was read stands at the memory for a cycle, then in `stash` if not taken.
        fresh = Signal()
        stashed = Signal()
        stash = Signal(self._data_width, reset_less=True)
        beat_last = Signal()
        beat_of_b = Signal()
        beat_taken = Signal()
        m.d.sync += [fresh.eq(reads), stashed.eq((fresh | stashed) & ~beat_taken)]
        with m.If(fresh):
            m.d.sync += stash.eq(self.memory.read_data)
        with m.If(reads):
            m.d.sync += [beat_last.eq(last), beat_of_b.eq(to_b)]
        m.d.comb += beat_taken.eq(self.a.data.ready)
        for index, reader in enumerate(readers):
            mine = beat_of_b == index
            m.d.comb += [
                reader.data.valid.eq((fresh | stashed) & mine),
                reader.data.payload.data.eq(Mux(stashed, stash, self.memory.read_data)),
                reader.data.payload.last.eq(beat_last),
                reader.data.payload.error.eq(0),
            ]
            with m.If(mine):
                m.d.comb += beat_taken.eq(reader.data.ready)
        return beat_taken | ~(fresh | stashed)

    def _write(self, m: Module, writes: Signal) -> _Access:
        write = self.write
        offset = Signal.like(write.request.payload.length, name="write_offset", init=0)
        ends = Signal()
        responding = Signal()
        m.d.comb += [
            ends.eq(writes & write.data.payload.last),
            write.data.ready.eq(writes),
            write.request.ready.eq(ends),
            write.response.valid.eq(responding),
            write.response.payload.eq(0),
        ]
        m.d.sync += responding.eq(ends | (responding & ~write.response.ready))
        with m.If(writes):
            m.d.sync += offset.eq(Mux(ends, 0, offset + 1))
        can_respond = write.response.ready | ~responding
        possible = write.request.valid & write.data.valid & can_respond
        return _Access(possible, write.request.payload.address, offset)
