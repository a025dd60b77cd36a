"""The private parts of Amaranth that this package uses: a new version of Amaranth may break them.

They belong to Amaranth 0.5 and its development branch. Other modules import private classes from
here and read private attributes by the functions of this module. Subclasses of Amaranth's classes
also use the private attributes of their base class. Amaranth's stubs do not cover these parts;
hence ``Any``.
"""

from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from amaranth import hdl
from amaranth.hdl import _ast, _ir, _mem, _nir
from amaranth.sim import _async, _base, _pyclock, _pyeval, _pyrtl, pysim  # type: ignore[attr-defined]

ast: Any = _ast
nir: Any = _nir
SignalDict: Any = ast.SignalDict
SignalSet: Any = ast.SignalSet
MemoryInstance: Any = _mem.MemoryInstance
MemoryRow: Any = vars(_mem.MemoryData)["_Row"]
NetlistEmitter: Any = _ir.NetlistEmitter
PortDirection: Any = _ir.PortDirection
RequirePosedge: Any = _ir.RequirePosedge

_waits: Any = _async
AsyncProcess: Any = _waits.AsyncProcess
ChangedTrigger: Any = _waits.ChangedTrigger
DelayTrigger: Any = _waits.DelayTrigger
DomainReset: Any = _waits.DomainReset
EdgeTrigger: Any = _waits.EdgeTrigger
ProcessContext: Any = _waits.ProcessContext
SampleTrigger: Any = _waits.SampleTrigger
SimulatorContext: Any = _waits.SimulatorContext
TestbenchContext: Any = _waits.TestbenchContext
TickTrigger: Any = _waits.TickTrigger
ClockProcess: Any = _pyclock.PyClockProcess

FragmentCompiler: Any = vars(_pyrtl)["_FragmentCompiler"]
BaseSignalState: Any = _base.BaseSignalState
pin_blame: Any = _pyrtl.pin_blame
eval_format: Any = vars(_pyeval)["eval_format"]
eval_value: Any = vars(_pyeval)["eval_value"]

_pysim: Any = pysim
PySimEngine: Any = _pysim.PySimEngine
PyEngineState: Any = _pysim._PyEngineState
PyMemoryChange: Any = _pysim._PyMemoryChange
PyMemoryState: Any = _pysim._PyMemoryState
PySignalState: Any = _pysim._PySignalState
VCDWriter: Any = _pysim._VCDWriter
PyTriggerState: Any = _pysim._PyTriggerState


def empty_design() -> Any:
    """Return a design for which Amaranth's engine makes no processes."""
    return SimpleNamespace(fragment=hdl.Fragment())


def engine_of(simulator: Any) -> Any:
    """Return the engine of a simulator."""
    return simulator._engine


def coroutines_of(simulator: Any) -> list[Any]:
    """Return the coroutines of the testbenches and processes of a simulator."""
    engine = simulator._engine
    every = (*engine._testbenches, *engine._processes)
    return [process.coroutine for process in every if hasattr(process, "coroutine")]


def closing_generators(simulator: Any) -> Any:
    """Return the context in which ``simulator`` advances: it closes async generators left early.

    Amaranth 0.5 has none.
    """
    replace = getattr(simulator, "_replace_asyncgen_hooks", nullcontext)
    return replace()


def domain_of(tick: Any) -> Any:
    """Return the clock domain of a tick trigger."""
    return tick._domain


def process_of(combination: Any) -> Any:
    """Return the process that waits for a combination of triggers."""
    return combination._process


def waiting_process(trigger: Any) -> Any:
    """Return the process that waits for an Amaranth trigger."""
    return process_of(trigger._combination)


def triggers_of(combination: Any) -> "Sequence[Any]":
    """Return the triggers of a combination, and the expressions to sample."""
    triggers: Sequence[Any] = combination._triggers
    return triggers


def is_broken(trigger: Any) -> bool:
    """Return whether a trigger was activated while its process did not wait for it."""
    return bool(trigger._broken)


def driven_signals(assigned: Any) -> Any:
    """Return the signals that an assignment to a value, or a statement, drives."""
    return assigned._lhs_signals()


def read_signals(value: Any) -> Any:
    """Return the signals that a value, a format or a statement reads."""
    return value._rhs_signals()


