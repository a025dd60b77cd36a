"""The shifter shifts by every count in every lane; elements of two beats are joined and split."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, SHIFT_OPS, Lane, Op
from bitlane_rtl.bit_unit.beat_pairs import AddPairs, PairBeats, SplitBeats
from bitlane_rtl.bit_unit.shift import Shifter
from support.rtl.records import (
    compute,
    fields_of,
    join,
    random_counts,
    random_edge,
    random_word,
    split,
)
from support.rtl.streams import NO_STALLS, Stalls, clocked, compiled, transfer
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


PAIR, SINGLE = "pair", "single"


def edge(generator: random.Random, last: bool) -> dict[str, Any]:
    return random_edge(generator, last, slot=generator.randrange(0, 8, 2))


def kinds(generator: random.Random, size: int) -> list[str]:
    return [generator.choice([PAIR, SINGLE]) for _ in range(size)]


def test_both_beats_of_a_shift_are_put_side_by_side(stalls: Stalls) -> None:
    generator = random.Random(f"pair {stalls.seed}")
    sent: list[dict[str, Any]] = []
    expected: list[tuple[bool, int, int, dict[str, Any]]] = []
    completed: list[int] = []
    for kind in kinds(generator, 60):
        words = [(generator.getrandbits(32), generator.getrandbits(32)) for _ in kind[:2]]
        last = generator.random() < 0.3
        if kind == PAIR:
            op, lane = generator.choice([Op.SHIFT_LEFT, Op.SHIFT_RIGHT]), Lane.BITS_64
        else:
            # Logic and counts in 64-bit lanes do not form pairs, nor do shifts in narrower lanes.
            others = [(op, Lane.BITS_64) for op in (Op.XOR, Op.NOT, *sorted(COUNT_OPS))]
            op, lane = generator.choice([*others, (Op.SHIFT_LEFT, Lane.BITS_32)])
            words = words[:1]
        edges = [edge(generator, last and k == len(words) - 1) for k in range(len(words))]
        for (a, b), where in zip(words, edges, strict=True):
            operation = {"op": op, "lane": lane}
            sent.append({"a": a, "b": b, "inside": a & 15, "operation": operation, "edge": where})
        a = words[-1][0] << 32 | (words[0][0] if kind == PAIR else 0)
        b = words[-1][1] << 32 | (words[0][1] if kind == PAIR else 0)
        expected.append((kind == PAIR, a, b, edges[-1]))
        completed.append(len(sent) - 1)
    circuit = PairBeats(32, BIT_OPS)
    source, sink = transfer(circuit, sent, len(expected), stalls)
    for got, (pair, a, b, where) in zip(sink.payloads, expected, strict=True):
        low = 0 if pair else 32
        assert (got.pair, got.a >> low, got.b >> low) == (pair, a >> low, b >> low), stalls
        assert fields_of(got.edge, where) == where, stalls
        assert pair or got.inside == a >> 32 & 15, stalls
    assert sink.cycles == [source.cycles[beat] for beat in completed]


def test_the_lower_half_is_sent_first_and_the_upper_one_is_the_last(stalls: Stalls) -> None:
    generator = random.Random(f"split {stalls.seed}")
    sent: list[dict[str, Any]] = []
    expected: list[tuple[int, dict[str, Any]]] = []
    for kind in kinds(generator, 60):
        data, where = generator.getrandbits(64), edge(generator, generator.random() < 0.5)
        sent.append({"data": data, "lane": 3, "out_lane": 3, "edge": where, "pair": kind == PAIR})
        if kind == PAIR:
            expected.append((data & 0xFFFF_FFFF, {**where, "last": False, "end": False}))
        expected.append((data >> 32, where))
    circuit = SplitBeats(32)
    _, sink = transfer(circuit, sent, len(expected), stalls)
    for got, (data, where) in zip(sink.payloads, expected, strict=True):
        assert (got.data, got.lane, got.out_lane) == (data, 3, 3), stalls
        assert fields_of(got.edge, where) == where, stalls
    if stalls == NO_STALLS:
        assert sink.cycles == list(range(len(expected)))


def test_both_counts_are_added_and_all_else_is_left_alone(stalls: Stalls) -> None:
    generator = random.Random(f"add {stalls.seed}")
    sent: list[dict[str, Any]] = []
    expected: list[dict[str, Any] | None] = []  # None for the first beat of a pair
    for kind in kinds(generator, 60):
        if kind == PAIR:
            counts = [generator.choice([0, 32, generator.randrange(33)]) for _ in range(2)]
            edges = [edge(generator, False), edge(generator, generator.random() < 0.5)]
            edges[1]["slot"] = edges[0]["slot"]
            out_lane = generator.choice([Lane.BITS_8, Lane.BITS_32])
            for data, where in zip(counts, edges, strict=True):
                sent.append({"data": data, "lane": 3, "out_lane": out_lane, "edge": where})
            merged = {**edges[1], "slot": edges[1]["slot"] // 2}
            expected.append(None)
            expected.append({"data": sum(counts), "lane": 2, "out_lane": out_lane, "edge": merged})
        else:
            where = edge(generator, generator.random() < 0.5)
            lane, out_lane = generator.choice([(3, 3), (2, 2), (2, 0), (0, 2)])
            data = generator.getrandbits(32)
            sent.append({"data": data, "lane": lane, "out_lane": out_lane, "edge": where})
            expected.append(sent[-1])
    circuit = AddPairs()
    source, sink = transfer(circuit, sent, len(expected), stalls)
    for got, want in zip(sink.payloads, expected, strict=True):
        assert got.partial == (want is None), stalls
        if want is None:
            continue
        assert fields_of(got, want) == want, stalls
    assert sink.cycles == source.cycles


@pytest.mark.parametrize("good", [0, 1, 2, 3])
def test_every_beat_in_error_comes_through_whatever_half_it_is(good: int, stalls: Stalls) -> None:
    """Behind an error all beats are errors; a burst that was not requested has a single beat."""
    beats = [edge(random.Random(beat), False) | {"error": beat >= good} for beat in range(good + 4)]
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
