"""A compiled model that leaves out what rests shows what Amaranth's simulator shows.

Inputs seldom change here, and thresholds are such that whatever can rest is left out.
"""

import random
from contextlib import closing
from pathlib import Path

import pytest
from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bitlane_sim.circuit import Circuit
from bitlane_sim.compiled import program as writer
from bitlane_sim.compiled.model import CompiledEvaluator
from bitlane_sim.compiled.program import program
from bitlane_sim.pysim import PysimEvaluator
from cppsim.cpp import activity
from support.sim.random_values import random_expression
from support.sim.zoo import Registers

CYCLES = 400


class Random(wiring.Component):
    """Registers of any width under conditions within one another, a counter, and a memory."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        chance = random.Random(seed)
        members: dict[str, wiring.Member] = {}
        for k in range(5):
            members[f"input{k}"] = In(chance.randint(1, 70))
        for k in range(10):
            members[f"register{k}"] = Out(chance.randint(1, 70), init=chance.getrandbits(1))
        members |= {"counter": Out(9), "row": Out(33), "late_row": Out(33), "shown": Out(80)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        chance, m = random.Random(self._seed), Module()
        registers = [getattr(self, f"register{k}") for k in range(10)]
        inputs = [getattr(self, f"input{k}") for k in range(5)]

        def expression(depth: int) -> Value:
            # Of few sources, so that some of them rest.
            near = [*chance.sample(registers, 3), chance.choice(inputs), self.row, self.late_row]
            return random_expression(chance, near[chance.randint(0, 3) :], depth)

        for register in registers:
            with m.If(
                chance.choice((expression(2).any(), self.counter[3:8] == chance.getrandbits(5)))
            ):
                m.d.sync += register.eq(expression(3))
            if chance.random() < 0.5:
                with m.Elif(expression(1).any()):
                    m.d.sync += register[len(register) // 2 :].eq(expression(2))
        m.d.sync += self.counter.eq(self.counter + 3)
        m.d.comb += self.shown.eq(expression(3))
        m.submodules += (memory := Memory(shape=33, depth=5, init=[1, 2]))
        first, second = memory.write_port(), memory.write_port(granularity=11)
        read, late_read = memory.read_port(domain="comb"), memory.read_port()
        # Something happens while all inputs rest, and what reads the memory rests until then.
        m.d.comb += [first.addr.eq(self.counter[1:]), first.en.eq(self.counter[4:7] == 2)]
        m.d.comb += [second.addr.eq(expression(1)), second.en.eq(expression(1))]
        m.d.comb += [write.data.eq(expression(2)) for write in (first, second)]
        m.d.comb += [read.addr.eq(registers[0]), late_read.addr.eq(registers[1])]
        m.d.comb += [late_read.en.eq(self.counter[5]), self.row.eq(read.data)]
        m.d.comb += self.late_row.eq(late_read.data)
        return m


@pytest.fixture
def everywhere(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be is in a group, and none are merged."""
    monkeypatch.setattr(writer, "LEAVES_OUT", True)
    monkeypatch.setattr(activity, "_LEAST", -(1 << 30))
    monkeypatch.setattr(activity, "_WATCHED", 0)
    monkeypatch.setattr(activity, "_WORTH", 0)


def expect_agreement(slow_one: wiring.Component, fast_one: wiring.Component, seed: int) -> None:
    chance = random.Random(seed)
    slow, fast = PysimEvaluator(slow_one), CompiledEvaluator(fast_one)
    inputs = [port for port in Circuit(slow_one).inputs if port != "rst"]
    with closing(slow), closing(fast):
        for cycle in range(CYCLES):
            changed = {
                port: chance.getrandbits(slow.widths[port])
                for port in inputs
                if chance.random() < 0.02
            }
            if cycle % 50 in (30, 33):
                changed["rst"] = int(cycle % 50 == 30)
            for evaluator in (slow, fast):
                for port, value in changed.items():
                    evaluator.set(port, value)
            # A look must not be what wakes it.
            for port in slow.widths if cycle % 3 == 0 else ():
                assert fast.get(port) == slow.get(port), (seed, cycle, port)
            slow.step()
            fast.step()
        for port in slow.widths:
            assert fast.get(port) == slow.get(port), (seed, port)


@pytest.mark.parametrize("seed", range(8))
def test_what_rests_is_as_it_was(everywhere: None, seed: int) -> None:
    expect_agreement(Random(seed), Random(seed), seed)


@pytest.mark.parametrize("width", [1, 64, 100])
def test_registers_that_load_each_other(everywhere: None, width: int) -> None:
    expect_agreement(Registers(width), Registers(width), width)


class Counter(wiring.Component):
    """A register that is another one after every edge."""

    shown: Out(8)
    by: In(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.shown.eq(self.shown + self.by)
        return m


def test_what_never_rests_has_no_flag(everywhere: None) -> None:
    assert "if (now" in program(Circuit(Random(0)).design, ())[0]
    assert "if (now" not in program(Circuit(Counter()).design, ())[0]
