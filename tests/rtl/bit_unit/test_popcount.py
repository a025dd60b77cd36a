"""The counts of ones in each lane, or of tests, and their sums over each run."""

import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Module

from bitlane_rtl.abi import Lane
from bitlane_rtl.bit_unit.popcount import Popcount
from bitlane_rtl.bit_unit.row_sum import RowSum
from support.rtl.results import join, random_word, split
from support.rtl.streams import simulate
from support.seeds import slow

ALL = frozenset(Lane)


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

    def put(self, ctx: Any, circuit: Popcount) -> None:
        ctx.set(circuit.a, self.word)
        names = ["inside", "enable", "lane", "test", "tests"]
        for name in [*names, "joins", "negate"] if hasattr(circuit, "joins") else names:
            ctx.set(getattr(circuit, name), getattr(self, name))


class OnEcp5(Popcount):
    """The unit as it is on an ECP5."""

    def elaborate(self, platform: object) -> Module:
        return super().elaborate(SimpleNamespace(family="ecp5"))


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize(
    "lanes",
    [ALL, *(frozenset({lane}) for lane in Lane), frozenset({Lane.BITS_8, Lane.BITS_32})],
    ids=lambda lanes: "+".join(str(lane.bits) for lane in sorted(lanes)),
)
@pytest.mark.parametrize("unit", [Popcount, OnEcp5])
def test_counts_of_every_lane_in_their_stage(
    width: int, lanes: frozenset[Lane], unit: type[Popcount]
) -> None:
    built = sorted(lane for lane in lanes if lane.bits <= width)
    if not built:
        with pytest.raises(ValueError, match=f"none of them fits into {width} bits"):
            Popcount(width, lanes)
        return
    circuit = unit(width, lanes)
    generator = random.Random(width)

    async def check(ctx: Any) -> None:
        second = third = Work(0, width, built[0], 0, False, False, 0)
        for step in range(300):
            load = 3 if step < 2 else generator.randrange(4)
            word = [0, (1 << width) - 1, random_word(generator, width)][min(step, 2)]
            everything = (1 << width // 8) - 1
            lane = generator.choice(built)
            work = Work(
                word,
                width,
                lane,
                generator.choice([everything, generator.getrandbits(width // 8)]),
                enable=generator.random() < 0.8,
                test=generator.random() < 0.4,
                tests=generator.getrandbits(width // 8),
                joins=lane == Lane.BITS_64 and generator.random() < 0.5,
                negate=generator.random() < 0.5,
            )
            work.put(ctx, circuit)
            ctx.set(circuit.load, load)
            await ctx.tick()
            if load & 2:
                third = second
            if load & 1:
                second = work
            want = 0 if second.lane == Lane.BITS_64 else second.result
            assert ctx.get(circuit.o) == want, f"step {step}: {second}"
            want = third.result if third.lane == Lane.BITS_64 else 0
            assert ctx.get(circuit.o_64) == want or step == 0, f"step {step}: {third}"

    simulate(circuit, check)


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
    circuit = RowSum(width, lane)
    seed = f"{width} {lane}"
    generator = random.Random(seed)

    async def check(ctx: Any) -> None:
        total, begins = 0, True
        for number, (sums, more) in enumerate(beats_of(generator, 60)):
            counts = [generator.choice([0, lane.bits, generator.randint(0, lane.bits)])]
            counts += [generator.randint(0, lane.bits) for _ in range(width // lane.bits - 1)]
            ctx.set(circuit.counts, join(counts, lane.bits))
            ctx.set(circuit.sums, sums)
            ctx.set(circuit.more, more)
            while number and generator.random() < 0.3:
                ctx.set(circuit.take, 0)
                await ctx.tick()
                assert ctx.get(circuit.o) == total, f"beat {number}, seed {seed!r}"
            ctx.set(circuit.take, 1)
            await ctx.tick()
            total = ((0 if begins else total) + sum(counts)) * sums
            begins = not more
            assert ctx.get(circuit.o) == total, f"beat {number}, seed {seed!r}"

    simulate(circuit, check)
