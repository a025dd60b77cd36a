"""The counts of ones in each lane, of the bytes that are to be counted."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import Lane, Op
from bitlane_rtl.bit_unit.popcount import Popcount
from support.rtl.results import compute, join, random_word
from support.rtl.streams import simulate

ALL = frozenset(Lane)


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
        count, lane, count_64 = 0, built[0], 0
        for step in range(200):
            load = 3 if step < 2 else generator.randrange(4)
            enable, wanted = generator.random() < 0.8, generator.choice(built)
            word = [0, (1 << width) - 1, random_word(generator, width)][min(step, 2)]
            inside = generator.choice([-1, generator.getrandbits(width // 8)])
            ctx.set(circuit.a, word)
            ctx.set(circuit.inside, inside)
            word &= join([0xFF * (inside >> byte & 1) for byte in range(width // 8)], 8)
            ctx.set(circuit.lane, wanted)
            ctx.set(circuit.enable, enable)
            ctx.set(circuit.load, load)
            await ctx.tick()
            if load & 2:
                count_64 = count if lane == Lane.BITS_64 else 0
            if load & 1:
                count = compute(Op.COUNT, word, 0, wanted, width) if enable else 0
                lane = wanted
            assert ctx.get(circuit.o) == (0 if lane == Lane.BITS_64 else count), f"step {step}"
            assert ctx.get(circuit.o_64) == count_64 or step == 0, f"step {step}"

    simulate(circuit, check)
