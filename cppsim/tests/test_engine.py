"""Testbenches, processes, clocks, memories and waveforms on the compiled engine, beside pysim."""

import re
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import (
    Assert,
    Assume,
    Cat,
    ClockDomain,
    ClockSignal,
    Cover,
    DomainRenamer,
    Format,
    Module,
    Print,
    ResetSignal,
    Signal,
    signed,
)
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.fifo import AsyncFIFO, SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator

import cppsim
from cppsim.errors import SimulationError
from cppsim.mode import Mode
from cppsim.testing import EXECUTORS, Bench, same_on, ticks
from support.small import counter


@same_on()
def test_a_tick_samples_what_was_before_the_edge(sim: Bench) -> None:
    m, count = counter(step=3)
    m.d.comb += (above := Signal(9)).eq(count + 1)
    sim.run(m, sim.awaits(5, lambda ctx: ctx.tick().sample(count, above), count, above))
    assert sim.seen[1] == (1_500_000_000, (True, False, 3, 4), 6, 7)


@same_on()
def test_clocks_that_the_design_makes(sim: Bench) -> None:
    m, go, half = Module(), Signal(), Signal()
    m.domains.sync = ClockDomain()
    for name in ("half", "gated", "other"):
        m.domains += ClockDomain(name, reset_less=True)
    counts = {name: Signal(8, name=name) for name in ("sync", "half", "gated", "other")}
    for name, count in counts.items():
        m.d[name] += count.eq(count + 1)
    m.d.sync += half.eq(~half)
    m.d.comb += [
        ClockSignal("half").eq(half),
        ClockSignal("gated").eq(ClockSignal("sync") & go),
        ClockSignal("other").eq(~ClockSignal("sync")),
    ]

    async def work(ctx: Any) -> None:
        for cycle in range(20):
            ctx.set(go, cycle % 3 == 0)
            sampled = await ctx.tick().sample(*counts.values())
            sim.seen.append((sampled, [ctx.get(x) for x in counts.values()]))

    watch = sim.follows(lambda ctx: ctx.tick("half").sample(counts["half"]))
    sim.run(m, work, processes=[watch])


@same_on()
def test_logic_that_reads_a_clock_shows_at_its_edge_what_was_before(sim: Bench) -> None:
    m, kept, level = Module(), Signal(2), Signal(2)
    m.d.comb += level.eq(2 - ClockSignal())
    m.d.sync += kept.eq(level)
    sim.run(m, sim.awaits(6, lambda ctx: ctx.delay(0.4e-6), kept, level))


@same_on()
def test_resets_that_come_at_any_time(sim: Bench) -> None:
    m, count = counter()
    stop, held = Signal(), Signal()
    m.domains.sync = ClockDomain(async_reset=True)
    m.d.comb += held.eq(ResetSignal())
    m.submodules.synchronizer = ResetSynchronizer(stop, domain="sync")

    async def work(ctx: Any) -> None:
        for step in range(60):
            await ctx.delay(0.37e-6)
            ctx.set(stop, step % 17 in (3, 4, 9))
            sim.seen.append((ctx.get(count), ctx.get(held)))

    sim.run(m, work)


@same_on()
@pytest.mark.parametrize("kind", [SyncFIFOBuffered, AsyncFIFO])
def test_queues(sim: Bench, kind: type) -> None:
    m = Module()
    m.submodules.fifo = fifo = kind(width=13, depth=8)
    writing, reading = ("sync",) * 2 if kind is SyncFIFOBuffered else ("write", "read")

    async def write(ctx: Any) -> None:
        for value in range(40):
            ctx.set(fifo.w_data, value * 201 & 0x1FFF)
            ctx.set(fifo.w_en, value % 5 != 4)
            await ctx.tick(writing)

    async def read(ctx: Any) -> None:
        for cycle in range(60):
            ctx.set(fifo.r_en, cycle % 3 != 0)
            await ctx.tick(reading)
            sim.seen.append((ctx.get(fifo.r_rdy), ctx.get(fifo.r_data), ctx.get(fifo.w_rdy)))

    sim.run(m, write, read, clocks={reading: 1.3e-6, writing: 1e-6})


