"""Subordinates on AXI4-Lite and Wishbone carry out each access to a whole word once, in order."""

import random
import re
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from bitlane_rtl.bus import OKAY, SLVERR, Axi4Lite, Axi4LiteControl, WishboneControl
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, channel, clocked, later, simulate

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


@pytest.mark.parametrize(("address_at", "data_at"), [(2, 2), (2, 5), (5, 2)])
def test_a_write_is_taken_a_cycle_after_both_halves_are_there(
    address_at: int, data_at: int
) -> None:
    taken = max(address_at, data_at) + 1
    cycles = range(taken + 4)
    address, data = ([at <= cycle <= taken for cycle in cycles] for at in (address_at, data_at))
    inputs = [
        {"bus.bready": 1, "bus.awvalid": aw, "bus.awaddr": 0x1234 if aw else 0x2BCB}
        | {"bus.wvalid": w, "bus.wdata": 0x89ABCDEF if w else 0, "bus.wstrb": 0xF if w else 0x5}
        for aw, w in zip(address, data, strict=True)
    ]
    ends = ("bus.awready", "bus.wready", "control.write", "bus.bvalid")
    words = ("control.address", "control.write_data", "bus.bresp")
    *takes, answers, addresses, written, responses = clocked(
        Axi4LiteControl(), inputs, *ends, *words
    )
    assert takes == [tuple(cycle == taken for cycle in cycles)] * 3
    assert (addresses[taken], written[taken]) == (0x1234, 0x89ABCDEF)
    assert answers == tuple(cycle == taken + 1 for cycle in cycles)
    assert responses[taken + 1] == OKAY


@pytest.mark.parametrize("write_at", [0, 1], ids=["together", "write later"])
def test_a_read_is_answered_after_three_cycles_and_holds_up_a_write_for_one(write_at: int) -> None:
    inputs = [
        {"bus.wstrb": 0xF, "bus.bready": 1, "bus.arvalid": cycle == 0, "bus.rready": cycle == 6}
        | {"bus.araddr": 1 if cycle else 0x3FFC, "control.read_data": 0xA0 + cycle}
        | {"bus.awvalid": writes, "bus.wvalid": writes, "bus.awaddr": 0x20 if writes else 3}
        for cycle in range(8)
        for writes in [write_at <= cycle <= 2]
    ]
    names = ("control.read", "control.write", "bus.bvalid", "bus.rvalid", "bus.arready")
    words = ("control.address", "bus.rdata", "bus.rresp")
    *levels, addresses, data, responses = clocked(Axi4LiteControl(), inputs, *names, *words)
    high = [[cycle for cycle, level in enumerate(each) if level] for each in levels]
    assert high == [[1], [2], [3], [3, 4, 5, 6], [0, 7]]
    assert addresses[1:3] == (0x3FFC, 0x20)
    assert (set(data[3:7]), set(responses[3:7])) == ({0xA2}, {OKAY})


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


def address_of(rng: random.Random, words: range) -> int:
    """Return the address of one of ``words``, perhaps not aligned."""
    return 4 * rng.choice(words) + (rng.randrange(1, 4) if rng.random() < 0.2 else 0)


def test_writes_land_in_order_beside_reads_and_only_whole_aligned_words_do(stalls: Stalls) -> None:
    """Writes go to the upper half alone, which is read in the end."""
    rng = random.Random(stalls.seed)
    lower, upper = range(WORDS // 2), range(WORDS // 2, WORDS)
    strobes = [rng.randrange(16) if rng.random() < 0.4 else 0xF for _ in range(150)] + [0, 0]
    writes = [address_of(rng, upper) for _ in range(150)] + [4 * upper[2], 4 * upper[2] + 1]
    words = [rng.getrandbits(32) for _ in writes]
    whole = [not at % 4 and strobe == 0xF for at, strobe in zip(writes, strobes, strict=True)]
    expected = dict.fromkeys(upper, 0)
    expected |= {
        at // 4: word for at, word, lands in zip(writes, words, whole, strict=True) if lands
    }
    reads = [address_of(rng, lower) for _ in range(100)]
    top = Words(Axi4LiteControl())
    bus = top.dut.bus
    aw = Source(channel(bus, "aw", "addr"), writes, stalls, "aw")
    given = [word | strobe << 32 for word, strobe in zip(words, strobes, strict=True)]
    w = Source(channel(bus, "w", "data", "strb"), given, stalls, "w")
    b = Sink(channel(bus, "b", "resp"), len(writes), stalls, "b")
    ar = Source(channel(bus, "ar", "addr"), reads, stalls, "ar")
    last = Source(channel(bus, "ar", "addr"), [4 * word for word in upper])
    r = Sink(channel(bus, "r", "data", "resp"), len(reads) + len(upper), stalls, "r")

    async def read(ctx: Any) -> None:
        await ar.run(ctx)
        await later(last, lambda: len(b.bits) == len(writes))(ctx)
        assert ctx.get(top.writes) == sum(whole)

    simulate(top, aw, w, b, r, read)
    good = [lands or not strobe for lands, strobe in zip(whole, strobes, strict=True)]
    assert b.bits == [OKAY if each else SLVERR for each in good], stalls
    refused = [bool(at % 4) for at in reads] + [False] * len(upper)
    assert [bits >> 32 for bits in r.bits] == [SLVERR if each else OKAY for each in refused], stalls
    data = [bits for bits in r.bits if bits >> 32 == OKAY]
    assert data == [0] * (len(data) - len(upper)) + [*expected.values()], stalls


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


@pytest.mark.parametrize("write", [True, False], ids=["write", "read"])
@pytest.mark.parametrize("held", [1, 2])
def test_an_access_that_is_given_up_leaves_no_answer_behind(held: int, write: bool) -> None:
    """After 1 cycle it was not accepted; after 2 it was, and a late answer of it would be taken
    for that of the next access, which follows 2 cycles later."""
    given = {"bus.we": write, "bus.adr": 4, "bus.sel": 15}
    inputs = [given | dict.fromkeys(("bus.cyc", "bus.stb"), cycle < held) for cycle in range(8)]
    ports = ("control.write", "control.read", "bus.ack", "bus.err")
    writes, reads, *answers = clocked(WishboneControl(), inputs, *ports)
    assert sum(writes + reads) == (held == 2)
    # A write is answered in the cycle behind the access, a read not at all.
    assert sum(map(sum, answers)) == (held == 2 and write)


def test_without_cyc_there_is_no_access() -> None:
    inputs = [{"bus.stb": 1, "bus.sel": 15}] * 7
    assert not any(map(any, clocked(WishboneControl(), inputs, "control.read", "bus.ack")))
