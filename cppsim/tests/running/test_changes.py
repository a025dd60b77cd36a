"""Processes at an edge and waits for changes, beside pysim; the depths of assignments."""

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import (
    Assert,
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    DriverConflict,
    Fragment,
    Module,
    Signal,
)
from amaranth.lib.memory import Memory

from cppsim.running import CompiledState, depths
from cppsim.testing import EXECUTORS, Bench, random_clocked, random_counters, same_on, ticks
from support.seeds import seeds
from support.small import counter, followed


@pytest.mark.parametrize("make", [random_counters, random_clocked])
@pytest.mark.parametrize("seed", seeds(3, 25))
def test_random_processes_beside_registers(seed: int, make: Any) -> None:
    design = make(seed)
    for testbenches in (False, True):
        # check takes a trigger of a testbench that breaks for a glitch.
        others = ["engine", "always", *([] if testbenches else ["check"])]
        try:
            expected = followed("pysim", design, seed=seed, testbenches=testbenches)
        except TypeError:
            assert testbenches  # a tick of Amaranth's simulator has returned None, at 1 % of seeds
            continue
        for name in others:
            found = followed(name, design, seed=seed, testbenches=testbenches)
            assert found == expected, (seed, testbenches, name)


# --- waits of compiled code -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["process", "testbench"])
@pytest.mark.parametrize("awaited", ["register", "logic", "clock", "made"])
def test_python_runs_only_at_changes_that_end_a_wait(
    kind: str, awaited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, count = counter(12)
    m.domains += (sync := ClockDomain("sync")), (made := ClockDomain("made", reset_less=True))
    m.d.comb += [(above := Signal(12)).eq(count + 3), made.clk.eq(count[9])]
    m.d.made += Signal(4).eq(count)
    signals = {"register": count[9], "logic": above[9], "clock": sync.clk, "made": made.clk}
    wakes, commits, commit = list[int](), list[int](), CompiledState.commit

    def counted(state: CompiledState, changed: Any = None) -> bool:
        commits.append(sim.now)
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
            wakes.append(sim.now)

    sim = Bench(EXECUTORS["always"])
    monkeypatch.setattr(CompiledState, "commit", counted)
    watching: Any = {"processes" if kind == "process" else "background": [watch]}
    sim.run(m, ticks(3000), **watching)
    assert sim.compiled
    assert len(wakes) >= 3
    assert len(commits) <= 5 * len(wakes) + 10


def test_waits_that_have_ended_leave_nothing_behind() -> None:
    m, count = counter()
    m.d.sync += (still := Signal(8)).eq(still)
    left = list[int]()

    async def work(ctx: Any) -> None:
        for _ in range(20):
            await ctx.changed(count, still)
            left.append(sum(len(slot.wakers) for slot in simulator._engine.state.slots))

    simulator = Bench(EXECUTORS["engine"]).simulator(m, work)
    simulator.run()
    assert left == [0] * 20


@same_on()
def test_as_many_signals_are_watched_as_there_are(sim: Bench) -> None:
    m, count = counter(6)
    m.d.comb += (one := Signal(64)).eq(1 << count)
    flags = [Signal(name=f"flag{number}") for number in range(64)]
    m.d.comb += [flag.eq(bit) for flag, bit in zip(flags, one, strict=True)]
    watches = [sim.awaits(2, partial(_rise, flag, count)) for flag in flags[1:]]
    sim.run(m, ticks(130), processes=watches)
    assert [sampled for _, (_, sampled) in sim.seen] == [*range(1, 64)] * 2


def _rise(flag: Signal, sampled: Signal, ctx: Any) -> Any:
    return ctx.posedge(flag).sample(sampled)


@same_on()
@pytest.mark.parametrize("depth", [1, 3])
def test_a_constant_changes_once_from_its_initial_value(sim: Bench, depth: int) -> None:
    m, count = counter()
    flag, constant = Signal(3, init=5), Const(6, 3)
    for _ in range(depth - 1):
        m.d.comb += (copy := Signal(3, init=6)).eq(constant)
        constant = copy
    m.d.comb += flag.eq(constant)
    watches = [
        sim.awaits(1, lambda ctx: ctx.changed(flag).sample(count)),
        sim.awaits(2, lambda ctx: ctx.changed(flag).posedge(flag[0]).delay(3e-6)),
    ]
    sim.run(m, ticks(5), processes=watches)
    sim.seen.sort(key=str)  # processes run in any order
    assert (0, (6, 0)) in sim.seen


@same_on("engine", "always")  # check takes a broken trigger for a glitch
def test_a_second_change_in_a_time_step_breaks_a_wait_for_two(sim: Bench) -> None:
    m, count = counter()
    above, third = Signal(8), Signal(8)
    m.d.comb += [above.eq(count + 1), third.eq(above + 1)]
    watches = [
        sim.awaits(4, lambda ctx: ctx.changed(count, third)),
        sim.awaits(4, lambda ctx: ctx.changed(above).posedge(third[1])),
    ]
    sim.run(m, ticks(20), background=watches)
    assert any("BrokenTrigger" in entry for entry in sim.seen)


# --- processes in place of registers --------------------------------------------------------------


@same_on()
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

    watches = {
        "edge": [sim.follows(lambda ctx: ctx.posedge(odd))],
        "change": [sim.follows(lambda ctx: ctx.changed(odd, second))],
    }
    work = sim.reads(6, edges, first, second)
    sim.run(m, work, processes=[register, *watches.get(watched, ())])
    assert sim.seen[-1][0] == 0


@same_on()
def test_a_sum_of_a_register_and_a_signal_of_a_process_changes_once(sim: Bench) -> None:
    m, count = counter()
    given, total = Signal(8), Signal(8)
    m.d.comb += total.eq(count + given)

    async def register(ctx: Any) -> None:
        async for *_, value in ctx.tick().sample(count):
            ctx.set(given, 3 * value)

    watch = sim.follows(lambda ctx: ctx.changed(total))
    sim.run(m, ticks(5), processes=[register, watch])
    assert [total for *_, (total,) in sim.seen] == [0, 1, 5, 9, 13, 17]


@same_on()
def test_rows_that_a_process_writes_at_an_edge_are_read_with_registers(sim: Bench) -> None:
    m, address = counter(2)
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[1, 2, 3, 4])
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(address)

    async def write(ctx: Any) -> None:
        async for *_, row in ctx.tick().sample(address):
            ctx.set(memory.data[row], 9)

    sim.run(m, sim.reads(6, address, port.data), processes=[write])


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


