"""Committed packets cross the clocks whole and in order; others leave no trace."""

import random
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, DomainRenamer, Module

import cppsim
from bitlane_rtl.ethernet.packet_fifo import PacketFifo

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
        m = Module()
        m.domains += [ClockDomain("write"), ClockDomain("read")]
        m.submodules.fifo = self._fifo
        simulator = cppsim.Simulator(m)
        for name, period in zip(("write", "read"), periods, strict=True):
            simulator.add_clock(period, phase=0.3 * period, domain=name)
        simulator.add_testbench(self._write)
        simulator.add_testbench(self._read, background=True)
        simulator.run()

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
        await ctx.tick("write").repeat(6000)

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
    """With one clock for both sides, which changes nothing else."""
    fifo = PacketFifo(16, DEPTH, LONGEST)
    simulator = cppsim.Simulator(DomainRenamer({"write": "sync", "read": "sync"})(fifo))
    simulator.add_clock(1e-6)

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

    simulator.add_testbench(testbench)
    simulator.run()
