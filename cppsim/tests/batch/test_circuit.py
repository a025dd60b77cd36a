"""The ports, clocks and resets of a batch, and their names."""

from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import cppsim
from cppsim import Batch


class OwnReset(wiring.Component):
    """A design whose ports have the names of its domain's clock and reset."""

    rst: In(1)
    clk: In(8)
    taken: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.rst):
            m.d.sync += self.taken.eq(self.clk)
        return m


def test_a_port_keeps_its_name_beside_the_clock_and_the_reset_of_a_domain() -> None:
    batch = Batch(OwnReset(), 3, backend="threads")
    batch.set("clk", [5, 6, 7])
    batch.set("rst", [0, 1, 1])
    batch.step()
    assert batch.get("taken").tolist() == [0, 6, 7]
    batch.set("rst2", [1, 1, 0])
    batch.step()
    assert batch.get("taken").tolist() == [0, 0, 7]


def test_what_a_testbench_sets_is_the_port_and_not_the_reset() -> None:
    dut = OwnReset()

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.clk, 9)
        ctx.set(dut.rst, 1)
        await ctx.tick()
        ctx.get(dut.taken)

    batch = Batch(dut, 2, backend="threads")
    recording = batch.record(testbench)
    assert batch.run(recording.program)["taken"].tolist() == [9, 9]


class TwoResets(wiring.Component):
    """A design with a port called ``rst`` and a reset of the same name, which `domain` holds."""

    rst: In(1)
    count: Out(4)

    def __init__(self) -> None:
        super().__init__()
        self.domain = ClockDomain("sync")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domain
        m.d.sync += self.count.eq(self.count + 1 + self.rst)
        return m


def test_a_reset_that_a_port_shares_its_name_with_is_recorded_under_its_number() -> None:
    dut = TwoResets()

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.rst, 1)
        await ctx.tick().repeat(3)
        ctx.get(dut.count)
        ctx.set(dut.domain.rst, 1)
        await ctx.tick()
        ctx.get(dut.count)

    batch = Batch(dut, 2, backend="threads")
    recording = batch.record(testbench)
    results = batch.run(recording.program.replaced("rst2", [1, 0]))
    assert recording.results["count"] == 6
    assert recording.results["count 2"] == 0
    assert results["count 2"].tolist() == [0, 8]


def test_an_exposed_signal_keeps_its_name_beside_a_reset() -> None:
    dut = TwoResets()
    batch = Batch(dut, 1, backend="threads", expose=["count", "rst"])
    assert set(batch.ports) >= {"rst", "rst2", "count"}


class Idle(wiring.Component):
    """A counter beside a domain without any logic."""

    count: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.idle = ClockDomain()
        m.d.sync += self.count.eq(self.count + 1)
        return m


def test_a_domain_without_logic_has_neither_clock_nor_reset() -> None:
    batch = Batch(Idle(), 2, backend="threads")
    assert {name for name in batch.ports if "$" not in name} == {"rst", "count"}
    batch.step(5)
    assert batch.get("count").tolist() == [5, 5]


@pytest.mark.parametrize("ratio", [1, 3])
def test_clocks_of_unequal_rates_have_the_values_of_the_simulator(ratio: int) -> None:
    """The slow clock has its edges between those of the fast one, in both."""
    m = Module()
    m.domains.slow = ClockDomain()
    count, back = Signal(8, name="count"), Signal(8, name="back")
    m.d.sync += count.eq(count + back + 1)
    m.d.slow += back.eq(count ^ back)
    expected = list[int]()

    async def testbench(ctx: Any) -> None:
        for _ in range(9):
            await ctx.tick("slow")
            expected.append(ctx.get(back))

    simulator = cppsim.Simulator(m, mode="off")
    simulator.add_clock(1e-6)
    simulator.add_clock(ratio * 1e-6, phase=(ratio - 0.25) * 1e-6, domain="slow")
    simulator.add_testbench(testbench)
    simulator.run()
    program = cppsim.Program()
    with program.repeat(9):
        program.step(ratio).set("slow_clk", 1).set("slow_clk", 0).get("back")
    batch = cppsim.Batch(m, 2, "threads", clocks=["sync"])
    assert batch.run(program)["back"].tolist() == [expected] * 2
    assert len(set(expected)) > 5
