"""Waits for ticks, leaps over time, and the order of testbenches on compiled code, beside pysim."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Assert, ClockDomain, ClockSignal, Format, Module, Print, Signal, signed
from amaranth.lib import data, enum
from amaranth.sim import BrokenTrigger, DomainReset

from cppsim.running import CompiledState, Stops
from cppsim.testing import EXECUTORS, Bench, close, follow, same_on
from cppsim.tuning import Tuning
from support.fuzz import machine, write_once
from support.seeds import seeds
from support.small import interrupts


def test_all_stops_are_counted_and_each_of_a_period_is_sampled() -> None:
    stops, counts, sampled = Stops(), list[int](), list[int]()
    for number in range(1, 3 * Stops.period):
        if stops.advance():
            sampled.append(number)
        counts.append(stops.count)
    assert counts == [*range(1, 3 * Stops.period)]
    assert sampled == [Stops.period * k - 1 for k in (1, 2, 3)]


@pytest.mark.parametrize("seed", seeds(3, 10))
@same_on("engine", "always")
def test_random_testbenches(sim: Bench, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write_once(monkeypatch.setattr)
    follow(sim, machine(seed), seed=seed)


def counter(domain: ClockDomain | None = None) -> tuple[Module, Signal, Signal]:
    """Return a design whose counter counts ticks while its input is 1."""
    m, go, count = Module(), Signal(init=1), Signal(40)
    m.domains.sync = ClockDomain("sync") if domain is None else domain
    with m.If(go):
        m.d.sync += count.eq(count + 1)
    return m, go, count


def resetting(domain: ClockDomain, *delays: float) -> Any:
    """Return a testbench that inverts the domain's reset after each delay in microseconds."""

    async def work(ctx: Any) -> None:
        for delay in delays:
            await ctx.delay(delay * 1e-6)
            ctx.set(domain.rst, 1 - ctx.get(domain.rst))

    return work


@same_on("engine", "always")
def test_fast_forwarding_ends_at_the_limit(sim: Bench) -> None:
    m, _, count = counter()

    async def work(ctx: Any) -> None:
        tick = ctx.tick().sample(count)
        waits = (
            tick.sample(count[2:]).repeat(1000),
            tick.until(count == 2000),
            tick.until(count[11]),
        )
        for wait in waits:
            values = await wait
            sim.seen.append((sim.now, values, ctx.get(count)))

    simulator = sim.simulator(m, work)
    for deadline in (0.1e-6, 0.5e-6, 10.2e-6, 10.5e-6, 1234e-6, 1234e-6):
        simulator.run_until(deadline)
        sim.seen.append(sim.now)
    simulator.run()
    assert sim.seen[-1] == (2048_500_000_000, (2048,), 2049)


@same_on()
def test_several_clocks_and_delays_fast_forward_to_the_first(sim: Bench) -> None:
    m, counts = Module(), {name: Signal(16, name=name) for name in ("fast", "slow", "fall")}
    for name, count in counts.items():
        m.domains += ClockDomain(name, clk_edge="neg" if name == "fall" else "pos")
        m.d[name] += count.eq(count + counts["fast"] + 1)

    def waiter(name: str, amount: int) -> Any:
        return sim.awaits(4, lambda ctx: ctx.tick(name).repeat(amount), *counts.values())

    async def delays(ctx: Any) -> None:
        for number in range(9):
            await ctx.delay(number * 1.5e-6)
            sim.seen.append(("delay", sim.now, ctx.get(counts["fast"])))

    waiters = (waiter("slow", 7), waiter("fast", 21), waiter("fall", 3))
    clocks = {name: ((1 + k) * 1e-6, k * 0.5e-6) for k, name in enumerate(counts)}
    sim.run(m, *waiters, delays, clocks=clocks)
    sim.seen.append(sim.now)


@same_on()
def test_testbenches_run_in_the_order_in_which_they_were_added(sim: Bench) -> None:
    m, go, count = counter()

    async def first(ctx: Any) -> None:
        for number in range(20):
            await ctx.tick()
            ctx.set(go, number % 3)
            sim.seen.append("first")

    async def second(ctx: Any) -> None:
        async for _, _, value in ctx.tick().sample(count):
            sim.seen.append((value, ctx.get(count), ctx.get(go)))

    async def third(ctx: Any) -> None:
        await ctx.tick().repeat(3)
        with ctx.critical():
            await ctx.tick().repeat(40)
        sim.seen.append("third")

    sim.run(m, first, background=[second, third])
    sim.seen.append(sim.now)


