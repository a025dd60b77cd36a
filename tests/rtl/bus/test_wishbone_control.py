"""The Wishbone subordinate carries out each access once, for pipelined and classic managers."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from bitlane_rtl.bus.wishbone import WishboneControl
from support.rtl.streams import ALL_STALLS, NO_STALLS, Stalls, elaborated, simulate

WORDS = 16
ACK, ERR = 1, 2

Access = tuple[bool, int, int, int]
"""Whether it writes, address, bytes, word."""


class Memories(wiring.Component):
    """The subordinate before ``WORDS`` words; counts the accesses to them."""

    def __init__(self) -> None:
        self.dut = WishboneControl()
        self.writes = Signal(32)
        self.reads = Signal(32)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        m.submodules.memory = memory = Memory(shape=32, depth=WORDS, init=[])
        write, read = memory.write_port(), memory.read_port()
        control = self.dut.control
        fetched = Signal()
        m.d.sync += [
            self.writes.eq(self.writes + control.write),
            self.reads.eq(self.reads + control.read),
            fetched.eq(control.read),
        ]
        m.d.comb += [
            write.addr.eq(control.address[2:]),
            write.data.eq(control.write_data),
            write.en.eq(control.write),
            read.addr.eq(control.address[2:]),
            read.en.eq(control.read),
            # Outside the cycle after `read`, the port's answer is undefined.
            control.read_data.eq(0xDEADBEEF),
        ]
        with m.If(fetched):
            m.d.comb += control.read_data.eq(read.data)
        return m


class Manager:
    """Makes ``accesses``; ``answers`` has ACK or ERR and the word of each, ``cycles`` its cycle.

    A ``pipelined`` manager offers the next access when STALL is 0, a classic one after the answer.
    Both change all outputs while STB is 0.
    """

    def __init__(
        self, bus: Any, accesses: list[Access], stalls: Stalls = NO_STALLS, *, pipelined: bool
    ) -> None:
        self._bus = bus
        self._accesses = accesses
        self._stalls = stalls.lengths("manager")
        self._pipelined = pipelined
        self.answers: list[tuple[int, int]] = []
        self.cycles: list[int] = []

    async def run(self, ctx: Any) -> None:
        bus = self._bus
        tick = ctx.tick().sample(bus.stall, bus.ack, bus.err, bus.dat_r)
        left = iter(self._accesses)
        offered, wait, due, cycle = next(left, None), next(self._stalls), 0, 0
        while offered or due:
            shows = offered is not None and not wait
            we, address, strobe, word = (offered if shows else None) or (1, 0x2BCB, 15, 0xBAD)
            ctx.set(bus.cyc, shows or due > 0)
            ctx.set(bus.stb, shows)
            ctx.set(bus.we, we)
            ctx.set(bus.adr, address)
            ctx.set(bus.sel, strobe)
            ctx.set(bus.dat_w, word)
            stall, ack, err, found = (await tick)[-4:]
            answered = ack or err
            assert not answered or due or (shows and not self._pipelined), f"cycle {cycle}: none"
            if answered:
                self.answers.append((ack * ACK + err * ERR, found))
                self.cycles.append(cycle)
            accepted = shows and (not stall if self._pipelined else answered)
            due += self._pipelined * (accepted - answered)
            if accepted:
                offered, wait = next(left, None), next(self._stalls)
            elif wait:
                wait -= 1
            cycle += 1
        ctx.set(bus.cyc, 0)
        ctx.set(bus.stb, 0)
        await ctx.tick().repeat(8)
        assert len(self.answers) == len(self._accesses)


def run(accesses: list[Access], stalls: Stalls = NO_STALLS, *, pipelined: bool) -> Manager:
    """Return the manager after ``accesses``; expect that each was carried out once."""
    top = elaborated(Memories)
    manager = Manager(top.dut.bus, accesses, stalls, pipelined=pipelined)
    good = [x for x in accesses if x[1] % 4 == 0 and (x[2] == 0xF if x[0] else True)]

    async def count(ctx: Any) -> None:
        while len(manager.answers) < len(accesses):
            await ctx.tick()
        assert ctx.get(top.writes) == sum(x[0] for x in good)
        assert ctx.get(top.reads) == sum(not x[0] for x in good)

    simulate(top, manager, count)
    return manager


def expected(accesses: list[Access]) -> list[tuple[int, int | None]]:
    """Return the answers; None for a word that is not defined."""
    words = [0] * WORDS
    answers: list[tuple[int, int | None]] = []
    for write, address, strobe, word in accesses:
        bad = address % 4 != 0 or (write and strobe not in (0, 15))
        if write and strobe == 15 and not bad:
            words[address // 4] = word
        answers.append((ERR if bad else ACK, None if write or bad else words[address // 4]))
    return answers


@pytest.mark.parametrize("pipelined", [True, False], ids=["pipelined", "classic"])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_accesses_of_any_kind(stalls: Stalls, pipelined: bool) -> None:
    rng = random.Random(stalls.seed)
    accesses = [
        (
            rng.random() < 0.5,
            4 * rng.randrange(WORDS) + (rng.randrange(4) if rng.random() < 0.2 else 0),
            rng.randrange(16) if rng.random() < 0.3 else 15,
            rng.getrandbits(32),
        )
        for _ in range(150)
    ]
    manager = run(accesses, stalls, pipelined=pipelined)
    for found, wanted in zip(manager.answers, expected(accesses), strict=True):
        assert found[0] == wanted[0], stalls
        assert wanted[1] in (None, found[1]), stalls


@pytest.mark.parametrize("pipelined", [True, False], ids=["pipelined", "classic"])
@pytest.mark.parametrize(("write", "first", "every"), [(True, 2, 3), (False, 3, 4)])
def test_an_access_takes_the_cycles_that_are_stated(
    write: bool, first: int, every: int, pipelined: bool
) -> None:
    manager = run([(write, 4, 15, 7)] * 5, pipelined=pipelined)
    assert manager.cycles == [first + every * i for i in range(5)]


async def _cycles(
    ctx: Any, dut: WishboneControl, cyc: Callable[[int], bool], *, write: bool
) -> list[tuple[int, int]]:
    """Request at address 4 while ``cyc`` of the cycle is true; return accesses and answers."""
    bus, control = dut.bus, dut.control
    seen = []
    for cycle in range(8):
        for signal in (bus.cyc, bus.stb):
            ctx.set(signal, cyc(cycle))
        ctx.set(bus.we, write)
        ctx.set(bus.adr, 4)
        ctx.set(bus.sel, 15)
        accessed = ctx.get(control.write) or ctx.get(control.read)
        seen.append((accessed, ctx.get(bus.ack) or ctx.get(bus.err)))
        await ctx.tick()
    return seen


@pytest.mark.parametrize("write", [True, False], ids=["write", "read"])
@pytest.mark.parametrize("held", [1, 2])
def test_an_access_that_is_given_up_leaves_no_answer_behind(held: int, write: bool) -> None:
    """After 1 cycle it was not accepted; after 2 it was, and a late answer of it would be taken
    for that of the next access, which follows 2 cycles later."""
    dut = WishboneControl()

    async def bench(ctx: Any) -> None:
        seen = await _cycles(ctx, dut, lambda cycle: cycle < held, write=write)
        accesses, answers = (sum(column) for column in zip(*seen, strict=True))
        assert accesses == (held == 2)
        # A write is answered in the cycle behind the access, a read not at all.
        assert answers == (held == 2 and write)

    simulate(dut, bench)


def test_without_cyc_there_is_no_access() -> None:
    dut = WishboneControl()

    async def bench(ctx: Any) -> None:
        ctx.set(dut.bus.stb, 1)
        ctx.set(dut.bus.sel, 15)
        for _ in range(6):
            await ctx.tick()
            assert not ctx.get(dut.control.read)
            assert not ctx.get(dut.bus.ack)

    simulate(dut, bench)
