"""What differs between a compiled design and its shadow, and which of it is the cause.

Looks, and changes nothing.
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

__all__ = ["Clock", "Comparison", "Difference"]

_HEXADECIMAL_FROM = 1 << 16


class Difference(AssertionError):
    """Compiled code and Amaranth's simulator differ: what, when, and where it was declared."""


@dataclass(frozen=True)
class Clock:
    """A clock of the simulation: when it rises first, and its period, in femtoseconds."""

    name: str
    phase: int
    period: int

    def cycle(self, now: int) -> int:
        """How often it has risen until ``now``."""
        return max(0, (now - self.phase) // self.period + 1)


class Comparison:
    """Of ``state``, in which a compiled ``design`` shows, with its ``shadow``.

    Attributes
    ----------
    clocks : list of Clock
        What differences are dated by, besides the time.
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
        """Back to power-on, the shadow too."""
        self._shadow.reset()
        self._state.said.clear()
        self._contents.clear()

    def expect_same(self, now: int) -> None:
        """Raise `Difference`, dated ``now`` femtoseconds, if anything differs."""
        said = self._rows() or self._values() or self._told()
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
        """Those that do not follow at once from others that differ too."""
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

    def _told(self) -> str:
        """What is said at one point in time has no order."""
        found, expected = sorted(self._state.said), sorted(self._shadow.told)
        self._state.said.clear()
        self._shadow.told.clear()
        if found == expected:
            return ""
        return f"compiled code says {found}, Amaranth's simulator {expected}"


def _text(name: str, found: int, expected: int, src_loc: tuple[str, int] | None) -> str:
    form = "#x" if max(abs(found), abs(expected)) >= _HEXADECIMAL_FROM else "d"
    place = f" ({src_loc[0]}:{src_loc[1]})" if src_loc else ""
    return f"{name}{place} is {found:{form}}, and {expected:{form}} in Amaranth's simulator"


def _assignments(fragment: Any) -> Iterator[tuple[Any, Any]]:
    """What logic without a clock drives, with all that it follows from."""
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
