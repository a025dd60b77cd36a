"""The shifter: every count, in every lane, in both directions."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import SHIFT_OPS, Lane, Op
from bitlane_rtl.bit_unit.shift import Shifter
from support.rtl.results import compute, join, random_counts, random_word, split
from support.rtl.streams import compiled, simulate
from support.seeds import slow

LEFT, RIGHT = frozenset({Op.SHIFT_LEFT}), frozenset({Op.SHIFT_RIGHT})


class Case:
    """One word to shift, and what has to come out."""

    def __init__(self, generator: random.Random, ops: list[Op], lane: Lane, width: int) -> None:
        self.op, self.lane, self.width = generator.choice(ops), lane, width
        self.a, self.b = random_word(generator, width), random_counts(generator, lane, width)
        self.saturate, self.arithmetic = generator.random() < 0.5, generator.random() < 0.5
        self.bypass, self.constant = generator.random() < 0.1, generator.random() < 0.5

    def set(self, ctx: Any, circuit: Shifter) -> None:
        ctx.set(circuit.a, self.a)
        ctx.set(circuit.b, self.b)
        ctx.set(circuit.lane, self.lane)
        ctx.set(circuit.right, self.op == Op.SHIFT_RIGHT)
        ctx.set(circuit.saturate, self.saturate)
        ctx.set(circuit.arithmetic, self.arithmetic)
        ctx.set(circuit.bypass, self.bypass)
        ctx.set(circuit.constant, self.constant)

    def expected(self) -> int:
        if self.bypass:
            return ((1 << self.width) - 1) * self.constant
        result = compute(
            self.op, self.a, self.b, self.lane, self.width, self.saturate, self.arithmetic
        )
        if self.op == Op.SHIFT_RIGHT:
            return join(split(result, 1, self.width)[::-1], 1)
        return result

    def __str__(self) -> str:
        return str(vars(self))


def check(circuit: Shifter, cases: list[Case]) -> None:
    """Shift a word a cycle, with the result due two cycles later."""

    async def run(ctx: Any) -> None:
        ctx.set(circuit.load, 3)
        for index in range(len(cases) + 1):
            if index < len(cases):
                cases[index].set(ctx, circuit)
            await ctx.tick()
            if index:
                case = cases[index - 1]
                assert ctx.get(circuit.o) == case.expected(), str(case)

    simulate(circuit, run)


EVERY_LANE = frozenset(Lane)


@pytest.mark.parametrize(
    ("width", "ops"),
    [(32, SHIFT_OPS), (64, SHIFT_OPS), (32, LEFT), (64, RIGHT), slow(32, RIGHT), slow(64, LEFT)],
)
def test_random_words_in_mixed_lanes(width: int, ops: frozenset[Op]) -> None:
    generator = random.Random(width)
    lanes = [lane for lane in Lane if lane.bits <= width]
    cases = [Case(generator, sorted(ops), generator.choice(lanes), width) for _ in range(500)]
    check(compiled(Shifter, width, ops, EVERY_LANE), cases)


@pytest.mark.parametrize(
    "lane", [Lane.BITS_8, Lane.BITS_64, slow(Lane.BITS_16), slow(Lane.BITS_32)]
)
def test_a_shifter_of_one_lane(lane: Lane) -> None:
    generator = random.Random(lane)
    cases = [Case(generator, sorted(SHIFT_OPS), lane, 64) for _ in range(300)]
    check(Shifter(64, SHIFT_OPS, {lane}), cases)


def test_a_shifter_of_some_lanes() -> None:
    lanes = [Lane.BITS_8, Lane.BITS_32]
    generator = random.Random(5)
    cases = [Case(generator, sorted(SHIFT_OPS), generator.choice(lanes), 64) for _ in range(300)]
    check(Shifter(64, SHIFT_OPS, lanes), cases)


@pytest.mark.parametrize("lane", Lane)
def test_every_count_up_to_twice_the_width(lane: Lane) -> None:
    generator = random.Random(6)
    cases = []
    for op in sorted(SHIFT_OPS):
        for count in range(min(2 * lane.bits + 1, 1 << lane.bits)):
            case = Case(generator, [op], lane, 64)
            case.b = join([count] * (64 // lane.bits), lane.bits)
            cases.append(case)
    check(compiled(Shifter, 64, SHIFT_OPS, EVERY_LANE), cases)


def test_each_stage_holds_while_it_is_not_loaded() -> None:
    circuit = compiled(Shifter, 32, SHIFT_OPS, EVERY_LANE)
    generator = random.Random(7)
    cases = [Case(generator, sorted(SHIFT_OPS), Lane.BITS_16, 32) for _ in range(3)]

    async def run(ctx: Any) -> None:
        cases[0].set(ctx, circuit)
        ctx.set(circuit.load, 1)
        await ctx.tick()
        cases[1].set(ctx, circuit)
        ctx.set(circuit.load, 2)
        await ctx.tick()
        ctx.set(circuit.load, 1)
        await ctx.tick()
        cases[2].set(ctx, circuit)
        ctx.set(circuit.load, 0)
        await ctx.tick()
        assert ctx.get(circuit.o) == cases[0].expected()
        ctx.set(circuit.load, 2)
        await ctx.tick()
        assert ctx.get(circuit.o) == cases[1].expected()

    simulate(circuit, run)


def test_impossible_choices_are_refused() -> None:
    with pytest.raises(ValueError, match="none of them is a shift"):
        Shifter(64, {Op.AND}, frozenset(Lane))
    with pytest.raises(ValueError, match="none of them fits into 32 bits"):
        Shifter(32, SHIFT_OPS, {Lane.BITS_64})
