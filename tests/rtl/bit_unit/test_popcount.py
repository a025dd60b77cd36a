"""The counts and tests of each lane, and their sums, of the bytes that are to be counted."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

from bitlane_rtl.abi import Lane, Op
from bitlane_rtl.bit_unit.popcount import Popcount
from support.rtl.results import compute, join, random_word, split, truth_of
from support.rtl.streams import simulate

ALL = frozenset(Lane)


@dataclass
class Work:
    """A word of ``width`` bits, and what to count in it for a circuit of ``built`` lanes."""

    word: int
    width: int
    built: list[Lane]
    inside: int
    enable: bool
    lane: Lane
    sums: bool
    test: bool
    negate: bool

    @classmethod
    def draw(cls, generator: random.Random, word: int, width: int, built: list[Lane]) -> "Work":
        lane, enable = generator.choice(built), generator.random() < 0.8
        sums, test = (enable and generator.random() < 0.5 for _ in range(2))
        # Only a run that is summed has bytes outside.
        inside = -1 if test else generator.choice([-1, generator.getrandbits(width // 8)])
        if sums:
            # Whole elements, as at the end of a run.
            inside = (1 << lane.bytes * generator.randint(0, width // lane.bits)) - 1
        return cls(
            word, width, built, inside, enable, lane, sums, test, test and generator.random() < 0.5
        )

    @property
    def stage(self) -> int:
        """The stage of the results."""
        lane = max(self.built) if self.sums else self.lane
        return 3 if lane == Lane.BITS_64 and (self.sums or not self.test) else 2

    @property
    def result(self) -> int:
        """The counts, the tests, or their sums in the widest lane."""
        if not self.enable:
            return 0
        bytes_ = range(self.width // 8)
        word = self.word & join([0xFF * (self.inside >> byte & 1) for byte in bytes_], 8)
        results = split(
            compute(Op.COUNT, word, 0, self.lane, self.width), self.lane.bits, self.width
        )
        if self.test:
            results = [truth_of(count, negate=self.negate) for count in results]
        if not self.sums:
            return join(results, self.lane.bits)
        if self.test:
            within = self.inside.bit_count() // self.lane.bytes
            results[within:] = [0] * (len(results) - within)
        widest = max(self.built)
        each = widest.bytes // self.lane.bytes
        sums = [sum(results[first : first + each]) for first in range(0, len(results), each)]
        return join(sums, widest.bits)

    def put(self, ctx: Any, circuit: Popcount) -> None:
        ctx.set(circuit.a, self.word)
        for name in ("inside", "enable", "lane", "sums", "test", "negate"):
            ctx.set(getattr(circuit, name), getattr(self, name))


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(
    "lanes",
    [ALL, *(frozenset({lane}) for lane in Lane), frozenset({Lane.BITS_8, Lane.BITS_32})],
    ids=lambda lanes: "+".join(str(lane.bits) for lane in sorted(lanes)),
)
def test_counts_of_every_lane_in_their_stage(width: int, lanes: frozenset[Lane]) -> None:
    built = sorted(lane for lane in lanes if lane.bits <= width)
    if not built:
        with pytest.raises(ValueError, match=f"none of them fits into {width} bits"):
            Popcount(width, lanes)
        return
    circuit = Popcount(width, lanes)
    generator = random.Random(width)

    async def check(ctx: Any) -> None:
        second: Work | None = None
        third: Work | None = None
        for step in range(400):
            load = 3 if step < 2 else generator.randrange(4)
            word = [0, (1 << width) - 1, random_word(generator, width)][min(step, 2)]
            work = Work.draw(generator, word, width, built)
            work.put(ctx, circuit)
            ctx.set(circuit.load, load)
            await ctx.tick()
            if load & 2:
                third = second
            if load & 1:
                second = work
            if second is not None and not (second.sums and second.stage == 3):
                want = second.result if second.stage == 2 else 0
                assert ctx.get(circuit.o) == want, f"step {step}: {second}"
            if third is not None:
                want = third.result if third.stage == 3 else 0
                assert ctx.get(circuit.o_64) == want, f"step {step}: {third}"

    simulate(circuit, check)
