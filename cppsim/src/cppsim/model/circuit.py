"""Prepare an Amaranth circuit for a model: ports by name, one clock domain, and its plain form."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

from amaranth.hdl import (
    ClockDomain,
    DomainRenamer,
    Elaboratable,
    Fragment,
    Instance,
    Module,
    Signal,
    Value,
)
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from ..amaranth_internals import (
    PortDirection,
    clocks_and_resets_of,
    driven_signals,
    made_signals,
    memories_of,
    memory_instances_of,
    read_ports_of,
    rows_of,
)
from ..compiling import content_key, source_digest
from ..errors import SimulationError
from ..netlist import CLOCK, DesignPort, PlainDesign, PlainMessage
from ..netlist.enables import find_enables
from ..netlist.fingerprint import fingerprint
from ..netlist.lowered import DesignMessage, check_message, parts_of
from ..netlist.lowering import lower
from ..stand_ins import with_stand_ins
from .interface import Elaborated

RESET = "rst"

_SYNC = "sync"

_AMARANTH = source_digest("amaranth.hdl")
"""The digest of the code that makes a netlist of a prepared design."""


class Circuit(Elaboratable, Elaborated):
    """A top level that gives ``component`` the domain ``sync``, and flat names to its ports.

    A component that defines ``sync`` itself keeps it; its reset is an input unless logic drives it.
    Ports are named like in Amaranth's own output: the path of a member joined by ``__``. Without a
    signature, the ports are all signals of the top level, and those that nothing drives are inputs.
    Ports of no bits are left out.

    Raises ``SimulationError`` for a port that is called like the clock or the reset, and for a
    component with its own ``sync`` that cannot be clocked here.

    ``cells`` makes a component for each kind of Instance in the design; such a component works in
    ``sync``, and has the ports of the Instance but for its clock.

    Attributes
    ----------
    inputs, outputs
        Ports by name. The reset is an input, the clock is not among them: models drive it.
    """

    def __init__(
        self,
        component: wiring.Component | Elaboratable,
        cells: Mapping[str, Callable[[], wiring.Component]] | None = None,
    ) -> None:
        self._cells = cells or {}
        self._title = type(component).__name__
        # Elaborated once: for a whole system that takes a second.
        self._fragment: Any = Fragment.get(with_stand_ins(component), None)
        # Amaranth's stubs know neither the signals of a domain nor what flatten() yields.
        own: Any = [x.domains[_SYNC] for x in _fragments(self._fragment) if _SYNC in x.domains]
        reset, self._has_domain = True, bool(own)
        domain: Any = own[0] if own else ClockDomain(_SYNC)
        self.domain = domain
        if own:
            reset = _has_reset_input(self._fragment, own, self._title)
        reset_input: Any = domain.rst if reset else None
        self.inputs: dict[str, Value] = {} if reset_input is None else {RESET: reset_input}
        self.outputs: dict[str, Value] = {}
        self._shapes: dict[str, object] = {}
        for name, is_input, port in _ports_of(component, self._fragment):
            value = Value.cast(port)
            if name in (CLOCK, RESET):
                raise SimulationError(f"port {name}: the name belongs to the clock domain")
            if name in self.inputs or name in self.outputs:
                raise SimulationError(f"port {name}: two members have this name")
            if len(value):
                (self.inputs if is_input else self.outputs)[name] = value
                if isinstance(port, data.View):
                    self._shapes[name] = port.shape()

    @property
    def title(self) -> str:
        return self._title

    @property
    def signals(self) -> dict[str, Value]:
        return {**self.inputs, **self.outputs}

    @property
    def input_widths(self) -> dict[str, int]:
        return {name: len(value) for name, value in self.inputs.items()}

    @property
    def output_widths(self) -> dict[str, int]:
        return {name: len(value) for name, value in self.outputs.items()}

    @property
    def signed(self) -> list[str]:
        return [name for name, value in self.signals.items() if value.shape().signed]

    @property
    def shapes(self) -> dict[str, object]:
        return self._shapes

    @property
    def design(self) -> PlainDesign:
        """Raises ``NotPlain``, a `SimulationError`, and what Amaranth raises of a design."""
        return copy(self._design)

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def contents(self) -> list[Sequence[int]]:
        return list(map(rows_of, memories_of(self._prepared.fragment)))

    @cached_property
    def _digest(self) -> str:
        mark = fingerprint(self._prepared)
        numbers = {id(thing): number for number, thing in enumerate(mark.objects)}
        ports = [(name, numbers[id(x)]) for name, (x, _) in self._ports().items()]
        names = [(name, numbers[id(x)]) for name, x in named_signals(self._prepared)]
        return content_key(mark.digest, repr(ports), repr(names), _AMARANTH)

    @cached_property
    def _design(self) -> PlainDesign:
        return _plain_design(self._prepared, self.domain.clk, self._ports())

    @cached_property
    def _prepared(self) -> Any:
        fragment: Any = Fragment.get(self, None)
        _replace_instances(fragment, self._cells)
        return fragment.prepare(ports=self._ports())

    def _ports(self) -> "dict[str, tuple[Any, Any]]":
        """Return the signal and the direction of each port, the clock included."""
        given = {CLOCK: self.domain.clk, **self.inputs}
        ports = {name: (value, PortDirection.Input) for name, value in given.items()}
        return ports | {name: (x, PortDirection.Output) for name, x in self.outputs.items()}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if not self._has_domain:
            m.domains += self.domain
        m.submodules.circuit = _copied(self._fragment)
        return m


def _ports_of(component: Any, fragment: Any) -> "Iterator[tuple[str, bool, Any]]":
    """Yield the name of each port of ``component``, whether it is an input, and its signal."""
    signature = getattr(component, "signature", None)
    if isinstance(signature, wiring.Signature):
        # Amaranth's stubs do not know what flatten() yields.
        flat: Any = signature.flatten(component)
        for path, member, port in flat:
            yield "__".join(map(str, path)), member.flow == In, port
        return
    prepared = _copied(fragment).prepare()
    driven, clocks = made_signals(prepared), set(map(id, clocks_and_resets_of(prepared)))
    for memory in memory_instances_of(prepared.fragment):
        for _, shown, *_ in read_ports_of(memory):
            driven.update(driven_signals(shown))
    for inner in _fragments(prepared.fragment):
        if isinstance(inner, Instance):
            instance: Any = inner
            for value, direction in instance.ports.values():
                if direction != "i":
                    driven.update(driven_signals(value))
    for name, signal in named_signals(prepared):
        if "." not in name and id(signal) not in clocks:
            yield name, signal not in driven, signal


def _fragments(fragment: Any) -> Iterator[Any]:
    """Yield ``fragment`` and all within it."""
    yield fragment
    for inner, *_ in fragment.subfragments:
        yield from _fragments(inner)


def _copied(fragment: Any) -> Any:
    """Return a copy of ``fragment``, because `prepare` adds domains to its fragment."""
    return DomainRenamer({})(fragment)


def _has_reset_input(fragment: Any, own: Sequence[Any], name: str) -> bool:
    """Return whether the domain ``sync`` that ``fragment`` defines has a reset that nothing drives.

    Raises ``SimulationError`` if the component ``name`` has several or local ones among its
    domains, ``own``, or if logic drives its clock.
    """
    how = "has several" if len(own) > 1 else "has a local one" if own[0].local else ""
    if not how:
        made = made_signals(_copied(fragment).prepare())
        if own[0].clk not in made:
            return own[0].rst is not None and own[0].rst not in made
        how = "makes the clock itself"
    raise SimulationError(
        f"{name}: domain 'sync': the component {how}; expected one with a clock from outside, "
        "or take cppsim.Simulator or cppsim.Batch"
    )


def _plain_design(
    prepared: Any, clock: Signal, ports: "Mapping[str, tuple[Any, Any]]"
) -> PlainDesign:
    """Return the plain form of a design that only the rising edges of ``clock`` change.

    Signals keep their names, with those of the submodules before them; nothing is trimmed.

    Raises ``NotPlain`` for other edges, and what Amaranth raises of a design.
    """
    lowered = lower(prepared, clock=clock)
    design = lowered.design
    design.ports = [
        DesignPort(name, direction is PortDirection.Output, lowered.signals[value])
        for name, (value, direction) in ports.items()
    ]
    design.names = {name: lowered.signals[signal] for name, signal in named_signals(prepared)}
    messages = (*lowered.edge_messages, *lowered.comb_messages)
    design.messages = [plain for message in messages for plain in _plain_messages(message)]
    find_enables(design)
    return design


def named_signals(prepared: Any) -> Iterator[tuple[str, Signal]]:
    """Yield all signals that have a name, which begins with those of the submodules."""
    for signal, fragment in prepared.signal_lca.items():
        about = prepared.fragments[fragment]
        if signal in about.signal_names:
            yield ".".join((*about.name[1:], about.signal_names[signal])), signal


def _plain_messages(message: DesignMessage) -> Iterator[PlainMessage]:
    """Yield the plain form of ``message``; covers have none."""
    prints = message.kind == "print"
    if message.kind != "cover":
        statement = message.statement
        parts = parts_of(statement.message) if prints else check_message(statement)
        yield PlainMessage(message.enable, message.values, parts, not prints)


def _replace_instances(fragment: Any, cells: Mapping[str, Callable[[], wiring.Component]]) -> None:
    """Replace each Instance within ``fragment`` that has a component in ``cells``.

    The component has the Instance's ports by their names, but for clocks: it works in ``sync``.
    """
    for number, (inner, *about) in enumerate(fragment.subfragments):
        if not isinstance(inner, Instance):
            _replace_instances(inner, cells)
            continue
        instance: Any = inner
        if instance.type in cells:
            wrapped = Fragment.get(_wrapped(cells[instance.type](), instance.ports), None)
            fragment.subfragments[number] = (wrapped, *about)


def _wrapped(component: Any, ports: Mapping[str, tuple[Any, str]]) -> Module:
    """Return a component with its ports connected to the values in ``ports``."""
    m = Module()
    m.submodules.cell = component
    for name, member in component.signature.members.items():
        value, _ = ports[name]
        port = getattr(component, name)
        m.d.comb += port.eq(value) if member.flow == In else value.eq(port)
    return m
