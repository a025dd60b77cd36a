"""Processes that set signals at an edge, and waits for changes of signals, beside pysim."""

from typing import Any

import pytest
from amaranth.hdl import Assert, ClockDomain, ClockSignal, Const, DriverConflict, Module, Signal
from amaranth.lib.memory import Memory
from amaranth.sim import BrokenTrigger

from cppsim.running.state import CompiledState
from support.amaranth import Simulator
from support.engines import Bench, fast_forwarding, on_engine, same_on
from support.random_processes import follow_processes, random_clocked, random_counters
from support.random_testbenches import close
from support.seeds import seeds

_DESIGNS = [random_counters, random_clocked]


@pytest.mark.parametrize("random_design", _DESIGNS, ids=lambda x: x.__name__)
@pytest.mark.parametrize("seed", seeds(5, 25))
def test_random_processes_beside_registers(seed: int, random_design: Any) -> None:
    design = random_design(seed)
    for testbenches in (False, True):
        try:
            expected = follow_processes(Simulator, design, seed=seed, testbenches=testbenches)
        except TypeError:
            assert testbenches  # a tick of Amaranth's simulator has returned None, at 1 % of seeds
            continue
        for make in (on_engine, fast_forwarding):
            found = follow_processes(make, design, seed=seed, testbenches=testbenches)
            assert found == expected, (seed, testbenches, make)


