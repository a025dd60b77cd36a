"""The number of assignments between the registers and a signal of combinational logic.

Amaranth's simulator evaluates an assignment a delta cycle after its sources. Compiled code
evaluates all logic at once, and shows a signal that many delta cycles late.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ..amaranth_internals import (
    MemoryInstance,
    SignalDict,
    SignalSet,
    ast,
    driven_signals,
    read_ports_of,
    read_signals,
)


def assigned(statements: Iterable[Any], *tests: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each assignment with the values that the switches around it test."""
    for statement in statements:
        if isinstance(statement, ast.Switch):
            for _, inner, _ in statement.cases:
                yield from assigned(inner, *tests, statement.test)
        elif isinstance(statement, ast.Assign):
            yield statement, tests


def assignments(fragment: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the signals that combinational logic drives, with the signals that it reads."""
    for statement, tests in assigned(fragment.statements.get("comb", ())):
        sources = (signal for part in (*tests, statement) for signal in read_signals(part))
        yield driven_signals(statement), SignalSet(sources)
    if isinstance(fragment, MemoryInstance):
        for domain, data, address, *_ in read_ports_of(fragment):
            if domain == "comb":
                yield driven_signals(data), read_signals(address)
    for inner, *_ in fragment.subfragments:
        yield from assignments(inner)


def depths(fragment: Any) -> Any:
    """Return the depth of each signal that combinational logic drives: of its longest path."""
    sources: Any = SignalDict()
    for signals, read in assignments(fragment):
        for signal in signals:
            sources.setdefault(signal, SignalSet()).update(read)
    found: Any = SignalDict()
    for signal in sources:
        _measure(signal, sources, found)
    return found


def _measure(first: Any, sources: Any, found: Any) -> None:
    """Add the depth of ``first`` and of all that it follows from to ``found``."""
    left, begun = [first], SignalSet()
    while left:
        signal = left[-1]
        if signal in found:
            left.pop()
        elif signal in begun:
            # A source without a depth is a register, or a slice that depends on ``signal``.
            found[signal] = 1 + max((found.get(x, 0) for x in sources[signal]), default=0)
        else:
            begun.add(signal)
            left += [x for x in sources[signal] if x in sources and x not in begun]