@same_on("engine", "always")
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
def test_samples_at_a_change_are_of_the_same_delta_cycle(sim: Bench, kind: str, wait: Any) -> None:
    m, signals = _shifter()
    watching = partial(sim.awaits, 99) if kind == "one-shot" else sim.follows
    watch = watching(lambda ctx: wait(ctx, signals))
    kinds: Any = {"background" if kind == "testbench" else "processes": [watch]}
    sim.run(m, ticks(20), **kinds)


@same_on()
def test_an_alias_of_an_input_changes_after_it(sim: Bench) -> None:
    m, given, alias, above = Module(), Signal(8), Signal(8), Signal(8)
    m.d.comb += [alias.eq(given), above.eq(given + 1)]
    watches = [
        sim.follows(lambda ctx: ctx.changed(given).sample(alias, above)),
        sim.follows(lambda ctx: ctx.changed(alias).sample(given, above), name="alias"),
    ]
    work = sim.sets(given, (0, 4, 9, 9, 2), alias, above)
    sim.run(m, work, processes=watches, clocks=None)
    # The order of processes at power-on is any.
    sim.seen[:] = [*sorted(sim.seen[:3], key=str), *sim.seen[3:]]


@same_on()
def test_the_first_pass_of_a_process_sees_logic_before_it_is_evaluated(sim: Bench) -> None:
    m, given, above = Module(), Signal(8), Signal(8)
    m.d.comb += above.eq(given + 100)
    waits = {
        "given": lambda ctx: ctx.changed(given).sample(above),
        "above": lambda ctx: ctx.changed(above).sample(given),
    }

    watches = [sim.follows(wait, name=name) for name, wait in waits.items()]
    once = sim.awaits(1, lambda ctx: ctx.changed(above))
    sim.run(m, sim.sets(given, (0, 3)), processes=[*watches, once], clocks=None)
    sim.seen.sort(key=lambda entry: str(entry[0]))  # processes run in any order
    shown = [(entry[0], *entry[2]) for entry in sim.seen if len(entry) == 3]
    assert shown[:3] == [("above", 0, 0), ("above", 100, 0), ("above", 103, 3)]
    assert shown[3:] == [("given", 0, 0), ("given", 3, 100)]


