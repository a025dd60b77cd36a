"""Block RAM in banks behind the engine's memory ports: reads and writes go on side by side."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from ..abi import BEATS_PER_BLOCK
from ..ports.byte_access import ByteAccess
from ..ports.memory_port import ReadPort, WritePort

__all__ = ["BankedMemory"]


class _Place:
    """Where an address lies: in which bank, and in which row of it."""

    def __init__(self, address: Value, byte_bits: int, bank_bits: int) -> None:
        block = byte_bits + ceil_log2(BEATS_PER_BLOCK)
        self.byte = address[:byte_bits]
        self.beat = address[byte_bits:block]
        self.bank = address[block : block + bank_bits]
        self._above = address[block + bank_bits :]

    def row(self, beat: Value) -> Value:
        """The row of a beat of the block that the address lies in."""
        return Cat(beat, self._above)


class _Reader:
    """A read port: where its next beat lies, the one at a bank's output, and the one after that.

    The last is in a register, because a RAM's output comes late.
    """

    def __init__(self, m: Module, port: Any, place: _Place, name: str) -> None:
        offset = Signal.like(place.beat, name=f"{name}_offset", init=0)
        beat = Signal.like(place.beat, name=f"{name}_beat")
        fetched = Signal(name=f"{name}_fetched")
        fetched_last = Signal(name=f"{name}_fetched_last", reset_less=True)
        full = Signal(name=f"{name}_full")
        data = Signal.like(port.data.payload.data, name=f"{name}_data", reset_less=True)
        last = Signal(name=f"{name}_last", reset_less=True)
        moves = Signal(name=f"{name}_moves")
        self.fetched_data = Signal.like(data, name=f"{name}_fetched_data")
        self.bank = place.bank
        self.row = place.row(beat)
        self.of_bank = Signal.like(place.bank, name=f"{name}_of_bank", reset_less=True)
        self.asks = port.request.valid
        self.goes = Signal(name=f"{name}_goes")
        self.stands = Signal(name=f"{name}_stands")
        """What is at the bank's output must stay there for a cycle more."""
        self.ends = Signal(name=f"{name}_ends")
        m.d.comb += [
            # A burst does not leave its block, so nothing is carried into the address above it.
            beat.eq(place.beat + offset),
            moves.eq(~full | port.data.ready),
            self.stands.eq(fetched & ~moves),
            self.ends.eq(self.goes & (offset == port.request.payload.length)),
            port.request.ready.eq(self.ends),
            port.data.valid.eq(full),
            port.data.payload.data.eq(data),
            port.data.payload.last.eq(last),
            port.data.payload.error.eq(0),
        ]
        m.d.sync += fetched.eq(self.goes | self.stands)
        with m.If(self.goes):
            m.d.sync += [
                self.of_bank.eq(place.bank),
                fetched_last.eq(self.ends),
                offset.eq(Mux(self.ends, 0, offset + 1)),
            ]
        with m.If(moves):
            m.d.sync += [full.eq(fetched), data.eq(self.fetched_data), last.eq(fetched_last)]


