"""The ports, clocks and resets of a batch, and their names."""

from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Program
from cppsim.testing import EXECUTORS, Bench
from support.carriers import Part


def test_a_port_keeps_its_name_beside_the_clock_and_the_reset_of_a_domain() -> None:
    dut: Any = Part(
        {"rst": In(1), "clk": In(8), "taken": Out(8)},
        sync=lambda x: x.taken.eq(Mux(x.rst, x.clk, x.taken)),
    )
    batch = Batch(dut, 3, "threads")
    for values in ({"clk": [5, 6, 7], "rst": [0, 1, 1]}, {"rst2": [1, 1, 0]}):
        for name, value in values.items():
            batch.set(name, value)
        batch.step()
        assert batch.get("taken").tolist() == [0, 6 * ("clk" in values), 7]

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.clk, 9)
        ctx.set(dut.rst, 1)
        await ctx.tick()
        ctx.get(dut.taken)

    again = Batch(dut, 2, "threads")
    assert again.run(again.record(testbench).program)["taken"].tolist() == [9, 9]


def two_resets() -> Any:
    """Return a design with a port called ``rst``, a reset of that name, and an unused domain."""

    def build(m: Module, x: Any) -> None:
        m.domains.sync = x.domain = ClockDomain("sync")
        m.domains.idle = ClockDomain()

    return Part(
        {"rst": In(1), "count": Out(4)}, build=build, sync=lambda x: x.count.eq(x.count + 1 + x.rst)
    )


def test_a_reset_that_a_port_shares_its_name_with_is_recorded_under_its_number() -> None:
    dut = two_resets()

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.rst, 1)
        await ctx.tick().repeat(3)
        ctx.get(dut.count)
        ctx.set(dut.domain.rst, 1)
        await ctx.tick()
        ctx.get(dut.count)

    batch = Batch(dut, 2, "threads")
    # A domain without logic has neither clock nor reset.
    assert {name for name in batch.ports if "$" not in name} == {"rst", "rst2", "count"}
    recording = batch.record(testbench)
    results = batch.run(recording.program.replaced("rst2", [1, 0]))
    assert recording.results["count"] == 6
    assert recording.results["count 2"] == 0
    assert results["count 2"].tolist() == [0, 8]
    exposed = Batch(two_resets(), 1, "threads", expose=["count", "rst"])
    assert set(exposed.ports) >= {"rst", "rst2", "count"}


@pytest.mark.parametrize("ratio", [1, 3])
def test_clocks_of_unequal_rates_have_the_values_of_the_simulator(ratio: int) -> None:
    """The slow clock has its edges between those of the fast one, in both."""
    m = Module()
    m.domains.slow = ClockDomain()
    count, back = Signal(8, name="count"), Signal(8, name="back")
    m.d.sync += count.eq(count + back + 1)
    m.d.slow += back.eq(count ^ back)
    sim = Bench(EXECUTORS["pysim"])
    clocks = {"sync": 1e-6, "slow": (ratio * 1e-6, (ratio - 0.25) * 1e-6)}
    sim.run(m, sim.reads(9, back, domain="slow"), clocks=clocks)
    expected = [number for (number,) in sim.seen]
    program = Program()
    with program.repeat(9):
        program.step(ratio).set("slow_clk", 1).set("slow_clk", 0).get("back")
    batch = Batch(m, 2, "threads", clocks=["sync"])
    assert batch.run(program)["back"].tolist() == [expected] * 2
    assert len(set(expected)) > 5
