"""A batch gives distinct names to signals of a design that have the same name."""

from typing import Any

from amaranth.hdl import Module
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
