"""Lower an Amaranth design for a batch, with its ports by name.

If all state changes at rising edges of one clock, that clock is removed: every step is an edge.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any, cast

from amaranth.hdl import Fragment, Shape, Signal, Value
from amaranth.lib import data, wiring

from ..amaranth_internals import MemoryInstance, memories_of, memory_of, rows_of
from ..compiling import content_key
from ..errors import BatchError, in_one_line
from ..model.circuit import named_signals
from ..netlist import Bits, FormattedValue, Memory, PlainMessage
from ..netlist.enables import find_enables
from ..netlist.fingerprint import fingerprint
from ..netlist.lowered import DesignMessage, Lowered, StateInput, check_message
from ..netlist.lowering import lower
from ..netlist.passes import rewrite
from ..netlist.simplify import share
from ..stand_ins import with_stand_ins


@dataclass(frozen=True, slots=True)
class PortNames:
    """The signals of a design by port name, and the port names of each domain's clock and reset.

    ``signals`` are the ``chosen`` ones, and the clocks and resets of all domains. ``fields`` are
    parts of ports: the port, the lowest bit and the shape.
    """

    chosen: dict[str, Signal]
    signals: dict[str, Signal]
    fields: dict[str, tuple[str, int, Shape]] = field(default_factory=dict)
    clocks: dict[str, str] = field(default_factory=dict)
    resets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortChoice:
    """A design, the domains whose clocks a cycle drives (None: all), and more signals to show."""

    dut: Any
    clocks: Collection[str] | None = None
    expose: Collection[str] = ()

    def names(self, prepared: Any) -> PortNames:
        """Name the ports of the design, which is ``prepared``.

        Ports are the signals in ``expose``, those of a component or else all of the top level, and
        the clocks and resets of all domains. A clock or a reset gets a number if another port has
        its name: ``rst2``. Raises ``BatchError`` for a name in ``expose`` that no signal has.
        """
        named = dict(named_signals(prepared))
        unknown = [name for name in self.expose if name not in named]
        if unknown:
            raise BatchError(f"no signal {unknown[0]!r}; names are those in waveforms, such as a.b")
        chosen: dict[str, Any] = {name: named[name] for name in self.expose}
        signature, ports = getattr(self.dut, "signature", None), dict[str, Any]()
        if isinstance(signature, wiring.Signature):
            flat: Any = signature.flatten(self.dut)
            ports = {"__".join(map(str, path)): port for path, _, port in flat}
            chosen |= {name: Value.cast(port) for name, port in ports.items()}
        else:
            chosen |= {name: signal for name, signal in named.items() if "." not in name}
        chosen = {name: signal for name, signal in chosen.items() if len(signal)}
        names = PortNames(chosen, dict(chosen))
        for name, port in ports.items():
            if isinstance(port, data.View):
                fields = _fields(name, 0, port.shape())
                names.fields.update({x: (name, *at) for x, at in fields})
        for name, domain in prepared.fragment.domains.items():
            names.clocks[name] = _add(names.signals, domain.clk)
            if domain.rst is not None:
                names.resets[name] = _add(names.signals, domain.rst)
        return names


def _fields(name: str, low: int, shape: Any) -> Iterator[tuple[str, tuple[int, Shape]]]:
    """Yield the name, the lowest bit and the shape of each field of a layout, inner ones too."""
    try:
        layout = data.Layout.cast(shape)
    except TypeError:
        return
    for key, part in layout:
        of, own, first = part.shape, f"{name}.{key}", low + part.offset
        if Shape.cast(of).width:
            yield own, (first, Shape.cast(of))
            yield from _fields(own, first, of)


def _add(signals: dict[str, Signal], signal: Signal) -> str:
    """Add ``signal`` under its own name or the first free one; return that name."""
    name = free_name(signal.name, {name for name, x in signals.items() if x is not signal})
    signals[name] = signal
    return name


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the first of ``name``, ``name2``, ``name3`` and so on that is not ``taken``."""
    numbered = chain([name], (f"{name}{number}" for number in count(2)))
    return next(x for x in numbered if x not in taken)


