"""The shifter shifts by every count in every lane; errors of half elements come through."""

import random

import pytest

from bitlane_rtl.abi import BIT_OPS, SHIFT_OPS, Lane, Op
from bitlane_rtl.bit_unit.beat_pairs import AddPairs, PairBeats
from bitlane_rtl.bit_unit.shift import Shifter
from support.rtl.records import (
    compute,
    join,
    random_counts,
    random_edge,
    random_word,
    split,
)
from support.rtl.streams import Stalls, clocked, compiled, transfer
from support.seeds import slow

LEFT, RIGHT = frozenset({Op.SHIFT_LEFT}), frozenset({Op.SHIFT_RIGHT})


class Case:
    """One word to shift, and what has to come out."""

    def __init__(self, generator: random.Random, ops: list[Op], lane: Lane, width: int) -> None:
        self.op, self.lane, self.width = generator.choice(ops), lane, width
        self.a, self.b = random_word(generator, width), random_counts(generator, lane, width)
        self.saturate, self.arithmetic = generator.random() < 0.5, generator.random() < 0.5
        self.bypass, self.constant = generator.random() < 0.1, generator.random() < 0.5

    def inputs(self, load: int = 3) -> dict[str, int]:
        names = ("a", "b", "lane", "saturate", "arithmetic", "bypass", "constant")
        given = {name: getattr(self, name) for name in names}
        return given | {"right": self.op == Op.SHIFT_RIGHT, "load": load}

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

    (seen,) = clocked(circuit, [*(case.inputs() for case in cases), {}, {}], "o")
    for case, got in zip(cases, seen[2:], strict=True):
        assert got == case.expected(), str(case)


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

    first, second, third = cases
    script = [first.inputs(load=1), second.inputs(load=2), {"load": 1}, third.inputs(load=0)]
    (seen,) = clocked(circuit, [*script, {"load": 2}, {}], "o")
    assert seen[4:] == (first.expected(), second.expected())


# --- elements of two beats ------------------------------------------------------------------------


@pytest.mark.parametrize("good", [0, 1, 2, 3])
def test_every_beat_in_error_comes_through_whatever_half_it_is(good: int, stalls: Stalls) -> None:
    """Behind an error all beats are errors; a burst that was not requested has a single beat."""
    beats = [random_edge(random.Random(n), False, error=n >= good) for n in range(good + 4)]
    operation = {"op": Op.SHIFT_LEFT, "lane": Lane.BITS_64}
    pair_beats = PairBeats(32, BIT_OPS)
    operands = [{"a": 0, "b": 0, "operation": operation, "edge": where} for where in beats]
    wanted = [False] * (good // 2) + [True] * 4
    source, sink = transfer(pair_beats, operands, len(wanted), stalls)
    assert [bool(got.edge.error) for got in sink.payloads] == wanted, stalls
    assert sink.cycles[-4:] == source.cycles[-4:]
    add_pairs = AddPairs()
    results = [{"data": 0, "lane": 3, "out_lane": 0, "edge": where} for where in beats]
    _, sink = transfer(add_pairs, results, len(beats), stalls)
    whole = [bool(got.edge.error) for got in sink.payloads if not got.partial]
    assert whole == wanted, stalls
