"""Changes of a design that avoid known differences of Amaranth's simulator from its netlist."""

from typing import Any

from amaranth.hdl import MemoryData, Signal

from .amaranth_internals import (
    MemoryInstance,
    ast,
    driven_signals,
    made_signals,
    memory_of,
    operands_of,
    write_ports_of,
)
from .running.depths import assigned

_PART = (
    "; past an inverted or reinterpreted value, a part-select differs between Amaranth's simulator"
    " and its netlist: assign that value to a signal of its shape, and select from the signal"
)
_DERIVED = (
    "; registers behind a clock that the design makes load logic as it is after the edge, in"
    " Amaranth's simulator as it is after as many assignments as the clock has: use one clock and"
    " an enable (EnableInserter), or read registers alone"
)
WAKE_UP = (
    "; signals have no glitches here, and in Amaranth's simulator those of logic whose paths have"
    " different numbers of assignments: wait for a register, or for a tick of a clock"
)
"""The cure of a process whose wake-ups differ."""
_ROW = (
    "; a row that several domains write at one edge has no defined value: give the clocks"
    " different phases, or let one domain write"
)


def cure_of_signal(design: Any, signal: Signal) -> str:
    """Return what to change in a design where ``signal`` differs; empty if that is not known."""
    made = made_signals(design)
    behind_made = False
    for fragment in design.fragments:
        for name, statements in fragment.statements.items():
            for statement, tests in assigned(statements):
                if signal not in driven_signals(statement):
                    continue
                if any(map(_selects_past, (*tests, statement.rhs))):
                    return _PART
                behind_made |= name != "comb" and fragment.domains[name].clk in made
    return _DERIVED if behind_made else ""


def cure_of_row(fragment: Any, memory: MemoryData) -> str:
    """Return what to change in a design where a row differs; empty if that is not known."""
    if isinstance(fragment, MemoryInstance) and memory_of(fragment) is memory:
        return _ROW if len({domain for domain, *_ in write_ports_of(fragment)}) > 1 else ""
    return "".join(cure_of_row(inner, memory) for inner, *_ in fragment.subfragments)


def _selects_past(value: Any) -> bool:
    """Return whether a part-select of an inverted or reinterpreted value is in ``value``."""
    if isinstance(value, ast.Part):
        whole = value.value
        if isinstance(whole, ast.Operator) and whole.operator in ("~", "s", "u"):
            return True
    return any(map(_selects_past, operands_of(value)))
