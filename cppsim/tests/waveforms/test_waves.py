"""Waveform files of compiled simulations show at each time what those of Amaranth's show."""

import random
from typing import Any

import pytest
from amaranth.hdl import (
    Cat,
    ClockDomain,
    Const,
    Format,
    MemoryData,
    Module,
    ShapeCastable,
    Signal,
    Value,
    signed,
    unsigned,
)
from amaranth.lib import data, enum
from amaranth.lib.memory import Memory

from cppsim.testing import Bench, random_testbench, same_on, ticks, waveforms
from support.fuzz import machine, write_once
from support.seeds import seeds, slow
from support.small import body, counter, many_registers, text_of


@pytest.mark.parametrize("seed", seeds(1, 12))
@same_on()
def test_machines_of_several_clocks(sim: Bench, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write_once(monkeypatch.setattr)
    shared = machine(seed)
    work = random_testbench(shared, seed, sim.seen.append, steps=60)
    clocks = {x: (y, y * k / 8) for k, (x, y) in enumerate(shared.clocks.items(), 1)}
    sim.run(shared.module, work, clocks=clocks, traces=())


@same_on("always")
def test_the_header_has_the_values_at_the_end_of_time_0(sim: Bench) -> None:
    m, count = counter(init=5)
    above, part, outside = Signal(8), Signal(State), Signal(4)
    layout = Signal(data.StructLayout({"low": 3, "high": State}))
    m.submodules.memory = memory = Memory(shape=70, depth=2, init=[1 << 69, 3])
    port = memory.write_port()
    m.d.comb += [above.eq(count + 100), layout.high.eq(part), layout.low.eq(count)]

    async def work(ctx: Any) -> None:
        ctx.set(part, State.BUSY)
        ctx.set(outside, 9)
        ctx.set(port.data, 77)
        ctx.set(memory.data[1], 1 << 68)
        await ctx.tick().repeat(3)

    text = body(text_of(sim.simulator(m, work), traces=[outside]))
    assert text.count("$dumpvars") == text.count("#0\n") == 1
    sim.seen.append(sorted(text.split("$end\n")[0].split()))


@same_on("engine", "always")
def test_fast_forwarding_over_many_cycles(sim: Bench) -> None:
    m, count = counter(12)
    m.domains.other = ClockDomain(clk_edge="neg", reset_less=True)
    state, sum_of_all, late = Signal(State), Signal(70), Signal()
    m.d.sync += state.as_value().eq(count)
    m.d.other += sum_of_all.eq((sum_of_all << 1) ^ count)
    m.d.comb += late.eq(count > 700)

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(300)
        await ctx.tick().until(late)
        await ctx.tick("other").repeat(200)

    sim.run(m, work, clocks={"sync": 1e-6, "other": 0.7e-6}, traces=())


@pytest.mark.parametrize(
    "width", [1, *map(slow, (2, 3, 8, 13, 32)), 33, *map(slow, (64, 65, 70, 128)), 129]
)
@pytest.mark.parametrize("depth", [slow(1), 7])
@same_on()
def test_rows_of_memories(sim: Bench, width: int, depth: int) -> None:
    m, init = Module(), [-(k % 2) for k in range(depth)]
    m.submodules.memory = memory = Memory(shape=signed(width), depth=depth, init=init)
    port, chance = memory.write_port(), random.Random(width)

    async def work(ctx: Any) -> None:
        for step in range(40):
            ctx.set(port.en, chance.random() < 0.7)
            ctx.set(port.addr, chance.randrange(1 << len(port.addr)))
            ctx.set(port.data, chance.getrandbits(width))
            if step % 7 == 3:
                ctx.set(memory.data[step % depth], chance.getrandbits(width))
            await ctx.tick()

    sim.run(m, work, traces=())


class State(enum.Enum, shape=3):
    IDLE = 0
    BUSY = 1
    READY = 6


class Change(enum.Enum, shape=signed(3)):
    NONE = 0
    LESS = -2
    MORE = 1


class Pair(data.Struct):
    state: State
    count: signed(5)
    rows: data.ArrayLayout(unsigned(3), 2)


class Halves(ShapeCastable):  # type: ignore[type-arg]
    """A number that shows in two parts, and with what is counted elsewhere."""

    def __init__(self, width: int, other: Any = None) -> None:
        self.width, self.other = width, other

    def as_shape(self) -> Any:
        return unsigned(self.width)

    def __call__(self, value: Any) -> Any:
        return value

    def const(self, init: Any) -> Any:
        return Const(init or 0, self.width)

    def from_bits(self, raw: int) -> int:
        return raw

    def format(self, value: Any, spec: str) -> Any:
        text = Format("{} and {:x}", value[4:], value[:4])
        return text if self.other is None else text + Format(" of {}", self.other)


@same_on()
def test_values_that_show_as_words(sim: Bench) -> None:
    m, count = counter()
    state = Signal(State)
    change, pair = Signal(Change), Signal(Pair)
    decoded = Signal(4, decoder=lambda value: f"step\t{value} of \\ 15")
    halves, wide, mixed = Signal(Halves(9)), Signal(Halves(100)), Signal(Halves(6, count))
    m.d.comb += [
        state.as_value().eq(count),
        change.as_value().eq(count >> 2),
        pair.as_value().eq(count * 0x155),
        decoded.eq(count[1:]),
    ]
    m.d.sync += [halves.eq(count * 5), wide.eq(count << (count & 0x3F)), mixed.eq(count[2])]
    sim.run(m, ticks(70), traces=())
    words = {value for _, value in sim.seen[-1]["bench.top.state: string 1"]}
    assert words == {"IDLE", "BUSY", "READY", "[unknown]"}
    change_of_decoded = (1_500_000_000, "step\\t1\\x20of\\x20\\\\\\x2015")
    assert change_of_decoded in sim.seen[-1]["bench.top.decoded: string 1"]


@same_on("engine", "always")
def test_more_words_than_are_kept_in_any_order(sim: Bench) -> None:
    m, count = counter(16)
    shown = Signal(13, decoder=lambda value: f"step {value}")
    m.d.sync += shown.eq((count * 40503 >> 3) ^ count)
    sim.run(m, ticks(9000), traces=())


@same_on()
def test_rows_that_show_as_words(sim: Bench) -> None:
    m = Module()
    m.submodules.memory = memory = Memory(shape=Pair, depth=3, init=[])
    port = memory.write_port()

    async def work(ctx: Any) -> None:
        ctx.set(port.en, 1)
        for step in range(20):
            ctx.set(port.addr, step % 4)
            ctx.set(port.data.as_value(), step * 0x3A5)
            await ctx.tick()

    sim.run(m, work, traces=())
    assert r"bench.top.\memory[2].state: string 1" in sim.seen[-1]


@same_on()
def test_signals_that_are_no_part_of_the_design(sim: Bench) -> None:
    m, _ = counter()
    number, change = Signal(signed(70)), Signal(Change)
    rows = MemoryData(shape=Pair, depth=4, init=[])
    single = MemoryData(shape=5, depth=2, init=[])

    async def work(ctx: Any) -> None:
        for step in range(12):
            ctx.set(number, (-1) ** step << step * 6)
            ctx.set(change, (Change.NONE, Change.LESS, Change.MORE)[step % 3])
            ctx.set(Value.cast(rows[step % 4]), step * 37)
            await ctx.tick().repeat(1 + step % 3)
            ctx.set(single[1], step)

    sim.run(m, work, traces=[number, {"change": change}, rows, single[1]])


@same_on()
def test_constants_and_names_of_the_same(sim: Bench) -> None:
    m, count = counter(6)
    fixed, none, part = Signal(7), Signal(0), Signal(9, init=3)
    m.submodules.inner = inner = Module()
    inner.d.comb += (same := Signal(6)).eq(count)
    m.d.comb += [fixed.eq(0x55), part.eq(Cat(1, count[2:4], 1, count)), none.eq(same)]
    sim.run(m, ticks(70), traces=())


@same_on()
def test_times_longer_than_a_word(sim: Bench) -> None:
    m, given = Module(), Signal(8)
    late = Signal(8)
    m.d.comb += late.eq(given + 1)

    async def work(ctx: Any) -> None:
        for step in range(1, 6):
            await ctx.delay(9_000)
            ctx.set(given, step)

    sim.run(m, work, clocks=None, traces=())
    (*_, (time, _)) = sim.seen[-1]["bench.top.late: wire 8"]
    assert time == 45 * 10**18 > 1 << 64


@same_on()
def test_clocks_that_tick_for_longer_than_a_word(sim: Bench) -> None:
    m, _ = counter()
    sim.run(m, ticks(30), clocks=1000, traces=())
    assert sim.seen[-1]["bench.top.count: wire 8"][-1][0] > 1 << 64


@pytest.mark.slow
def test_long_files() -> None:
    texts = [text_of(many_registers(400, executor)) for executor in ("pysim", "engine", "always")]
    assert len(texts[-1]) > 3 << 19
    assert waveforms(texts[0]) == waveforms(texts[1]) == waveforms(texts[2])


def test_cycles_within_a_time_step_are_amaranths_to_write() -> None:
    shown = waveforms(text_of(many_registers(3), fs_per_delta=1)).values()
    assert any(time % 1000 for waveform in shown for time, _ in waveform)
