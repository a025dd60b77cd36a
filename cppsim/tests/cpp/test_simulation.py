"""Edges of a simulation, and the layout of its state."""

from typing import Any

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Format, Fragment, Module, Print, Signal
from amaranth.hdl._ir import PortDirection

from cppsim.cpp.simulation import write_simulation
from cppsim.netlist.lowering import lower
from support.engines import Bench, on_engine, same_on


@pytest.mark.parametrize("reader", ["logic", "message", "clock"])
def test_an_input_changes_without_a_step_if_logic_alone_reads_it(reader: str) -> None:
    m, given, shown = Module(), Signal(), Signal()
    m.d.comb += shown.eq(~given)
    if reader == "message":
        with m.If(given):
            m.d.comb += Print(Format("given"))
    elif reader == "clock":
        m.domains.made = ClockDomain(reset_less=True)
        m.d.comb += ClockSignal("made").eq(given)
        m.d.made += Signal().eq(1)
    design = Fragment.get(m, None).prepare(ports={"given": (given, PortDirection.Input)})
    lowered = lower(design)
    source = write_simulation(lowered)
    ((field,),) = [source.fields[lowered.signals[given]]]
    assert (field.word in source.comb_inputs) == (reader == "logic")


@same_on(on_engine)
def test_registers_of_two_domains_exchange_their_values(sim: Bench) -> None:
    m, left, right = Module(), Signal(8, init=3), Signal(8, init=5)
    m.domains.other = ClockDomain(reset_less=True)
    m.d.sync += left.eq(right)
    m.d.other += right.eq(left)

    async def work(ctx: Any) -> None:
        for _ in range(3):
            await ctx.tick()
            sim.seen.append((ctx.get(left), ctx.get(right)))

    simulator = sim.simulator(m, work)
    simulator.add_clock(1e-6, domain="other")
    simulator.run()
    assert sim.seen[0] == (5, 3)