def operands_of(value: Any) -> "Sequence[Any]":
    """Return the values that an expression is made of; none for signals and constants."""
    match value:
        case ast.Operator():
            return value.operands
        case ast.Slice():
            return (value.value,)
        case ast.Part():
            return (value.value, value.offset)
        case ast.Concat():
            return value.parts
        case ast.SwitchValue():
            return (value.test, *(choice for _, choice in value.cases))
    return ()


def part_of(value: Any) -> "tuple[Any, int, int, bool]":
    """Return the value that ``value`` is a part of: that, the lowest bit, the width and signedness.

    A value that is not a slice is the whole of itself.
    """
    width, signed, low = len(value), value.shape().signed, 0
    while True:
        match value:
            case ast.Slice():
                low, value = low + value.start, value.value
            case ast.Operator(operator="s" | "u"):
                value = value.operands[0]
            case _:
                return value, low, width, signed


def chunks_of(message: Any) -> "Sequence[Any]":
    """Return the parts of a format: texts, and pairs of a value and its format specifier."""
    chunks: Sequence[Any] = message._chunks
    return chunks


def message_statements(statements: Any) -> "Iterator[Any]":
    """Yield the prints and checks among statements, in the order of the netlist's cells."""
    for statement in statements:
        if isinstance(statement, ast.Switch):
            for _, inner, _ in statement.cases:
                yield from message_statements(inner)
        elif isinstance(statement, ast.Print | ast.Property):
            yield statement


operator_parts: "Callable[[Any], tuple[str, Sequence[Any]]]" = attrgetter("_operator", "_operands")
"""The operator of an expression, and its operands; faster than by its properties."""
slice_parts: "Callable[[Any], tuple[int, int, Any]]" = attrgetter("_start", "_stop", "_value")
"""The first bit of a slice, the one behind its last, and the value."""


def enum_value(shown: Any) -> Any:
    """Return the value that a format of an enumeration shows."""
    return shown._value


def read_ports_of(memory: Any) -> "Iterator[tuple[str, Any, Any, Any, tuple[int, ...]]]":
    """Yield the domain, data, address and enable of each read port of a memory's instance.

    They are followed by the numbers of the write ports for which the port is transparent.
    """
    for port in memory._read_ports:
        yield port._domain, port._data, port._addr, port._en, port._transparent_for


def write_ports_of(memory: Any) -> "Iterator[tuple[str, Any, Any, Any]]":
    """Yield the domain, data, address and enable of each write port of a memory's instance."""
    for port in memory._write_ports:
        yield port._domain, port._data, port._addr, port._en


def rows_of(memory: Any) -> "Sequence[int]":
    """Return the rows of a memory at power-on; negative numbers are possible."""
    rows: Sequence[int] = memory.init._raw
    return rows


def signal_ports_of(design: Any) -> "Iterator[tuple[Any, str]]":
    """Yield the signals among the ports of a prepared design, and their directions if known."""
    for _, port, direction in design.ports:
        if isinstance(port, hdl.Signal):
            yield port, direction.value if direction is not None else ""


def clocks_and_resets_of(design: Any) -> "Iterator[Any]":
    """Yield the clocks and resets of all domains of a prepared design, in order and repeatedly."""
    for fragment in design.fragments:
        for domain in fragment.domains.values():
            yield domain.clk
            if domain.rst is not None:
                yield domain.rst


def memory_of(instance: Any) -> Any:
    """Return the memory of its instance in a fragment."""
    return instance._data


def memories_of(fragment: Any) -> "Iterator[Any]":
    """Yield the memories of ``fragment`` and all within it, in the order of the netlist's cells."""
    return map(memory_of, memory_instances_of(fragment))


def memory_instances_of(fragment: Any) -> "Iterator[Any]":
    """Yield the instances of memories in ``fragment``, in the order of the netlist's cells."""
    if isinstance(fragment, MemoryInstance):
        yield fragment
    for inner, *_ in fragment.subfragments:
        yield from memory_instances_of(inner)


def made_signals(design: Any) -> Any:
    """Return the signals that statements of a prepared design drive."""
    made = SignalSet()
    for fragment in design.fragments:
        for statements in fragment.statements.values():
            made.update(statements._lhs_signals())
    return made


def statements_of(design: Any) -> "Iterator[tuple[str, str, Sequence[Any]]]":
    """Yield the path, the domain and the statements of each fragment of a prepared design."""
    for fragment in _depth_first(design.fragment):
        if type(fragment) is hdl.Fragment:
            path = ".".join(design.fragments[fragment].name)
            content: Any = fragment
            for domain, statements in content.statements.items():
                yield path, domain, statements


