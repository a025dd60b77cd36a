"""A board shows the speed of its PHY in a word of its window and by a light; its addresses."""

import random
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module

import cppsim
from bitlane_rtl.abi.line_status import LINE_STATUS, LINE_STATUS_OFFSET, SPEEDS
from bitlane_rtl.ethernet.board_addresses import BoardAddresses
from bitlane_rtl.ethernet.line_status import LineStatus

CLOCK_HZ = 14
"""Clocks a second: the light changes after 8 of them."""


class _Bench:
    """A `LineStatus` with the clocks of the line and of the board."""

    def __init__(self) -> None:
        m = Module()
        for name in ("rx", "sync"):
            m.domains += ClockDomain(name)
        m.submodules.line = self.line = LineStatus(CLOCK_HZ)
        self.simulator = cppsim.Simulator(m)
        self.simulator.add_clock(8e-9, phase=1e-9, domain="rx")
        self.simulator.add_clock(10.7e-9, phase=2e-9, domain="sync")


def report(ctx: Any, line: LineStatus, bits: int, *, valid: int = 0, error: int = 0) -> None:
    ctx.set(line.rx.data, bits | bits << 4)
    ctx.set(line.rx.valid, valid)
    ctx.set(line.rx.error, error)


async def word(ctx: Any, line: LineStatus, offset: int = LINE_STATUS_OFFSET) -> int:
    """Read a word of the window; the engine reads ``~offset`` there if it is not the word."""
    ctx.set(line.i.address, offset)
    ctx.set(line.i.read, 1)
    assert ctx.get(line.o.read)
    await ctx.tick("sync")
    ctx.set(line.i.read, 0)
    ctx.set(line.o.read_data, 0 if offset == LINE_STATUS_OFFSET else ~offset & 0xFFFFFFFF)
    value = int(ctx.get(line.i.read_data))
    await ctx.tick("sync")
    ctx.set(line.o.read_data, 0)
    return value


def fields(value: int) -> dict[str, int]:
    assert value == sum(bits.insert(bits.extract(value)) for bits in LINE_STATUS.values())
    return {name: bits.extract(value) for name, bits in LINE_STATUS.items()}


def run(testbench: Any) -> None:
    bench = _Bench()

    async def whole(ctx: Any) -> None:
        await testbench(ctx, bench.line)

    bench.simulator.add_testbench(whole)
    bench.simulator.run()


@pytest.mark.parametrize("speed", range(3))
def test_the_status_between_frames_is_shown(speed: int) -> None:
    async def testbench(ctx: Any, line: LineStatus) -> None:
        assert fields(await word(ctx, line)) == {
            "UP": 0, "SPEED": 0, "FULL_DUPLEX": 0, "PRESENT": 1, "DAMAGED": 0
        }  # fmt: skip
        for up in (1, 0):
            for duplex in (1, 0):
                report(ctx, line, up | speed << 1 | duplex << 3)
                await ctx.tick("sync").repeat(6)
                # The bytes of frames, and of other codes, are no status.
                for valid, error in ((1, 0), (1, 1), (0, 1)):
                    report(ctx, line, ~speed & 15, valid=valid, error=error)
                    await ctx.tick("sync").repeat(6)
                found = fields(await word(ctx, line))
                assert (found["UP"], found["SPEED"], found["FULL_DUPLEX"]) == (up, speed, duplex)
        assert SPEEDS[speed] == 10 ** (speed + 1)

    run(testbench)


def test_other_words_are_the_engines() -> None:
    rng = random.Random(1)

    async def testbench(ctx: Any, line: LineStatus) -> None:
        report(ctx, line, 15)
        near = [LINE_STATUS_OFFSET ^ 1 << bit for bit in range(2, 14)]
        for offset in (*near, *(rng.randrange(0, 1 << 14, 4) for _ in range(200))):
            if offset != LINE_STATUS_OFFSET:
                assert await word(ctx, line, offset) == ~offset & 0xFFFFFFFF
        ctx.set(line.i.write, 1)
        ctx.set(line.i.write_data, 0x1234)
        ctx.set(line.i.address, 0x1C)
        assert ctx.get(line.o.write)
        assert (ctx.get(line.o.write_data), ctx.get(line.o.address)) == (0x1234, 0x1C)

    run(testbench)


def test_damaged_frames_are_counted() -> None:
    async def testbench(ctx: Any, line: LineStatus) -> None:
        for number in range(1, 70):
            ctx.set(line.damaged, 1)
            await ctx.tick("rx")
            ctx.set(line.damaged, 0)
            await ctx.tick("rx").repeat(8)
            if number % 8 < 3:
                await ctx.tick("sync").repeat(4)
                assert fields(await word(ctx, line))["DAMAGED"] == number

    run(testbench)


@pytest.mark.parametrize(
    ("bits", "blinks"),
    [(0b1101, False), (0b0101, False), (0b1011, True), (0b0001, True), (0b1010, False), (0, False)],
)
def test_a_light_blinks_while_the_line_is_slow(bits: int, blinks: bool) -> None:
    async def testbench(ctx: Any, line: LineStatus) -> None:
        report(ctx, line, bits)
        await ctx.tick("sync").repeat(6)
        levels = []
        for _ in range(64):
            await ctx.tick("sync")
            levels.append(ctx.get(line.blink))
        changes = [n for n in range(1, 64) if levels[n] != levels[n - 1]]
        assert len(changes) == (8 if blinks else 0)
        assert {after - before for before, after in pairwise(changes)} == ({8} if blinks else set())
        assert blinks or not any(levels)

    run(testbench)


# --- addresses of boards --------------------------------------------------------------------------


def test_the_default_is_a_legal_address() -> None:
    addresses = BoardAddresses()
    assert addresses.mac[0] & 3 == 2, "not a local address of one board"
    assert addresses.ip.is_private
