"""The layout of a simulation's state: which inputs change without a step."""

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Format, Fragment, Module, Print, Signal
from amaranth.hdl._ir import PortDirection

from cppsim.cpp.simulation import write_simulation
from cppsim.netlist.lowering import lower


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
    ((place,),) = [source.places[lowered.signals[given]]]
    assert (place.word in source.passive) == (reader == "logic")
