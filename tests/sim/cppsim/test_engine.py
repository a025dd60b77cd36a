"""Testbenches, processes, clocks, memories and waveforms on the compiled engine, beside pysim."""

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
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
    DriverConflict,
    Format,
    Instance,
    Module,
    Print,
    ResetSignal,
    Signal,
    signed,
)
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.fifo import AsyncFIFO, SyncFIFOBuffered
from amaranth.lib.memory import Memory

import cppsim
from support.sim.amaranth import Simulator
from support.sim.switching import expect_same_wherever_switched

Testbench = Callable[[Any], Any]


def simulator(module: Any, engine: Any) -> Any:
    made = Simulator(module, engine=engine)
    assert not getattr(made._engine, "reason", "")
    return made


def expect_same(run: Callable[[Any], list[Any]]) -> list[Any]:
    """Return the results of ``run``; expect the same on both engines, and after any switch."""
    slow, fast = run("pysim"), run(cppsim.Engine)
    assert fast == slow
    assert slow
    expect_same_wherever_switched(run, slow)
    return fast


def test_a_tick_samples_what_was_before_the_edge() -> None:
    def run(engine: Any) -> list[Any]:
        m, count, above = Module(), Signal(8), Signal(9)
        m.d.sync += count.eq(count + 3)
        m.d.comb += above.eq(count + 1)
        made, seen = simulator(m, engine), []
        made.add_clock(1e-6)

        async def work(ctx: Any) -> None:
            for _ in range(5):
                seen.append(await ctx.tick().sample(count, above))
                seen.append((ctx.get(count), ctx.get(above)))

        made.add_testbench(work)
        made.run()
        return seen

    assert expect_same(run)[2:4] == [(True, False, 3, 4), (6, 7)]


def test_clocks_that_the_design_makes() -> None:
    def run(engine: Any) -> list[Any]:
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.half = ClockDomain(reset_less=True)
        m.domains.gated = ClockDomain(reset_less=True)
        m.domains.other = other = ClockDomain(reset_less=True)
        go, half = Signal(), Signal()
        counts = {name: Signal(8, name=name) for name in ("sync", "half", "gated", "other")}
        for name, count in counts.items():
            m.d[name] += count.eq(count + 1)
        m.d.sync += half.eq(~half)
        m.d.comb += [
            ClockSignal("half").eq(half),
            ClockSignal("gated").eq(ClockSignal("sync") & go),
            other.clk.eq(~ClockSignal("sync")),
        ]
        made, seen = simulator(m, engine), []
        made.add_clock(1e-6, domain="sync")

        async def work(ctx: Any) -> None:
            for cycle in range(20):
                ctx.set(go, cycle % 3 == 0)
                sampled = await ctx.tick().sample(*counts.values())
                seen.append((sampled, [ctx.get(x) for x in counts.values()]))

        async def watch(ctx: Any) -> None:
            while True:
                seen.append(await ctx.tick("half").sample(counts["half"]))

        made.add_process(watch)
        made.add_testbench(work)
        made.run()
        return seen

    expect_same(run)


def test_logic_that_reads_a_clock_shows_at_its_edge_what_was_before() -> None:
    def run(engine: Any) -> list[Any]:
        m, kept, level = Module(), Signal(2), Signal(2)
        m.d.comb += level.eq(2 - ClockSignal())
        m.d.sync += kept.eq(level)
        made, seen = simulator(m, engine), []
        made.add_clock(1e-6)

        async def work(ctx: Any) -> None:
            for _ in range(6):
                await ctx.delay(0.4e-6)
                seen.append((ctx.get(kept), ctx.get(level)))

        made.add_testbench(work)
        made.run()
        return seen

    expect_same(run)


def test_resets_that_come_at_any_time() -> None:
    def run(engine: Any) -> list[Any]:
        m, stop, count, held = Module(), Signal(), Signal(8), Signal()
        m.domains.sync = ClockDomain(async_reset=True)
        m.d.comb += held.eq(ResetSignal())
        m.submodules.synchronizer = ResetSynchronizer(stop, domain="sync")
        m.d.sync += count.eq(count + 1)
        made, seen = simulator(m, engine), []
        made.add_clock(1e-6)

        async def work(ctx: Any) -> None:
            for step in range(60):
                await ctx.delay(0.37e-6)
                ctx.set(stop, step % 17 in (3, 4, 9))
                seen.append((ctx.get(count), ctx.get(held)))

        made.add_testbench(work)
        made.run()
        return seen

    expect_same(run)


