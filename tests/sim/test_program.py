"""Programs written from netlists show in every cycle what Amaranth's simulator shows."""

import random
from contextlib import closing
from pathlib import Path

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

from bitlane_sim.cxxrtl.model import CxxrtlEvaluator
from bitlane_sim.evaluator import Evaluator, SimulationError
from bitlane_sim.pysim import PysimEvaluator
from support.sim.zoo import Calculator, Memories, Registers, stimuli


def show(evaluator: Evaluator) -> dict[str, int]:
    return {port: evaluator.get(port) for port in evaluator.widths}


def expect_agreement(
    make: type[wiring.Component], *sizes: int, cycles: int, resets: bool = True
) -> None:
    component = make(*sizes)
    slow, fast = PysimEvaluator(make(*sizes)), CxxrtlEvaluator(component)
    assert not fast.library.writer
    with closing(slow), closing(fast):
        for cycle, values in enumerate(stimuli(component, cycles)):
            for evaluator in (slow, fast):
                for port, value in values.items():
                    evaluator.set(port, value)
                evaluator.set("rst", resets and cycle % 37 == 20)
            # A look settles everything: an edge has to come right without one, too.
            if cycle % 3:
                assert show(fast) == show(slow), (cycle, values)
            slow.step()
            fast.step()
        assert show(fast) == show(slow)


@pytest.mark.parametrize("width", [1, 7, 32, 64, 65, 130])
def test_operators(width: int) -> None:
    expect_agreement(Calculator, width, cycles=60)


@pytest.mark.parametrize("width", [1, 8, 64, 100])
def test_registers(width: int) -> None:
    expect_agreement(Registers, width, cycles=300)


@pytest.mark.parametrize(("width", "rows"), [(8, 8), (20, 5), (64, 16), (100, 3), (130, 7)])
def test_memories(width: int, rows: int) -> None:
    # Amaranth's simulator resets what a clocked port shows; its RTLIL, and thus Verilog, does not.
    expect_agreement(Memories, width, rows, cycles=300, resets=False)


class Constants(wiring.Component):
    """Constants where the width of what is shifted or compared matters."""

    def __init__(self) -> None:
        super().__init__(
            {
                "value": In(6),
                "left": Out(64),
                "right": Out(64),
                "right_signed": Out(40),
                "below": Out(1),
                "not_above": Out(1),
            }
        )

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
    slow, fast = PysimEvaluator(Constants()), CxxrtlEvaluator(Constants())
    assert not fast.library.writer
    with closing(slow), closing(fast):
        for value in range(64):
            slow.set("value", value)
            fast.set("value", value)
            assert show(fast) == show(slow), value


class Synchronized(wiring.Component):
    """Counts in a domain with a synchronizer for its reset, which comes at any time."""

    def __init__(self) -> None:
        super().__init__({"stop": In(1), "stopped": Out(1), "count": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.inner = ClockDomain(local=True)
        m.submodules.synchronizer = ResetSynchronizer(self.stop, domain="inner")
        m.d.comb += ClockSignal("inner").eq(ClockSignal())
        m.d.comb += self.stopped.eq(ResetSignal("inner"))
        m.d.inner += self.count.eq(self.count + 1)
        return m


def test_asynchronous_resets_act_at_once() -> None:
    slow, fast = PysimEvaluator(Synchronized()), CxxrtlEvaluator(Synchronized())
    assert "$adff is not known here" in fast.description
    chance = random.Random(1)
    with closing(slow), closing(fast):
        for cycle in range(300):
            stop = int(chance.random() < 0.2)
            for evaluator in (slow, fast):
                evaluator.set("stop", stop)
            assert show(fast) == show(slow), cycle
            slow.step()
            fast.step()


class Talker(wiring.Component):
    """Prints, or asserts with a value in its message."""

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


def test_a_circuit_that_prints_is_left_to_yosys(capfd: pytest.CaptureFixture[str]) -> None:
    with closing(CxxrtlEvaluator(Talker(prints=True))) as evaluator:
        assert "$print is not known here" in evaluator.description
        evaluator.set("value", 5)
        evaluator.step(2)
        assert evaluator.get("last") == 5
    assert "value 5" in capfd.readouterr().out


def test_a_message_with_values_is_left_to_yosys() -> None:
    with closing(CxxrtlEvaluator(Talker(prints=False))) as evaluator:
        assert "a message with values is not known here" in evaluator.description
        evaluator.set("value", 7)
        with pytest.raises(SimulationError, match="cycle 1: 7 is not allowed"):
            evaluator.step()


def test_waveforms_are_left_to_yosys(tmp_path: Path) -> None:
    with closing(CxxrtlEvaluator(Registers(8), vcd=tmp_path / "wave.vcd")) as evaluator:
        assert evaluator.description == "cxxrtl by Yosys (waveforms)"
    with closing(CxxrtlEvaluator(Registers(8))) as evaluator:
        assert evaluator.description == "cxxrtl"


def test_message_of_a_check_stays_as_it_is() -> None:
    class Checker(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"value": In(4)})

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.d.sync += Assert(self.value != 7, 'a "quoted" {brace} \\ and é')
            return m

    with closing(CxxrtlEvaluator(Checker())) as evaluator:
        evaluator.set("value", 7)
        with pytest.raises(SimulationError, match=r'cycle 1: a "quoted" \{brace\} \\ and é'):
            evaluator.step()
