"""A design in plain form with its clocks and messages, and the rule of how edges are found.

A design is stepped from outside. A clock that is an input has a second word with its previous
level, at the last step; an edge is where the two differ. A clock that the design makes is
compared with its level after each step; its edge is pending then, and happens in the next step.
All back ends follow `ClockPlan`. Messages are prints, failed checks and hits of covers.
"""

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from amaranth.hdl import MemoryData, Signal

from ..amaranth_internals import SignalDict, ast, chunks_of, pin_blame
from .covered import CoveredBits
from .design import (
    WORD,
    Bits,
    DesignPort,
    FormattedValue,
    Memory,
    PlainDesign,
    formatted,
    to_words,
    word_count,
)

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ClockEdge:
    """``bit`` is 1 while ``net`` changes to ``rising``. Before the first step it was ``before``.

    Of a ``reset`` the logic sees the new level at the edge, of a clock the old one.
    """

    net: int
    rising: bool
    bit: int
    before: int
    reset: bool


@dataclass(frozen=True, slots=True)
class StateInput:
    """Bits that nothing in the design drives, and their value at power-on."""

    bits: Bits
    start: int


@dataclass(frozen=True, slots=True)
class DesignMessage:
    """A print or check, Amaranth's ``statement``: reported where ``enable`` is 1."""

    enable: int
    values: tuple[Bits, ...]
    statement: Any

    @property
    def kind(self) -> str:
        """Return ``print``, ``assert``, ``assume`` or ``cover``."""
        return kind_of(self.statement)


@dataclass(slots=True)
class Lowered:
    """A design in plain form.

    ``edge_messages`` are reported at edges, ``comb_messages`` after every change. ``signals`` has
    the bits of every signal; ``rows`` maps Amaranth's memories to those of the design.
    """

    design: PlainDesign = field(default_factory=PlainDesign)
    inputs: list[StateInput] = field(default_factory=list)
    edges: list[ClockEdge] = field(default_factory=list)
    edge_messages: list[DesignMessage] = field(default_factory=list)
    comb_messages: list[DesignMessage] = field(default_factory=list)
    signals: "MutableMapping[Signal, Bits]" = field(default_factory=SignalDict)
    driven: "MutableMapping[Signal, bool]" = field(default_factory=SignalDict)
    """Signals that combinational logic drives."""
    rows: dict[MemoryData, Memory] = field(default_factory=dict)
    covered: CoveredBits | None = None
    """The bits that coverage counts, if it is measured."""

    def show(self, named: Iterable[tuple[str, Bits]]) -> None:
        """Make ``named`` bits and those of messages and edges the outputs of the design."""
        read = [DesignPort(name, True, bits) for name, bits in named]
        for message in (*self.edge_messages, *self.comb_messages):
            read += [DesignPort("", True, bits) for bits in ((message.enable,), *message.values)]
        if self.covered is not None:
            read += [DesignPort("", True, word.bits) for word in self.covered.words]
        read.append(DesignPort("", True, tuple(edge.net for edge in self.edges)))
        # Inputs, so that their numbers stay reserved.
        read.append(DesignPort("", False, tuple(edge.bit for edge in self.edges)))
        self.design.ports = read


@dataclass(frozen=True, slots=True)
class InputWord:
    """Up to 64 bits of an input.

    Attributes
    ----------
    bits, start
        The bits, and their value at power-on.
    has_previous
        One of the bits is a clock or an asynchronous reset, so that a second
        word has its previous level.
    late
        Logic reads the previous level: at an edge of a clock all signals show their levels before
        the edge, the clock included. Of an asynchronous reset logic reads the new level.
    """

    bits: Bits
    start: int
    has_previous: bool
    late: bool


@dataclass(frozen=True, slots=True)
class ClockPlan:
    """The inputs in words, and the edges of clocks that the design makes, by their numbers."""

    inputs: tuple[InputWord, ...]
    derived: frozenset[int]


def clock_plan(lowered: Lowered) -> ClockPlan:
    """Return the plan of ``lowered``."""
    only_resets: dict[int, bool] = {}
    for edge in lowered.edges:
        only_resets[edge.net] = only_resets.get(edge.net, True) and edge.reset
    inputs = []
    for given in lowered.inputs:
        starts = to_words(given.start, word_count(len(given.bits)))
        for number, start in enumerate(starts):
            bits = given.bits[WORD * number : WORD * (number + 1)]
            found = [only_resets[bit] for bit in bits if bit in only_resets]
            inputs.append(InputWord(bits, start, bool(found), not all(found)))
    known = {bit for word in inputs for bit in word.bits}
    derived = (number for number, edge in enumerate(lowered.edges) if edge.net not in known)
    return ClockPlan(tuple(inputs), frozenset(derived))


def edge_sides(edge: ClockEdge, before: _Value, after: _Value) -> tuple[_Value, _Value]:
    """Return the levels of ``edge.net`` of which the first is 0 and the second 1 at the edge."""
    return (before, after) if edge.rising else (after, before)


_FAILURES = {"assert": "Assertion violated", "assume": "Assumption violated"}


def report(statement: Any, values: Sequence[int]) -> None:
    """Print the message of ``statement``; raise ``AssertionError`` with it for a failed check."""
    text = message_text(statement, values)
    if kind_of(statement) in _FAILURES:
        pin_blame(statement.src_loc, AssertionError(text))
    print(text, end="")


def message_text(statement: Any, values: Sequence[int]) -> str:
    """Return the message of ``statement`` with ``values``."""
    kind = kind_of(statement)
    if kind in _FAILURES:
        return formatted(check_message(statement), values)
    text = formatted(parts_of(statement.message), values)
    if kind == "print":
        return text
    filename, line = statement.src_loc
    return f"Coverage hit at {filename}:{line}: {text}\n"


def check_message(statement: Any) -> tuple[str | FormattedValue, ...]:
    """Return the message of ``statement``, a check, in plain form."""
    kind, message = _FAILURES[kind_of(statement)], statement.message
    return (kind,) if message is None else (f"{kind}: ", *parts_of(message))


def kind_of(statement: Any) -> str:
    """Return the `DesignMessage.kind` of a statement."""
    return "print" if isinstance(statement, ast.Print) else str(statement.kind.value)


def parts_of(message: Any) -> tuple[str | FormattedValue, ...]:
    """Return the plain form of a format of Amaranth, which may be None."""
    return tuple(
        x if isinstance(x, str) else FormattedValue(len(x[0]), x[0].shape().signed, x[1])
        for x in (chunks_of(message) if message is not None else ())
    )
