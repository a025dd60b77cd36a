"""Packets and the line's status cross the clocks whole; the addresses of a board are legal.

A board shows the speed of its PHY in a word of its window and by a light.
"""

import random
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, DomainRenamer, Module

import cppsim
from bitlane_rtl.abi import LINE_STATUS, LINE_STATUS_OFFSET, SPEEDS
from bitlane_rtl.ethernet import BoardAddresses, LineStatus, PacketFifo

CLOCK_HZ = 14
"""Clocks a second: the light changes after 8 of them."""


def simulate(unit: Any, periods: dict[str, float], *testbenches: Any, background: Any = ()) -> None:
    """Run testbenches of ``unit``, whose clocks have ``periods`` in seconds."""
    m = Module()
    m.domains += map(ClockDomain, periods)
    m.submodules.unit = unit
    simulator = cppsim.Simulator(m)
    for name, period in periods.items():
        simulator.add_clock(period, phase=0.3 * period, domain=name)
    for each in testbenches:
        simulator.add_testbench(each)
    for each in background:
        simulator.add_testbench(each, background=True)
    simulator.run()


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
    line = LineStatus(CLOCK_HZ)

    async def whole(ctx: Any) -> None:
        await testbench(ctx, line)

    simulate(line, {"rx": 8e-9, "sync": 10.7e-9}, whole)


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


# --- packets --------------------------------------------------------------------------------------


DEPTH, LONGEST = 64, 16

PERIODS = [(8.0e-9, 20.1e-9), (20.1e-9, 8.0e-9), (8.0e-9, 8.0008e-9), (8.0008e-9, 8.0e-9)]
"""Seconds, of writer and reader."""


class Run:
    """A writer that commits two packets of three, and a reader that stalls."""

    def __init__(self, periods: tuple[float, float], seed: int, stalls: float) -> None:
        self._random = random.Random(seed)
        self._stalls = stalls
        self.expected: list[int] = []
        self.received: list[int] = []
        self.waited = 0
        self._fifo = PacketFifo(16, DEPTH, LONGEST)
        clocks = dict(zip(("write", "read"), periods, strict=True))
        simulate(self._fifo, clocks, self._write, background=[self._read])

    async def _write(self, ctx: Any) -> None:
        i, rng = self._fifo.i, self._random
        for number in range(150):
            await ctx.tick("write").repeat(3)
            while not ctx.get(i.room):
                self.waited += 1
                await ctx.tick("write")
            size = rng.randrange(1, LONGEST)
            words = [number << 8 | place for place in range(size)]
            for place in rng.sample(range(size), size):
                ctx.set(i.write, 1)
                ctx.set(i.offset, place)
                ctx.set(i.word, words[place])
                await ctx.tick("write")
                if rng.random() < 0.1:
                    ctx.set(i.write, 0)
                    await ctx.tick("write").repeat(rng.randrange(1, 9))
            ctx.set(i.write, 0)
            if rng.randrange(3):
                self.expected += words
                ctx.set(i.words, size)
                ctx.set(i.commit, 1)
                await ctx.tick("write")
                ctx.set(i.commit, 0)
        for _ in range(60):
            if len(self.received) < len(self.expected):
                await ctx.tick("write").repeat(100)
        await ctx.tick("write").repeat(100)

    async def _read(self, ctx: Any) -> None:
        o = self._fifo.o
        rng = random.Random(1)
        offered: int | None = None
        while True:
            ready = rng.random() >= self._stalls
            ctx.set(o.ready, ready)
            *_, valid, payload = await ctx.tick("read").sample(o.valid, o.payload)
            assert offered is None or (valid and payload == offered)
            offered = payload if valid and not ready else None
            if valid and ready:
                self.received.append(payload)


@pytest.mark.parametrize("periods", PERIODS)
@pytest.mark.parametrize("stalls", [0.0, 0.5, 0.95])
def test_packets_cross_whole(periods: tuple[float, float], stalls: float) -> None:
    ran = Run(periods, 1, stalls)
    assert ran.received == ran.expected
    assert len(ran.expected) > 500
    assert bool(ran.waited) or stalls < 0.95


def test_latency() -> None:
    """Both sides have one clock here, which changes nothing else."""
    fifo = PacketFifo(16, DEPTH, LONGEST)

    async def testbench(ctx: Any) -> None:
        ctx.set(fifo.i.write, 1)
        ctx.set(fifo.i.commit, 1)
        ctx.set(fifo.i.words, 1)
        await ctx.tick()
        ctx.set(fifo.i.write, 0)
        ctx.set(fifo.i.commit, 0)
        cycles = 1
        while not ctx.get(fifo.o.valid):
            await ctx.tick()
            cycles += 1
        assert cycles == 3 + 5

    one_clock = DomainRenamer({"write": "sync", "read": "sync"})(fifo)
    simulate(one_clock, {"sync": 1e-6}, testbench)
