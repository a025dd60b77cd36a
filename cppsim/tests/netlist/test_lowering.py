"""Lowering refuses some designs, and leaves Python as it was with all of them."""

import sys

import pytest
from amaranth.hdl import Assert, ClockDomain, ClockSignal, Format, Fragment, Module, Print, Signal
from amaranth.hdl._ir import Design, PortDirection
from amaranth.hdl._nir import CombinationalCycle
from amaranth.lib.memory import Memory

from cppsim.netlist.design import NotPlain
from cppsim.netlist.lowering import lower


def prepared(*, loop: bool) -> Design:
    """Return a design with an output, which depends on itself if ``loop``."""
    m = Module()
    a, b = Signal(), Signal()
    m.d.comb += a.eq(~b if loop else 1)
    m.d.comb += b.eq(a)
    return Fragment.get(m, None).prepare(ports={"b": (b, PortDirection.Output)})


@pytest.mark.parametrize("loop", [False, True])
def test_lowering_restores_the_limit_of_recursion(loop: bool) -> None:
    before = sys.getrecursionlimit()
    if loop:
        with pytest.raises(CombinationalCycle):
            lower(prepared(loop=loop))
    else:
        lower(prepared(loop=loop))
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("async_reset", [False, True])
def test_with_one_clock_a_read_port_has_no_asynchronous_reset(async_reset: bool) -> None:
    m = Module()
    m.domains.sync = sync = ClockDomain(async_reset=async_reset)
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[])
    memory.read_port()
    ports = {name: (getattr(sync, name), PortDirection.Input) for name in ("clk", "rst")}
    design = Fragment.get(m, None).prepare(ports=ports)
    if async_reset:
        with pytest.raises(NotPlain, match="the rising edges of one clock only; take cpp"):
            lower(design, clock=sync.clk)
    else:
        assert len(lower(design, clock=sync.clk).design.registers) == 1


def test_with_one_clock_a_register_of_a_constant_clock_is_constant() -> None:
    m, register = Module(), Signal(4, init=0b0110)
    m.domains.sync = sync = ClockDomain(reset_less=True)
    m.domains.still = ClockDomain(reset_less=True)
    m.d.comb += ClockSignal("still").eq(1)
    m.d.still += register.eq(register + 1)
    m.d.sync += Signal().eq(1)
    design = Fragment.get(m, None).prepare(ports={"clk": (sync.clk, PortDirection.Input)})
    assert lower(design, clock=sync.clk).signals[register] == (0, 1, 1, 0)


def test_messages_are_reported_at_edges_or_after_every_change() -> None:
    m, given = Module(), Signal()
    m.d.sync += [Print(Format("{}", given)), Assert(given)]
    m.d.comb += Print(Format("given {}", given))
    found = lower(Fragment.get(m, None).prepare(ports={"i": (given, PortDirection.Input)}))
    assert [message.kind for message in found.edge_messages] == ["print", "assert"]
    assert [message.kind for message in found.comb_messages] == ["print"]
