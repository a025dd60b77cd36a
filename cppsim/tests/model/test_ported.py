"""Programs written from netlists agree with Amaranth's simulator in every cycle."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from amaranth.hdl import (
    Assert,
    C,
    ClockDomain,
    ClockSignal,
    Format,
    Module,
    Print,
    ResetSignal,
    signed,
)
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out

from cppsim import Model, Program, ReferenceModel
from cppsim.errors import SimulationError
from cppsim.model.interface import AnyModel
from support.seeds import seeds, slow
from support.zoo import Calculator, Memories, Registers, stimuli


def show(evaluator: AnyModel) -> dict[str, int]:
    return {port: evaluator.get(port) for port in evaluator.widths}


@contextmanager
def both(
    make: Callable[[], wiring.Component], **options: Any
) -> Iterator[tuple[AnyModel, AnyModel]]:
    slow, fast = ReferenceModel(make()), Model(make(), **options)
    with closing(slow), closing(fast):
        yield slow, fast


def expect_agreement(make: type[wiring.Component], *sizes: int, cycles: int) -> None:
    with both(lambda: make(*sizes)) as (slow, fast):
        for cycle, values in enumerate(stimuli(make(*sizes), cycles)):
            for evaluator in (slow, fast):
                for port, value in values.items():
                    evaluator.set(port, value)
                evaluator.set("rst", cycle % 37 == 20)
            # A look settles everything: an edge has to come right without one, too.
            if cycle % 3:
                assert show(fast) == show(slow), (cycle, values)
            slow.step()
            fast.step()
        assert show(fast) == show(slow)


@pytest.mark.parametrize("width", [slow(1), 7, slow(32), slow(64), slow(65), 130])
def test_operators(width: int) -> None:
    expect_agreement(Calculator, width, cycles=60)


@pytest.mark.parametrize("width", [slow(1), slow(8), slow(64), 100])
def test_registers(width: int) -> None:
    expect_agreement(Registers, width, cycles=300)


@pytest.mark.parametrize(
    ("width", "rows"), [slow(8, 8), slow(20, 5), slow(64, 16), slow(100, 3), (130, 7)]
)
def test_memories(width: int, rows: int) -> None:
    expect_agreement(Memories, width, rows, cycles=300)


class Constants(wiring.Component):
    """Shifts and comparisons of constants whose width matters."""

    value: In(6)
    left: Out(64)
    right: Out(64)
    right_signed: Out(40)
    below: Out(1)
    not_above: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number = self.value[:5].as_signed()
        m.d.comb += [
            self.left.eq(C(5, 64) << self.value),
            self.right.eq(C(5, 64) >> self.value),
            self.right_signed.eq(C(-5, signed(40)) >> self.value),
            self.below.eq(number < C(3, signed(5))),
            self.not_above.eq(number <= C(-3, signed(5))),
        ]
        return m


def test_constants_have_the_width_of_a_word() -> None:
    with both(Constants) as (slow, fast):
        for value in range(64):
            slow.set("value", value)
            fast.set("value", value)
            assert show(fast) == show(slow), value


class Decided(wiring.Component):
    """Registers that load, hold and are cleared under random nested conditions."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        names = ("first", "second", "third")
        super().__init__({"go": In(4), "value": In(8), **{name: Out(8) for name in names}})

    def elaborate(self, platform: object) -> Module:
        self._chance = random.Random(self._seed)
        self._module = m = Module()
        for _ in range(3):
            self._statement(3)
        if self._chance.random() < 0.5:
            with m.If(self.go.all()):
                m.d.sync += [self.first.eq(0x55), self.second.eq(0)]
        return m

    def _statement(self, depth: int) -> None:
        m, chance = self._module, self._chance
        registers = (self.first, self.second, self.third)
        kind = chance.choice(("if", "switch", "assign")) if depth else "assign"
        if kind == "if":
            with m.If(self.go[chance.randrange(4)]):
                self._statement(depth - 1)
            with m.Elif(self.go[chance.randrange(4)] ^ self.first[0]):
                self._statement(depth - 1)
            if chance.random() < 0.5:
                with m.Else():
                    self._statement(depth - 1)
        elif kind == "switch":
            patterns = chance.sample(range(16), 3)
            with m.Switch(self.go):
                for pattern in patterns:
                    with m.Case(pattern, f"{chance.choice('01')}-1-"):
                        self._statement(depth - 1)
                with m.Default():
                    self._statement(depth - 1)
        else:
            target, source = chance.choice(registers), chance.choice((self.value, *registers))
            low = chance.choice((0, 0, 4))
            m.d.sync += target[low:].eq(source + chance.randrange(2))


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_registers_load_and_hold_as_decided(seed: int) -> None:
    expect_agreement(Decided, seed, cycles=150)


class Synchronized(wiring.Component):
    """A counter in a domain whose reset, from a synchronizer, may come at any time."""

    stop: In(1)
    stopped: Out(1)
    count: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.inner = ClockDomain(local=True)
        m.submodules.synchronizer = ResetSynchronizer(self.stop, domain="inner")
        m.d.comb += ClockSignal("inner").eq(ClockSignal())
        m.d.comb += self.stopped.eq(ResetSignal("inner"))
        m.d.inner += self.count.eq(self.count + 1)
        return m


def test_asynchronous_resets_act_at_once() -> None:
    chance = random.Random(1)
    with both(Synchronized) as (slow, fast):
        for cycle in range(300):
            stop = int(chance.random() < 0.2)
            for evaluator in (slow, fast):
                evaluator.set("stop", stop)
            assert show(fast) == show(slow), cycle
            slow.step()
            fast.step()


class Talker(wiring.Component):
    """A design that prints, or asserts with a value in its message."""

    def __init__(self, *, prints: bool) -> None:
        self._prints = prints
        super().__init__({"value": In(4), "last": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.last.eq(self.value)
        if self._prints:
            m.d.sync += Print(Format("value {}", self.value))
        else:
            m.d.sync += Assert(self.value != 7, Format("{} is not allowed", self.value))
        return m


def test_a_circuit_prints_at_every_edge(capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Model(Talker(prints=True))) as evaluator:
        evaluator.set("value", 5)
        evaluator.step(2)
        evaluator.run(Program().set("value", 9).step())
        assert evaluator.get("last") == 9
    assert capsys.readouterr().out == "value 5\nvalue 5\nvalue 9\n"


def test_a_message_has_the_values_of_the_edge_at_which_a_check_failed() -> None:
    with closing(Model(Talker(prints=False))) as evaluator:
        evaluator.set("value", 6)
        evaluator.step()
        evaluator.set("value", 7)
        with pytest.raises(SimulationError, match="cycle 2: Assertion violated: 7 is not allowed"):
            evaluator.step(3)
        evaluator.reset()
        evaluator.step()


def test_message_of_a_check_stays_as_it_is() -> None:
    class Checker(wiring.Component):
        value: In(4)

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.d.sync += Assert(self.value != 7, 'a "quoted" {brace} \\ and é')
            return m

    with closing(Model(Checker())) as evaluator:
        evaluator.set("value", 7)
        with pytest.raises(SimulationError, match=r'^cycle 1: .* violated: a "quoted" \{brace'):
            evaluator.step()
