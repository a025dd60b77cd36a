"""A circuit placed out of context: flip-flops around it, so that no pin bounds its clock.

The circuit stays a separate module until it is mapped to cells, so that none of its gates is merged
with the flip-flops around it.
"""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["CORE", "OutOfContext"]

CORE = "core"
"""Name of the submodule that is the circuit itself."""


class OutOfContext(Elaboratable):
    """``component`` with all inputs, its reset too, from one shift register, and all outputs
    captured in flip-flops, which a pipelined tree of XOR gates reduces to one bit.

    Every path runs from flip-flop to flip-flop, except at the two data pins.

    Parameters
    ----------
    component
        The circuit.
    clocks
        Its clock domains. The flip-flops have the first one's clock, and so all ports of the others
        must be registers for their paths to be timed.

    Attributes
    ----------
    clk, i, o
        The pins. ``clk`` is the clock of the first domain.
    clocks
        The pins of all clocks, in the order of the domains.
    inputs, outputs
        Bits of the component on each side.
    """

    def __init__(self, component: wiring.Component, clocks: Sequence[str] = ("sync",)) -> None:
        self._component: Any = component
        self._domains = clocks
        self.clk = Signal()
        self.clocks = [self.clk, *(Signal(name=f"clk_{name}") for name in clocks[1:])]
        self.i = Signal()
        self.o = Signal()
        # Amaranth's stubs do not know what flatten() yields.
        flat: Any = component.signature.flatten(component)
        ports = [(member.flow, Value.cast(port)) for _, member, port in flat]
        self.inputs = [port for flow, port in ports if flow == In]
        self.outputs = [port for flow, port in ports if flow != In]

    @property
    def ports(self) -> list[Signal]:
        return [*self.clocks, self.i, self.o]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        around: Any = ClockDomain("around", reset_less=True)
        m.domains += around
        m.submodules[CORE] = self._component
        shift = Signal(1 + sum(map(len, self.inputs)), reset_less=True)
        m.d.comb += [around.clk.eq(self.clk), Cat(self.inputs).eq(shift[:-1])]
        for name, clock in zip(self._domains, self.clocks, strict=True):
            domain: Any = ClockDomain(name)
            m.domains += domain
            m.d.comb += [domain.clk.eq(clock), domain.rst.eq(shift[-1])]
        m.d.around += shift.eq(Cat(self.i, shift))
        bits = Value.cast(Cat(self.outputs))
        level = 0
        while True:
            held = Signal(len(bits), name=f"captured_{level}", reset_less=True)
            m.d.around += held.eq(bits)
            if len(held) == 1:
                break
            bits = Cat(held[at : at + 4].xor() for at in range(0, len(held), 4))
            level += 1
        m.d.comb += self.o.eq(held)
        return m
