"""Instances are simulated by registered logic; what does not fit is refused in one line."""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Elaboratable,
    Instance,
    Module,
    Signal,
    signed,
)
from amaranth.lib.wiring import In, Out

import cppsim
from cppsim.errors import SimulationError
from cppsim.testing import Bench
from support.carriers import Part
from support.small import refused


def mac(WIDTH: int, STEP: int = 0) -> Part:
    """Return the model of a multiplier with an accumulator, which adds on ``STEP`` more."""
    return Part(
        {"A": In(WIDTH), "B": In(WIDTH), "Q": Out(2 * WIDTH)},
        sync=lambda x: x.Q.eq(x.Q + x.A * x.B + STEP),
    )


class Gate(Elaboratable):
    """A model without a signature."""

    def __init__(self) -> None:
        self.I, self.O = Signal(4), Signal(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.O.eq(~self.I)
        return m


class Inverter(Gate):
    """A model whose cell has another cell in it."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.gate = Instance("GATE", i_I=self.I, o_O=self.O)
        return m


def filters(*, instances: bool) -> Part:
    """Return a design of Instances, or of the logic itself: two domains, and parts of signals."""

    def build(m: Module, x: Any) -> None:
        inverted, whole = Signal(4), Cat(x.low, x.high)
        m.submodules.inner = inner = Module()
        if instances:
            m.submodules.inverter = Instance("INV", i_I=x.a, o_O=inverted)
            ports = {"p_WIDTH": 4, "i_CK": ClockSignal(), "i_A": inverted, "i_B": x.b}
            inner.submodules.mac = Instance("MAC", p_STEP=3, **ports, o_Q=whole)
            slow = Instance("MAC", **ports, o_Q=x.other)
            inner.submodules.slow = DomainRenamer("slow")(slow)
            return
        first, second = mac(4, 3), mac(4)
        inner.submodules += first, DomainRenamer("slow")(second)
        m.d.comb += [inverted.eq(~x.a), whole.eq(first.Q), x.other.eq(second.Q)]
        for each in (first, second):
            m.d.comb += [each.A.eq(inverted), each.B.eq(x.b)]

    inputs, outputs = {"a": In(4), "b": In(4)}, {"high": Out(4), "low": Out(4), "other": Out(8)}
    return Part(inputs | outputs, build=build)


@pytest.fixture
def cells() -> Iterator[None]:
    undo = [
        cppsim.register_cell("MAC", mac, clocks={"CK": "sync"}),
        cppsim.register_cell("INV", Inverter),
        cppsim.register_cell("GATE", Gate),
    ]
    yield
    for each in undo:
        each()


def outputs(dut: Any, mode: str) -> list[Any]:
    rng, sim = random.Random(0), Bench(partial(cppsim.Simulator, mode=mode))

    async def testbench(ctx: Any) -> None:
        for _ in range(40):
            ctx.set(dut.a, rng.randrange(16))
            ctx.set(dut.b, rng.randrange(16))
            await ctx.tick()
            sim.seen.append((ctx.get(dut.high), ctx.get(dut.low), ctx.get(dut.other)))

    sim.run(dut, testbench, clocks={"sync": 1e-6, "slow": 3.2e-6})
    return sim.seen


@pytest.mark.usefixtures("cells")
@pytest.mark.parametrize("mode", ["off", "always", "check"])
def test_an_instance_is_simulated_by_its_logic(mode: str) -> None:
    expected = outputs(filters(instances=False), "off")
    assert len(set(expected)) > 20
    assert outputs(filters(instances=True), mode) == expected


def alone() -> Part:
    """Return one Instance in a component with one clock."""

    def build(m: Module, x: Any) -> None:
        m.submodules.mac = Instance("MAC", p_WIDTH=4, i_CK=ClockSignal(), i_A=x.a, i_B=x.a, o_Q=x.q)

    return Part({"a": In(4), "q": Out(8)}, build=build)


@pytest.mark.usefixtures("cells")
def test_models_and_batches_have_the_logic_too() -> None:
    dut = alone()
    batch = cppsim.Batch(dut, 3, "threads")
    models = cppsim.Model(dut), cppsim.ReferenceModel(dut)
    batch.set("a", [1, 2, 3])
    batch.step(2)
    assert batch.get("q").tolist() == [2, 8, 18]
    for model in models:
        model.set("a", 3)
        model.step(2)
        assert model.get("q") == 18


def test_a_registration_ends_and_is_seen_by_later_models() -> None:
    dut = alone()
    for step, expected in ((0, 4), (5, 9)):
        undo = cppsim.register_cell("MAC", partial(mac, STEP=step), clocks={"CK": "sync"})
        model = cppsim.Model(dut)
        model.set("a", 2)
        model.step()
        assert model.get("q") == expected
        undo()
    with pytest.raises(SimulationError, match=r"Instance is not known here.*register_cell"):
        cppsim.Model(dut).step()


def test_without_a_registration_the_warning_says_how_to_register() -> None:
    m = Module()
    m.submodules += Instance("MAC", o_Q=Signal())
    with pytest.warns(cppsim.FallbackWarning, match=r"Instance is not known here.*register_cell"):
        cppsim.Simulator(m, mode="always")


def test_a_name_is_registered_once() -> None:
    undo = cppsim.register_cell("MAC", mac)
    with pytest.raises(SimulationError, match="cell 'MAC': registered already; expected a name"):
        cppsim.register_cell("MAC", mac)
    undo()
    cppsim.register_cell("MAC", mac)()


GOOD = {"p_WIDTH": 4, "i_CK": ClockSignal(), "i_A": Signal(4), "i_B": Signal(4), "o_Q": Signal(8)}


@pytest.mark.usefixtures("cells")
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"p_WIDTHS": 4}, "parameters WIDTH, WIDTHS: its logic has got an unexpected keyword"),
        ({"p_WIDTH": None}, "parameters none: its logic has missing a required argument: 'WIDTH'"),
        ({"i_C": Signal(4)}, "port 'C': its logic has no such signal; there are: A, B, CK, Q"),
        ({"i_A": None}, "no port 'A'; its logic has this input"),
        ({"i_A": Signal(5)}, "port 'A': 5 bits; expected 4, as its logic has"),
        ({"o_Q": Signal(signed(9))}, "port 'Q': 9 bits; expected 8, as its logic has"),
        ({"o_Q": None, "i_Q": Signal(8)}, "port 'Q': an output of its logic; expected an input"),
        ({"i_A": None, "o_A": Signal(4)}, "port 'A': an input of its logic; expected an output"),
        ({"i_CK": Signal()}, r"port 'CK': \(sig .*\); expected a ClockSignal"),
        ({"i_CK": None}, "port 'CK': None; expected a ClockSignal"),
    ],
)
@pytest.mark.parametrize("make", [cppsim.Simulator, cppsim.Model])
def test_what_does_not_fit_is_refused(change: dict[str, Any], line: str, make: Any) -> None:
    def build(m: Module, _: Any) -> None:
        m.domains.sync = ClockDomain()
        ports = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
        m.submodules.mac = Instance("MAC", **ports)

    wrong = rf"^Instance 'MAC' at .*\d: {line}"
    refused(SimulationError, wrong, lambda: make(Part({}, build=build)))
