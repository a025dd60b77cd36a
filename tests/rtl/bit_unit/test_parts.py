"""The parts of the bit unit that have builds which it does not: logic and counts."""

import random
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from amaranth.hdl import Module

from bitlane_rtl.abi import BASE_OPS, COUNT_OPS, LOGIC_OPS, Lane, Op
from bitlane_rtl.bit_unit.logic import Logic
from bitlane_rtl.bit_unit.popcount import Popcount
from support.oracle import computed
from support.rtl.records import join, random_word, split
from support.rtl.streams import clocked

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
