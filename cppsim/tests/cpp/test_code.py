"""Generated C++: reordered statements, expressions of bits, edges and the layout of the state."""

import itertools
import random
import re
import time
from collections.abc import Sequence

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Format, Fragment, Module, Print, Signal
from amaranth.hdl._ir import PortDirection

from cppsim.cpp import Snippet, Words, assignment, block, in_reach, lines_of, operation
from cppsim.cpp.simulation import write_simulation
from cppsim.netlist import CellKind, PlainCell
from cppsim.netlist.lowering import lower
from cppsim.testing import Bench, same_on
from support.seeds import seeds

STATE = [f"r{k}" for k in range(6)]
WORD = "const uint64_t"


def statements(chance: random.Random, count: int) -> list[Snippet]:
    """Return statements as the writer emits them: new names, and loads, some conditional."""
    codes: list[Snippet] = []
    known = list(STATE)
    for number in range(count):
        a, b, target = chance.choice(known), chance.choice(known), chance.choice(STATE)
        match chance.randrange(5):
            case 0 | 1:
                codes.append(assignment(f"n{number}", f"{a} * 3 + {b}", {a, b}, WORD))
                known.append(f"n{number}")
            case 2:
                codes.append(assignment(target, f"{a} ^ {b}", {a, b}))
            case 3:
                codes.append(assignment(target, f"{target} ^ {a}", {target, a}))
            case 4:
                codes.append(block({a}, (f"if ({a} & 1) {{", [assignment(target, b, {b})])))
    return codes


def run(codes: Sequence[Snippet]) -> dict[str, int]:
    """Return the state after a program of `statements`."""
    text = "\n".join(line for line in lines_of(codes) if line != "}")
    text = re.sub(r"if \((.*)\) \{", r"if \1:", text).replace("const uint64_t ", "")
    values = {name: 5 + 7 * index for index, name in enumerate(STATE)}
    exec(text.replace(";", ""), values)
    return {name: values[name] for name in STATE}


@pytest.mark.parametrize("window", [7, 4096])
@pytest.mark.parametrize("seed", seeds(25, 100))
def test_another_order_means_the_same(seed: int, window: int) -> None:
    codes = statements(random.Random(seed), 40)
    ordered = in_reach(codes, window)
    assert sorted(lines_of(ordered)) == sorted(lines_of(codes))
    assert run(ordered) == run(codes), ordered


def seconds(count: int) -> float:
    """Return processor seconds to order ``count`` registers that load from one another."""
    codes = [assignment(f"r{k}", f"r{k - 1} ^ r{k - 2}", {f"r{k - 1}"}) for k in range(count)]
    start = time.process_time()
    in_reach(codes)
    return time.process_time() - start


def test_the_time_grows_with_the_number_of_statements() -> None:
    few, many = (min(seconds(count) for _ in range(3)) for count in (500, 4000))
    assert many < 24 * few  # 64 times as long, where each search looks at all that are left


def test_a_register_loads_as_soon_as_nobody_reads_what_it_was() -> None:
    codes = [
        assignment("a", "r1 + 1ull", {"r1"}, WORD),
        assignment("b", "r2 + r1", {"r1", "r2"}, WORD),
        assignment("c", "r3 + 1ull", {"r3"}, WORD),
        assignment("r1", "a", {"a"}),
        assignment("r2", "b", {"b"}),
        assignment("r3", "c", {"c"}),
    ]
    assert in_reach(codes) == [codes[k] for k in (1, 4, 0, 3, 2, 5)]


def test_statements_that_change_one_variable_keep_their_order() -> None:
    codes = [
        Snippet(("uint64_t w[2];",), changes=frozenset({"w"})),
        Snippet(("wide::add<100>(w, a, b);",), frozenset("ab"), frozenset("w")),
        assignment("n", "w[0]", {"w"}, WORD),
        block(
            {"n"}, ("if (n) {", [Snippet(("messages.add(0);",), changes=frozenset({"messages"}))])
        ),
        Snippet(("messages.add(1);",), changes=frozenset({"messages"})),
        Snippet(("read(p);",), frozenset({"messages"}), frozenset({"p"})),
        assignment("r", "p[0]", {"p"}),
    ]
    assert in_reach(codes) == codes