def _depth_first(fragment: Any) -> "Iterator[Any]":
    """Yield ``fragment`` and all within it, in the order in which they are emitted."""
    yield fragment
    for inner, *_ in fragment.subfragments:
        yield from _depth_first(inner)


def named_signals(design: Any) -> "Iterator[tuple[str, str, Any]]":
    """Yield the path, the name and the signal of each named signal of a prepared design.

    The path is that of the topmost fragment that uses the signal. The clocks and resets of domains
    are left out.
    """
    met = SignalSet(clocks_and_resets_of(design))
    for fragment in _depth_first(design.fragment):
        about = design.fragments[fragment]
        for signal, name in about.signal_names.items():
            if signal not in met:
                met.add(signal)
                yield ".".join(about.name), name, signal


def prepared_design(simulator: Any) -> Any:
    """Return the prepared design of a simulator."""
    return simulator._design


WIDEST = 1 << 16
"""Bits of a value that Amaranth's simulator takes, and its netlist can number."""


class _Netlist(nir.Netlist):
    def add_value_cell(self, width: int, cell: Any) -> Any:
        if width > WIDEST:
            raise OverflowError(f"a value of {width} bits is too wide")
        return super().add_value_cell(width, cell)


class _Emitter(NetlistEmitter):
    """Emits what a simulation shows: the resets of read ports, but no formats of signals."""

    idle = False
    """Whether to emit clocks and resets that only testbenches use."""
    reached: "list[tuple[Any, Sequence[int]]] | None" = None
    """The list to which conditions of statements and cases are added; None adds none."""
    _current: int | None = None
    """The index in ``reached`` of the statement that is being emitted."""

    def emit_stmt(self, module: int, fragment: Any, domain: str, statement: Any, on: Any) -> None:
        if self.reached is not None:
            clocked = None if domain == "comb" else fragment.domains[domain]
            self.reached.append((clocked, (int(on),)))
            self._current = len(self.reached) - 1
        super().emit_stmt(module, fragment, domain, statement, on)
        self._current = None

    def emit_priority_match(self, *arguments: Any, **options: Any) -> Any:
        return self._cases(super().emit_priority_match(*arguments, **options))

    def emit_match(self, *arguments: Any, **options: Any) -> Any:
        # The name in Amaranth's development branch.
        return self._cases(super().emit_match(*arguments, **options))

    def _cases(self, nets: Any) -> Any:
        """Note ``nets`` for the cases of the statement that is being emitted.

        The last ones before the statements in the cases are those of a switch; an operand of its
        test may have others.
        """
        if self.reached is not None and self._current is not None:
            clocked, (on, *_) = self.reached[self._current]
            self.reached[self._current] = clocked, (on, *map(int, nets))
        return nets

    def emit_signal_fields(self) -> None:
        pass

    def emit_read_port(self, module: int, memory: Any, port: Any, *others: Any) -> None:
        super().emit_read_port(module, memory, port, *others)
        domain = memory.domains.get(port._domain)
        if domain is not None and domain.rst is not None:
            # The simulator resets what the port shows; Amaranth's netlist has no such reset.
            self._emit_more(domain.rst)

    def emit_undef_ff(self) -> None:
        if self.idle:
            for signal in clocks_and_resets_of(self.design):
                self._emit_more(signal)
        super().emit_undef_ff()

    def _emit_more(self, signal: Any) -> None:
        self.design.signal_lca.setdefault(signal, self.design.fragment)
        self.emit_signal(signal)


def emitted_netlist(
    design: Any, *, idle: bool, reached: "list[tuple[Any, Sequence[int]]] | None" = None
) -> Any:
    """Return the netlist of ``design`` for simulation, in which undriven signals are registers.

    With ``idle`` it has the clocks and resets of all domains, also of those without any logic.

    ``reached`` is extended by each statement, in the order of `statements_of`: its domain, None for
    combinational logic, and nets. The first one is 1 where the statement is reached, the others
    where each case of a switch is taken; of other statements only the first one means anything.

    Raises ``OverflowError`` for a value of more bits than `WIDEST`.

    Like ``build_netlist``, without the ports of modules, which take a third of its time. Ports have
    the order of their names: that of ports for missing domains differs from process to process.
    """
    netlist = _Netlist()
    ordered = copy(design)
    ordered.ports = sorted(design.ports, key=lambda port: str(port[0]))
    ordered.signal_lca = ChainMap(SignalDict(), design.signal_lca)  # the emitter may add to it
    emitter = _Emitter(netlist, ordered, all_undef_to_ff=True)
    emitter.idle, emitter.reached = idle, reached
    emitter.emit_fragment(design.fragment, None)
    expect_no_cycle(netlist)
    netlist.resolve_all_nets()
    return netlist