@same_on()
def test_rows_of_memories_are_read_and_written(sim: Bench) -> None:
    m = Module()
    m.submodules.memory = memory = Memory(shape=signed(70), depth=6, init=[-1, 2, -3])
    port, read = memory.write_port(), memory.read_port(domain="comb")

    async def work(ctx: Any) -> None:
        ctx.set(port.en, 1)
        for step in range(12):
            ctx.set(port.addr, step % 8)
            ctx.set(port.data, (-1) ** step << step * 5)
            ctx.set(read.addr, step * 3 % 8)
            ctx.set(memory.data[step % 5], -step)
            sim.seen.append(ctx.get(read.data))
            await ctx.tick()
            sim.seen.append([ctx.get(memory.data[row]) for row in range(6)])

    made = sim.run(m, work)
    made.reset()
    made.run()


@same_on()
@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("async_reset", [False, True])
def test_a_reset_of_nothing_but_a_read_port(sim: Bench, async_reset: bool, renamed: bool) -> None:
    m, top = Module(), Module()
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[9, 8])
    read = memory.read_port()
    domain: Any = ClockDomain("pixel" if renamed else "sync", async_reset=async_reset)
    top.domains += domain
    top.submodules.inner = DomainRenamer("pixel")(m) if renamed else m

    async def work(ctx: Any) -> None:
        for step in range(12):
            ctx.set(read.en, step % 5 != 3)
            ctx.set(read.addr, step % 2)
            ctx.set(domain.rst, step % 4 == 3)
            sim.seen.append((ctx.get(domain.rst), ctx.get(read.data)))
            await ctx.delay(1e-6)
            sim.seen.append(ctx.get(read.data))

    sim.run(top, work, clocks={domain: 1e-6})


@same_on()
def test_a_process_stands_for_a_part_of_the_circuit(sim: Bench) -> None:
    m, a = counter(step=5)
    b, out, last = Signal(8), Signal(8), Signal(8)
    m.d.sync += last.eq(out)
    m.d.comb += b.eq(a ^ 0x55)

    async def multiply(ctx: Any) -> None:
        async for value, other in ctx.changed(a, b):
            ctx.set(out, value * other & 0xFF)

    sim.run(m, sim.reads(10, out, last), processes=[multiply])


@same_on()
def test_prints_and_covers(sim: Bench) -> None:
    m, count = counter(signed(5), init=-3)
    wide = Signal(70, init=1 << 69)
    m.d.sync += wide.eq(wide >> 1)
    with m.If(count[0]):
        m.d.sync += Print(Format("count {:+d} {:#x}", count, wide))
    m.d.sync += Cover(count == 2, Format("two, {{{}}}", wide))
    sim.run(m, ticks(8))
    sim.seen[0] = re.sub(r":\d+:", "::", sim.seen[0])
    assert "count -3 0x200000000000000000\n" in sim.seen[0]


@same_on()
@pytest.mark.parametrize("kind", [Assert, Assume])
@pytest.mark.parametrize("domain", ["sync", "comb"])
def test_checks_fail_as_in_pysim(sim: Bench, kind: Any, domain: str) -> None:
    m, count = counter()
    m.d[domain] += kind(count < 4, Format("{} is too much", count))
    with pytest.raises(AssertionError, match="violated: 4 is too much") as failure:
        sim.run(m, sim.reads(99, count))
    sim.seen.append(str(failure.value))


@same_on()
def test_bits_of_a_word_may_depend_on_others_of_it(sim: Bench) -> None:
    m, given, chain = Module(), Signal(8), Signal(9)
    m.d.comb += chain.eq(Cat(1, ~(chain[:8] & given)))
    sim.run(m, sim.sets(given, (0, 0xFF, 0x5A, 0x81), chain), clocks=None)


def test_testbenches_that_never_began_are_kept_by_a_reset() -> None:
    """Python would warn of each coroutine that is dropped before it runs."""
    seen = []

    async def work(_: Any) -> None:
        seen.append("ran")

    made = Bench(EXECUTORS["engine"]).simulator(Module(), work, clocks=None)
    made.reset()
    made.reset()
    made.run()
    assert seen == ["ran"]
    made.reset()
    made.run()
    assert seen == ["ran", "ran"]


