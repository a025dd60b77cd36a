"""The sum of each run's counts, one cycle behind them."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import Lane
from bitlane_rtl.bit_unit.row_sum import RowSum
from support.rtl.results import join
from support.rtl.streams import simulate
from support.seeds import slow


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
