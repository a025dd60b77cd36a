"""Testbenches and processes read the same values as in pysim, by every method of reading."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Array, Cat, ClockDomain, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.data import StructLayout

from cppsim.netlist import NotPlain
from cppsim.probe import signals_of
from cppsim.running import CompiledState
from cppsim.testing import EXECUTORS, Bench, delay, random_expression, random_testbench, same_on
from cppsim.tuning import Tuning
from support.fuzz import machine, write_once
from support.seeds import seeds
from support.small import counter, phased


@pytest.fixture(params=["settled", "alone"])
def eager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write programs at the second read, either after settling or for every readable value."""
    tuning = Tuning(evaluations=1, settlings=1)
    if request.param == "alone":
        tuning = replace(tuning, steps_per_call=1, free_instructions=1 << 20)
    monkeypatch.setattr(CompiledState, "tuning", tuning)


def evaluable(chance: random.Random, leaves: list[Signal]) -> list[Value]:
    """Return expressions of up to 64 bits that Amaranth evaluates without an error."""
    values: list[Value] = []
    while len(values) < 5:
        value = Value.cast(random_expression(chance, leaves, 3))[:64]
        with suppress(NotPlain):
            signals_of(value)
            values.append(value)
    return values


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", seeds(3, 12))
@same_on()
def test_random_machines(sim: Bench, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Testbenches and processes read at edges, after changes and in between."""
    write_once(monkeypatch.setattr)
    design, chance, after_changes = machine(seed), random.Random(seed), list[Any]()
    values = [*evaluable(chance, [*design.inputs, *design.outputs]), *design.outputs]
    wider = replace(design, outputs=values)

    async def answer(context: Any) -> None:
        while True:
            await context.changed(design.outputs[0])
            after_changes.append([context.get(x) for x in values])

    async def peek(context: Any) -> None:
        for step in range(30):
            sim.seen.append([context.get(x) for x in chance.sample(values, step % 3)])
            await context.delay(0.25e-6)

    at_edges = sim.follows(lambda context: context.tick("fall").sample(*values))
    work, clocks = random_testbench(wider, seed, sim.seen.append), phased(design)
    sim.run(design.module, work, peek, processes=[at_edges], background=[answer], clocks=clocks)
    sim.seen.append(after_changes)


@same_on()
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("follows", ["given", "foreign"])
def test_samples_show_what_followed_before_the_change(sim: Bench, follows: str) -> None:
    m, given, foreign, above = Module(), Signal(8), Signal(8), Signal(9)
    m.d.comb += above.eq(given + 1)
    followed = given if follows == "given" else foreign
    values = (given, above, given + above)

    async def drive(context: Any) -> None:
        number = 0
        async for _ in context.delay(1e-6):
            number += 7
            context.set(given, number)
            if number > 70:
                context.set(foreign, number)

    follow = sim.follows(lambda context: context.changed(followed).sample(*values))
    read = sim.awaits(8, lambda context: context.delay(1e-6), *values)
    sim.run(m, read, delay(20e-6), processes=[follow, drive], clocks=None)
    # At power-on pysim has logic and processes in no order.
    del sim.seen[0]
    assert len(sim.seen) > 5


@same_on()
@pytest.mark.usefixtures("eager")
def test_clocks_show_their_edge_and_logic_what_was_before_it(sim: Bench) -> None:
    m, count = counter(4)
    m.domains.sync = sync = ClockDomain()
    m.d.comb += (mixed := Signal(5)).eq(Cat(~sync.clk, count))
    values = (Cat(count, sync.clk), mixed + 1, Cat(mixed, sync.clk))
    sim.run(m, sim.awaits(6, lambda context: context.tick().sample(*values), *values))


@same_on()
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("gated", [False, True])
def test_edges_of_clocks_that_the_design_makes(sim: Bench, *, gated: bool) -> None:
    m, count = counter(4)
    slow, both = Signal(4), Signal(9)
    m.domains.half = half = ClockDomain(reset_less=True)
    m.d.comb += half.clk.eq(count[0] & ~count[2] if gated else count[0])
    m.d.comb += both.eq(count * 3 + slow)
    m.d.half += slow.eq(slow + 5)
    follow = sim.follows(lambda context: context.tick("half").sample(both, both + 1))
    sim.run(m, sim.reads(12, both, both + 1), processes=[follow])


THREE = Const(3)
FRESH: dict[str, Callable[[Signal, Signal, int], Any]] = {
    "equal": lambda a, b, n: a == n,
    "sum": lambda a, b, n: (a + n) ^ b[2:5],
    "difference": lambda a, b, n: n - (b.as_signed() * 3),
    "two constants": lambda a, b, n: (a == n) & (b == n + 1),
    "shift": lambda a, b, n: Const(n, 40) >> a[:4],
    "slice": lambda a, b, n: (b + n)[1:6],
    "part": lambda a, b, n: Const(n * 77, 32).bit_select(a, 5),
    "choice": lambda a, b, n: Mux(a > b, n, ~b),
    "array": lambda a, b, n: Array([a, n & 7, b])[b[:2]],
    "negative": lambda a, b, n: a.as_signed() < Const(-n, signed(9)),
    "wide constant": lambda a, b, n: (Cat(a, b) ^ Const(n << 65, 80))[60:80],
    "joined": lambda a, b, n: Cat(Const(n, 5), a, Const(1, 2)),
    "another structure": lambda a, b, n: b - n if n % 3 else Cat(a, b),
    "one constant at two places": lambda a, b, n: (
        (a == THREE) | (b == THREE),
        (a == 3) | (b == 5),
        (a == 1) | (b == 3),
    ),
}
"""Values that are made anew each time, one or several; of one structure is one program."""


@same_on()
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("made", FRESH.values(), ids=FRESH)
def test_expressions_that_differ_in_constants(
    sim: Bench, made: Callable[[Signal, Signal, int], Any]
) -> None:
    m, given, above = Module(), Signal(8), Signal(8)
    m.d.comb += above.eq(given * 5)

    async def work(context: Any) -> None:
        def read(*operands: Any) -> None:
            values = made(*operands)
            each = values if isinstance(values, tuple) else (values,)
            sim.seen.append([context.get(value) for value in each])

        for number in (0, 3, 3, 17, 255, 1, 3, 86, 103, 7):
            context.set(given, number ^ 2)
            for _ in range(2):
                read(given, above, number)
            context.set(given, number)
            read(above, given, number)

    sim.run(m, work, clocks=None)


def test_a_thousand_expressions_of_one_structure_are_one_program() -> None:
    layout = StructLayout({"low": 3, "high": 13})
    m, count, data = Module(), Signal(16, init=1023), Signal(layout)
    m.d.sync += [count.eq(count + 1), data.eq(count)]
    written = list[int]()

    async def work(context: Any) -> None:
        for number in range(1024, 2024):  # constants of one width
            await context.tick().until(count == number)
            high = number >> 3
            assert context.get(data.high) == high
            assert context.get((data.high + number) ^ count) == high + number ^ number + 1
            written.append(made._engine._state.probes.written)

    made = Bench(EXECUTORS["always"]).simulator(m, work)
    made.run()
    # The condition alone, and both expressions after settling.
    assert written[-1] == 3
    assert written.index(3) < 100


@same_on()
@pytest.mark.usefixtures("eager")
def test_fields_of_structures(sim: Bench) -> None:
    layout = StructLayout({"low": 3, "number": signed(5), "none": 0, "wide": signed(70)})

    m, given, shown = Module(), Signal(layout), Signal(layout)
    m.d.comb += shown.eq(~given.as_value())

    async def work(context: Any) -> None:
        for number in (0, 5, 0xAB, (1 << 77) - 1, 1 << 77):
            context.set(given.as_value(), number)
            for view in (given, shown):
                for name in ("low", "number", "none", "wide"):
                    sim.seen.append((name, context.get(view[name])))
                sim.seen.append([context.get(x) for x in (view.as_value()[2:9], view.wide[68:])])
                sim.seen.append(context.get(view).as_value().value)

    sim.run(m, work, clocks=None)


def test_much_that_is_read_is_settled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = Tuning(evaluations=1, settlings=1, steps_per_call=20)
    monkeypatch.setattr(CompiledState, "tuning", tuning)
    m, given = Module(), Signal(8)
    shown = [Signal(8, name=f"shown{number}") for number in range(60)]
    m.d.comb += [signal.eq(given ^ given >> 3 ^ number) for number, signal in enumerate(shown)]
    made = EXECUTORS["always"](m)
    model = made._engine._state.model
    times, settled = 0, model.settle

    def settle() -> None:
        nonlocal times
        times += 1
        settled()

    monkeypatch.setattr(model, "settle", settle)

    async def work(context: Any) -> None:
        nonlocal times
        for signal in shown:
            for number in range(4):
                context.set(given, number)
                context.get(signal)
        times = 0
        context.set(given, 99)
        assert context.get(shown[0]) == 99 ^ 99 >> 3
        assert times == 0
        for signal in shown:
            context.get(signal)
        assert times == 1

    made.add_testbench(work)
    made.run()
