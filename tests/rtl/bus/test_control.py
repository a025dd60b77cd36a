"""Subordinates on AXI4-Lite and Wishbone carry out each access to a whole word once, in order."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from bitlane_rtl.bus.axi4_lite import OKAY, SLVERR, Axi4Lite, Axi4LiteControl
from bitlane_rtl.bus.wishbone import WishboneControl
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, channel, simulate

WORDS = 16


def test_signals_are_as_wide_as_the_standard_says() -> None:
    """AMBA AXI and ACE (ARM IHI 0022), section B1.1; the width of addresses is the core's own."""
    widths = {"prot": 3, "data": 32, "strb": 4, "resp": 2, "valid": 1, "ready": 1}
    members = Axi4Lite().members
    others = {name: member.shape for name, member in members.items() if "addr" not in name}
    channel_of = re.compile(r"(aw|w|b|ar|r)(\w+)").fullmatch
    assert others == {name: widths[found[2]] for name in others if (found := channel_of(name))}
    assert len(others) == 17


class Words(wiring.Component):
    """A subordinate before ``WORDS`` words; counts the accesses to them."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
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


@pytest.mark.parametrize("order", ["together", "address first", "data first"])
def test_a_write_is_taken_a_cycle_after_both_halves_are_there(order: str) -> None:
    dut = Axi4LiteControl()
    bus, control = dut.bus, dut.control
    address_at = 5 if order == "data first" else 2
    data_at = 5 if order == "address first" else 2
    taken = max(address_at, data_at) + 1

    async def bench(ctx: Any) -> None:
        ctx.set(bus.bready, 1)
        for cycle in range(taken + 4):
            address, data = address_at <= cycle <= taken, data_at <= cycle <= taken
            ctx.set(bus.awvalid, address)
            ctx.set(bus.awaddr, 0x1234 if address else 0x2BCB)
            ctx.set(bus.wvalid, data)
            ctx.set(bus.wdata, 0x89ABCDEF if data else 0)
            ctx.set(bus.wstrb, 0xF if data else 0x5)
            assert ctx.get(bus.awready) == ctx.get(bus.wready) == (cycle == taken)
            assert ctx.get(control.write) == (cycle == taken)
            if cycle == taken:
                assert ctx.get(control.address) == 0x1234
                assert ctx.get(control.write_data) == 0x89ABCDEF
            assert ctx.get(bus.bvalid) == (cycle == taken + 1)
            if ctx.get(bus.bvalid):
                assert ctx.get(bus.bresp) == OKAY
            await ctx.tick()

    simulate(dut, bench)


@pytest.mark.parametrize("write_at", [0, 1], ids=["together", "write later"])
def test_a_read_is_answered_after_three_cycles_and_holds_up_a_write_for_one(write_at: int) -> None:
    dut = Axi4LiteControl()
    bus, control = dut.bus, dut.control

    async def bench(ctx: Any) -> None:
        ctx.set(bus.wstrb, 0xF)
        ctx.set(bus.bready, 1)
        for cycle in range(8):
            ctx.set(bus.arvalid, cycle == 0)
            ctx.set(bus.araddr, 0x3FFC if cycle == 0 else 1)
            ctx.set(bus.awvalid, write_at <= cycle <= 2)
            ctx.set(bus.awaddr, 0x20 if ctx.get(bus.awvalid) else 3)
            ctx.set(bus.wvalid, write_at <= cycle <= 2)
            ctx.set(control.read_data, 0xA0 + cycle)
            ctx.set(bus.rready, cycle == 6)
            assert ctx.get(control.read) == (cycle == 1)
            assert ctx.get(control.write) == (cycle == 2)
            if cycle in (1, 2):
                assert ctx.get(control.address) == (0x3FFC if cycle == 1 else 0x20)
            assert ctx.get(bus.bvalid) == (cycle == 3)
            assert ctx.get(bus.rvalid) == (3 <= cycle <= 6)
            if ctx.get(bus.rvalid):
                assert (ctx.get(bus.rdata), ctx.get(bus.rresp)) == (0xA2, OKAY)
            assert ctx.get(bus.arready) == (cycle in (0, 7))
            await ctx.tick()

    simulate(dut, bench)


def test_it_writes_every_second_cycle() -> None:
    top = Words(Axi4LiteControl())
    bus = top.dut.bus
    aw = Source(channel(bus, "aw", "addr"), [4] * 12)
    w = Source(channel(bus, "w", "data", "strb"), [0xF << 32] * 12)
    b = Sink(channel(bus, "b", "resp"), 12)
    simulate(top, aw, w, b)
    assert aw.cycles == w.cycles == list(range(1, 25, 2))
    assert b.cycles == list(range(2, 26, 2))


def test_it_reads_every_fourth_cycle() -> None:
    top = Words(Axi4LiteControl())
    bus = top.dut.bus
    ar = Source(channel(bus, "ar", "addr"), [4] * 6)
    r = Sink(channel(bus, "r", "data", "resp"), 6)
    simulate(top, ar, r)
    assert ar.cycles == list(range(0, 24, 4))
    assert r.cycles == list(range(3, 27, 4))


def test_writes_land_in_order_and_only_whole_aligned_words_do(stalls: Stalls) -> None:
    rng = random.Random(stalls.seed)
    writes = [
        (
            4 * rng.randrange(WORDS) + (rng.randrange(1, 4) if rng.random() < 0.2 else 0),
            rng.getrandbits(32),
            rng.randrange(16) if rng.random() < 0.4 else 0xF,
        )
        for _ in range(150)
    ]
    writes += [(8, 0x1111_1111, 0), (9, 0x2222_2222, 0)]
    expected = [0] * WORDS
    responses = []
    landed = 0
    for address, word, strobe in writes:
        whole = strobe == 0xF and address % 4 == 0
        if whole:
            expected[address // 4] = word
            landed += 1
        responses.append(OKAY if whole or strobe == 0 else SLVERR)

    top = Words(Axi4LiteControl())
    bus = top.dut.bus
    aw = Source(channel(bus, "aw", "addr"), [address for address, _, _ in writes], stalls, "aw")
    w = Source(
        channel(bus, "w", "data", "strb"),
        [word | strobe << 32 for _, word, strobe in writes],
        stalls,
        "w",
    )
    b = Sink(channel(bus, "b", "resp"), len(writes), stalls, "b")
    seen: list[int] = []

    async def read_back(ctx: Any) -> None:
        while len(b.bits) < len(writes):
            await ctx.tick()
        ctx.set(bus.rready, 1)
        for address in range(0, 4 * WORDS, 4):
            ctx.set(bus.araddr, address)
            ctx.set(bus.arvalid, 1)
            await ctx.tick()
            ctx.set(bus.arvalid, 0)
            await ctx.tick().until(bus.rvalid)
            seen.append(ctx.get(bus.rdata))
            await ctx.tick()
        assert ctx.get(top.writes) == landed

    simulate(top, aw, w, b, read_back)
    assert b.bits == responses, stalls
    assert seen == expected, stalls


def test_reads_and_writes_at_once_disturb_each_other_not(stalls: Stalls) -> None:
    rng = random.Random(stalls.seed)
    top = Words(Axi4LiteControl())
    bus = top.dut.bus
    count = 100
    # Writes go to the upper half only; the lower half reads 0, misaligned reads are refused.
    written = [4 * rng.randrange(WORDS // 2, WORDS) for _ in range(count)]
    read = [
        4 * rng.randrange(WORDS // 2) + (rng.randrange(1, 4) if rng.random() < 0.2 else 0)
        for _ in range(count)
    ]
    aw = Source(channel(bus, "aw", "addr"), written, stalls, "aw")
    w = Source(channel(bus, "w", "data", "strb"), [0xFF_FFFF_FFFF] * count, stalls, "w")
    b = Sink(channel(bus, "b", "resp"), count, stalls, "b")
    ar = Source(channel(bus, "ar", "addr"), read, stalls, "ar")
    r = Sink(channel(bus, "r", "data", "resp"), count, stalls, "r")
    simulate(top, aw, w, b, ar, r)
    assert b.bits == [OKAY] * count
    assert [bits >> 32 for bits in r.bits] == [SLVERR if a % 4 else OKAY for a in read]
    assert not any(bits & 0xFFFF_FFFF for bits in r.bits if bits >> 32 == OKAY)


# --- Wishbone -------------------------------------------------------------------------------------


ACK, ERR = 1, 2

Access = tuple[bool, int, int, int]
"""Whether it writes, address, bytes, word."""


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
    top = Words(WishboneControl())
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
