"""Find the differences between a compiled design and its shadow, and their cause.

The comparison changes neither of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
from .shadow import Shadow

_HEXADECIMAL_FROM = 1 << 16


class Difference(AssertionError):
    """Compiled code and Amaranth's simulator differ in a signal, a row or a message."""


@dataclass(frozen=True)
class Clock:
    """A clock of the simulation: its first rising edge and its period, in femtoseconds."""

    name: str
    phase: int
    period: int

    def cycle(self, now: int) -> int:
        """Return the number of rising edges until ``now``."""
        return max(0, (now - self.phase) // self.period + 1)


class Comparison:
    """The comparison of the ``state`` of a compiled ``design`` with its ``shadow``.

    Attributes
    ----------
    clocks : list of Clock
        The clocks whose cycles date a difference.
    """

    def __init__(self, design: Any, state: Any, shadow: Shadow) -> None:
        self.clocks: list[Clock] = []
        self._design, self._state, self._shadow = design, state, shadow
        self._signals = [
            (signal, state.slots[state.get_signal(signal)])
            for signal in shadow.signals
            if state.holds(signal)
        ]
        self._contents: dict[Any, bytes] = {}

    def reset(self) -> None:
        """Return to power-on, with the shadow."""
        self._shadow.reset()
        self._state.messages.clear()
        self._contents.clear()

    def expect_same(self, now: int) -> None:
        """Raise `Difference`, dated ``now`` femtoseconds, if anything differs."""
        said = self._rows() or self._values() or self._messages()
        if said:
            cycles = "".join(f", cycle {x.cycle(now)} of {x.name}" for x in self.clocks[:1])
            raise Difference(f"{said}, at {now / 1e15:.9g} s{cycles}")

    def _values(self) -> str:
        value = self._shadow.value
        differing = SignalDict((x, slot) for x, slot in self._signals if slot.curr != value(x))
        if not differing:
            return ""
        causes = self._causes(differing) or list(differing)
        cause = min(causes, key=lambda signal: (signal.src_loc, signal.name))
        others = len(differing) - 1
        also = f" and {others} more" if others else ""
        return _text(f"{cause.name}{also}", differing[cause].curr, value(cause), cause.src_loc)

    def _causes(self, differing: Any) -> list[Any]:
        """Return the signals that do not depend on other differing signals."""
        follows = SignalSet()
        for signals, sources in _assignments(self._design.fragment):
            wrong = SignalSet(source for source in sources if source in differing)
            for signal in signals:
                if len(wrong) > (signal in wrong):
                    follows.add(signal)
        return [signal for signal in differing if signal not in follows]

    def _rows(self) -> str:
        written = self._shadow.written
        for memory in self._shadow.memories:
            found = self._state.slots[self._state.get_memory(memory)].data
            content = bytes(found)
            if self._contents.get(memory) == content and memory not in written:
                continue
            self._contents[memory] = content
            for row, value in enumerate(self._shadow.rows(memory)):
                if found[row] != value:
                    name = f"row {row} of {memory.name}"
                    return _text(name, found[row], value, memory.src_loc)
        written.clear()
        return ""

    def _messages(self) -> str:
        # The messages of one point in time have no order.
        found, expected = sorted(self._state.messages), sorted(self._shadow.messages)
        self._state.messages.clear()
        self._shadow.messages.clear()
        if found == expected:
            return ""
        return f"compiled code says {found}, Amaranth's simulator {expected}"


def _text(name: str, found: int, expected: int, src_loc: tuple[str, int] | None) -> str:
    form = "#x" if max(abs(found), abs(expected)) >= _HEXADECIMAL_FROM else "d"
    place = f" ({src_loc[0]}:{src_loc[1]})" if src_loc else ""
    return f"{name}{place} is {found:{form}}, and {expected:{form}} in Amaranth's simulator"


def _assignments(fragment: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the signals that combinational logic drives, with the signals that it reads."""
    yield from _assigned(fragment.statements.get("comb", ()), SignalSet())
    if isinstance(fragment, MemoryInstance):
        for domain, data, address in read_ports_of(fragment):
            if domain == "comb":
                yield driven_signals(data), read_signals(address)
    for inner, *_ in fragment.subfragments:
        yield from _assignments(inner)


def _assigned(statements: Iterable[Any], conditions: Any) -> Iterator[tuple[Any, Any]]:
    for statement in statements:
        if isinstance(statement, ast.Switch):
            tests = SignalSet([*conditions, *read_signals(statement.test)])
            for _, inner, _ in statement.cases:
                yield from _assigned(inner, tests)
        elif isinstance(statement, ast.Assign):
            sources = SignalSet([*conditions, *read_signals(statement)])
            yield driven_signals(statement), sources