@dataclass(slots=True)
class BatchCircuit:
    """A lowered design and its ports.

    Attributes
    ----------
    lowered : Lowered
    names : dict of str to Bits
        Bits of each port.
    signed, driven : set of str
        Ports that are signed; ports that logic drives, even if only by a wire from an input.
    clocks : list of str
        Clocks that a cycle raises and lowers; empty if every step is an edge.
    memories : dict of str to Memory
    checks : dict of int to tuple
        Messages of failed checks, by their numbers.
    contents : list
        Rows of each memory at power-on.
    """

    lowered: Lowered
    names: dict[str, Bits] = field(default_factory=dict)
    signed: set[str] = field(default_factory=set)
    driven: set[str] = field(default_factory=set)
    clocks: list[str] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=dict)
    checks: dict[int, tuple[str | FormattedValue, ...]] = field(default_factory=dict)
    contents: list[Sequence[int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A design whose ports are named, but which is not lowered yet."""

    choice: PortChoice
    prepared: Any
    names: PortNames

    @staticmethod
    def of(choice: PortChoice) -> "PreparedBatch":
        """Prepare the design of ``choice``. Raises ``BatchError``."""
        for parameter, names in (("clocks", choice.clocks), ("expose", choice.expose)):
            if isinstance(names, str):
                raise BatchError(f"{parameter}: {names!r}; expected a list of names")
        with in_one_line(BatchError):
            prepared = Fragment.get(with_stand_ins(choice.dut), None).prepare()
        return PreparedBatch(choice, prepared, choice.names(prepared))

    @property
    def contents(self) -> list[Sequence[int]]:
        """Rows of each memory at power-on, in the order of the netlist."""
        return list(map(rows_of, memories_of(self.prepared.fragment)))

    def key(self) -> str:
        """Return a key of all that `lowered` depends on but `contents`. Raises ``BatchError``."""
        with in_one_line(BatchError):
            mark = fingerprint(self.prepared)
        numbers = {id(thing): number for number, thing in enumerate(mark.objects)}
        names, clocks, fragments = self.names, self.choice.clocks, self.prepared.fragments.items()
        signals = [
            # A signal without logic has no number from the fingerprint.
            (name, numbers.setdefault(id(x), len(numbers)), len(x), x.shape().signed, hex(x.init))
            for name, x in names.signals.items()
        ]
        fields = [
            (x, port, low, of.width, of.signed) for x, (port, low, of) in names.fields.items()
        ]
        parts = (
            *(signals, list(names.chosen), fields),
            *(list(names.clocks.items()), list(names.resets.items())),
            None if clocks is None else sorted(clocks),
            [(*x.name, memory_of(y).name) for y, x in fragments if isinstance(y, MemoryInstance)],
        )
        return content_key(mark.digest, repr(parts))

    def lowered(self) -> BatchCircuit:
        """Return the circuit. Raises ``BatchError``."""
        with in_one_line(BatchError):
            lowered = lower(self.prepared)
        names, circuit = self.names, BatchCircuit(lowered, contents=self.contents)
        _choose(circuit, names)
        _clock(circuit, self.prepared.fragment.domains, names, self.choice.clocks)
        for number, message in enumerate((*lowered.edge_messages, *lowered.comb_messages)):
            if message.kind in ("assert", "assume"):
                circuit.checks[number] = check_message(message.statement)
        for memory in lowered.design.memories:
            circuit.memories[free_name(memory.name, circuit.memories)] = memory
        return circuit


def _choose(circuit: BatchCircuit, names: PortNames) -> None:
    """Show all ports but clocks and resets."""
    signals = circuit.lowered.signals
    free = circuit.lowered.design.first_free()
    for name, signal in names.chosen.items():
        if signal not in signals:  # no logic reads it
            signals[signal] = tuple(range(free, free + len(signal)))
            start = signal.init & (1 << len(signal)) - 1
            circuit.lowered.inputs.append(StateInput(signals[signal], start))
            free += len(signal)
        circuit.names[name] = signals[signal]
        if signal.shape().signed:
            circuit.signed.add(name)
        if circuit.lowered.driven.get(signal):
            circuit.driven.add(name)
    for name, (port, low, shape) in names.fields.items():
        if port in circuit.names:
            circuit.names[name] = circuit.names[port][low : low + shape.width]
            if shape.signed:
                circuit.signed.add(name)
            if port in circuit.driven:
                circuit.driven.add(name)


def _clock(
    circuit: BatchCircuit, domains: Any, names: PortNames, chosen: Collection[str] | None
) -> None:
    """Choose the clocks that a cycle drives, and show all clocks and resets."""
    lowered, signals = circuit.lowered, circuit.lowered.signals
    given = {bit for x in lowered.inputs for bit in x.bits}
    for name in chosen or ():
        if name not in domains:
            raise BatchError(f"no clock domain {name!r}; there are: {', '.join(domains) or 'none'}")
        if not given.issuperset(signals.get(domains[name].clk, (-1,))):
            raise BatchError(f"the design makes the clock of {name!r} itself")
    driven: list[int] = []
    for name, domain in domains.items():
        if domain.clk in signals and given.issuperset(signals[domain.clk]):
            circuit.names[names.clocks[name]] = signals[domain.clk]
            if chosen is None or name in chosen:
                circuit.clocks.append(names.clocks[name])
                driven += signals[domain.clk]
        if domain.rst is not None and domain.rst in signals:
            circuit.names[names.resets[name]] = signals[domain.rst]
    alone = {edge.net for edge in lowered.edges} == set(driven) and len(driven) == 1
    alone = alone and all(edge.rising and not edge.reset for edge in lowered.edges)
    if alone:
        for name in circuit.clocks:
            del circuit.names[name]
        circuit.clocks.clear()
    _show(circuit)
    if alone:
        _always_clocked(circuit, driven[0])


def _show(circuit: BatchCircuit) -> None:
    """Make ``circuit.names`` the only outputs, so that unused logic can be removed."""
    circuit.lowered.signals = cast(Any, dict(circuit.names))
    circuit.lowered.show(circuit.names.items())


def _always_clocked(circuit: BatchCircuit, clock: int) -> None:
    """Replace the clock: every step is an edge, and logic reads the level before it, 0."""
    lowered, design = circuit.lowered, circuit.lowered.design
    same = {edge.bit: 1 for edge in lowered.edges} | {clock: 0}
    messages = (*lowered.edge_messages, *lowered.comb_messages)
    design.messages = [PlainMessage(x.enable, x.values, (), False) for x in messages]
    design.cells = share(design.cells, same)
    rewrite(design, lambda bits: tuple(same.get(bit, bit) for bit in bits))
    design.registers = [replace(x, enable=None) for x in design.registers]
    find_enables(design)
    circuit.names = {x.name: x.bits for x in design.ports if x.name}
    lowered.edge_messages = [
        DesignMessage(plain.enable, plain.values, message.statement)
        for plain, message in zip(design.messages, messages, strict=True)
    ]
    design.messages = []
    lowered.comb_messages, lowered.edges = [], []
    lowered.inputs = [x for x in lowered.inputs if x.bits != (clock,)]
