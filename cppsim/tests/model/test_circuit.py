"""A model drives one clock: the component's own domain, or the one that its circuit gives it."""

import random
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    Elaboratable,
    Instance,
    Module,
    ResetSignal,
    Signal,
)
from amaranth.lib import wiring
from amaranth.lib.fifo import AsyncFIFO, SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Model, Program, ReferenceModel
from cppsim.circuits import Circuit
from cppsim.errors import BatchError, SimulationError
from support.carriers import Part

MODELS = (Model, ReferenceModel)


class Counter(wiring.Component):
    """Counts in the domain ``sync`` that ``define`` adds to its module, or to a submodule's."""

    data: In(8)
    count: Out(8)

    def __init__(self, define: Callable[[Module, Any], None], *, below: int = 0) -> None:
        self._define, self._below = define, below
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m, next_count = Module(), Signal(8)
        m.submodules.next = inner = Module()
        inner.d.sync += self.count.eq(next_count)
        m.d.comb += next_count.eq(self.count + self.data)
        inner = m
        for _ in range(self._below):
            outer, inner = inner, Module()
            outer.submodules.inner = inner
        self._define(inner, self)
        return m


def by_itself(m: Module, _: Any, **options: bool) -> None:
    m.domains.sync = ClockDomain(**options)


def without_a_reset(m: Module, counter: Any) -> None:
    by_itself(m, counter, reset_less=True)


def with_an_asynchronous_reset(m: Module, counter: Any) -> None:
    by_itself(m, counter, async_reset=True)


def with_a_reset_of_its_own(m: Module, counter: Any) -> None:
    by_itself(m, counter)
    m.d.comb += ResetSignal().eq(counter.count >= 12)


def that_is_local(m: Module, counter: Any) -> None:
    by_itself(m, counter, local=True)


def that_makes_its_clock(m: Module, counter: Any) -> None:
    by_itself(m, counter)
    m.d.comb += ClockSignal().eq(counter.data[0])


DEPRECATED = pytest.mark.filterwarnings("ignore:Domain 'sync' is used in:DeprecationWarning")

OWN = [
    (by_itself, 0),
    (without_a_reset, 0),
    (with_an_asynchronous_reset, 0),
    (with_a_reset_of_its_own, 0),
    pytest.param(by_itself, 2, marks=DEPRECATED),
    pytest.param(without_a_reset, 1, marks=DEPRECATED),
]


@pytest.mark.parametrize(("define", "below"), OWN)
def test_a_component_keeps_the_domain_that_it_defines(define: Any, below: int) -> None:
    dut = Counter(define, below=below)
    program = Program().set("data", 5)
    with program.repeat(6):
        program.step().get("count")
    has_reset = define not in (without_a_reset, with_a_reset_of_its_own)
    with closing(Model(dut)) as model, closing(ReferenceModel(dut)) as reference:
        found, wanted = (each.run(program)["count"].tolist() for each in (model, reference))
        assert found == wanted != [0] * 6
        assert ("rst" in model.widths, "rst" in reference.widths) == (has_reset, has_reset)
        for value in (1, 0) if has_reset else ():
            for each in (model, reference):
                each.set("rst", value)
            assert model.get("count") == reference.get("count")
            for each in (model, reference):
                each.step()
            assert model.get("count") == reference.get("count") == (0 if value else 5)


class Chain(wiring.Component):
    """Two Instances behind each other, the second within a submodule."""

    value: In(4)
    once: Out(4)
    twice: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = inner = Module()
        clock = ("i", "CK", ClockSignal())
        m.submodules.first = Instance(
            "INVERT", clock, ("i", "i", self.value), ("o", "o", self.once)
        )
        inner.submodules.second = Instance("INVERT", ("i", "i", self.once), ("o", "o", self.twice))
        return m


def inverter() -> Part:
    """Return a component that outputs the opposite of its input, a cycle later."""
    return Part({"i": In(4), "o": Out(4)}, sync=lambda x: x.o.eq(~x.i))