@pytest.mark.parametrize("kind", [SyncFIFOBuffered, AsyncFIFO])
def test_queues(kind: type) -> None:
    def run(engine: Any) -> list[Any]:
        m = Module()
        m.submodules.fifo = fifo = kind(width=13, depth=8)
        made, seen = simulator(m, engine), []
        writing, reading = ("sync",) * 2 if kind is SyncFIFOBuffered else ("write", "read")
        for number, domain in enumerate({writing: 0, reading: 0}):
            made.add_clock((10 + 3 * number) * 1e-7, domain=domain)

        async def write(ctx: Any) -> None:
            for value in range(40):
                ctx.set(fifo.w_data, value * 201 & 0x1FFF)
                ctx.set(fifo.w_en, value % 5 != 4)
                await ctx.tick(writing)

        async def read(ctx: Any) -> None:
            for cycle in range(60):
                ctx.set(fifo.r_en, cycle % 3 != 0)
                await ctx.tick(reading)
                seen.append((ctx.get(fifo.r_rdy), ctx.get(fifo.r_data), ctx.get(fifo.w_rdy)))

        made.add_testbench(write)
        made.add_testbench(read)
        made.run()
        return seen

    expect_same(run)


def test_rows_of_memories_are_read_and_written() -> None:
    def run(engine: Any) -> list[Any]:
        m = Module()
        m.submodules.memory = memory = Memory(shape=signed(70), depth=6, init=[-1, 2, -3])
        port, read = memory.write_port(), memory.read_port(domain="comb")
        made, seen = simulator(m, engine), []
        made.add_clock(1e-6)

        async def work(ctx: Any) -> None:
            ctx.set(port.en, 1)
            for step in range(12):
                ctx.set(port.addr, step % 8)
                ctx.set(port.data, (-1) ** step << step * 5)
                ctx.set(read.addr, step * 3 % 8)
                ctx.set(memory.data[step % 5], -step)
                seen.append(ctx.get(read.data))
                await ctx.tick()
                seen.append([ctx.get(memory.data[row]) for row in range(6)])

        made.add_testbench(work)
        made.run()
        made.reset()
        made.run()
        return seen

    expect_same(run)


def test_a_process_stands_for_a_part_of_the_circuit() -> None:
    def run(engine: Any) -> list[Any]:
        m, a, b, out, last = Module(), Signal(8), Signal(8), Signal(8), Signal(8)
        m.d.sync += [last.eq(out), a.eq(a + 5)]
        m.d.comb += b.eq(a ^ 0x55)
        made, seen = simulator(m, engine), []
        made.add_clock(1e-6)

        async def multiply(ctx: Any) -> None:
            async for value, other in ctx.changed(a, b):
                ctx.set(out, value * other & 0xFF)

        async def work(ctx: Any) -> None:
            for _ in range(10):
                await ctx.tick()
                seen.append((ctx.get(out), ctx.get(last)))

        made.add_process(multiply)
        made.add_testbench(work)
        made.run()
        return seen

    expect_same(run)


def test_prints_and_covers() -> None:
    def run(engine: Any) -> list[Any]:
        m, count, wide = Module(), Signal(signed(5), init=-3), Signal(70, init=1 << 69)
        m.d.sync += [count.eq(count + 1), wide.eq(wide >> 1)]
        with m.If(count[0]):
            m.d.sync += Print(Format("count {:+d} {:#x}", count, wide))
        m.d.sync += Cover(count == 2, Format("two, {{{}}}", wide))
        made, output = simulator(m, engine), StringIO()
        made.add_clock(1e-6)

        async def work(ctx: Any) -> None:
            await ctx.tick().repeat(8)

        made.add_testbench(work)
        with redirect_stdout(output):
            made.run()
        return [re.sub(r":\d+:", "::", output.getvalue())]

    (text,) = expect_same(run)
    assert "count -3 0x200000000000000000\n" in text


