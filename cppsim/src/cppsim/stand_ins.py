"""Amaranth logic in place of Instances: models of cells that come from Verilog, by their names."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from amaranth.hdl import (
    ClockSignal,
    DomainRenamer,
    Elaboratable,
    Fragment,
    Instance,
    Module,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .errors import SimulationError

_SYNC = "sync"

_registered: dict[str, "_StandIn"] = {}


class _StandIn:
    """The function that makes a model of one kind of Instance, and its ports for clocks."""

    def __init__(self, make: Callable[..., Elaboratable], clocks: Mapping[str, str]) -> None:
        self.make, self.clocks = make, clocks


def register_cell(
    name: str,
    make: Callable[..., Elaboratable],
    *,
    clocks: Mapping[str, str] | None = None,
) -> Callable[[], None]:
    """Simulate each ``Instance`` of kind ``name`` by Amaranth logic, until the result is called.

    It holds for each ``cppsim.Simulator`` in any mode, `Batch`, `Model` and `ReferenceModel` that
    is made afterwards.

    Parameters
    ----------
    make : callable
        Takes the parameters of an Instance by their names, and returns an elaboratable with an
        attribute for each port: a component, or a class that has signals.
    clocks : mapping of str to str
        Ports of the Instance that are clocks, and the domains of the logic that they clock. The
        Instance has a ``ClockSignal`` there. Registers of the logic are reset with that domain.

    A design is refused with a ``SimulationError`` if the logic does not take the parameters, lacks
    a port of the Instance or has an input that the Instance lacks, and for other widths and
    directions. Raises ``SimulationError`` for a name that is registered already.
    """
    if name in _registered:
        raise SimulationError(f"cell {name!r}: registered already; expected a name once")
    _registered[name] = _StandIn(make, dict(clocks or {}))

    def undo() -> None:
        _registered.pop(name, None)

    return undo


def registered() -> tuple[object, ...]:
    """Return the registered logic, to compare it with that of another time."""
    return tuple(_registered.values())


def with_stand_ins(design: Any) -> Any:
    """Return ``design``, with the registered logic in place of Instances if there is any.

    Raises ``SimulationError`` for an Instance that does not fit its logic.
    """
    if not _registered:
        return design
    fragment: Any = Fragment.get(design, None)
    found = _stand_in(fragment)
    if found is not None:
        return found
    _replace_within(fragment)
    return fragment


def _replace_within(fragment: Any) -> None:
    for number, (inner, *about) in enumerate(fragment.subfragments):
        found = _stand_in(inner)
        if found is None:
            _replace_within(inner)
        else:
            fragment.subfragments[number] = (found, *about)


def _stand_in(fragment: Any) -> Any:
    """Return the logic in place of ``fragment``; None unless that is a registered Instance."""
    instance: Any = fragment  # Amaranth's stubs lag
    known = _registered.get(instance.type) if isinstance(fragment, Instance) else None
    if known is None:
        return None
    line = "" if instance.src_loc is None else " at {}:{}".format(*instance.src_loc)
    title = f"Instance {instance.type!r}{line}"
    made = Fragment.get(_Wired(known, instance, title), None)
    _replace_within(made)
    return made


class _Wired(Elaboratable):
    """The logic in place of one Instance, connected to its ports."""

    def __init__(self, stand_in: _StandIn, instance: Any, title: str) -> None:
        self._clocks, self._title = stand_in.clocks, title
        self._ports: Mapping[str, tuple[Any, str]] = instance.ports
        try:
            inspect.signature(stand_in.make).bind(**instance.parameters)
        except TypeError as error:
            given = ", ".join(instance.parameters) or "none"
            raise SimulationError(f"{title}: parameters {given}: its logic has {error}") from None
        self._logic = stand_in.make(**instance.parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        logic: Any = self._logic
        if self._clocks:
            logic = DomainRenamer(self._domains())(logic)
        m.submodules.logic = logic
        flows = _flows(self._logic)
        for name, (value, direction) in self._ports.items():
            if name in self._clocks:
                continue
            port = self._port(name, value, direction, flows)
            m.d.comb += port.eq(value) if direction == "i" else value.eq(port)
        for name, is_input in flows.items():
            if is_input and name not in self._ports:
                raise self._refused(f"no port {name!r}; its logic has this input")
        return m

    def _domains(self) -> dict[str, str]:
        """Return the domain of the Instance for each domain of its logic."""
        domains = {}
        for name, inner in self._clocks.items():
            value: Any = self._ports.get(name, (None, ""))[0]
            domain = getattr(value, "domain", None) if isinstance(value, ClockSignal) else None
            if domain is None:
                raise self._refused(f"port {name!r}: {value!r}; expected a ClockSignal")
            domains[inner] = domain
        return domains

    def _port(self, name: str, value: Any, direction: str, flows: Mapping[str, bool]) -> Any:
        try:
            port = Value.cast(getattr(self._logic, name))
        except (AttributeError, TypeError):
            known = ", ".join(sorted({*flows, *self._clocks})) or "none"
            text = f"port {name!r}: its logic has no such signal; there are: {known}"
            raise self._refused(text) from None
        if direction == "io" or not isinstance(value, Value):
            raise self._refused(f"port {name!r}: a pin; expected an input or an output")
        if flows.get(name, direction == "i") is not (direction == "i"):
            kinds = ("an output", "an input") if direction == "i" else ("an input", "an output")
            text = f"port {name!r}: {kinds[0]} of its logic; expected {kinds[1]}"
            raise self._refused(text)
        if len(port) != len(value):
            text = f"port {name!r}: {len(value)} bits; expected {len(port)}, as its logic has"
            raise self._refused(text)
        return port

    def _refused(self, text: str) -> SimulationError:
        return SimulationError(f"{self._title}: {text}")


def _flows(logic: Any) -> dict[str, bool]:
    """Return by name whether a port of ``logic`` is an input; none without a signature."""
    signature = getattr(logic, "signature", None)
    if not isinstance(signature, wiring.Signature):
        return {}
    return {name: member.flow == In for name, member in signature.members.items()}
