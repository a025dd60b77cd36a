"""A FIFO with two write ports takes two payloads and gives one per cycle, in order and in time."""

import random
from typing import Any

import pytest

from bitlane_rtl.streams.two_write_fifo import TwoWriteFifo
from support.rtl.streams import ALL_STALLS, Sink, Stalls, simulate

DEPTH = 8


@pytest.mark.parametrize("stalls", ALL_STALLS)
def test_payloads_leave_in_order_and_fill_every_place(stalls: Stalls) -> None:
    """The source fills the FIFO up; payloads are valid two cycles after entry at the earliest."""
    generator = random.Random(stalls.seed)
    payloads = [generator.getrandbits(16) for _ in range(300)]
    dut = TwoWriteFifo(16, DEPTH)
    sink = Sink(dut.o, len(payloads), stalls)
    entered: list[int] = []

    async def fill(ctx: Any) -> None:
        cycle = 0
        while len(entered) < len(payloads):
            left = sum(done < cycle for done in sink.cycles)
            room = min(DEPTH - len(entered) + left, len(payloads) - len(entered))
            number = min(room, generator.choice((0, 1, 2, 2)))
            for i in dut.i:
                ctx.set(i.valid, 0)
                ctx.set(i.payload, generator.getrandbits(16))
            for _ in range(number):
                entrance = dut.i[len(entered) % 2]
                ctx.set(entrance.valid, 1)
                ctx.set(entrance.payload, payloads[len(entered)])
                entered.append(cycle)
            await ctx.tick()
            cycle += 1
        for i in dut.i:
            ctx.set(i.valid, 0)

    simulate(dut, sink, fill)
    assert sink.payloads == payloads, stalls
    earliest = [cycle + 2 for cycle in entered]
    assert all(cycle >= first for cycle, first in zip(sink.cycles, earliest, strict=True)), stalls
    if not stalls.probability:
        due = -1
        for cycle, first in zip(sink.cycles, earliest, strict=True):
            due = max(first, due + 1)
            assert cycle == due, stalls


@pytest.mark.parametrize("depth", [4, 6, 12])
def test_depth_is_a_power_of_two_and_both_halves_hold_four(depth: int) -> None:
    with pytest.raises(ValueError, match=f"depth: {depth} is not a power of two, 8 or more"):
        TwoWriteFifo(8, depth)
