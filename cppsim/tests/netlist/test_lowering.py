"""Lowering refuses some designs; cells become plain, and passes leave results as they were."""

import random
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Assert, ClockDomain, ClockSignal, Format, Fragment, Module, Print, Signal
from amaranth.hdl._ir import Design, PortDirection
from amaranth.hdl._nir import CombinationalCycle
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from cppsim.circuits import Circuit
from cppsim.netlist import CellKind, FormattedValue, NotPlain, PlainCell, formatted
from cppsim.netlist.cells import CellWriter
from cppsim.netlist.lowering import lower
from cppsim.netlist.passes import trim
from cppsim.netlist.simplify import folded, share
from support.seeds import seeds
from support.zoo import number_of, random_cell, value_of

VALUE = (2 << 16, 2 << 16 | 1, 2 << 16 | 2)
ENABLE = 3 << 16
PATTERNS = (("1-0", "011"), ("--1",), ())


def cell(kind: str, **fields: Any) -> Any:
    """Return a cell like one of Amaranth's type ``kind``."""
    return type(kind, (SimpleNamespace,), {})(**fields)


def test_one_match_is_several_matches_and_their_priority() -> None:
    several, one = CellWriter(), CellWriter()
    for number, patterns in enumerate(PATTERNS):
        several.take(10 + number, cell("Matches", value=VALUE, patterns=patterns))
    conditions = tuple(several.same[10 + number << 16] for number in range(len(PATTERNS)))
    several.take(20, cell("PriorityMatch", en=ENABLE, inputs=conditions))
    one.take(20, cell("Match", en=ENABLE, value=VALUE, patterns=PATTERNS))
    result = range(20 << 16, (20 << 16) + len(PATTERNS))
    assert one.cells == several.cells
    assert [one.same[bit] for bit in result] == [several.same[bit] for bit in result]
    assert one.same[result[2]] == 0


@pytest.mark.parametrize("sign", ["u", "s"])
@pytest.mark.parametrize(("turned", "straight"), [(">", "<"), (">=", "<=")])
def test_a_greater_operand_is_the_second_of_the_lesser_comparison(
    turned: str, straight: str, sign: str
) -> None:
    first, second = VALUE, tuple(bit + (1 << 16) for bit in VALUE)
    writers = CellWriter(), CellWriter(), CellWriter()
    writers[0].take(20, cell("Operator", operator=sign + turned, inputs=(first, second), width=1))
    writers[1].take(20, cell("Operator", operator=sign + straight, inputs=(second, first), width=1))
    writers[2].take(20, cell("Operator", operator=sign + straight, inputs=(first, second), width=1))
    assert writers[0].cells == writers[1].cells != writers[2].cells


@pytest.mark.parametrize("condition", [0, 1])
def test_a_choice_of_a_constant_condition_is_made_once(condition: int) -> None:
    chosen, writer = tuple(bit + (1 << 16) for bit in VALUE), CellWriter()
    writer.select(VALUE, [(condition, chosen)], result := writer.new(len(VALUE)))
    assert [writer.same[bit] for bit in result] == list(chosen if condition else VALUE)
    assert not writer.cells


def test_a_part_of_nothing_needs_no_cell() -> None:
    writer = CellWriter()
    part = cell("Part", value=(), value_signed=False, offset=VALUE, stride=1, width=0)
    writer.take(20, part)
    assert not writer.cells


def test_a_cell_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(NotPlain, match="SimpleNamespace is not known here"):
        CellWriter().take(1, SimpleNamespace())


# --- messages and clocks -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "value", "signed", "unsigned"),
    [(4, 7, "7", "7"), (4, 8, "-8", "8"), (4, 15, "-1", "15"), (1, 1, "-1", "1"), (0, 0, "0", "0")],
)
def test_a_message_shows_a_value_with_its_sign(
    width: int, value: int, signed: str, unsigned: str
) -> None:
    message = ("a ", FormattedValue(width, True, "d"), ", b ", FormattedValue(width, False, ">3d"))
    assert formatted(message, [value, value]) == f"a {signed}, b {unsigned:>3}"


def prepared(*, loop: bool) -> Design:
    """Return a design with an output, which depends on itself if ``loop``."""
    m = Module()
    a, b = Signal(), Signal()
    m.d.comb += a.eq(~b if loop else 1)
    m.d.comb += b.eq(a)
    return Fragment.get(m, None).prepare(ports={"b": (b, PortDirection.Output)})


