"""The parts of the bit unit: logic, the decoder, tests of elements, counts and sums of runs."""

import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data

from bitlane_rtl.abi import BASE_OPS, BIT_OPS, COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Op
from bitlane_rtl.bit_unit.lane_tests import LaneTests
from bitlane_rtl.bit_unit.logic import Logic
from bitlane_rtl.bit_unit.op_decode import decode
from bitlane_rtl.bit_unit.popcount import Popcount
from bitlane_rtl.bit_unit.row_sum import RowSum
from support.oracle import computed
from support.rtl.records import join, random_word, split
from support.rtl.streams import clocked, simulate
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


# --- the decoder ----------------------------------------------------------------------------------


BUILDS = [
    BIT_OPS,
    LOGIC_OPS,
    BIT_OPS - SHIFT_OPS,
    COUNT_OPS | SHIFT_OPS,
    *({op} for op in sorted(BIT_OPS)),
    *(frozenset(random.Random(seed).sample(sorted(BIT_OPS), 2 + seed)) for seed in range(8)),
]


@pytest.mark.parametrize("ops", BUILDS, ids=lambda ops: "+".join(op.name for op in sorted(ops)))
def test_signals_are_the_properties_of_the_operation(ops: frozenset[Op]) -> None:
    code = Signal(4)
    decoded = decode(code, ops)
    m = Module()
    seen = Signal(data.StructLayout({name: len(value) for name, value in vars(decoded).items()}))
    m.d.comb += [seen[name].eq(value) for name, value in vars(decoded).items()]

    async def drive(ctx: Any) -> None:
        for op in sorted(ops):
            ctx.set(code, op)
            got = ctx.get(seen)
            assert got.is_logic == (op in LOGIC_OPS), op.name
            assert got.counts == op.counts, op.name
            assert got.shifts == (op in SHIFT_OPS), op.name
            if op in SHIFT_OPS:
                assert got.right == (op is Op.SHIFT_RIGHT), op.name
            else:
                assert (BASE_OPS[got.base], got.negates) == (op.base, op.negates), op.name

    simulate(m, drive)


# --- tests of elements ----------------------------------------------------------------------------


ALL = frozenset(Lane)


def sparse_word(generator: random.Random, width: int) -> int:
    """Return a word of which most bytes are 0, and most others have a single one."""
    word = 0
    for low in range(0, width, 8):
        if generator.random() < 0.3:
            word |= generator.choice([1 << generator.randrange(8), generator.getrandbits(8)]) << low
    return word


