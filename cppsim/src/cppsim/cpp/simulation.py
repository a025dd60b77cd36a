"""Write a lowered design as a C++ structure that is stepped from outside: state and its methods.

``step`` executes the edges of clocks, then ``levels`` finds the edges of clocks that the design
makes. ``settle`` computes the signals that follow from the state, before a testbench reads them.
All state except memories is one array of words.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..netlist import WORD, Bits
from ..netlist.covered import CountedWord, CoveredBits
from ..netlist.lowered import DesignMessage, InputWord, Lowered, clock_plan, edge_sides
from ..netlist.passes import Statement
from .body import Scope
from .code import Snippet, assignment, in_reach, lines_of
from .words import BitField, adjacent, literal, words_of
from .writer import MessageCall, Writer

_NAMESPACES = re.compile(r"\b(word|wide)::")
"""The namespaces of words.h beside types. A FIFO needs none: compiling takes .92 of the time."""

BOTH_LEVELS = 3
"""The quiet level of a clock whose changes never need a step."""

_TEXT = """\
#include "{header}.h"
#include "messages.h"

namespace {{

const uint64_t starts[{size}] = {{{starts}}};

struct Top {{
  uint64_t s[{size}];
  Messages *messages;
  bool halved; // `step` ends before `levels`
{memories}
{covered}
  __attribute__((always_inline)) int levels() {{
{levels}
  }}

  int step() {{
{step}
    return halved ? 0 : levels();
  }}

  void settle() {{
{settle}
  }}

  void *memory(size_t number) {{
    void *const table[] = {{{pointers}}};
    return table[number];
  }}
}};

}} // namespace