# --- clocks and drivers ---------------------------------------------------------------------------


@same_on()
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
    sim.run(m, sim.awaits(9, lambda ctx: ctx.delay(0.4e-6), count))


@same_on()
def test_a_tick_is_seen_at_an_edge_at_which_no_register_changes(sim: Bench) -> None:
    m, count, falls = Module(), Signal(8), Signal(8)
    m.domains.sync = made = ClockDomain(reset_less=True)
    falling = ClockDomain("falling", clk_edge="neg", reset_less=True)
    falling.clk = made.clk
    m.d.sync += count.eq(count + 1)

    async def work(ctx: Any) -> None:
        async for _, _, before in ctx.tick(falling).sample(falls):
            ctx.set(falls, before + 16)

    sim.run(m, sim.sets(made.clk, (1, 0) * 5, count, falls), processes=[work], clocks=None)
    assert [seen[-1] for seen in sim.seen] == [0, 16, 16, 32, 32, 48, 48, 64, 64, 80]


@same_on()
def test_a_signal_of_logic_is_refused_each_time(sim: Bench) -> None:
    m, given, alias, one, above = Module(), Signal(4), Signal(4), Signal(4), Signal(4)
    m.d.comb += [alias.eq(given), one.eq(1), above.eq(given + 1)]

    async def work(ctx: Any) -> None:
        for value in (7, 8, 9):
            for signal in (alias, one, above):
                with pytest.raises(DriverConflict):
                    ctx.set(signal, value)
        sim.seen.append([ctx.get(x) for x in (given, alias, one, above)])

    sim.run(m, work, clocks=None)
    assert sim.seen == [[0, 0, 1, 1]]


# --- the number of assignments before each signal -------------------------------------------------


def test_the_longest_path_counts() -> None:
    m, inner = Module(), Module()
    register, given, near, far, chosen, constant, chain = (
        Signal(4, name=name)
        for name in ("register", "given", "near", "far", "chosen", "constant", "chain")
    )
    m.submodules.inner = inner
    m.d.sync += register.eq(chosen)
    m.d.comb += [near.eq(register), constant.eq(3)]
    inner.d.comb += far.eq(near + given)
    with m.If(far[0]):
        m.d.comb += chosen.eq(register)
    # Bits of a signal may depend on others of it.
    m.d.comb += chain.eq(Cat(chosen[0], ~chain[:3]))
    m.submodules.memory = memory = Memory(shape=4, depth=4, init=[])
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(near)
    found = depths(Fragment.get(m, None).prepare().fragment)
    signals = (near, far, chosen, constant, chain, port.addr, port.data)
    assert [found[x] for x in signals] == [1, 2, 3, 1, 4, 2, 3]
    assert register not in found
    assert given not in found


def test_long_chains_are_measured() -> None:
    m, signals = Module(), [Signal(name=f"signal{k}") for k in range(3000)]
    for before, signal in pairwise(signals):
        m.d.comb += signal.eq(before)
    found = depths(Fragment.get(m, None).prepare().fragment)
    assert [found[x] for x in signals[1:]] == list(range(1, 3000))
