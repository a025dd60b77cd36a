"""Values that are read one by one equal those after settling the whole design.

Expressions have one key exactly if one program can compute them, up to open constants.
"""

import ctypes
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from amaranth import hdl
from amaranth.hdl import ClockSignal, Const, Module, Shape, Signal, Value, signed, unsigned
from amaranth.lib.memory import Memory

from cppsim import structure
from cppsim.amaranth_internals import eval_value
from cppsim.native.probe import Code, Instruction, ProbeProgram
from cppsim.native.programs import ProgramWriter
from cppsim.netlist import CellKind, PlainCell
from cppsim.probe import Probes
from cppsim.structure import open_constants, structure_of
from cppsim.testing import (
    EXECUTORS,
    Bench,
    RandomDesign,
    random_expression,
    random_expressions,
    random_machine,
    random_testbench,
)
from cppsim.tuning import Tuning
from support.fuzz import compare_designs, in_packs, merged
from support.seeds import seeds
from support.small import phased
from support.zoo import computed

WORD = (1 << 64) - 1
_VALUES = (0, 1, 2, 3, 5, 62, 63, 64, 65, 1 << 31, 1 << 63, WORD - 1, WORD)


CODES = [code for code in Code if code.name in CellKind.__members__]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_operations_on_whole_words(code: Code) -> None:
    words = (ctypes.c_uint64 * 2)()
    zero = Instruction(Code.CONSTANT, mask=0)
    fetches = [Instruction(Code.FETCH, word, 0) for word in (0, 1)]
    program = ProbeProgram([zero, *fetches, Instruction(code, 1, 2)])
    value = program.on(ctypes.addressof(words))
    assert program.words == {0, 1}
    for a, b in product(_VALUES, repeat=2):
        words[:] = a, b
        assert value() == computed(CellKind[code.name], 64, a, b) & WORD, (a, b)


def test_values_are_put_together_from_parts() -> None:
    words = (ctypes.c_uint64 * 2)(0xABCD_0000, 0b1000)
    program = ProbeProgram(
        [
            Instruction(Code.CONSTANT, mask=0b101),
            Instruction(Code.FETCH, 0, 0, low=16, to=4, mask=0xFFF),
            Instruction(Code.FETCH, 1, 0, low=3, mask=1),
            Instruction(Code.PICK, 2, 1, to=20, mask=1),
            Instruction(Code.SPREAD, 2, 3, mask=0b11 << 62),
        ],
        signed=True,
    )
    bits = 0b11 << 62 | 1 << 20 | 0xBCD << 4 | 0b101
    assert program.on(ctypes.addressof(words))() == bits - (1 << 64)


