"""Changes of a design that avoid known differences of Amaranth's simulator from its netlist."""

from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import MemoryData, Signal

from .amaranth_internals import (
    MemoryInstance,
    SignalDict,
    SignalSet,
    ast,
    driven_signals,
    made_signals,
    memory_instances_of,
    memory_of,
    message_statements,
    operands_of,
    read_ports_of,
    read_signals,
    write_ports_of,
)
from .running.depths import assigned, assignments

_PART = (
    "; past an inverted or reinterpreted value, a part-select differs between Amaranth's simulator"
    " and its netlist: assign that value to a signal of its shape, and select from the signal"
)
_DERIVED = (
    "; registers behind a clock that the design makes load logic as it is after the edge, in"
    " Amaranth's simulator as it is after as many assignments as the clock has: use one clock and"
    " an enable (EnableInserter), or read registers alone"
)
_OWN_CLOCK = (
    "; a register whose data is its own clock gets the level before the edge, in Amaranth's"
    " simulator the level after it: read a register of that domain in place of the clock"
)
_ASYNC_RESET = (
    "; an asynchronous reset does not clock registers without a reset, memories, prints and checks,"
    " in Amaranth's simulator it executes all statements of its domain: give the register a reset,"
    " or move it to a domain without an asynchronous one"
)
WAKE_UP = (
    "; signals have no glitches here, and in Amaranth's simulator those of logic whose paths have"
    " different numbers of assignments: wait for a register, or for a tick of a clock"
)
"""The workaround of a process whose wake-ups differ."""
_ROW = (
    "; a row that several domains write at one edge has no defined value: give the clocks"
    " different phases, or let one domain write"
)


def workaround_of_signal(design: Any, signal: Signal) -> str:
    """Return what to change in a design where ``signal`` differs; empty if that is not known."""
    made, logic = made_signals(design), _sources_of_logic(design)
    for memory in memory_instances_of(design.fragment):
        for _, shown, *_ in read_ports_of(memory):
            made.update(driven_signals(shown))
    workarounds: list[str] = []
    for fragment, name, statement, tests in _drivers(design, signal):
        if any(map(_selects_past, (*tests, statement.rhs))):
            return _PART
        if name == "comb":
            continue
        domain = fragment.domains[name]
        sources = _closure((*tests, statement), logic)
        inputs = [x for x in sources if x not in made and x is not domain.clk]
        if domain.clk in made:
            workarounds.append(_DERIVED)
        elif domain.clk in sources:
            workarounds.append(_OWN_CLOCK)
        elif domain.async_reset and signal.reset_less:
            workarounds.append(_ASYNC_RESET)
        elif inputs := [x for x in inputs if x is not domain.rst]:
            workarounds.append(_set_at_edge(min(inputs, key=lambda x: (x.src_loc, x.name))))
    return next(iter(workarounds), "")


def workaround_of_message(design: Any) -> str:
    """Return what to change in a design whose messages differ; empty if that is not known."""
    for fragment in design.fragments:
        for name, statements in fragment.statements.items():
            found = name != "comb" and next(iter(message_statements(statements)), None)
            if found and fragment.domains[name].async_reset:
                return _ASYNC_RESET
    return ""


def _set_at_edge(signal: Signal) -> str:
    return (
        f"; data that a process sets at a clock edge passes logic at once, in Amaranth's simulator"
        f" an assignment later: set {signal.name} after ctx.tick(), or at another time"
    )


def _drivers(design: Any, signal: Signal) -> Iterator[tuple[Any, str, Any, tuple[Any, ...]]]:
    """Yield the assignments to ``signal``: fragment, domain, statement, and tests around it."""
    for fragment in design.fragments:
        for name, statements in fragment.statements.items():
            for statement, tests in assigned(statements):
                if signal in driven_signals(statement):
                    yield fragment, name, statement, tests


def _sources_of_logic(design: Any) -> Any:
    """Return by signal of combinational logic the signals that it reads."""
    sources: Any = SignalDict()
    for signals, read in assignments(design.fragment):
        for signal in signals:
            sources.setdefault(signal, SignalSet()).update(read)
    return sources


def _closure(values: Iterable[Any], logic: Any) -> Any:
    """Return all signals that ``values`` follow from, through combinational logic."""
    found, left = SignalSet(), [x for value in values for x in read_signals(value)]
    while left:
        signal = left.pop()
        if signal not in found:
            found.add(signal)
            left += logic.get(signal, ())
    return found


def workaround_of_row(fragment: Any, memory: MemoryData) -> str:
    """Return what to change in a design where a row differs; empty if that is not known."""
    if isinstance(fragment, MemoryInstance) and memory_of(fragment) is memory:
        names = {domain for domain, *_ in write_ports_of(fragment)}
        if len(names) > 1:
            return _ROW
        return _ASYNC_RESET if any(fragment.domains[x].async_reset for x in names) else ""
    return "".join(workaround_of_row(inner, memory) for inner, *_ in fragment.subfragments)


def _selects_past(value: Any) -> bool:
    """Return whether a part-select of an inverted or reinterpreted value is in ``value``."""
    if isinstance(value, ast.Part):
        whole = value.value
        if isinstance(whole, ast.Operator) and whole.operator in ("~", "s", "u"):
            return True
    return any(map(_selects_past, operands_of(value)))
