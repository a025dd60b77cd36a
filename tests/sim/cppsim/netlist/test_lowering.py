"""Lowering a design leaves Python as it was, whether or not the design can be lowered."""

import sys

import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.hdl._ir import Design, PortDirection
from amaranth.hdl._nir import CombinationalCycle

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