@pytest.mark.parametrize("size", [8, 16, 32, 64])
def test_rows_of_memories(size: int) -> None:
    kinds = {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
    rows = (kinds[size] * 6)(3, 1, 4, 1, 5, (1 << size) - 1)
    word = (ctypes.c_uint64 * 1)()
    address = ctypes.addressof(rows) + size // 8
    read = Instruction(Code[f"ROW_{size}"], 1, 3, 2, mask=address)
    fetch = [Instruction(Code.CONSTANT, mask=0), Instruction(Code.FETCH, 0)]
    value = ProbeProgram([*fetch, read]).on(ctypes.addressof(word))
    seen = []
    for word[0] in (0, 1, 2, 3, WORD):
        seen.append(value())
    assert seen == [1, 1, (1 << size) - 1, 0, 0]


def test_the_first_condition_that_is_met_decides() -> None:
    default, low, high, result = (10, 11, 12, 13), (14,), (15,), (16, 17, 18, 19)
    stored = {bit: (0, index) for index, bit in enumerate((*default, *low, *high))}
    writer = ProgramWriter([stored], lambda _: 0)
    operands = (default, low, (0, 0, 1, 0), high, (0, 0, 0, 1))
    writer.step(PlainCell(CellKind.MUX, operands, result))
    program = writer.program((1, *result))
    words = (ctypes.c_uint64 * 1)()
    shown = []
    for words[0] in (0b00_0101, 0b01_0101, 0b10_0101, 0b11_0101):
        shown.append(program.on(ctypes.addressof(words))() >> 1)
    assert shown == [5, 4, 8, 4]


def seen_of(module: Module, value: Value, given: Signal, values: list[int]) -> list[int]:
    """Return the values of a program of ``value`` alone; expect those after settling."""
    simulator = EXECUTORS["engine"](module)
    state = simulator._engine._state
    program = Probes(state._lowered, state.model, Tuning()).of_expression(value)
    assert program is not None
    seen = []

    async def work(context: Any) -> None:
        for number in values:
            context.set(given, number)
            seen.append(program.on(state.model.address)())
            assert seen[-1] == context.get(value), number

    simulator.add_testbench(work)
    simulator.run()
    return seen


def test_cells_are_computed_after_those_that_they_depend_on() -> None:
    m, given = Module(), Signal(8)
    last = given
    for number in range(6):
        following = Signal(8, name=f"step{number}")
        m.d.comb += following.eq(last * 3 ^ number)
        last = following
    assert len(set(seen_of(m, last - given, given, list(range(0, 256, 17))))) > 10


def test_rows_wider_than_a_word() -> None:
    m, given = Module(), Signal(3)
    rows = [0xFEDC_BA98_7654_3210 << 40 | number for number in range(5)]
    m.submodules.memory = memory = Memory(shape=104, depth=5, init=rows)
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(given)
    seen = seen_of(m, port.data[50:], given, list(range(8)))
    assert seen == [*(row >> 50 for row in rows), 0, 0, 0]


def looked_at(designs: dict[int, RandomDesign]) -> int:
    """Compare all values that can be probed in designs; return their number."""
    design, chance = merged(designs.values()), random.Random(min(designs))
    sim, step = Bench(EXECUTORS["engine"]), itertools.count()
    simulator = sim.simulator(design.module, clocks=phased(design))
    state = simulator._engine._state
    probes = Probes(state._lowered, state.model, Tuning())
    probes.limit = 1 << 20
    followed: list[tuple[Value, ProbeProgram | None]] = [
        (signal, probes.of_expression(signal)) for signal in state._lowered.signals
    ]
    settled = []
    for each in designs.values():
        for _ in range(8):
            value = Value.cast(random_expression(chance, [*each.inputs, *each.outputs], 3))[:64]
            followed.append((value, probes.of_expression(value)))
            settled.append((value, probes.of_settled(value)))

    def look(values: list[tuple[Value, ProbeProgram | None]]) -> list[tuple[Value, int]]:
        return [(value, x.on(state.model.address)()) for value, x in values if x]

    def compare(_: list[int]) -> None:
        number, shown = next(step), look(followed)
        state.settle()
        for value, got in [*shown, *look(settled)]:
            assert got == eval_value(state, value), (number, value)

    # The outputs would settle the design before it is looked at.
    blind = replace(design, outputs=())
    simulator.add_testbench(random_testbench(blind, min(designs), compare, steps=15))
    simulator.run()
    return len(look([*followed, *settled]))


@pytest.mark.parametrize("make", [random_expressions, random_machine])
@pytest.mark.parametrize("pack", in_packs(seeds(2, 10)), ids=str)
def test_random_designs(make: Callable[[int], RandomDesign], pack: Sequence[int]) -> None:
    assert compare_designs(make, pack, looked_at) > 8 * len(pack)


# --- structures: one program computes all expressions of one, up to open constants ----------------


a, b, c = (Signal(8, name=name) for name in "abc")
one = Const(1, 8)

DIFFERENT = """
a + Const(1, 8); b + Const(1, 8); a - Const(1, 8); a + Const(1, 9); a + Const(1, signed(8))
a + Const(1 << 69, 70); Const(1, 8) + a; -a; a - b; Cat(-a, b - c); Cat(a - b, -c)
a.as_signed() + Const(1, 8); a[2:5]; a[1:5]; a[2:6]; b[2:5]; (a + b)[2:5]; a[2:5] + b
a.bit_select(b, 3); a.bit_select(b, 4); a.word_select(b, 3); Cat(a, b); Cat(a, b, c)
Cat(Cat(a, b), c); Mux(a, b, c); Mux(a, c, b); a.matches("1-------"); a.matches("0-------")
(a + Const(1, 8)) ^ (b + Const(1, 8)); (a + one) ^ (b + one); (a + one) ^ (one + b)
Cat(x := a + b, y := a - b, x, y, x); Cat(x := a + b, y := a - b, y, x, x)
a & Const(1 << 69, 70); a & Const(1 << 68, 70); a & Const(1 << 68, signed(70))
"""
"""Expressions that differ in more than open constants."""

TEXTS = [text.strip() for line in DIFFERENT.strip().splitlines() for text in line.split(";")]


def made(text: str) -> Value:
    value: Value = eval(text, {**vars(hdl), "a": a, "b": b, "c": c, "one": one})
    return value


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_made_anew_has_its_structure_which_is_that_of_the_walk(text: str) -> None:
    value = made(text)
    assert structure_of(made(text)) == structure_of(value) is not None
    assert structure_of(value) == structure._walked(value, [])


def test_expressions_that_differ_have_different_keys() -> None:
    # The shapes of signals are those of their objects, which the key names.
    keys = {text: (structure_of(made(text)) or ((), ()))[0] for text in TEXTS}
    same = [(x, y) for x, y in combinations(keys, 2) if keys[x] == keys[y]]
    assert not same


@pytest.mark.parametrize("shape", [unsigned(8), signed(8), unsigned(64)])
def test_constants_of_one_shape_are_open(shape: Shape) -> None:
    for number in (0, 1, 77):
        value = (a == Const(number, shape)) & (b == Const(2, shape))
        known = structure_of((a == Const(3, shape)) & (b == Const(4, shape)))
        assert structure_of(value) == (known and (known[0], (number, 2)))
        assert [x.value for x in open_constants(value)] == [number, 2]


def test_a_constant_at_two_places_is_open_once() -> None:
    value = (a == one) | (b == one)
    assert [id(x) for x in open_constants(value)] == [id(one)]


def test_parts_that_are_unknown_have_no_structure() -> None:
    assert structure_of(a + ClockSignal()) is None
