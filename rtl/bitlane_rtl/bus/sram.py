"""An adapter from the engine's memory ports to a single-port synchronous memory."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..ports.read_arbiter import round_robin
from ..ports.signatures import memory_members

__all__ = ["Sram", "SramPort"]


class Sram(wiring.Signature):
    """Signature of a single-port memory, seen from its user.

    Members
    -------
    address
        Word address.
    enable
        The memory is accessed in this cycle.
    strobe
        Bytes to write. An access without any is a read.
    write_data
        The word to write.
    read_data
        Valid in the cycle after a read, undefined in all others.
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
    """A read or a write that competes for the memory.

    Requests stay at the ports until their last word; ``offset`` counts the words accessed.
    """

    possible: Value
    address: Value
    """Byte address of the burst."""
    offset: Signal
    """Words of the burst accessed so far."""


class SramPort(wiring.Component):
    """An adapter from read ports and a write port to one memory, a word per cycle.

    Reads and writes share the memory in round robin, and so do the bursts of two readers. Each
    reader must accept its beats without waiting for the other reader, because a beat that waits
    blocks all reads.

    Parameters
    ----------
    address_width, data_width
        Widths of the ports, in bits.
    words
        Size of the memory in beats. Higher address bits are ignored, so the memory's first address
        must be a multiple of its size rounded up to a power of two.
    read_ports
        Number of read ports, 1 or 2.

    Latency: the first word is accessed in the cycle of its request and its beat arrives 1 cycle
    later; a response arrives 1 cycle after the burst's last beat. A request is accepted with its
    last word, so its beats arrive before it is accepted.
    Throughput: an access in every cycle without ``hold`` in which a port is not idle and accepts
    its beats, for bursts of any length; three busy streams get a third each.
    It reports no errors. Undefined: accesses past the memory.
    Area (32 bits, two readers): ECP5 149 LUT4 and 47 flip-flops, at 176 MHz; iCE40 112 LUT4 and 47
    flip-flops, at 157 MHz on HX.
    Paths through it: from ``valid`` of all requests, ``data.ready`` and ``response.ready`` to the
    memory's ``address``; from these and ``hold`` to ``enable`` and to ``ready`` of requests and
    write data.

    Raises ``ValueError`` if ``read_ports`` is neither 1 nor 2.
    """

    a: Any
    """The first read port."""
    b: Any
    """The second read port; exists only with two."""
    write: Any
    """The write port."""
    hold: Signal
    """No access in this cycle, because another user accesses the memory."""
    memory: Any
    """The memory."""

    def __init__(
        self, address_width: int, data_width: int, words: int, *, read_ports: int = 2
    ) -> None:
        self._data_width = data_width
        self._read_ports = read_ports
        super().__init__(
            memory_members(address_width, data_width, read_ports)
            | {
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
        # The turn, and so the address, does not depend on `hold`, which arrives late in the cycle.
        turn = round_robin(m, read.possible, write.possible, ~self.hold)

        # A burst stays in its block, so the adder has no carry into the address above it. They are
        # separate signals, as a simulator of whole words would see a combinational loop otherwise.
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
        """Grant a reader until its burst ends, and route the beats to it. Return its access."""
        offset = Signal.like(self.a.request.payload.length, name="read_offset", init=0)
        done = Signal()
        a = self.a.request
        if self._read_ports == 2:
            b = self.b.request
            grant_b: Signal | Const = round_robin(m, a.valid, b.valid, done)
            requested = a.valid | b.valid
            address = Mux(grant_b, b.payload.address, a.payload.address)
            length = Mux(grant_b, b.payload.length, a.payload.length)
            m.d.comb += b.ready.eq(done & grant_b)
        else:
            grant_b = Const(0)
            requested, address, length = a.valid, a.payload.address, a.payload.length
        last = offset == length
        beat_taken = self._give(m, reads, last, grant_b)
        m.d.comb += [done.eq(reads & last), a.ready.eq(done & ~grant_b)]
        with m.If(reads):
            m.d.sync += offset.eq(Mux(last, 0, offset + 1))
        return _Access(requested & beat_taken, address, offset)

    def _give(self, m: Module, reads: Signal, last: Value, to_b: Value) -> Value:
        """Route the words read to the reader. Return 1 if another word may be read."""
        readers = [self.a, self.b] if self._read_ports == 2 else [self.a]
        # The memory's output is valid for a cycle; `stash` stores a word that is not accepted then.
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
            selected = beat_of_b == index
            m.d.comb += [
                reader.data.valid.eq((fresh | stashed) & selected),
                reader.data.payload.data.eq(Mux(stashed, stash, self.memory.read_data)),
                reader.data.payload.last.eq(beat_last),
                reader.data.payload.error.eq(0),
            ]
            with m.If(selected):
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
