"""The parts of the bit unit: those of logic and counts that it does not build, and the shifter.

The shifter shifts by every count in every lane; errors of half elements come through.
"""

import random
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from amaranth.hdl import Module

from bitlane_rtl.abi import BASE_OPS, BIT_OPS, COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Op
from bitlane_rtl.bit_unit import AddPairs, Logic, PairBeats, Popcount, Shifter
from support.oracle import computed
from support.rtl.records import compute, join, random_counts, random_edge, random_word, split
from support.rtl.streams import Stalls, clocked, compiled, transfer
from support.seeds import slow

DIRECTML = frozenset({Op.AND, Op.OR, Op.XOR, Op.NOT})
CHOICES = [
    LOGIC_OPS,
    DIRECTML,
    LOGIC_OPS - DIRECTML,
    *(frozenset({op}) for op in sorted(LOGIC_OPS)),
    frozenset({Op.XOR, Op.NOT}),
    frozenset({Op.COPY, Op.NOT}),
    COUNT_OPS,
    COUNT_OPS | DIRECTML,
    COUNT_OPS | LOGIC_OPS,
    frozenset({Op.NOT, Op.COUNT}),
    frozenset({Op.NAND, Op.COUNT_XOR}),
]


def chosen(op: Op) -> dict[str, int]:
    return {"base": BASE_OPS.index(op.base), "negates": op.negates}


@pytest.mark.parametrize("ops", CHOICES, ids=lambda ops: "+".join(op.name for op in sorted(ops)))
@pytest.mark.parametrize("width", [8, 32])
def test_every_operation_built_gives_its_truth_table(ops: frozenset[Op], width: int) -> None:
    generator = random.Random(width)
    cases = [
        (op, generator.getrandbits(width), generator.getrandbits(width))
        for op in sorted(ops)
        for _ in range(8)
    ]
    inputs = [chosen(op) | {"a": a, "b": b} for op, a, b in cases]
    seen = clocked(Logic(width, ops), inputs, "o", "negate")
    for (op, a, b), result, negate in zip(cases, *seen, strict=True):
        word = op.counted if op.counts else op
        found = result ^ ((1 << width) - 1) * negate
        assert found == computed(word, width, a, b), f"{op.name} {a:#x} {b:#x}"


@pytest.mark.parametrize(
    "ops", [DIRECTML, frozenset({Op.NOT}), LOGIC_OPS, COUNT_OPS, COUNT_OPS | {Op.NOR, Op.NOT}]
)
def test_the_inversion_is_left_to_a_later_stage_only_if_both_kinds_are_built(
    ops: frozenset[Op],
) -> None:
    (negates,) = clocked(Logic(8, ops), map(chosen, sorted(ops)), "negate")
    negated = {op for op, level in zip(sorted(ops), negates, strict=True) if level}
    both = {op.base for op in ops if op.negates} & {op.base for op in ops if not op.negates}
    assert negated == ({op for op in ops if op.negates} if both else set())


# --- counts ---------------------------------------------------------------------------------------


LANES = [
    frozenset(Lane),
    *(frozenset({lane}) for lane in Lane),
    frozenset({Lane.BITS_8, Lane.BITS_32}),
]


@dataclass
class Work:
    """A word of ``width`` bits, and what to count in it in ``lane``; ``inside`` is not negative."""

    word: int
    width: int
    lane: Lane
    inside: int
    enable: bool
    test: bool
    tests: int
    joins: bool = False
    negate: bool = False

    @property
    def result(self) -> int:
        """The counts, or the sums of tests, in the lane."""
        if not self.enable:
            return 0
        bytes_ = range(self.width // 8)
        if self.test:
            counts = [(self.tests & self.inside) >> byte & 1 for byte in bytes_]
        else:
            counts = [x.bit_count() for x in split(self.word, 8, self.width)]
            counts = [x * (self.inside >> byte & 1) for byte, x in enumerate(counts)]
        size = self.lane.bytes
        if self.test and self.joins:
            halves = zip(counts[::size], counts[size // 2 :: size], strict=True)
            insides = (self.inside >> low & 1 for low in range(0, len(counts), size))
            return join(
                [(a | b) ^ (self.negate & c) for (a, b), c in zip(halves, insides, strict=True)],
                self.lane.bits,
            )
        sums = [sum(counts[low : low + size]) for low in range(0, len(counts), size)]
        return join(sums, self.lane.bits)

    def inputs(self, circuit: Popcount) -> dict[str, int]:
        names = ["inside", "enable", "lane", "test", "tests"]
        names += ["joins", "negate"] if hasattr(circuit, "joins") else []
        return {"a": self.word} | {name: getattr(self, name) for name in names}


class OnEcp5(Popcount):
    """The unit as it is on an ECP5."""

    def elaborate(self, platform: object) -> Module:
        return super().elaborate(SimpleNamespace(family="ecp5"))


@pytest.mark.parametrize(
    ("width", "lanes"),
    [(width, x) for width in (8, 16, 32, 64) for x in LANES if min(x).bits <= width],
)
@pytest.mark.parametrize("unit", [Popcount, OnEcp5])
def test_counts_of_every_lane_in_their_stage(
    width: int, lanes: frozenset[Lane], unit: type[Popcount]
) -> None:
    built = sorted(lane for lane in lanes if lane.bits <= width)
    circuit = unit(width, lanes)
    generator = random.Random(width)

    second = third = Work(0, width, built[0], 0, False, False, 0)
    everything = (1 << width // 8) - 1
    inputs, expected = list[dict[str, int]](), list[tuple[int, int]]()
    for step in range(300):
        load = 3 if step < 2 else generator.randrange(4)
        lane = generator.choice(built)
        work = Work(
            [0, (1 << width) - 1, random_word(generator, width)][min(step, 2)],
            width,
            lane,
            generator.choice([everything, generator.getrandbits(width // 8)]),
            enable=generator.random() < 0.8,
            test=generator.random() < 0.4,
            tests=generator.getrandbits(width // 8),
            joins=lane == Lane.BITS_64 and generator.random() < 0.5,
            negate=generator.random() < 0.5,
        )
        inputs.append(work.inputs(circuit) | {"load": load})
        third = second if load & 2 else third
        second = work if load & 1 else second
        narrow = 0 if second.lane == Lane.BITS_64 else second.result
        expected.append((narrow, third.result if third.lane == Lane.BITS_64 else 0))
    counts, wide = (found[1:] for found in clocked(circuit, [*inputs, {}], "o", "o_64"))
    assert [*counts] == [narrow for narrow, _ in expected]
    assert [*wide[1:]] == [want for _, want in expected[1:]]


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