@same_on()
def test_waits_beside_processes_and_changes(sim: Bench) -> None:
    m, go, count = counter()
    below, double = Signal(17), Signal(17)
    m.d.comb += below.eq(double + 1)

    async def doubling(ctx: Any) -> None:
        async for _, _, value in ctx.tick().sample(count):
            ctx.set(double, 2 * value)

    async def work(ctx: Any) -> None:
        for _ in range(3):
            ctx.set(go, 1)
            sim.seen.append(await ctx.tick().sample(below, double).repeat(10))
            sim.seen.append(await ctx.changed(count))
            sim.seen.append((ctx.get(below), sim.now))
            sim.seen.append(await ctx.posedge(count[1]).delay(5e-6).sample(below))
            ctx.set(go, 0)
            sim.seen.append(await ctx.posedge(count[1]).delay(5e-6).sample(below))

    sim.run(m, work, processes=[doubling])


@same_on("engine", "always")
def test_clocks_of_domains_that_the_design_does_not_use(sim: Bench) -> None:
    m, _, count = counter()
    m.domains.idle = idle = ClockDomain(clk_edge="neg")
    m.domains.same = same = ClockDomain(local=True)

    async def idles(ctx: Any) -> None:
        for _ in range(5):
            sim.seen.append((sim.now, await ctx.tick(idle).sample(count, idle.clk, same.clk)))
            await ctx.delay(0.3e-6)
            sim.seen.append((sim.now, *map(ctx.get, (idle.clk, same.clk, count))))
        with pytest.raises(DomainReset):
            await ctx.tick("idle").repeat(20)
        sim.seen.append(sim.now)

    async def ticks(ctx: Any) -> None:
        async for _, reset, *values in ctx.tick(same).sample(count, idle.rst):
            sim.seen.append((sim.now, reset, *values))
            ctx.set(idle.rst, values[0] >= 20)
            if values[0] == 25:
                break
        sim.seen.append((await ctx.edge(idle.clk, 0), sim.now))
        sim.seen.append((await ctx.changed(same.clk), sim.now))

    clocks = {"sync": 1e-6, same: 1e-6, idle: (1.7e-6, 0.4e-6)}
    made = sim.run(m, idles, ticks, clocks=clocks)
    sim.seen.append(sim.now)
    assert not sim.compiled or len(made._engine._processes) == 1, "compiled code runs all clocks"