@pytest.mark.parametrize("kind", [Assert, Assume])
@pytest.mark.parametrize("domain", ["sync", "comb"])
def test_checks_fail_as_in_pysim(kind: Any, domain: str) -> None:
    def run(engine: Any) -> list[Any]:
        m, count = Module(), Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d[domain] += kind(count < 4, Format("{} is too much", count))
        made, seen = simulator(m, engine), []
        made.add_clock(1e-6)

        async def work(ctx: Any) -> None:
            while True:
                await ctx.tick()
                seen.append(ctx.get(count))

        made.add_testbench(work)
        with pytest.raises(AssertionError) as failure:
            made.run()
        return [*seen, str(failure.value)]

    assert "violated: 4 is too much" in expect_same(run)[-1]


def test_waveforms_hold_the_same_values(tmp_path: Path) -> None:
    def run(engine: Any) -> list[Any]:
        m, count, above = Module(), Signal(8), Signal(9)
        m.d.sync += count.eq(count + 3)
        m.d.comb += above.eq(count + 1)
        made = simulator(m, engine)
        made.add_clock(1e-6)

        async def work(ctx: Any) -> None:
            await ctx.tick().repeat(5)

        made.add_testbench(work)
        path = tmp_path / "wave.vcd"
        with made.write_vcd(str(path)):
            made.run()
        changes, now, shown = set[tuple[str, str]](), "", dict[str, str]()
        for line in path.read_text().splitlines():
            now = line if line.startswith("#") else now
            code = line[-1]
            if now and line[0] in "b01" and shown.get(code) != line:
                shown[code] = line
                changes.add((now, line))
        return sorted(changes)

    expect_same(run)


def loop() -> Module:
    m, a, b = Module(), Signal(), Signal()
    m.d.comb += [a.eq(b), b.eq(~(a & b))]
    return m


def foreign() -> Module:
    m = Module()
    m.submodules.cell = Instance("CELL", o_o=Signal())
    return m


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (loop, "Combinational cycle"),
        (foreign, "Instance is not known here: 'CELL' at "),
    ],
)
def test_what_cannot_be_compiled_is_left_to_pysim(make: Callable[[], Module], reason: str) -> None:
    with pytest.warns(cppsim.FallbackWarning, match=f"left to Amaranth's simulator: {reason}"):
        made = Simulator(make(), engine=cppsim.Engine)
    assert reason in made._engine.reason


def test_bits_of_a_word_may_depend_on_others_of_it() -> None:
    def run(engine: Any) -> list[Any]:
        m, given, chain = Module(), Signal(8), Signal(9)
        m.d.comb += chain.eq(Cat(1, ~(chain[:8] & given)))
        made, seen = simulator(m, engine), []

        async def work(ctx: Any) -> None:
            for value in (0, 0xFF, 0x5A, 0x81):
                ctx.set(given, value)
                seen.append(ctx.get(chain))

        made.add_testbench(work)
        made.run()
        return seen

    expect_same(run)


def test_combinational_signals_cannot_be_set() -> None:
    m, a, b = Module(), Signal(), Signal()
    m.d.comb += b.eq(a)

    async def work(ctx: Any) -> None:
        with pytest.raises(DriverConflict):
            ctx.set(b, 1)

    made = simulator(m, cppsim.Engine)
    made.add_testbench(work)
    made.run()


def test_a_design_is_written_the_same_each_time() -> None:
    from amaranth.hdl import Fragment

    from cppsim.cpp.simulation import write_simulation
    from cppsim.netlist.lowering import lower
    from support.sim.random_designs import random_machine

    def text() -> str:
        prepared = Fragment.get(random_machine(7).module, None).prepare()
        return write_simulation(lower(prepared)).text

    assert text() == text()


def test_testbenches_that_never_began_are_kept_by_a_reset() -> None:
    """Python would warn of each coroutine that is dropped before it runs."""
    made, seen = simulator(Module(), cppsim.Engine), list[str]()

    async def work(_: Any) -> None:
        seen.append("ran")

    made.add_testbench(work)
    made.reset()
    made.reset()
    made.run()
    assert seen == ["ran"]
    made.reset()
    made.run()
    assert seen == ["ran", "ran"]
