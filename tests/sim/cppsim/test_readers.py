"""What testbenches and processes read, by whatever way that is, is what pysim shows."""

import random
from contextlib import suppress
from typing import Any

import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.sim import Simulator

import cppsim
from cppsim import probe, readers
from cppsim.design import NotPlain
from cppsim.probe_expression import signals_of
from support.sim.random_designs import (
    RandomDesign,
    random_expression,
    random_machine,
    random_number,
)


def simulator(module: Module, engine: Any) -> Any:
    made: Any = Simulator(module, engine=engine)  # type: ignore[call-arg]  # stubs lag
    assert not getattr(made._engine, "reason", "")
    return made


@pytest.fixture(params=["settled", "alone"])
def eager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are written at the second look, for values after settling or for all there are."""
    monkeypatch.setattr(readers, "_WORTH", 1)
    monkeypatch.setattr(readers, "_WORTH_ALONE", 1)
    if request.param == "alone":
        monkeypatch.setattr(probe, "_CALL", 1)
        monkeypatch.setattr(probe, "_LEAST", 1 << 20)


def evaluable(chance: random.Random, leaves: list[Signal]) -> list[Value]:
    """Expressions of up to 64 bits that Amaranth evaluates without an error."""
    values: list[Value] = []
    while len(values) < 5:
        value = Value.cast(random_expression(chance, leaves, 3))[:64]
        with suppress(NotPlain):
            signals_of(value)
            values.append(value)
    return values


def read_by_all(design: RandomDesign, engine: Any, seed: int) -> list[Any]:
    """What testbench and processes see of signals and expressions at edges and in between."""
    chance, seen = random.Random(seed), list[Any]()
    leaves = [*design.inputs, *design.outputs]
    values = [*evaluable(chance, leaves), *design.outputs]
    made = simulator(design.module, engine)
    for number, (domain, period) in enumerate(design.clocks.items()):
        made.add_clock(period, phase=1e-7 * (number + 1), domain=domain)

    async def follow(context: Any) -> None:
        async for sampled in context.tick("fall").sample(*values):
            seen.append(sampled)

    async def answer(context: Any) -> None:
        while True:
            await context.changed(design.outputs[0])
            seen.append([context.get(x) for x in values])

    async def work(context: Any) -> None:
        for step in range(30):
            for signal in design.inputs:
                if chance.random() < 0.4:
                    context.set(signal, random_number(chance, signal))
            seen.append([context.get(x) for x in chance.sample(values, step % 3)])
            await context.delay(0.25e-6)
            seen.append([context.get(x) for x in values])

    made.add_process(follow)
    made.add_testbench(answer, background=True)
    made.add_testbench(work)
    made.run()
    return seen


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(12))
def test_random_machines(seed: int) -> None:
    slow = read_by_all(random_machine(seed), "pysim", seed)
    assert read_by_all(random_machine(seed), cppsim.Engine, seed) == slow, seed
