"""The last LED of a board blinks while its PHY works at another speed than a gigabit."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module

import cppsim
from bitlane_boards import boards
from bitlane_boards.board import MemoryKind
from bitlane_boards.flow.top import Top
from bitlane_boards.full_circuit import full_on_block_ram

pytestmark = pytest.mark.slow

CLOCK_HZ = 100
"""The light changes after 64 clocks."""

BOARD = replace(
    boards()["ecpix5"],
    clock_hz=CLOCK_HZ,
    memory=MemoryKind.BLOCK,
    configuration=full_on_block_ram(16),
)


@pytest.mark.parametrize(("fault_led", "light"), [("r", "fault"), (None, "busy")])
def test_a_light_of_the_board_blinks(fault_led: str | None, light: str) -> None:
    top: Any = Top(replace(BOARD, fault_led=fault_led))
    m = Module()
    for name in ("rx", "tx", "sync"):
        m.domains += ClockDomain(name)
    m.submodules.top = top
    simulator = cppsim.Simulator(m)
    for number, name in enumerate(("rx", "tx", "sync")):
        simulator.add_clock(8e-9, phase=(1 + number) * 1e-9, domain=name)

    async def testbench(ctx: Any) -> None:
        for status, changes in ((0b1101, 0), (0b1011, 4), (0b1101, 0)):
            ctx.set(top.received.data, status)
            await ctx.tick("sync").repeat(8)
            levels = {"busy": [], "fault": []}
            for _ in range(256):
                await ctx.tick("sync")
                for name, seen in levels.items():
                    seen.append(ctx.get(getattr(top, name)))
            found = {name: sum(a != b for a, b in pairwise(seen)) for name, seen in levels.items()}
            assert found == {"busy": 0, "fault": 0} | {light: changes}

    simulator.add_testbench(testbench)
    simulator.run()