def test_a_memory_is_read_before_it_is_written() -> None:
    codes = [
        assignment("n", "m[r1]", {"m", "r1"}, WORD),
        assignment("s[1]", "n", {"n"}),
        Snippet(("m[r1] = s[2];",), frozenset({"s[2]", "r1"}), frozenset({"m"})),
        assignment("s[2]", "0ull", ()),
    ]
    assert in_reach(codes) == codes


def test_a_block_reads_and_changes_what_its_branches_do() -> None:
    branches = [assignment("x", "a", {"a"})], [assignment("y", "b", {"b"})]
    code = block({"c"}, ("if (c) {", branches[0]), ("} else {", branches[1]))
    assert code.lines == ("if (c) {", "  x = a;", "} else {", "  y = b;", "}")
    assert (code.reads, code.changes) == (frozenset("abc"), frozenset("xy"))


# --- expressions of bits --------------------------------------------------------------------------


EXPECTED = {
    CellKind.ALL: lambda left, right: left == 0b111,
    CellKind.ANY: lambda left, right: left != 0,
    CellKind.EQUAL: lambda left, right: left == right,
    CellKind.UNEQUAL: lambda left, right: left != right,
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_each_part_of_an_operand_counts(kind: CellKind) -> None:
    words = Words()
    words.define("a", (10, 11, 12))
    words.define("b", (20,))
    words.define("c", (30, 31, 32))
    left, right = (11, 12, 20), (30, 31, 32)
    operands = (left,) if kind in (CellKind.ALL, CellKind.ANY) else (left, right)
    text = operation(PlainCell(kind, operands, (40,)), words).replace("ull", "")
    for a, b, c in itertools.product(range(8), range(2), range(8)):
        found = eval(text.replace("1u", "1"), {"a": a, "b": b, "c": c})
        assert found == EXPECTED[kind](a >> 1 | b << 2, c), text


@pytest.mark.parametrize(("kind", "text"), [(CellKind.ALL, "a == 7ull"), (CellKind.ANY, "a != 0")])
def test_an_operand_that_is_one_variable_is_not_cut(kind: CellKind, text: str) -> None:
    words = Words()
    words.define("a", (10, 11, 12))
    assert operation(PlainCell(kind, ((10, 11, 12),), (40,)), words) == text


# --- edges of a simulation ------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["logic", "message", "clock"])
def test_an_input_changes_without_a_step_if_logic_alone_reads_it(reader: str) -> None:
    m, given, shown = Module(), Signal(), Signal()
    m.d.comb += shown.eq(~given)
    if reader == "message":
        with m.If(given):
            m.d.comb += Print(Format("given"))
    elif reader == "clock":
        m.domains.made = ClockDomain(reset_less=True)
        m.d.comb += ClockSignal("made").eq(given)
        m.d.made += Signal().eq(1)
    design = Fragment.get(m, None).prepare(ports={"given": (given, PortDirection.Input)})
    lowered = lower(design)
    source = write_simulation(lowered)
    ((field,),) = [source.fields[lowered.signals[given]]]
    assert (field.word in source.comb_inputs) == (reader == "logic")


@same_on()
def test_registers_of_two_domains_exchange_their_values(sim: Bench) -> None:
    m, left, right = Module(), Signal(8, init=3), Signal(8, init=5)
    m.domains.other = ClockDomain(reset_less=True)
    m.d.sync += left.eq(right)
    m.d.other += right.eq(left)

    sim.run(m, sim.reads(3, left, right), clocks={"sync": 1e-6, "other": 1e-6})
    assert sim.seen[0] == [5, 3]
