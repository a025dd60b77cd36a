"""A simulation that changes over to compiled code shows the same as one that does not."""

from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import cache, partial
from io import StringIO
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Format, Fragment, Module, Print, Signal
from amaranth.sim import DomainReset

import cppsim
from cppsim import simulator
from cppsim.designs import Written, built
from cppsim.mode import Mode
from support.amaranth import Simulator
from support.engines import Bench, same_on
from support.random_designs import trace
from support.random_testbenches import follow
from support.seeds import seeds
from support.switching import Switching, expect_same_wherever_switched
from support.written_once import machine


@cache
def written_machine(seed: int) -> Written:
    return built(Fragment.get(machine(seed).module, None).prepare())


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_machines_may_change_over_at_any_advance(seed: int) -> None:
    design, ready = machine(seed), written_machine(seed)

    def run(engine: Any) -> list[list[int]]:
        return trace(design, engine, steps=14, seed=seed)

    assert expect_same_wherever_switched(run, run("pysim"), ready) > 14


@pytest.mark.parametrize("seed", seeds(2, 5))
def test_random_testbenches_hear_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    design, ready = machine(seed), written_machine(seed)
    expected = follow(Simulator, design, seed=seed)
    for number in (1, 8, 30):
        switching = Switching(number, ready)
        monkeypatch.setitem(simulator._ENGINES, Mode.AUTO, switching.engine)
        made = partial(cppsim.Simulator, mode=Mode.AUTO)
        assert follow(made, design, seed=seed) == expected, (seed, number)
        assert switching.made[0].compiled, (seed, number)


@pytest.mark.parametrize(("advances", "compiled"), [(0, 20), (10, 15), (1000, 0)])
def test_cycles_are_counted_where_they_ran(advances: int, compiled: int) -> None:
    m, count = Module(), Signal(8)
    m.d.sync += count.eq(count + 1)
    made: Any = Simulator(m, engine=Switching(advances).engine)
    made.add_clock(1e-6)
    for _ in range(2):
        # Compiled code runs all of it after a reset.
        made.run_until(10e-6)
        made.reset()
    assert made._engine.cycles() == (compiled, 20)


@same_on(advances=5)
def test_waits_of_all_kinds_go_on(sim: Bench) -> None:
    m, count, pair = Module(), Signal(8), Signal(2)
    m.domains.sync = sync = ClockDomain()
    m.domains.slow = ClockDomain(async_reset=True)
    late = Signal(8)
    m.d.sync += count.eq(count + 1)
    m.d.slow += late.eq(late + count)
    m.d.comb += pair.eq(count[1:3])

    def testbench(wait: Callable[[Any], Any]) -> Any:
        async def work(ctx: Any) -> None:
            for _ in range(2):
                with suppress(DomainReset):
                    sim.seen.append(await wait(ctx))
                sim.seen.append((ctx.get(count), ctx.get(late)))

        return work

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
    made = sim.simulator(m, *map(testbench, waits), each, reset)
    made.add_clock(2.3e-6, phase=0.2e-6, domain="slow")
    made.run()


@same_on(advances=5)
def test_testbenches_begin_before_an_edge_at_time_0(sim: Bench) -> None:
    m, count = Module(), Signal(8)
    m.d.sync += count.eq(count + 1)

    async def work(ctx: Any) -> None:
        sim.seen.extend([(*await ctx.tick().sample(count), ctx.get(count)) for _ in range(9)])

    made = sim.simulator(m, work, clock=None)
    made.add_clock(1e-6, phase=0)
    made.run()
    made.reset()
    made.run()
    assert sim.seen[0] == (True, False, 0, 1)


@same_on(advances=5)
def test_signals_of_testbenches_alone_go_on(sim: Bench) -> None:
    m, count, request, answer = Module(), Signal(8), Signal(8), Signal(8)
    m.d.sync += count.eq(count + 1)

    async def serve(ctx: Any) -> None:
        async for (value,) in ctx.changed(request):
            ctx.set(answer, value * 3 & 0xFF)

    async def work(ctx: Any) -> None:
        for step in range(6):
            ctx.set(request, step + 7)
            sim.seen.append((ctx.get(answer), ctx.get(request)))
            sim.seen.append(await ctx.tick().sample(count, answer))

    sim.run(m, work, processes=[serve])


@same_on(advances=5)
def test_what_was_printed_is_not_printed_again(sim: Bench) -> None:
    m, count = Module(), Signal(8)
    m.d.sync += count.eq(count + 1)
    with m.If(count[1]):
        m.d.comb += Print(Format("{}", count))

    async def work(ctx: Any) -> None:
        for _ in range(9):
            await ctx.delay(0.4e-6)

    with redirect_stdout(StringIO()) as output:
        sim.run(m, work)
    sim.seen.append(output.getvalue())


@same_on(advances=5)
def test_a_simulation_that_has_changed_over_starts_again(sim: Bench) -> None:
    m, count, above = Module(), Signal(8, init=3), Signal(8)
    m.d.sync += count.eq(count + 1)
    m.d.comb += above.eq(count + 1)

    async def work(ctx: Any) -> None:
        sim.seen.extend([await ctx.tick().sample(count, above) for _ in range(3)])

    made = sim.run(m, work)
    made.reset()
    made.run()
    assert sim.seen[3:] == [(True, False, 3 + k, 4 + k) for k in range(3)]
