"""Block RAM in banks behind the engine's memory ports: reads and writes in the same cycle.

Blocks of ``abi.BEATS_PER_BLOCK`` beats are in the banks in turn. Each bank reads one beat and
writes one beat a cycle. A read takes three cycles, and each reader can have a beat in each of them:

====== ======================================== =================================================
Cycle  Beat                                     Condition
====== ======================================== =================================================
0      requested: its bank reads it (``fires``) The other reader does not use the bank, and no
                                                word is held at its output.
1      at the bank's output (``fetched``)       It is held there while the next register is full.
2      in the reader's register (``full``)      It stays until ``data.ready``.
====== ======================================== =================================================
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import BEATS_PER_BLOCK
from ..ports import ReadPort, WritePort
from ..ports.signatures import memory_members
from ..primitives import Ram

__all__ = ["BankedMemory"]


class _Layout:
    """The sizes of a memory in banks, and the layouts of its addresses and accesses."""

    def __init__(self, address_width: int, data_width: int, words: int, banks: int) -> None:
        self.address_width = address_width
        self.data_width = data_width
        self.lanes = data_width // 8
        self.depth = words // banks
        self.bank_bits = exact_log2(banks)
        self.row_bits = exact_log2(self.depth)
        fields = {
            "byte": exact_log2(self.lanes),
            "beat": exact_log2(BEATS_PER_BLOCK),
            "bank": self.bank_bits,
        }
        fields["block"] = address_width - sum(fields.values())
        self.address = data.StructLayout(fields)
        """A byte address. ``block`` counts the blocks of a bank."""
        self.write = data.StructLayout(
            {
                "bank": self.bank_bits,
                "row": self.row_bits,
                "strobe": self.lanes,
                "data": data_width,
            }
        )
        """A write of the bytes of a beat that ``strobe`` enables; none if it is 0."""


class _Reader(wiring.Component):
    """A read port: requests the beats of its bursts from the banks, one a cycle.

    Members
    -------
    port
        The read port of the memory.
    bank, row
        Position of the next beat, while ``port.request.valid``.
    fires
        The bank reads that beat in this cycle.
    ends
        ``fires`` is 1 for the last beat of a burst.
    source
        Bank that read this reader's latest beat.
    word
        The output of bank ``source``.
    held
        ``word`` is needed for one more cycle: bank ``source`` must not read, and ``fires`` must be
        0.
    """

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout
        super().__init__(
            {
                "port": In(ReadPort(layout.address_width, layout.data_width)),
                "bank": Out(layout.bank_bits),
                "row": Out(layout.row_bits),
                "fires": In(1),
                "ends": Out(1),
                "source": Out(layout.bank_bits),
                "word": In(layout.data_width),
                "held": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, beats = self.port.request, self.port.data
        address = self._layout.address(request.payload.address)
        offset = Signal.like(request.payload.length)
        # A burst stays in its block, so the adder has no carry into the address above it.
        beat = Signal.like(address.beat)
        source = Signal(self._layout.bank_bits, reset_less=True)
        fetched = Signal()
        fetched_last = Signal(reset_less=True)
        full = Signal()
        word = Signal.like(self.word, reset_less=True)
        last = Signal(reset_less=True)
        moves = ~full | beats.ready
        m.d.comb += [
            beat.eq(address.beat + offset),
            self.bank.eq(address.bank),
            self.row.eq(Cat(beat, address.block)),
            self.ends.eq(self.fires & (offset == request.payload.length)),
            self.source.eq(source),
            self.held.eq(fetched & ~moves),
            request.ready.eq(self.ends),
            beats.valid.eq(full),
            beats.payload.data.eq(word),
            beats.payload.last.eq(last),
        ]
        m.d.sync += fetched.eq(self.fires | self.held)
        with m.If(self.fires):
            m.d.sync += [
                source.eq(address.bank),
                fetched_last.eq(self.ends),
                offset.eq(Mux(self.ends, 0, offset + 1)),
            ]
        with m.If(moves):
            m.d.sync += [full.eq(fetched), word.eq(self.word), last.eq(fetched_last)]
        return m


class _Writer(wiring.Component):
    """The write port: writes the beats of its bursts to the banks, one a cycle.

    Members
    -------
    port
        The write port of the memory.
    write
        The write of this cycle, to one bank.
    """

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout
        super().__init__(
            {
                "port": In(WritePort(layout.address_width, layout.data_width)),
                "write": Out(layout.write),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, beats, response = self.port.request, self.port.data, self.port.response
        address = self._layout.address(request.payload.address)
        offset = Signal.like(address.beat)
        beat = Signal.like(address.beat)
        responding = Signal()
        fires = Signal()
        ends = Signal()
        can_respond = response.ready | ~responding
        m.d.comb += [
            beat.eq(address.beat + offset),
            fires.eq(request.valid & beats.valid & can_respond),
            ends.eq(fires & beats.payload.last),
            beats.ready.eq(fires),
            request.ready.eq(ends),
            response.valid.eq(responding),
            self.write.bank.eq(address.bank),
            self.write.row.eq(Cat(beat, address.block)),
            self.write.strobe.eq(beats.payload.strobe & fires.replicate(self._layout.lanes)),
            self.write.data.eq(beats.payload.data),
        ]
        m.d.sync += responding.eq(ends | (responding & ~response.ready))
        with m.If(fires):
            m.d.sync += offset.eq(Mux(ends, 0, offset + 1))
        return m


class BankedMemory(wiring.Component):
    """A memory that reads two beats and writes one per cycle, unless both reads need one bank.

    If both readers need the same bank, the reader that did not end a burst last is granted. Two
    sequential streams conflict once and then stay a block apart.

    Parameters
    ----------
    address_width, data_width
        Widths of the ports, in bits.
    words
        Size in beats, a power of two, at least ``16 * banks``.
    banks
        Number of banks, a power of two. Two readers need two or more for full speed.
    read_ports
        Number of read ports, 1 or 2.

    Members
    -------
    a, b
        Read ports; ``b`` exists only with two.
    write
        The write port.

    Address bits above the memory's size are ignored. Words are 0 at power-up.
    Latency: a beat arrives 2 cycles after its request, a response 1 cycle after its last beat. A
    request is accepted with its last beat.
    Throughput: a beat per cycle on every port; two readers that stay in one bank share it.
    It reports no errors. Undefined: a read of a byte in the cycle in which it is written; and of a
    whole word, if block RAMs hold several of its bytes. On an ECP5 none does in banks of 2,048
    words or more, so commands may write bytes of a word beside bytes that others read.
    Each reader must accept its beats without waiting for the other reader: two beats that wait
    block the bank of the second.
    Area (64 bits, two readers, 2 banks of 128 KiB): ECP5 601 LUT4, 254 flip-flops, 128 block RAMs.
    Paths through it: from ``valid`` and ``payload`` of the requests to the RAMs' addresses; from
    these and ``data.ready`` to the RAMs' enables and ``ready`` of requests; from ``valid`` of
    request and data, and ``response.ready``, to write enables and ``ready`` of both.

    Raises ``ValueError`` on other parameters.
    """

    def __init__(
        self,
        address_width: int,
        data_width: int,
        words: int,
        *,
        banks: int = 2,
        read_ports: int = 2,
    ) -> None:
        if banks < 1 or banks & (banks - 1):
            raise ValueError(f"banks: {banks} is not a power of two")
        if words < BEATS_PER_BLOCK * banks or words & (words - 1):
            raise ValueError(
                f"words: {words} is not a power of two, {BEATS_PER_BLOCK * banks} or more"
            )
        self._layout = _Layout(address_width, data_width, words, banks)
        self._banks = banks
        self._read_ports = read_ports
        super().__init__(memory_members(address_width, data_width, read_ports))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = self._layout
        m.submodules.writer = writer = _Writer(layout)
        readers = [_Reader(layout) for _ in range(self._read_ports)]
        wiring.connect(m, wiring.flipped(self.write), writer.port)
        for name, reader in zip("ab", readers, strict=False):
            m.submodules[f"reader_{name}"] = reader
            wiring.connect(m, wiring.flipped(getattr(self, name)), reader.port)
        selects = self._arbitrate(m, readers)
        write = writer.write

        words = []
        for bank in range(self._banks):
            row = readers[0].row
            for reader, selected in zip(readers[1:], selects[1:], strict=True):
                row = Mux(selected & (reader.bank == bank), reader.row, row)
            fires = Cat(reader.fires & (reader.bank == bank) for reader in readers).any()
            ram = Ram(layout.data_width, layout.depth, granularity=8, output=f"word_{bank}")
            m.submodules[f"bank_{bank}"] = ram.memory
            words.append(ram.output)
            m.d.comb += [
                ram.read.addr.eq(row),
                ram.write.addr.eq(write.row),
                ram.write.data.eq(write.data),
                ram.write.en.eq(write.strobe & (write.bank == bank).replicate(layout.lanes)),
            ]
            with m.If(fires):
                m.d.sync += ram.load()
        for reader in readers:
            m.d.comb += reader.word.eq(Array(words)[reader.source])
        return m

    def _arbitrate(self, m: Module, readers: list[_Reader]) -> list[Value]:
        """Fire the readers that can read. Return for each reader if it selects its bank's row.

        The selection, and so the address of a bank, does not depend on ``data.ready``, which
        arrives late.
        """
        valid = [reader.port.request.valid for reader in readers]
        if len(readers) == 1:
            m.d.comb += readers[0].fires.eq(valid[0] & ~readers[0].held)
            return valid
        a, b = readers
        b_first = Signal()
        with m.If(a.ends | b.ends):
            m.d.sync += b_first.eq(a.ends)
        meet = valid[0] & valid[1] & (a.bank == b.bank)
        selects = [valid[0] & ~(meet & b_first), valid[1] & ~(meet & ~b_first)]
        for reader, other, selected in ((a, b, selects[0]), (b, a, selects[1])):
            blocked = reader.held | (other.held & (other.source == reader.bank))
            m.d.comb += reader.fires.eq(selected & ~blocked)
        return selects