#include "interface.h"
"""

_COVERED = """
EXPORT uint64_t *simulation_covered(Top *top) {
  top->covered.flush();
  return top->covered.first;
}
"""


@dataclass(frozen=True, slots=True)
class Postponed:
    """A design whose library is compiled when that pays.

    Attributes
    ----------
    program
        The design for an interpreter.
    patience
        The instructions to interpret before.
    compile
        Compiles the library, and returns its path. Raises ``SimulationError``.
    """

    program: Any
    patience: int
    compile: Callable[[], Path]


@dataclass(slots=True)
class SimulationSource:
    """C++ text, and the layout of its state.

    Attributes
    ----------
    text
        The C++; from the cache its digest.
    library
        The compiled C++, once there is one.
    postponed
        What runs the design without a library.
    fields
        The words that hold a tuple of bits; a bit in none of them is a constant.
    settled
        Tuples of bits whose words are valid only after ``settle``.
    stored
        The word of each bit of the state that logic reads, and the bit's index there.
    steps, step_count
        The statements that follow from the state, in order, and their number.
    registers
        The bits of each register.
    inputs, comb_inputs
        Words that no step changes; those that need no step after a change.
    quiet
        For words of clocks that only edges of one kind read: the quiet level, to which the clock
        changes without a step, and the word of its previous level, which is written then. For a
        clock that the design does not use: `BOTH_LEVELS`, and the word itself.
    previous
        The word with the previous level of each word with clocks. They are equal between steps.
    due
        Words that are not 0 while an edge of a derived clock is pending; 0 between steps.
    starts
        The value of each word at power-on.
    covered
        The counters of coverage, if it is measured.
    """

    text: str = ""
    library: Path | None = None
    postponed: Postponed | None = None
    fields: dict[Bits, tuple[BitField, ...]] = field(default_factory=dict)
    settled: set[Bits] = field(default_factory=set)
    stored: dict[int, tuple[int, int]] = field(default_factory=dict)
    steps: list[Statement] = field(default_factory=list)
    step_count: int = 0
    registers: list[Bits] = field(default_factory=list)
    inputs: set[int] = field(default_factory=set)
    comb_inputs: set[int] = field(default_factory=set)
    quiet: dict[int, tuple[int, int]] = field(default_factory=dict)
    previous: dict[int, int] = field(default_factory=dict)
    due: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    size: int = 0
    covered: CoveredBits | None = None


def write_simulation(lowered: Lowered) -> SimulationSource:
    """Write the C++ of ``lowered``, and cut it into words. Raises ``NotPlain`` for a loop."""
    return _Simulation(lowered).source()


class _Simulation(Writer):
    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered.design)
        self._lowered = lowered
        self._plan = clock_plan(lowered)
        self._arrays: list[str] = []
        self._edges: list[str] = []
        self._active: list[str] = []
        """A variable for each edge, which is not 0 where it happens."""
        self._derived: list[tuple[int, str, str]] = []
        self._stored: dict[int, tuple[int, int]] = {}
        """The word of each bit of the state, and its index, as Python reads it."""
        self._source = SimulationSource(steps=self._steps, covered=lowered.covered)
        covered = lowered.covered
        self._counted: list[CountedWord] = [] if covered is None else covered.words
        self._declare()

    def source(self) -> SimulationSource:
        step = list(self._step())
        levels = list(self._after())
        words = self._counted
        changing = sum(word.toggles for word in words)
        settle = list(lines_of(in_reach(self._settle())))
        self._find_quiet_levels()
        # Without a clock, coverage counts at each step.
        stepped = self._counted and not self._active
        if not self._derived and not self._lowered.comb_messages and not stepped:
            self._source.comb_inputs = self._source.inputs - self._source.previous.keys()
        self._source.step_count = len(self._steps)
        self._source.registers = [register.result for register in self._design.registers]
        self._source.size = max(1, len(self._source.starts))
        parts = [*step, *levels, *settle]
        self._source.text = _TEXT.format(
            header="words" if any(_NAMESPACES.search(line) for line in parts) else "types",
            size=self._source.size,
            covered=f"  Covered<{len(words)}, {changing}> covered;\n" if words else "",
            starts=", ".join(map(literal, self._source.starts)),
            memories="\n".join(f"  {line}" for line in self._arrays),
            step="\n".join(f"    {line}" for line in step),
            levels="\n".join(f"    {line}" for line in levels),
            settle="\n".join(f"    {line}" for line in settle),
            pointers=", ".join([*self._words.arrays.values(), "nullptr"]),
        )
        if words:
            header = '#include "messages.h"\n'
            text = self._source.text.replace(header, header + '#include "covered.h"\n', 1)
            self._source.text = text + _COVERED
        return self._source

    # --- state --------------------------------------------------------------------------------

    def _word(self, start: int) -> int:
        self._source.starts.append(start)
        return len(self._source.starts) - 1

    def _declare(self) -> None:
        for given in self._plan.inputs:
            self._input(given)
        self._declare_edges()
        self._declare_registers(self._variable)
        for memory in self._design.memories:
            text = self._declare_memory(memory, f"m{len(self._words.arrays)}")
            self._arrays.append(f"{text} // {memory.name}")

    def _variable(self, bits: Bits, start: int) -> str:
        word = self._word(start)
        self._keep(word, bits)
        return f"s[{word}]"

    def _keep(self, word: int, bits: Bits) -> None:
        self._words.define(f"s[{word}]", bits)
        locations = {bit: (word, index) for index, bit in enumerate(bits)}
        self._stored |= locations
        self._source.stored |= locations

    def _input(self, given: InputWord) -> None:
        word = self._word(given.start)
        self._keep(word, given.bits)
        self._source.inputs.add(word)
        if given.has_previous:
            previous = self._word(given.start)
            if given.late:
                self._words.define(f"s[{previous}]", given.bits)
                self._source.stored |= {bit: (previous, k) for k, bit in enumerate(given.bits)}
            self._source.previous[word] = previous

    def _declare_edges(self) -> None:
        for number, edge in enumerate(self._lowered.edges):
            if number not in self._plan.derived:
                word, index = self._stored[edge.net]
                old, new = edge_sides(edge, f"s[{self._source.previous[word]}]", f"s[{word}]")
                self._edges.append(f"const uint64_t e{number} = ({new} & ~{old}) >> {index} & 1;")
                name = f"e{number}"
            else:
                due, level = self._word(0), f"s[{self._word(edge.before)}]"
                self._source.due.append(due)
                name = f"s[{due}]"
                self._derived.append((number, name, level))
            self._words.define(name, (edge.bit,))
            self._active.append(name)

    # --- what happens at once -----------------------------------------------------------------

    def _step(self) -> Iterator[str]:
        yield from self._edges
        calls = self._calls(self._lowered.edge_messages, 0)
        shown = [word.bits for word in self._counted]
        if self._active:
            yield f"if ({' | '.join(self._active)}) {{"
            yield from (f"  {line}" for line in lines_of(in_reach(self._edge_of(calls, shown))))
            yield "}"
        else:
            # Every step is an edge of the one clock that there is, if any.
            yield from lines_of(in_reach(self._edge_of(calls, shown)))
        previous = self._source.previous
        yield from (f"s[{before}] = s[{word}];" for word, before in previous.items())

    def _before_edge(self) -> Iterator[Snippet]:
        """Yield the statements that count what coverage measures."""
        edges = self._lowered.edges
        clocks = [name for name, edge in zip(self._active, edges, strict=True) if not edge.reset]
        # Where an asynchronous reset alone is why the step is taken, nothing is counted.
        always = len(clocks) == len(edges)
        names = set[str]()
        for number, word in enumerate(self._counted):
            text, reads = self._text(word.bits), self._words.names(word.bits)
            if word.edge is not None:
                reads |= self._words.names((word.edge,))
                text = f"{self._text((word.edge,))} ? {text} : 0"
            name = f"covered{number}"
            names.add(name)
            line = f"covered.store({number}, {text});"
            yield Snippet((line,), frozenset(reads), frozenset({name}))
        if self._counted:
            head = "" if always else f"if ({' | '.join(clocks) or '0'}) "
            last = (f"{head}covered.end();",)
            yield Snippet(last, frozenset({*names, *clocks}), frozenset({"covered"}))

    def _after(self) -> Iterator[str]:
        yield from lines_of(self._levels())
        pending = " | ".join(pending for _, pending, _ in self._derived) or "0"
        yield f"return int({pending}) | (messages->count != 0) << 1;"

    def _levels(self) -> Iterator[Snippet]:
        """Write the clocks that the design makes, and the messages outside of edges."""
        root = Scope()
        edges = self._lowered.edges
        uses: list[tuple[Bits, Scope]] = [
            ((edges[number].net,), root) for number, *_ in self._derived
        ]
        calls = self._calls(self._lowered.comb_messages, len(self._lowered.edge_messages))
        scoped = self._scoped(calls, root, uses)
        if not uses:
            return
        body = self._body(uses, root)
        yield from body.scope(root)
        for number, pending, level in self._derived:
            now = self._text((edges[number].net,))
            old, new = edge_sides(edges[number], level, now)
            clock = self._words.names((edges[number].net,))
            yield assignment(pending, f"{new} & ~{old} & 1", {*clock, level})
            yield assignment(level, now, clock)
        yield from self._messages(scoped, body)

    def _calls(self, messages: Sequence[DesignMessage], first: int) -> list[MessageCall]:
        """Return the calls that add ``messages``, which are numbered from ``first`` on."""
        return [(x.enable, x.values, f"messages->add({k}") for k, x in enumerate(messages, first)]

    # --- what follows -------------------------------------------------------------------------

    def _settle(self) -> Iterator[Snippet]:
        root = Scope()
        found, source = [], self._source
        for bits in dict.fromkeys(self._lowered.signals.values()):
            if all(bit < 2 or bit in self._stored for bit in bits):
                source.fields[bits] = tuple(self._gathered(bits))
            else:
                fields = [
                    BitField(self._word(0), 0, low, width)
                    for low in range(0, len(bits), WORD)
                    for width in (min(WORD, len(bits) - low),)
                ]
                source.fields[bits] = tuple(fields)
                source.settled.add(bits)
                found.append((bits, fields))
        uses = [(bits, root) for bits, _ in found]
        yield from self._body(uses, root).scope(root)
        for bits, fields in found:
            for part, word in zip(fields, words_of(bits), strict=True):
                yield self._assigned(f"s[{part.word}]", word)

    def _find_quiet_levels(self) -> None:
        """Find clocks of one bit that no logic reads, and that act at edges of one kind alone."""
        design, read = self._lowered.design, set[int]()
        for cell in design.cells:
            read.update(*cell.operands)
        for register in design.registers:
            read.update(register.following)
        for memory in design.memories:
            read.update(*(x.address for x in memory.reads))
            for write in memory.writes:
                read.update(write.address, write.data, write.enable)
        for message in (*self._lowered.edge_messages, *self._lowered.comb_messages):
            read.update((message.enable,), *message.values)
        read.update(*self._source.settled, *(word.bits for word in self._counted))
        previous, clocks = self._source.previous, {edge.net for edge in self._lowered.edges}
        used = read | clocks
        for given in self._plan.inputs:
            if len(given.bits) == 1 and given.bits[0] not in used:
                word, _ = self._stored[given.bits[0]]
                self._source.quiet[word] = (BOTH_LEVELS, word)
        for net in clocks - read:
            kinds = {edge.rising for edge in self._lowered.edges if edge.net == net}
            word, _ = self._stored.get(net, (-1, 0))
            alone = sum(other == word for other, _ in self._stored.values()) == 1
            if word in previous and alone and len(kinds) == 1:
                self._source.quiet[word] = (int(not kinds.pop()), previous[word])

    def _gathered(self, bits: Bits) -> Iterator[BitField]:
        low = 0
        while low < len(bits):
            if bits[low] < 2:
                low += 1
                continue
            word, shift = self._stored[bits[low]]
            width = adjacent(bits, low, self._stored)
            yield BitField(word, shift, low, width)
            low += width
