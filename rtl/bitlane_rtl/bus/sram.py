"""A single-port synchronous memory behind the engine's memory ports. It stores nothing itself."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

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
        write, memory = self.write, self.memory
        readers = [self.a, self.b] if self._read_ports == 2 else [self.a]
        offset_bits = len(self.a.request.payload.length)
        byte_bits = (self._data_width // 8 - 1).bit_length()

        # Requests stay at the ports until their last word, and only the words done are counted. A
        # burst does not leave its block, so nothing is carried into the address above it.
        read_offset = Signal(offset_bits)
        write_offset = Signal(offset_bits)

        # The reader that goes, until the end of its burst.
        reads = Signal()
        done = Signal()
        if self._read_ports == 2:
            a, b = self.a.request, self.b.request
            grant_b: Signal | Const = in_turn(m, a.valid, b.valid, done)
            asked = a.valid | b.valid
            address = Mux(grant_b, b.payload.address, a.payload.address)
            length = Mux(grant_b, b.payload.length, a.payload.length)
        else:
            grant_b = Const(0)
            asked = self.a.request.valid
            address, length = self.a.request.payload.address, self.a.request.payload.length
        last = read_offset == length
        m.d.comb += done.eq(reads & last)

        # A word that was read stands at the memory for a cycle, then in `stash` if not taken.
        fresh = Signal()
        stashed = Signal()
        stash = Signal(self._data_width, reset_less=True)
        beat_last = Signal()
        beat_of_b = Signal()
        beat_taken = Signal()
        m.d.sync += [fresh.eq(reads), stashed.eq((fresh | stashed) & ~beat_taken)]
        with m.If(fresh):
            m.d.sync += stash.eq(memory.read_data)
        with m.If(reads):
            m.d.sync += [
                beat_last.eq(last),
                beat_of_b.eq(grant_b),
                read_offset.eq(Mux(last, 0, read_offset + 1)),
            ]
        m.d.comb += beat_taken.eq(self.a.data.ready)
        for index, reader in enumerate(readers):
            mine = beat_of_b == index
            m.d.comb += [
                reader.request.ready.eq(done & (grant_b == index)),
                reader.data.valid.eq((fresh | stashed) & mine),
                reader.data.payload.data.eq(Mux(stashed, stash, memory.read_data)),
                reader.data.payload.last.eq(beat_last),
                reader.data.payload.error.eq(0),
            ]
            with m.If(mine):
                m.d.comb += beat_taken.eq(reader.data.ready)

        writes = Signal()
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
            m.d.sync += write_offset.eq(Mux(ends, 0, write_offset + 1))

        can_read = asked & (beat_taken | ~(fresh | stashed))
        can_write = write.request.valid & write.data.valid & (write.response.ready | ~responding)
        # Whose turn it is, and so the address, does not depend on `hold`, which comes late.
        turn = in_turn(m, can_read, can_write, ~self.hold)
        # Kept apart, or CXXRTL takes the address for a wire that depends on itself.
        word, block = address[byte_bits:][:offset_bits], address[byte_bits + offset_bits :]
        write_address = write.request.payload.address[byte_bits:]
        low = Mux(turn, write_address[:offset_bits], word)
        in_block = Signal(offset_bits)
        m.d.comb += in_block.eq(low + Mux(turn, write_offset, read_offset))
        m.d.comb += [
            reads.eq(can_read & ~turn & ~self.hold),
            writes.eq(turn & ~self.hold),
            memory.enable.eq((can_read | can_write) & ~self.hold),
            memory.address.eq(Cat(in_block, Mux(turn, write_address[offset_bits:], block))),
            memory.strobe.eq(write.data.payload.strobe & turn.replicate(self._data_width // 8)),
            memory.write_data.eq(write.data.payload.data),
        ]
        return m