@pytest.mark.parametrize("mode", ["always", "check"])
def test_a_reset_is_refused_while_a_waveform_has_later_times(tmp_path: Path, mode: str) -> None:
    simulator = Bench(EXECUTORS[mode]).simulator(counter()[0])
    with simulator.write_vcd(str(tmp_path / "run.vcd")):
        simulator.reset()
        simulator.run_until(1e-5)
        message = "^reset: a waveform file is open, and its time cannot go back; close it first$"
        with pytest.raises(SimulationError, match=message):
            simulator.reset()
        simulator.run_until(2e-5)
    assert (tmp_path / "run.vcd").read_text().count("#") > 30
    simulator.reset()
    simulator.run_until(1e-5)


@pytest.mark.parametrize(("mode", "compiled"), [(Mode.ALWAYS, 20), (Mode.OFF, 0)])
def test_cycles_are_counted_where_they_ran(mode: Mode, compiled: int) -> None:
    kind: Any = type("Chosen", (cppsim.Engine,), {"mode": mode})
    made: Any = Simulator(counter()[0], engine=kind)
    made.add_clock(1e-6)
    for _ in range(2):
        made.run_until(10e-6)
        made.reset()
    assert made._engine.cycles() == (compiled, 20)


@same_on()
def test_waits_of_all_kinds_side_by_side(sim: Bench) -> None:
    m, count = counter()
    pair, late = Signal(2), Signal(8)
    m.domains.sync = sync = ClockDomain()
    m.domains.slow = ClockDomain(async_reset=True)
    m.d.slow += late.eq(late + count)
    m.d.comb += pair.eq(count[1:3])

    async def each(ctx: Any) -> None:
        async for values in ctx.tick("slow").sample(count, late):
            sim.seen.append(values)
            if values[-1] > 9:
                break

    async def reset(ctx: Any) -> None:
        await ctx.delay(3.1e-6)
        ctx.set(sync.rst, 1)
        await ctx.tick()
        ctx.set(sync.rst, 0)

    waits = (
        lambda ctx: ctx.tick("slow").sample(late).repeat(3),
        lambda ctx: ctx.tick().sample(pair).until(count == 3),
        lambda ctx: ctx.tick("slow").until(pair[1]),
        lambda ctx: ctx.changed(pair),
        lambda ctx: ctx.posedge(pair[1]).sample(count),
        lambda ctx: ctx.delay(4.7e-6).negedge(pair[0]),
    )
    clocks = {"sync": 1e-6, "slow": (2.3e-6, 0.2e-6)}
    works = [sim.awaits(2, wait, count, late) for wait in waits]
    sim.run(m, *works, each, reset, clocks=clocks)


@same_on()
def test_testbenches_begin_before_an_edge_at_time_0(sim: Bench) -> None:
    m, count = counter()
    work = sim.awaits(9, lambda ctx: ctx.tick().sample(count), count)
    made = sim.run(m, work, clocks={"sync": (1e-6, 0)})
    made.reset()
    made.run()
    assert sim.seen[0] == sim.seen[9] == (0, (True, False, 0), 1)


@same_on()
def test_all_bits_of_an_input_count_but_the_one_that_nothing_reads(sim: Bench) -> None:
    m, given, above, count = Module(), Signal(3), Signal(2), Signal(8)
    m.domains.made = made = ClockDomain(reset_less=True)
    m.d.comb += [above.eq(given[1:]), made.clk.eq(given[1])]
    m.d.made += count.eq(count + 1)
    sim.run(m, sim.sets(given, (3, 0, 7, 4, 3, 1, 3), above, count), clocks=None)


@same_on()
def test_a_combinational_message_is_printed_once(sim: Bench) -> None:
    m, count = counter()
    with m.If(count[1]):
        m.d.comb += Print(Format("{}", count))
    sim.run(m, sim.awaits(9, lambda ctx: ctx.delay(0.4e-6)))
    assert sim.seen[-1] == "2\n3\n"
