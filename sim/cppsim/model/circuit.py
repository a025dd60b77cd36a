"""Prepare an Amaranth circuit for a model: ports by name, one clock domain around it."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

from amaranth.hdl import ClockDomain, Elaboratable, Fragment, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..errors import SimulationError
from ..netlist.design import PlainDesign
from ..netlist.elaborated import CLOCK, Elaborated, digest_of
from ..netlist.instances import replace_instances
from ..netlist.one_clock import plain_circuit

__all__ = ["RESET", "Circuit"]

RESET = "rst"


class Circuit(Elaboratable, Elaborated):
    """A top level that gives ``component`` the domain ``sync``, and flat names to its ports.

    Ports are named like in Amaranth's own output: the path of a member joined by ``__``. Members
    of no bits are left out.

    Raises ``SimulationError`` for a component without a signature, and for a port that is called
    like the clock or the reset.

    ``cells`` makes a component for each kind of Instance in the design; such a component works in
    ``sync``, and has the ports of the Instance but for its clock.

    Attributes
    ----------
    signature
        Clock, reset and all ports, flat; every port is also an attribute of that name.
    inputs, outputs
        Ports by name. The reset is an input, the clock is not among them: models drive it.
    """

    def __init__(
        self,
        component: wiring.Component | Elaboratable,
        cells: Mapping[str, Callable[[], wiring.Component]] | None = None,
    ) -> None:
        self._cells = cells or {}
        signature = getattr(component, "signature", None)
        if not isinstance(signature, wiring.Signature):
            name = type(component).__name__
            raise SimulationError(f"{name}: a circuit needs a signature that names its ports")
        self._component: Any = component
        # Amaranth's stubs know neither the signals of a domain nor what flatten() yields.
        domain: Any = ClockDomain("sync")
        self.domain = domain
        self.inputs: dict[str, Value] = {RESET: self.domain.rst}
        self.outputs: dict[str, Value] = {}
        flat: Any = signature.flatten(component)
        for path, member, port in flat:
            value = Value.cast(port)
            name = "__".join(map(str, path))
            if name in (CLOCK, RESET):
                raise SimulationError(f"port {name}: the name belongs to the clock domain")
            if name in self.inputs or name in self.outputs:
                raise SimulationError(f"port {name}: two members have this name")
            if len(value):
                (self.inputs if member.flow == In else self.outputs)[name] = value
        members = {CLOCK: In(1)}
        members |= {name: In(len(value)) for name, value in self.inputs.items()}
        members |= {name: Out(len(value)) for name, value in self.outputs.items()}
        self.signature = wiring.Signature(members)
        for name, value in {CLOCK: self.domain.clk, **self.inputs, **self.outputs}.items():
            setattr(self, name, value)

    @property
    def input_widths(self) -> dict[str, int]:
        return {name: len(value) for name, value in self.inputs.items()}

    @property
    def output_widths(self) -> dict[str, int]:
        return {name: len(value) for name, value in self.outputs.items()}

    @property
    def design(self) -> PlainDesign:
        """Raises ``NotPlain``, a `SimulationError`, and what Amaranth raises of a design."""
        return copy(self._design)

    @property
    def digest(self) -> str:
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest_of(self._design)

    @cached_property
    def _design(self) -> PlainDesign:
        # Elaborated once: for a whole system that takes a second.
        fragment: Any = Fragment.get(self, None)
        replace_instances(fragment, self._cells)
        return plain_circuit(fragment, self.domain.clk, self.inputs, self.outputs)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domain
        m.submodules.circuit = self._component
        return m