@pytest.fixture(params=["python", "alone", "settled"])
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate conditions in Python, or in compiled code from the second time on.

    Programs are for one value alone, or for values of a settled design.
    """
    evaluations = 1 << 30 if request.param == "python" else 1
    tuning = Tuning(evaluations=evaluations)
    if request.param == "settled":
        tuning = replace(tuning, free_instructions=0)
    monkeypatch.setattr(CompiledState, "tuning", tuning)


def test_a_condition_of_registers_needs_no_settled_model() -> None:
    m, _, count = counter()
    (condition,) = EXECUTORS["always"](m)._engine._state.conditions(count == 3)
    assert not condition.settles


@pytest.mark.usefixtures("patience")
@same_on()
def test_conditions_of_one_structure_are_waited_for_side_by_side(sim: Bench) -> None:
    m, go, count = counter()
    m.d.comb += (above := Signal(40)).eq(count + 3)

    def waiting(step: int) -> Any:
        async def work(ctx: Any) -> None:
            number = step
            while number < 40:
                values = await ctx.tick().sample(above - number).until(count == number)
                sim.seen.append((step, sim.now, values))
                values = await ctx.tick().sample(count + step).until(go & (above >= number + 5))
                sim.seen.append((step, sim.now, values))
                number += 2 + step

        return work

    async def drive(ctx: Any) -> None:
        for number in range(12):
            await ctx.tick().until(count[:2] == number & 3)
            ctx.set(go, 0)
            await ctx.delay(2.2e-6)
            ctx.set(go, 1)

    sim.run(m, waiting(1), waiting(4), drive, processes=[waiting(2)])
    assert len(sim.seen) > 40


@pytest.mark.usefixtures("patience")
@same_on()
def test_waits_of_one_structure_are_made_before_they_begin(sim: Bench) -> None:
    m, _, count = counter()

    async def work(ctx: Any) -> None:
        for number in (10, 20, 30):
            low, high = (ctx.tick().sample(count + x) for x in (number, 2 * number))
            sim.seen += [await high, await low, await high]
            first, second = (ctx.tick().sample(count).until(count >= number + x) for x in (0, 3))
            sim.seen += [await second, await first]
            async for *_, value in low:
                sim.seen.append((value, await high.until(count >= value), ctx.get(count)))
                break

    sim.run(m, work)


@pytest.mark.usefixtures("patience")
@same_on()
@pytest.mark.parametrize("late", [False, True])
def test_a_condition_that_held_before_is_waited_for_again(sim: Bench, late: bool) -> None:
    m, go, count = counter(domain := ClockDomain("sync", async_reset=late))

    async def work(ctx: Any) -> None:
        for number in range(30):
            try:
                sim.seen.append(await ctx.tick().sample(count).until(count >= number & 7))
                await ctx.tick()
                sim.seen.append(await ctx.tick().sample(go).until(count[0] == number & 1))
            except DomainReset:
                sim.seen.append("reset")
            sim.seen.append((sim.now, ctx.get(count)))

    sim.run(m, work, resetting(domain, 3.1, 1, 7.4, 0.1))
    assert "reset" in sim.seen


@same_on()
@pytest.mark.parametrize("late", [False, True])
def test_a_reset_ends_repeated_waits(sim: Bench, late: bool) -> None:
    m, _, count = counter(domain := ClockDomain("sync", async_reset=late))

    six = sim.awaits(3, lambda ctx: ctx.tick().sample(count).repeat(6), count)
    until_5 = sim.awaits(3, lambda ctx: ctx.tick().sample(count).until(count[:3] == 5), count)
    sim.run(m, six, until_5, resetting(domain, 3.1, 1, 4.4, 0.1))
    assert "DomainReset" in {result for _, result, _ in sim.seen}


@same_on()
def test_a_reset_ends_a_wait_that_compiled_code_takes_over(sim: Bench) -> None:
    m, _, count = counter(domain := ClockDomain("sync"))
    work = sim.awaits(1, lambda ctx: ctx.tick().repeat(20), count)
    sim.run(m, work, resetting(domain, 7.2, 1))
    assert sim.seen == [(7_500_000_000, "DomainReset", 0)]


@same_on("engine", "always")  # check takes a broken trigger for a glitch
def test_a_late_reset_right_after_a_tick_breaks_repeated_waits(sim: Bench) -> None:
    m, _, count = counter(domain := ClockDomain("sync", async_reset=True))

    async def reset(ctx: Any) -> None:
        await ctx.tick().repeat(3)
        ctx.set(domain.rst, 1)

    sim.run(m, reset, sim.awaits(1, lambda ctx: ctx.tick().sample(count).repeat(6), count))
    assert sim.seen == [(2_500_000_000, "BrokenTrigger", 0)]


@same_on()
def test_prints_and_checks_are_reported_while_fast_forwarding(sim: Bench) -> None:
    m, _, count = counter()
    with m.If(count[:6] == 60):
        m.d.sync += Print(Format("count {}", count))
    m.d.sync += Assert(count < 500, Format("{} is too much", count))

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(300)
        print(sim.now)
        await ctx.tick().repeat(300)

    with pytest.raises(AssertionError, match="500 is too much"):
        sim.run(m, work)
    sim.seen.append(sim.now)
    assert "count 60\ncount 124\n" in sim.seen[0]


@same_on()
def test_a_message_beside_the_edge_of_a_derived_clock_does_not_delay_it(sim: Bench) -> None:
    m, _, count = counter()
    made, sampled = Signal(16), Signal(16)
    m.domains.made = ClockDomain(reset_less=True)
    m.domains.fall = ClockDomain(clk_edge="neg", reset_less=True)
    m.d.comb += ClockSignal("made").eq(count[0])
    m.d.made += made.eq(made + 1)
    m.d.fall += sampled.eq(sampled + made)
    with m.If(~count[0]):
        m.d.sync += Print(Format("count {}", count))

    work = sim.awaits(1, lambda ctx: ctx.tick().repeat(20), count, made, sampled)
    sim.run(m, work, clocks={"sync": 1e-6, "fall": 1e-6})


@same_on()
def test_events_between_two_rounds_of_async_for_are_missed_aloud(sim: Bench) -> None:
    m, _, count = counter()

    async def work(ctx: Any) -> None:
        try:
            async for values in ctx.tick().sample(count):
                sim.seen.append(values)
                if len(sim.seen) == 4:
                    await ctx.tick()
        except BrokenTrigger:
            sim.seen.append(sim.now)

    sim.run(m, work)
    assert sim.seen[-1] == 4_500_000_000


@same_on()
def test_what_amaranth_refuses_is_refused_with_its_words(sim: Bench) -> None:
    m, _, count = counter(domain := ClockDomain("sync"))
    view = Signal(data.StructLayout({"low": 1}))

    async def work(ctx: Any) -> None:
        for ask in (
            lambda: ctx.tick().repeat(0),
            lambda: ctx.tick().repeat(1.5),
            lambda: ctx.tick().until(view),
            lambda: ctx.tick().until("a word"),
            lambda: ctx.tick().sample("a word"),
            lambda: ctx.tick("comb"),
            lambda: ctx.tick("nowhere"),
            lambda: ctx.tick(domain, context=m),
            lambda: ctx.set(count, "a word"),
            lambda: ctx.get("a word"),
            lambda: ctx.get(ClockSignal()),
            lambda: ctx.get(count + ClockSignal()),
            lambda: ctx.delay(-1),
        ):
            with pytest.raises((NameError, TypeError, ValueError)) as raised:
                await ask()
            sim.seen.append((raised.typename, str(raised.value)))

    sim.run(m, work)
    assert len(sim.seen) == 13


class Kind(enum.Enum, shape=2):
    LOW = 0
    HIGH = 2


@same_on()
def test_structures_and_enumerations_are_sampled_as_such(sim: Bench) -> None:
    layout = data.StructLayout({"kind": Kind, "number": signed(70)})
    m, record = Module(), Signal(layout)
    m.d.sync += [record.kind.eq(Kind.HIGH), record.number.eq(record.number - 1)]

    async def work(ctx: Any) -> None:
        for _ in range(3):
            _, _, whole, kind = await ctx.tick().sample(record, record.kind)
            sim.seen.append((whole.kind, whole.number, kind, ctx.get(record.number)))
        sim.seen.append(await ctx.tick().sample(record.number).repeat(4))
        ctx.set(record, {"kind": Kind.LOW, "number": -5})
        sim.seen.append(ctx.get(record).number)

    sim.run(m, work)
    assert sim.seen[2] == (Kind.HIGH, -2, Kind.HIGH, -3)


@same_on()
def test_times_beyond_what_fits_a_word(sim: Bench) -> None:
    m, _, count = counter()

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(150)
        await ctx.delay(30_000)
        sim.seen.append((sim.now, ctx.get(count)))
        await ctx.tick().repeat(3)
        sim.seen.append((sim.now, ctx.get(count)))

    sim.simulator(m, work, clocks=200).run_until(100_000)
    sim.seen.append(sim.now)
    assert sim.seen[-1] > 1 << 64


def test_an_interrupted_fast_forward_goes_on_where_it_was() -> None:
    m, _, count = counter()

    async def work(ctx: Any) -> None:
        await ctx.tick().until(count[39])

    simulator, seen = Bench(EXECUTORS["always"]).simulator(m, work, clocks=2e-9), []
    with interrupts() as interrupt_after:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012, the signal may come at once
                interrupt_after(0.03)
                simulator.run()
            # What is due now has yet to happen: edges come at odd nanoseconds, rising ones first.
            edges = simulator._engine.now // 1_000_000 - 1
            seen.append((edges + 1) // 2 - simulator._engine.get_value(count))
    assert seen == [0, 0, 0]
    ticks = simulator._engine.now // 2_000_000 + 1000
    simulator.run_until(ticks * 2e-9)
    assert simulator._engine.get_value(count) == ticks
    close(simulator)