# --- waits of compiled code -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["process", "testbench"])
@pytest.mark.parametrize("awaited", ["register", "logic", "clock", "made"])
def test_python_runs_only_at_changes_that_end_a_wait(
    kind: str, awaited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, count, above = Module(), Signal(12), Signal(12)
    m.domains += (sync := ClockDomain("sync")), (made := ClockDomain("made", reset_less=True))
    m.d.sync += count.eq(count + 1)
    m.d.comb += [above.eq(count + 3), made.clk.eq(count[9])]
    m.d.made += Signal(4).eq(count)
    signals = {"register": count[9], "logic": above[9], "clock": sync.clk, "made": made.clk}
    wakes, commits = list[int](), list[int]()
    commit = CompiledState.commit

    def counted(state: CompiledState, changed: Any = None) -> bool:
        commits.append(simulator._engine.now)
        return commit(state, changed)

    async def watch(ctx: Any) -> None:
        while True:
            if awaited == "clock":
                await ctx.negedge(signals[awaited]).delay(250e-6)
                await ctx.delay(300e-6)
            elif awaited == "made" and kind == "testbench":
                await ctx.tick("made")
            else:
                await ctx.posedge(signals[awaited])
            wakes.append(simulator._engine.now)

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(3000)

    simulator = fast_forwarding(m)
    simulator.add_clock(1e-6)
    if kind == "process":
        simulator.add_process(watch)
    else:
        simulator.add_testbench(watch, background=True)
    simulator.add_testbench(work)
    monkeypatch.setattr(CompiledState, "commit", counted)
    simulator.run()
    close(simulator)
    if simulator._engine.compiled:
        assert len(wakes) >= 3
        assert len(commits) <= 5 * len(wakes) + 10


def test_waits_that_have_ended_leave_nothing_behind() -> None:
    m, count, still = Module(), Signal(8), Signal(8)
    m.d.sync += [count.eq(count + 1), still.eq(still)]
    left = list[int]()

    async def work(ctx: Any) -> None:
        for _ in range(20):
            await ctx.changed(count, still)
            state = simulator._engine.state
            left.append(sum(len(slot.wakers) for slot in state.slots))

    simulator = on_engine(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(work)
    simulator.run()
    assert not simulator._engine.compiled or left == [0] * 20


@same_on(on_engine, fast_forwarding)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_constant_changes_once_from_its_initial_value(sim: Bench, depth: int) -> None:
    m, flag, count = Module(), Signal(3, init=5), Signal(8)
    constant = Const(6, 3)
    for _ in range(depth - 1):
        m.d.comb += (copy := Signal(3, init=6)).eq(constant)
        constant = copy
    m.d.comb += flag.eq(constant)
    m.d.sync += count.eq(count + 1)

    async def watch(ctx: Any) -> None:
        sim.seen.append((sim.now, await ctx.changed(flag).sample(count)))
        sim.seen.append((sim.now, await ctx.changed(flag).posedge(flag[0]).delay(3e-6)))

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(5)

    sim.run(m, work, processes=[watch])
    assert sim.seen[0] == (0, (6, 0))


@same_on(on_engine, fast_forwarding)
def test_a_second_change_in_a_time_step_breaks_a_wait_for_two(sim: Bench) -> None:
    m, count, above, third = Module(), Signal(8), Signal(8), Signal(8)
    m.d.sync += count.eq(count + 1)
    m.d.comb += [above.eq(count + 1), third.eq(above + 1)]

    async def watch(ctx: Any) -> None:
        for wait in (ctx.changed(count, third), ctx.changed(above).posedge(third[1])):
            for _ in range(4):
                try:
                    sim.seen.append((sim.now, await wait))
                except BrokenTrigger:
                    sim.seen.append((sim.now, "broken"))

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(20)

    made = sim.simulator(m, work)
    made.add_testbench(watch, background=True)
    made.run()
    close(made)
    assert any("broken" in entry for entry in sim.seen)


# --- processes in place of registers --------------------------------------------------------------


@same_on(on_engine, fast_forwarding)
@pytest.mark.parametrize("watched", ["clock", "edge", "check", "change"])
def test_a_process_in_place_of_a_register_makes_no_glitch(sim: Bench, watched: str) -> None:
    m, first, second, odd, edges = Module(), Signal(), Signal(), Signal(), Signal(8)
    m.domains += ClockDomain("sync"), ClockDomain("odd", reset_less=True)
    m.d.sync += first.eq(~first)
    m.d.comb += [odd.eq(first ^ second), ClockSignal("odd").eq(odd)]
    m.d.odd += edges.eq(edges + 1)
    if watched == "check":
        m.d.comb += Assert(~odd)

    async def register(ctx: Any) -> None:
        async for *_, value in ctx.tick().sample(second):
            ctx.set(second, 1 - value)

    async def watch(ctx: Any) -> None:
        async for values in ctx.posedge(odd) if watched == "edge" else ctx.changed(odd, second):
            sim.seen.append(values)

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(6)
        sim.seen.append((ctx.get(edges), ctx.get(first), ctx.get(second)))

    sim.run(m, work, processes=[register, watch] if watched in ("edge", "change") else [register])
    assert sim.seen[-1][0] == 0


@same_on(on_engine, fast_forwarding)
def test_a_sum_of_a_register_and_a_signal_of_a_process_changes_once(sim: Bench) -> None:
    m, count, given, total = Module(), Signal(8), Signal(8), Signal(8)
    m.d.sync += count.eq(count + 1)
    m.d.comb += total.eq(count + given)

    async def register(ctx: Any) -> None:
        async for *_, value in ctx.tick().sample(count):
            ctx.set(given, 3 * value)

    async def watch(ctx: Any) -> None:
        async for values in ctx.changed(total):
            sim.seen.append((sim.now, *values))

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(5)

    sim.run(m, work, processes=[register, watch])
    assert [total for _, total in sim.seen] == [0, 1, 5, 9, 13, 17]


@same_on(on_engine, fast_forwarding)
def test_rows_that_a_process_writes_at_an_edge_are_read_with_registers(sim: Bench) -> None:
    m, address = Module(), Signal(2)
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[1, 2, 3, 4])
    port = memory.read_port(domain="comb")
    m.d.sync += address.eq(address + 1)
    m.d.comb += port.addr.eq(address)

    async def write(ctx: Any) -> None:
        async for *_, row in ctx.tick().sample(address):
            ctx.set(memory.data[row], 9)

    async def work(ctx: Any) -> None:
        for _ in range(6):
            await ctx.tick()
            sim.seen.append((ctx.get(address), ctx.get(port.data)))

    sim.run(m, work, processes=[write])


# --- samples at a change --------------------------------------------------------------------------


def _shifter() -> tuple[Module, dict[str, Any]]:
    """Return a sender of bits: a clock of two cycles, and its data in logic of a register."""
    m, clock, shift = Module(), Signal(), Signal(8, init=0b1011_0010)
    data, inverted, copy = Signal(), Signal(), Signal(8)
    m.d.sync += clock.eq(~clock)
    with m.If(~clock):
        m.d.sync += shift.eq(shift.rotate_left(1))
    m.d.comb += [data.eq(shift[-1]), inverted.eq(~data), copy.eq(shift)]
    return m, {"clock": clock, "shift": shift, "data": data, "inverted": inverted, "copy": copy}


@pytest.mark.parametrize("kind", ["process", "testbench", "one-shot"])
@pytest.mark.parametrize(
    "wait",
    [
        lambda ctx, x: ctx.posedge(x["clock"]).sample(x["data"], x["inverted"], x["shift"]),
        lambda ctx, x: ctx.negedge(x["clock"]).sample(x["copy"] ^ x["shift"]),
        lambda ctx, x: ctx.changed(x["shift"]).sample(x["copy"], x["data"]),
        lambda ctx, x: ctx.changed(x["data"]).sample(x["shift"], x["copy"]),
        lambda ctx, x: ctx.changed(x["shift"], x["copy"]),
        lambda ctx, x: ctx.edge(x["shift"][3], 1).edge(x["copy"][3], 0),
    ],
)
def test_samples_at_a_change_are_of_the_same_delta_cycle(kind: str, wait: Any) -> None:
    @same_on(on_engine, fast_forwarding)
    def compare(sim: Bench) -> None:
        m, signals = _shifter()

        async def watch(ctx: Any) -> None:
            try:
                if kind == "one-shot":
                    while True:
                        sim.seen.append((sim.now, *(await wait(ctx, signals))))
                async for values in wait(ctx, signals):
                    sim.seen.append((sim.now, *values))
            except BrokenTrigger:
                sim.seen.append((sim.now, "broken"))

        async def work(ctx: Any) -> None:
            await ctx.tick().repeat(20)

        made = sim.simulator(m, work, processes=[] if kind == "testbench" else [watch])
        if kind == "testbench":
            made.add_testbench(watch, background=True)
        made.run()
        close(made)

    compare()


@same_on(on_engine, fast_forwarding)
def test_an_alias_of_an_input_changes_after_it(sim: Bench) -> None:
    m, given, alias, above = Module(), Signal(8), Signal(8), Signal(8)
    m.d.comb += [alias.eq(given), above.eq(given + 1)]

    async def watch(ctx: Any) -> None:
        async for values in ctx.changed(given).sample(alias, above):
            sim.seen.append(values)

    async def watch_alias(ctx: Any) -> None:
        async for values in ctx.changed(alias).sample(given, above):
            sim.seen.append(("alias", *values))

    async def work(ctx: Any) -> None:
        for value in (4, 9, 9, 2):
            await ctx.delay(1e-6)
            ctx.set(given, value)
            sim.seen.append((ctx.get(alias), ctx.get(above)))

    sim.run(m, work, processes=[watch, watch_alias], clock=None)
    # The order of processes at power-on is any.
    sim.seen[:] = [*sorted(sim.seen[:3], key=str), *sim.seen[3:]]


@same_on(on_engine, fast_forwarding)
def test_the_first_pass_of_a_process_sees_logic_before_it_is_evaluated(sim: Bench) -> None:
    m, given, above = Module(), Signal(8), Signal(8)
    m.d.comb += above.eq(given + 100)
    logs: dict[str, list[Any]] = {"given": [], "above": [], "once": []}

    async def watch(ctx: Any) -> None:
        async for values in ctx.changed(given).sample(above):
            logs["given"].append(values)

    async def watch_above(ctx: Any) -> None:
        async for values in ctx.changed(above).sample(given):
            logs["above"].append(values)

    async def watch_once(ctx: Any) -> None:
        logs["once"].append(await ctx.changed(above))

    async def work(ctx: Any) -> None:
        await ctx.delay(1e-6)
        ctx.set(given, 3)

    sim.run(m, work, processes=[watch, watch_above, watch_once], clock=None)
    sim.seen.append(logs)
    assert logs["given"] == [(0, 0), (3, 100)]
    assert logs["above"] == [(0, 0), (100, 0), (103, 3)]


# --- clocks and drivers ---------------------------------------------------------------------------


@same_on(on_engine, fast_forwarding)
@pytest.mark.parametrize("form", ["alias", "logic", "register"])
@pytest.mark.parametrize("edge", ["pos", "neg"])
def test_a_clock_starts_at_its_own_initial_level(sim: Bench, form: str, edge: str) -> None:
    m, half, count = Module(), Signal(init=1), Signal(8)
    m.domains += ClockDomain("sync"), (made := ClockDomain("half", clk_edge=edge, reset_less=True))
    if form == "register":
        m.d.sync += made.clk.eq(~made.clk)
    else:
        m.d.sync += half.eq(~half)
        m.d.comb += made.clk.eq(half if form == "alias" else half & 1 == 1)
    m.d.half += count.eq(count + 1)

    async def work(ctx: Any) -> None:
        for _ in range(5):
            sim.seen.append(ctx.get(count))
            await ctx.tick()

    sim.run(m, work)


@same_on(on_engine, fast_forwarding)
def test_a_signal_of_logic_is_refused_each_time(sim: Bench) -> None:
    m, given, alias, one, above = Module(), Signal(4), Signal(4), Signal(4), Signal(4)
    m.d.comb += [alias.eq(given), one.eq(1), above.eq(given + 1)]

    async def work(ctx: Any) -> None:
        for value in (7, 8, 9):
            for signal in (alias, one, above):
                with pytest.raises(DriverConflict):
                    ctx.set(signal, value)
        sim.seen.append([ctx.get(x) for x in (given, alias, one, above)])

    sim.run(m, work, clock=None)
    assert sim.seen == [[0, 0, 1, 1]]