@pytest.mark.parametrize("loop", [False, True])
def test_lowering_restores_the_limit_of_recursion(loop: bool) -> None:
    before = sys.getrecursionlimit()
    if loop:
        with pytest.raises(CombinationalCycle):
            lower(prepared(loop=loop))
    else:
        lower(prepared(loop=loop))
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("async_reset", [False, True])
def test_with_one_clock_a_read_port_has_no_asynchronous_reset(async_reset: bool) -> None:
    m = Module()
    m.domains.sync = sync = ClockDomain(async_reset=async_reset)
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[])
    memory.read_port()
    ports = {name: (getattr(sync, name), PortDirection.Input) for name in ("clk", "rst")}
    design = Fragment.get(m, None).prepare(ports=ports)
    if async_reset:
        with pytest.raises(NotPlain, match="the rising edges of one clock only; take cpp"):
            lower(design, clock=sync.clk)
    else:
        assert len(lower(design, clock=sync.clk).design.registers) == 1


def test_with_one_clock_a_register_of_a_constant_clock_is_constant() -> None:
    m, register = Module(), Signal(4, init=0b0110)
    m.domains.sync = sync = ClockDomain(reset_less=True)
    m.domains.still = ClockDomain(reset_less=True)
    m.d.comb += ClockSignal("still").eq(1)
    m.d.still += register.eq(register + 1)
    m.d.sync += Signal().eq(1)
    design = Fragment.get(m, None).prepare(ports={"clk": (sync.clk, PortDirection.Input)})
    assert lower(design, clock=sync.clk).signals[register] == (0, 1, 1, 0)


def test_messages_are_reported_at_edges_or_after_every_change() -> None:
    m, given = Module(), Signal()
    m.d.sync += [Print(Format("{}", given)), Assert(given)]
    m.d.comb += Print(Format("given {}", given))
    found = lower(Fragment.get(m, None).prepare(ports={"i": (given, PortDirection.Input)}))
    assert [message.kind for message in found.edge_messages] == ["print", "assert"]
    assert [message.kind for message in found.comb_messages] == ["print"]


# --- passes that trim bits ------------------------------------------------------------------------


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
    # A second trim finds nothing.
    before = [*design.cells], [*design.registers], [*design.memories]
    trim(design)
    assert (design.cells, design.registers, design.memories) == before


# --- folded and shared cells ----------------------------------------------------------------------


A, B, C, D, E, F, G, H = range(2, 10)


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_a_folded_cell_results_in_the_same(seed: int) -> None:
    chance = random.Random(seed)
    for number in range(400):
        cell = random_cell(chance)
        found = folded(cell)
        for choice in range(16):
            values = {bit: choice >> index & 1 for index, bit in enumerate((A, B, C, D))}
            expected = value_of(cell, values)
            if isinstance(found, PlainCell):
                assert found.result == cell.result
                assert value_of(found, values) == expected, (seed, number, cell, found)
            else:
                assert number_of(found, values) == expected, (seed, number, cell, found)


@pytest.mark.parametrize(
    ("cell", "result"),
    [
        (PlainCell(CellKind.AND, ((A, B, 1), (1, 0, C)), (F, G, H)), (A, 0, C)),
        (PlainCell(CellKind.MUX, ((A, B), (C,), (A, B)), (F, G)), (A, B)),
        (PlainCell(CellKind.MUX, ((0,), (C,), (1,)), (F,)), (C,)),
        (PlainCell(CellKind.EQUAL, ((A, 0), (1, 0)), (F,)), (A,)),
        (PlainCell(CellKind.EQUAL, ((A, 0), (B, 1)), (F,)), (0,)),
        (PlainCell(CellKind.LESS, ((A, B), (0, 0)), (F,)), (0,)),
        (PlainCell(CellKind.LEFT, ((A, B, C), (1, 0)), (F, G, H)), (0, A, B)),
        (PlainCell(CellKind.MULTIPLY, ((A, B, C), (0, 1, 0)), (F, G, H)), (0, A, B)),
    ],
    ids=lambda x: x.kind.value if isinstance(x, PlainCell) else "",
)
def test_what_is_known_is_no_cell(cell: PlainCell, result: tuple[int, ...]) -> None:
    assert folded(cell) == result


def test_equal_cells_are_one_wherever_they_stand() -> None:
    """Two sums, each of a product, with operands in any order: the later ones listed first."""
    cells = [
        PlainCell(CellKind.ADD, ((E,), (C,)), (F,)),
        PlainCell(CellKind.ADD, ((C,), (D,)), (G,)),
        PlainCell(CellKind.AND, ((B,), (A,)), (E,)),
        PlainCell(CellKind.AND, ((A,), (B,)), (D,)),
    ]
    same: dict[int, int] = {}
    kept = share(cells, same)
    assert len(kept) == 2
    assert same.get(F, F) == same.get(G, G)
    assert same.get(D, D) == same.get(E, E)


def test_other_names_for_bits_are_followed_to_their_ends() -> None:
    same = {F: E, E: D, G: H}
    (kept,) = share([PlainCell(CellKind.AND, ((F,), (G,)), (A,))], same)
    assert kept.operands == ((D,), (H,))
    assert same == {F: D, E: D, G: H}