_JOINT = 1 << 62
"""The number of the node that stands for all inputs of cell 0; those of other cells follow."""

_MATCHES: Any = getattr(nir, "Matches", None) or nir.Match
_PRIORITIES: Any = getattr(nir, "PriorityMatch", ())
"""Cells of a switch; Amaranth 0.6 has one, ``Match``, in place of the two of 0.5."""

_POINTWISE = ("~", "&", "|", "^", "m")


def expect_no_cycle(netlist: Any) -> None:
    """Raise ``CombinationalCycle`` if a bit depends on itself, as ``check_comb_cycles`` does.

    Amaranth follows each bit of a result to each bit of the operands: a shift of 5,000 bits by 13
    has 65 million such pairs, which take a minute. Here one node joins them.
    """
    done: dict[int, bool] = {}
    for root in _output_nets(netlist):
        path = [] if root in done else [(root, iter(_sources(netlist, root)))]
        done.setdefault(root, False)
        while path:
            node, left = path[-1]
            for other in left:
                ended = done.get(other)
                if ended is None:
                    done[other] = False
                    path.append((other, iter(_sources(netlist, other))))
                    break
                if not ended:
                    nodes = [node for node, _ in path]
                    raise nir.CombinationalCycle(_cycle(netlist, nodes[nodes.index(other) :]))
            else:
                done[node] = True
                path.pop()


def _output_nets(netlist: Any) -> "Iterator[int]":
    for number, cell in enumerate(netlist.cells):
        yield from cell.output_nets(number)
    for value in netlist.signals.values():
        yield from value


def _sources(netlist: Any, node: int) -> "Sequence[int]":
    """Return the nets and the joint nodes on which ``node`` depends."""
    if node < 0:
        return (netlist.connections[node],)
    if node < 2:
        return ()
    if node >= _JOINT:
        return tuple(netlist.cells[node - _JOINT].input_nets())
    number, bit = node >> 16, node & 0xFFFF
    cell = netlist.cells[number]
    match cell:
        case nir.Operator() if cell.operator not in _POINTWISE:
            return (_JOINT + number,)
        case nir.Part() | nir.AsyncReadPort():
            return (_JOINT + number,)
    if isinstance(cell, _MATCHES):
        return (_JOINT + number,)
    if bit and isinstance(cell, _PRIORITIES):
        return (cell.inputs[bit], node - 1)
    return [net for net, _ in cell.comb_edges_to(bit)]


def _cycle(netlist: Any, nodes: "Sequence[int]") -> str:
    """Return Amaranth's message for a cycle of ``nodes``, each of which needs the next one."""
    lines = ["Combinational cycle detected, path:\n"]
    for node in nodes:
        if node < 0:
            signal, bit = netlist.late_to_signal[node]
            name, src_loc = f"signal {signal.name}", signal.src_loc
        elif node < _JOINT:
            cell, bit = netlist.cells[node >> 16], node & 0xFFFF
            operator = getattr(cell, "operator", None)
            name = f"operator {operator}" if operator else f"cell {type(cell).__qualname__}"
            src_loc = cell.src_loc
        else:
            continue
        where = "<unknown>:0" if src_loc is None else f"{src_loc[0]}:{src_loc[1]}"
        lines.append(f"  {where}: {name} bit {bit}\n")
    return "".join(lines)


def femtoseconds_of(time: Any) -> int | None:
    """Return ``time`` in femtoseconds: seconds for Amaranth 0.5, from 0.6 on a ``Period``.

    None for seconds where Amaranth expects a ``Period``: it then warns or raises.
    """
    if hasattr(time, "femtoseconds"):
        return int(time.femtoseconds)
    return None if hasattr(hdl, "Period") else int(time * 1e15)


def time_of(femtoseconds: int) -> Any:
    """Return femtoseconds in the form that Amaranth takes."""
    period: Any = getattr(hdl, "Period", None)
    return femtoseconds * 1e-15 if period is None else period(fs=femtoseconds)