def expected(
    word: int, lane: Lane, width: int, negate: bool, *, halves: bool = False
) -> list[bool]:
    """Return a test for each byte of a word of whole elements; 64 bits in a word are two halves."""
    lane = min(lane, Lane.BITS_32) if halves else lane
    tests = [bool(element) is not negate for element in split(word, lane.bits, width)]
    return [not byte % lane.bytes and tests[byte // lane.bytes] for byte in range(width // 8)]


LANES = [ALL, *(frozenset({lane}) for lane in Lane), frozenset({Lane.BITS_8, Lane.BITS_32})]


def fitting(*widths: int) -> pytest.MarkDecorator:
    """Parametrize a test by a width and by lanes, the narrowest of which fits into it."""
    cases = [
        (slow if width == 128 else pytest.param)(width, lanes)
        for width in widths
        for lanes in LANES
        if min(lanes).bits <= width
    ]
    return pytest.mark.parametrize(("width", "lanes"), cases)


@fitting(32, 64, 128)
def test_a_test_stands_at_the_lowest_byte_of_its_element(
    width: int, lanes: frozenset[Lane]
) -> None:
    built = sorted(lane for lane in lanes if lane.bits <= width)
    seed = f"{width} {built}"
    generator = random.Random(seed)
    words = [1 << bit for bit in range(width)]
    words += [sparse_word(generator, width) for _ in range(150)]
    inputs = [
        {"a": word, "lane": generator.choice(built), "negate": generator.random() < 0.5}
        for word in words
    ]
    (seen,) = clocked(LaneTests(width, built, pairs=False), inputs, "o")
    for given, got in zip(inputs, seen, strict=True):
        word, lane, negate = given.values()
        want = expected(word, Lane(lane), width, bool(negate), halves=True)
        assert split(got, 1, width // 8) == want, f"{given}, seed {seed}"


def test_an_element_of_two_words_is_tested_with_its_second() -> None:
    generator = random.Random("pairs")
    given: list[tuple[bool, Lane, bool, int, list[bool] | None]] = []
    for _ in range(200):
        lane, negate = generator.choice([Lane.BITS_64, *Lane]), generator.random() < 0.5
        word = sparse_word(generator, 64)
        first, second = word & 0xFFFF_FFFF, word >> 32
        if generator.random() < 0.2:
            # Not tested, so it is not a pair.
            given.append((False, lane, negate, first, None))
        elif lane == Lane.BITS_64:
            tests = expected(word, lane, 64, negate)
            given.append((True, lane, negate, first, [False] * 4))
            given.append((True, lane, negate, second, tests[:4]))
        else:
            given.append((True, lane, negate, first, expected(first, lane, 32, negate)))

    inputs: list[dict[str, int]] = []
    wanted: list[list[bool] | None] = []
    for test, lane, negate, word, want in given:
        takes = False
        while not takes:
            takes = generator.random() < 0.7
            inputs.append({"test": test, "lane": lane, "negate": negate, "a": word, "take": takes})
            wanted.append(want)
            if not takes and generator.random() < 0.5:
                # Another word waits, but is not taken.
                inputs.append({"a": generator.getrandbits(32)})
                wanted.append(None)
    (seen,) = clocked(LaneTests(32, ALL - {Lane.BITS_64}, pairs=True), inputs, "o")
    for cycle, (got, want) in enumerate(zip(seen, wanted, strict=True)):
        assert want in (None, split(got, 1, 4)), f"cycle {cycle}: {inputs[cycle]}"


# --- counts ---------------------------------------------------------------------------------------


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


@fitting(8, 16, 32, 64)
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


# --- sums of runs ---------------------------------------------------------------------------------


def beats_of(generator: random.Random, runs: int) -> list[tuple[bool, bool]]:
    """``sums`` and ``more`` of each beat of some runs."""
    beats: list[tuple[bool, bool]] = []
    for _ in range(runs):
        sums, length = generator.random() < 0.7, generator.choice([1, 1, 2, 3, 9])
        beats += [(sums, sums and left > 0) for left in reversed(range(length))]
    return beats


@pytest.mark.parametrize(
    ("width", "lane"),
    [
        (slow if width == 128 else pytest.param)(width, lane)
        for width in (32, 64, 128)
        for lane in Lane
        if lane.bits <= width
    ],
)
def test_a_run_is_summed_up_to_the_beat_that_was_taken_last(width: int, lane: Lane) -> None:
    seed = f"{width} {lane}"
    generator = random.Random(seed)
    total, begins = 0, True
    inputs, expected = list[dict[str, int]](), [0]
    for number, (sums, more) in enumerate(beats_of(generator, 60)):
        counts = [generator.choice([0, lane.bits, generator.randint(0, lane.bits)])]
        counts += [generator.randint(0, lane.bits) for _ in range(width // lane.bits - 1)]
        given = {"counts": join(counts, lane.bits), "sums": sums, "more": more}
        while number and generator.random() < 0.3:
            inputs.append(given | {"take": 0})
            expected.append(total)
        inputs.append(given | {"take": 1})
        total = ((0 if begins else total) + sum(counts)) * sums
        begins = not more
        expected.append(total)
    (found,) = clocked(RowSum(width, lane), [*inputs, {}], "o")
    assert [*found[1:]] == expected[1:], f"seed {seed!r}"