def test_components_stand_for_instances_at_any_depth() -> None:
    with closing(Model(Circuit(Chain(), {"INVERT": inverter, "OTHER": Chain}))) as model:
        model.set("value", 5)
        for expected in ((10, 15), (10, 5)):
            model.step()
            assert (model.get("once"), model.get("twice")) == expected
    with pytest.raises(SimulationError, match="INVERT"):
        Model(Circuit(Chain(), {"OTHER": inverter}))


def two() -> Part:
    """Return a component of two clocks."""

    def build(m: Module, x: Any) -> None:
        m.domains.other = ClockDomain()
        m.d.other += x.count.eq(x.count + 1)

    return Part({"count": Out(8)}, build=build)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    ("component", "answer"),
    [
        (lambda: Counter(that_makes_its_clock), "Counter: domain 'sync': .* makes the clock its"),
        (lambda: Counter(that_is_local), "domain 'sync': the component has a local one; expected"),
        (lambda: Counter(that_is_local, below=1), "domain 'sync': .* has a local one; expected o"),
        (two, "take cppsim.Simulator or cppsim.Batch"),
        (lambda: AsyncFIFO(width=8, depth=4), "take cppsim.Simulator or cppsim.Batch"),
    ],
)
def test_other_clocks_are_refused_in_one_line(make: Any, component: Any, answer: str) -> None:
    with pytest.raises(SimulationError, match=answer) as error:
        make(component())
    assert "\n" not in str(error.value)


class Older(Elaboratable):
    """A design without a signature, with a submodule."""

    def __init__(self) -> None:
        self.data = Signal(8)
        self.total = Signal(8, init=3)
        self.unused = Signal(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner = Signal(8)
        m.submodules.inner = below = Module()
        below.d.sync += inner.eq(self.data + 1)
        m.d.sync += self.total.eq(self.total + inner + self.unused[0])
        return m


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    "design",
    [lambda: SyncFIFO(width=8, depth=4), lambda: SyncFIFOBuffered(width=3, depth=5), Older],
)
def test_a_design_without_a_signature_has_the_ports_of_a_batch(make: Any, design: Any) -> None:
    rng, dut = random.Random(3), design()
    model, batch = make(dut), Batch(dut, 1, "threads")
    known = {name: x for name, x in batch.description.ports.items() if not name.startswith("$")}
    inputs = {name for name, x in known.items() if x.input}
    assert model.widths == {name: x.width for name, x in known.items()}
    assert {x.name for x in model.ports.values() if x.input} == inputs
    for _ in range(40):
        for name in sorted(inputs):
            value = rng.getrandbits(known[name].width) * (name != "rst" or rng.random() < 0.1)
            for each in (model, batch):
                each.set(name, value)
        for each in (model, batch):
            each.step()
        assert {x: model.get(x) for x in known} == {x: int(batch.get(x)[0]) for x in known}


def test_names_that_do_not_exist_are_one_line() -> None:
    counter = Counter(by_itself)
    for made in (Model(counter), ReferenceModel(counter), Batch(counter, 2, "threads")):
        for call in (lambda x: x.set("counts", 1), lambda x: x.get("counts")):
            with pytest.raises(BatchError) as error:
                call(made)
            assert isinstance(error.value, KeyError)
            line = str(error.value)
            assert line.startswith("no port 'counts'; did you mean 'count'? There are: ")
            assert "?;" not in line


def test_representations_say_what_it_is() -> None:
    counter = Counter(by_itself)
    assert repr(Model(counter)) == "<Model of Counter: 3 ports>"
    assert repr(ReferenceModel(counter)) == "<ReferenceModel of Counter: 3 ports>"
    assert repr(Batch(counter, 5, "threads")) == "<Batch of Counter: 5 instances on threads>"
    program = Program().set(counter.data, 1)
    with program.repeat(3):
        program.set("data", [[1, 2, 3]]).step(2).get("count")
    program.until("count", 9)
    text = "set data, repeat 3 (set data, step 2, get count), until count 9"
    assert repr(program) == f"Program({text})"
    for _ in range(20):
        program.step()
    assert repr(program) == f"Program({text}{', step 1' * 9}, 11 more)"
