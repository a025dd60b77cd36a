"""A pass trims the bits on which no output depends, and leaves all others as they were."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from cppsim.model.circuit import Circuit
from cppsim.netlist.passes import trim

ROWS = [0b1010_0101, 0b0110_1100, 0b1111_0000, 0b0001_1011]


class Partly(wiring.Component):
    """Outputs that read some bits of a register and of a memory, and nothing of others."""

    value: In(8)
    row: In(2)
    some: Out(3)
    stored: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept, gone = Signal(8, init=0b0110_1001), Signal(5, init=9)
        m.d.sync += [kept.eq(self.value), gone.eq(gone + self.value)]
        m.submodules.rows = rows = Memory(shape=8, depth=4, init=ROWS)
        m.submodules.unread = unread = Memory(shape=8, depth=4, init=ROWS)
        port, other = rows.read_port(domain="comb"), unread.read_port()
        m.d.comb += [port.addr.eq(self.row), other.addr.eq(self.row)]
        m.d.comb += [self.some.eq(kept[3:6]), self.stored.eq(port.data[2:6])]
        return m


def test_registers_and_memories_have_the_bits_that_are_read() -> None:
    design = Circuit(Partly()).design
    trim(design)
    (register,) = design.registers
    assert register.start == (1, 0, 1)  # bits 3 to 5
    assert len(register.result) == len(register.following) == len(register.reset_value) == 3
    (memory,) = design.memories
    assert memory.width == 4
    assert memory.number == 0
    assert memory.columns == (2, 3, 4, 5)
    assert [len(read.result) for read in memory.reads] == [4]


def test_a_second_trim_finds_nothing() -> None:
    design = Circuit(Partly()).design
    trim(design)
    before = [*design.cells], [*design.registers], [*design.memories]
    trim(design)
    assert (design.cells, design.registers, design.memories) == before
