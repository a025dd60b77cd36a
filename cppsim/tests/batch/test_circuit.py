"""The ports, clocks and resets of a batch, and their names."""

from typing import Any

from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

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