class _Host:
    """The host's port. Its accesses are kept in registers before and after the banks: the word
    that a bank gave, which comes late, and then the byte of it.

    ``asked``: an access waits for ``may_go``, and nobody else may go; ``goes``: it takes place.
    """

    def __init__(self, m: Module, port: Any, data_width: int) -> None:
        self.address = Signal.like(port.address, name="host_address", reset_less=True)
        self.write = Signal(name="host_write", reset_less=True)
        self.write_data = Signal(8, name="host_write_data", reset_less=True)
        self.fetched_word = Signal(data_width, name="host_fetched_word")
        self.byte_of_word = Signal(range(data_width // 8), name="host_byte_of_word")
        self.may_go = Signal(name="host_may_go")
        self.goes = Signal(name="host_goes")
        self.asked = asked = Signal(name="host_asked")
        fetched = Signal(name="host_fetched")
        kept = Signal(name="host_kept")
        word = Signal(data_width, name="host_word", reset_less=True)
        byte = Signal(8, name="host_byte", reset_less=True)
        idle = ~(asked | fetched | kept)
        m.d.comb += [
            self.goes.eq(asked & self.may_go),
            port.ready.eq(Mux(port.write, idle, kept)),
            port.read_data.eq(byte),
        ]
        m.d.sync += [
            asked.eq((port.enable & idle) | (asked & ~self.goes)),
            fetched.eq(self.goes & ~self.write),
            kept.eq(fetched),
            word.eq(self.fetched_word),
            byte.eq(word.word_select(self.byte_of_word, 8)),
        ]
        with m.If(idle):
            m.d.sync += [
                self.address.eq(port.address),
                self.write.eq(port.write),
                self.write_data.eq(port.write_data),
            ]


class BankedMemory(wiring.Component):
    """A memory that reads two beats and writes one in a cycle, unless both reads meet in a bank.

    Each bank can read and write a beat in a cycle. Blocks of ``abi.BEATS_PER_BLOCK`` beats go to
    the banks in turn. When two readers want the same bank, the one that did not end a burst last
    goes on, and the other waits; with streams from one end of a tensor to the other that happens
    once, and then they stay a block apart.

    Parameters
    ----------
    address_width, data_width
        Of the ports, in bits.
    words
        Beats that it holds, a power of two, at least ``16 * banks``.
    banks
        A power of two. Two readers need two.
    read_ports
        1 or 2.

    Members
    -------
    a, b : ``In(ReadPort(address_width, data_width))``
        ``b`` only with two read ports.
    write : ``In(WritePort(address_width, data_width))``
    host : ``In(ByteAccess(address_width))``
        Each access takes a cycle from all ports, and waits for beats that readers leave standing.

    Address bits above the memory's size are ignored. Words are 0 at power-up.
    Latency: a beat comes 2 cycles after it is asked for, a response 1 cycle after its last beat. A
    request is taken together with its last beat. ``host`` is ready at once for a write, which takes
    place a cycle later, and after 3 cycles for a read.
    Throughput: a beat a cycle on every port; two readers that stay in one bank share it. The host
    writes a byte in 2 cycles and reads one in 4.
    Undefined: a read of a word in the cycle in which it is written.
    Each reader must take its beats without waiting for the other's or the host's: two that are not
    taken hold up the bank that the second came from, and the host.
    Area (64 bits, two readers, 2 banks of 128 KiB): ECP5 601 LUT4, 254 flip-flops, 128 block RAMs.
    Paths through it: from ``valid`` and ``payload`` of the requests to the RAMs' addresses; from
    these and ``data.ready`` to the RAMs' enables and ``ready`` of requests; from ``valid`` of
    request and data, and ``response.ready``, to write enables and ``ready`` of both.

    Raises ``ValueError`` on other parameters.
    """

    a: Any
    b: Any
    write: Any
    host: Any

    def __init__(
        self,
        address_width: int,
        data_width: int,
        words: int,
        *,
        banks: int = 2,
        read_ports: int = 2,
    ) -> None:
        if read_ports not in (1, 2):
            raise ValueError(f"read_ports: {read_ports} is neither 1 nor 2")
        if banks < 1 or banks & (banks - 1):
            raise ValueError(f"banks: {banks} is no power of two")
        if words < BEATS_PER_BLOCK * banks or words & (words - 1):
            raise ValueError(
                f"words: {words} is no power of two, {BEATS_PER_BLOCK * banks} or more"
            )
        self._data_width = data_width
        self._rows = words // banks
        self._banks = banks
        self._read_ports = read_ports
        reader = ReadPort(address_width, data_width)
        super().__init__(
            {"a": In(reader)}
            | ({"b": In(reader)} if read_ports == 2 else {})
            | {
                "write": In(WritePort(address_width, data_width)),
                "host": In(ByteAccess(address_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bank_bits = ceil_log2(self._banks)
        byte_bits = ceil_log2(self._data_width // 8)
        ports = {"a": self.a, "b": self.b} if self._read_ports == 2 else {"a": self.a}
        readers = [
            _Reader(m, port, _Place(port.request.payload.address, byte_bits, bank_bits), name)
            for name, port in ports.items()
        ]
        host = _Host(m, self.host, self._data_width)
        place = _Place(host.address, byte_bits, bank_bits)
        m.d.comb += host.may_go.eq(~Cat(reader.stands for reader in readers).any())
        wins = self._choose(m, readers, host.asked)
        write_place, strobe, write_data = self._write(m, host, place, byte_bits, bank_bits)

        words = []
        for bank in range(self._banks):
            # For the asynchronous port see `queue.Queue`.
            storage: Memory = Memory(
                shape=self._data_width, depth=self._rows, init=[], attrs={"no_rw_check": "1"}
            )
            m.submodules[f"bank_{bank}"] = storage
            write = storage.write_port(granularity=8)
            read = storage.read_port(domain="comb")
            ram_output = Signal(self._data_width, reset_less=True, name=f"ram_output_{bank}")
            words.append(ram_output)
            goes: Value = host.goes & (place.bank == bank)
            row = readers[0].row
            for reader, wins_it in zip(readers, wins, strict=True):
                goes |= reader.goes & (reader.bank == bank)
                if reader is not readers[0]:
                    row = Mux(wins_it & (reader.bank == bank), reader.row, row)
            written = (write_place[0] == bank).replicate(len(strobe))
            m.d.comb += [
                read.addr.eq(Mux(host.asked, place.row(place.beat), row)),
                write.addr.eq(write_place[1]),
                write.data.eq(write_data),
                write.en.eq(strobe & written),
            ]
            with m.If(goes):
                m.d.sync += ram_output.eq(read.data)

        outputs = Array(words)
        m.d.comb += [reader.fetched_data.eq(outputs[reader.of_bank]) for reader in readers]
        # The host's registers still hold the address.
        m.d.comb += [
            host.fetched_word.eq(outputs[place.bank]),
            host.byte_of_word.eq(place.byte),
        ]
        return m

    def _choose(self, m: Module, readers: list[_Reader], hold: Signal) -> list[Value]:
        """Let the readers go that can. Returns which of them has its bank.

        Who has it, and so the bank's address, does not depend on what comes late: whether beats
        are taken.
        """
        if len(readers) == 1:
            only = readers[0]
            m.d.comb += only.goes.eq(only.asks & ~only.stands & ~hold)
            return [only.asks]
        a, b = readers
        meet = a.asks & b.asks & (a.bank == b.bank)
        b_first = Signal()
        with m.If(a.ends | b.ends):
            m.d.sync += b_first.eq(a.ends)
        wins: list[Value] = []
        for reader, other, late in ((a, b, b_first), (b, a, ~b_first)):
            wins_it = Signal(name="a_wins" if reader is a else "b_wins")
            blocked = reader.stands | (other.stands & (other.of_bank == reader.bank))
            m.d.comb += [
                wins_it.eq(reader.asks & ~(meet & late)),
                reader.goes.eq(wins_it & ~hold & ~blocked),
            ]
            wins.append(wins_it)
        return wins

    def _write(
        self, m: Module, host: _Host, place: _Place, byte_bits: int, bank_bits: int
    ) -> tuple[tuple[Value, Value], Signal, Signal]:
        """Take what is written. Returns bank and row, strobes, and data."""
        port = self.write
        engine = _Place(port.request.payload.address, byte_bits, bank_bits)
        lanes = self._data_width // 8
        offset = Signal.like(engine.beat, name="write_offset", init=0)
        beat = Signal.like(engine.beat, name="write_beat")
        goes = Signal()
        ends = Signal()
        responding = Signal()
        strobe = Signal(lanes)
        write_data = Signal(self._data_width)
        m.d.comb += [
            beat.eq(engine.beat + offset),
            goes.eq(
                port.request.valid
                & port.data.valid
                & (port.response.ready | ~responding)
                & ~host.asked
            ),
            ends.eq(goes & port.data.payload.last),
            port.data.ready.eq(goes),
            port.request.ready.eq(ends),
            port.response.valid.eq(responding),
            port.response.payload.eq(0),
            strobe.eq(
                Mux(
                    host.asked,
                    (host.goes & host.write) << place.byte,
                    port.data.payload.strobe & goes.replicate(lanes),
                )
            ),
            write_data.eq(
                Mux(host.asked, host.write_data.replicate(lanes), port.data.payload.data)
            ),
        ]
        m.d.sync += responding.eq(ends | (responding & ~port.response.ready))
        with m.If(goes):
            m.d.sync += offset.eq(Mux(ends, 0, offset + 1))
        bank = Mux(host.asked, place.bank, engine.bank)
        row = Mux(host.asked, place.row(place.beat), engine.row(beat))
        return (bank, row), strobe, write_data
