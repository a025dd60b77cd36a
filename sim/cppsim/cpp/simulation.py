"""Write a lowered design as a C++ structure that is stepped from outside: state and two methods.

``step`` is what happens at once: edges of clocks, with what they load. ``settle`` brings what
follows from the state up to date for whoever looks. All state but memories is one array of words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..netlist.design import Bits, Memory, NotPlain
from ..netlist.lowering import Event, Lowered
from ..netlist.narrow import narrow
from ..netlist.tidy import Statement, in_order
from .body import Body
from .edge import Clocked, Group, Store, in_turn, resets
from .order import in_reach
from .scopes import Scope
from .words import WORD, Words, literal, words_of

__all__ = ["SimulationSource", "WordPlace", "element_bits", "write_simulation"]

_TEXT = """\
#include "words.h"
#include "told.h"

namespace {{

struct Top {{
  uint64_t s[{size}] = {{{starts}}};
{memories}
  Told *told;

  int step() {{
{step}
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


@dataclass(frozen=True, slots=True)
class WordPlace:
    """Where ``width`` bits of a value from its bit ``low`` on are: in a word, ``shift`` bits up."""

    word: int
    shift: int
    low: int
    width: int


@dataclass(slots=True)
class SimulationSource:
    """C++ text, and where it keeps things.

    ``places`` says of tuples of bits where they are; a bit without a place is a constant. Those in
    ``settled`` are good after ``settle`` only. Memories have the numbers that the design gives.

    ``stored`` has the word of each bit of the state that logic sees and its place there, ``steps``
    in order what follows from it. ``inputs`` are words that no step changes, ``passive`` those of
    them that need none when they have changed. ``quiet`` has those of clocks that are nothing but
    clocks: a level to which they change unnoticed, and a second word that is then to be written.

    Between steps words in ``seen`` are as those that they belong to, and those in ``due`` are 0.

    ``step`` and ``settle`` are the lines of those methods, for another layout of the state;
    ``starts`` and ``widths`` say of each word what it is at first and how many bits it has.
    """

    text: str = ""
    places: dict[Bits, tuple[WordPlace, ...]] = field(default_factory=dict)
    settled: set[Bits] = field(default_factory=set)
    stored: dict[int, tuple[int, int]] = field(default_factory=dict)
    steps: list[Statement] = field(default_factory=list)
    inputs: set[int] = field(default_factory=set)
    passive: set[int] = field(default_factory=set)
    quiet: dict[int, tuple[int, int]] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    due: list[int] = field(default_factory=list)
    step: list[str] = field(default_factory=list)
    settle: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    size: int = 0


def write_simulation(lowered: Lowered) -> SimulationSource:
    """The C++ of ``lowered``, which is cut into words. Raises ``NotPlain`` for a loop."""
    narrow(lowered.design, WORD)
    try:
        in_order(lowered.design)
    except NotPlain:
        # Bits of one word may depend on others of it, as in a chain, and be no loop for all that.
        narrow(lowered.design, 1)
    return _Simulation(lowered).source()


def element_bits(width: int) -> int:
    """Bits of the elements of the array of a memory of ``width`` bits; wider rows take several."""
    return next((size for size in (8, 16, 32) if width <= size), 64)


class _Simulation:
    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._words = Words()
        self._memories: dict[int, str] = {}
        self._arrays: list[str] = []
        self._clocked: list[Clocked] = []
        self._root = Scope()
        self._incoming: list[tuple[int, int]] = []
        """Words that clocks come in, and those in which the logic sees them until it is stepped."""
        self._edges: list[str] = []
        self._derived: list[tuple[int, str, str]] = []
        self._stored: dict[int, tuple[int, int]] = {}
        """The word and bit in which Python finds a bit of the state."""
        self._source = SimulationSource()
        self._declare()
        self._steps = self._source.steps = in_order(lowered.design)

    def source(self) -> SimulationSource:
        step = self._source.step = list(self._step())
        settle = self._source.settle = in_reach(self._settle())
        self._find_quiet_clocks()
        self._source.seen = dict(self._incoming)
        if not self._derived and not self._lowered.watches:
            self._source.passive = self._source.inputs - {word for word, _ in self._incoming}
        self._source.size = max(1, len(self._source.starts))
        self._source.text = _TEXT.format(
            size=self._source.size,
            starts=", ".join(map(literal, self._source.starts)),
            memories="\n".join(f"  {line}" for line in self._arrays),
            step="\n".join(f"    {line}" for line in step),
            settle="\n".join(f"    {line}" for line in settle),
            pointers=", ".join([*self._memories.values(), "nullptr"]),
        )
        return self._source

    # --- state --------------------------------------------------------------------------------

    def _word(self, start: int, width: int = 1) -> int:
        self._source.starts.append(start)
        self._source.widths.append(width)
        return len(self._source.starts) - 1

    def _declare(self) -> None:
        clocks = {edge.net: edge.reset for edge in self._lowered.edges}
        clocks |= {edge.net: False for edge in self._lowered.edges if not edge.reset}
        for given in self._lowered.inputs:
            for number, bits in enumerate(words_of(given.bits)):
                self._input(bits, given.start >> WORD * number & (1 << WORD) - 1, clocks)
        self._declare_edges()
        groups: dict[object, Group] = {}
        for number, register in enumerate(self._lowered.design.registers):
            # Those that load at every edge need not wait for one another.
            key = (number,) if register.enable is None else register.enable
            group = groups.setdefault(key, Group(self._root.inner(), {}, register.enable))
            for low in range(0, len(register.result), WORD):
                piece = register.part(slice(low, low + WORD))
                start = sum(bit << k for k, bit in enumerate(piece.start))
                word = self._word(start, len(piece.result))
                self._keep(word, piece.result)
                group.add(f"s[{word}]", piece)
        self._clocked += groups.values()
        for memory in self._lowered.design.memories:
            self._declare_memory(memory)

    def _keep(self, word: int, bits: Bits) -> None:
        self._words.define(f"s[{word}]", bits)
        places = {bit: (word, place) for place, bit in enumerate(bits)}
        self._stored |= places
        self._source.stored |= places

    def _input(self, bits: Bits, start: int, clocks: Mapping[int, bool]) -> None:
        word = self._word(start, len(bits))
        self._keep(word, bits)
        self._source.inputs.add(word)
        resets = [clocks[bit] for bit in bits if bit in clocks]
        if resets:
            seen = self._word(start, len(bits))
            if not all(resets):
                # At an edge everything shows what it did before it, the clock itself included.
                self._words.define(f"s[{seen}]", bits)
                self._source.stored |= {bit: (seen, place) for place, bit in enumerate(bits)}
            self._incoming.append((word, seen))

    def _declare_edges(self) -> None:
        seen_in = dict(self._incoming)
        for number, edge in enumerate(self._lowered.edges):
            word, place = self._stored.get(edge.net, (-1, 0))
            if word in seen_in:
                before, after = f"s[{seen_in[word]}]", f"s[{word}]"
                old, new = (before, after) if edge.rising else (after, before)
                self._edges.append(f"const uint64_t e{number} = ({new} & ~{old}) >> {place} & 1;")
                self._words.define(f"e{number}", (edge.bit,))
            else:
                due, level = self._word(0), f"s[{self._word(edge.before)}]"
                self._source.due.append(due)
                pending = f"s[{due}]"
                self._words.define(pending, (edge.bit,))
                self._derived.append((number, pending, level))

    def _declare_memory(self, memory: Memory) -> None:
        name = self._memories[id(memory)] = f"m{len(self._memories)}"
        count = -(-memory.width // WORD)
        depth = max(1, len(memory.rows))
        size = f"[{depth}]" + (f"[{count}]" if count > 1 else "")
        rows = (
            [literal(row >> WORD * k & (1 << WORD) - 1) for k in range(count)]
            for row in memory.rows
        )
        texts = (words[0] if count == 1 else f"{{{', '.join(words)}}}" for words in rows)
        content = ", ".join(texts) if any(memory.rows) else ""
        self._arrays.append(
            f"uint{element_bits(memory.width)}_t {name}{size} = {{{content}}}; // {memory.name}"
        )
        self._clocked += [
            Store(self._root.inner(), target=memory, write=write, array=name)
            for write in memory.writes
            if write.enable
        ]

    # --- what happens at once -----------------------------------------------------------------

    def _step(self) -> Iterator[str]:
        yield from self._edges
        names = [f"e{number}" for number in range(len(self._lowered.edges))]
        derived = {number: pending for number, pending, _ in self._derived}
        active = [derived.get(number, name) for number, name in enumerate(names)]
        if active:
            yield f"if ({' | '.join(active)}) {{"
            yield from (f"  {line}" for line in in_reach(self._edge()))
            yield "}"
        else:
            # Every step is an edge of the one clock that there is, if any.
            yield from in_reach(self._edge())
        yield from (f"s[{seen}] = s[{word}];" for word, seen in self._incoming)
        yield from self._levels()
        pending = " | ".join(pending for _, pending, _ in self._derived) or "0"
        yield f"return int({pending}) | (told->count != 0) << 1;"

    def _edge(self) -> Iterator[str]:
        groups = [x for x in self._clocked if isinstance(x, Group)]
        uses = [use for x in self._clocked for use in x.uses(self._root)]
        uses += [
            ((x.reset,), self._root)
            for group in groups
            for _, x in group.registers
            if x.reset is not None
        ]
        scopes = self._event_scopes(self._lowered.events, self._root, uses)
        dry = frozenset(x.scope for x in self._clocked if x.memory())
        body = Body(self._steps, self._words, self._memories, uses, self._root, dry)
        yield from body.scope(self._root)
        for number, (event, scope) in enumerate(zip(self._lowered.events, scopes, strict=True)):
            yield from self._tell(number, event, scope, body)
        before, after = resets(groups, self._words)
        yield from before
        yield from in_turn(self._clocked, body, self._words, self._root)
        yield from after

    def _levels(self) -> Iterator[str]:
        """Clocks that the design makes, and what it shows or checks at all times."""
        root = Scope()
        edges = self._lowered.edges
        uses: list[tuple[Bits, Scope]] = [
            ((edges[number].net,), root) for number, *_ in self._derived
        ]
        scopes = self._event_scopes(self._lowered.watches, root, uses)
        if not uses:
            return
        body = Body(self._steps, self._words, self._memories, uses, root)
        yield from body.scope(root)
        for number, pending, level in self._derived:
            now = self._text((edges[number].net,))
            old, new = (level, now) if edges[number].rising else (now, level)
            yield f"{pending} = {new} & ~{old} & 1;"
            yield f"{level} = {now};"
        first = len(self._lowered.events)
        for number, (event, scope) in enumerate(zip(self._lowered.watches, scopes, strict=True)):
            yield from self._tell(first + number, event, scope, body)

    def _event_scopes(
        self, events: Sequence[Event], root: Scope, uses: list[tuple[Bits, Scope]]
    ) -> list[Scope]:
        scopes = [root.inner() for _ in events]
        for event, scope in zip(events, scopes, strict=True):
            uses.append(((event.enable,), root))
            uses += [(bits, scope) for bits in event.values]
        return scopes

    def _tell(self, number: int, event: Event, scope: Scope, body: Body) -> Iterator[str]:
        words = [self._text(part) for bits in event.values for part in words_of(bits)]
        yield f"if ({self._text((event.enable,))}) {{"
        yield from (f"  {line}" for line in body.scope(scope))
        yield f"  const uint64_t values[] = {{{', '.join([*words, '0'])}}};"
        yield f"  told->add({number}, values, {len(words)});"
        yield "}"

    def _text(self, bits: Bits) -> str:
        return self._words.text(bits)

    # --- what follows -------------------------------------------------------------------------

    def _settle(self) -> Iterator[str]:
        root = Scope()
        found, source = [], self._source
        for bits in dict.fromkeys(self._lowered.signals.values()):
            if all(bit < 2 or bit in self._stored for bit in bits):
                source.places[bits] = tuple(self._gathered(bits))
            else:
                places = [
                    WordPlace(self._word(0, width), 0, low, width)
                    for low in range(0, len(bits), WORD)
                    for width in (min(WORD, len(bits) - low),)
                ]
                source.places[bits] = tuple(places)
                source.settled.add(bits)
                found.append((bits, places))
        uses = [(bits, root) for bits, _ in found]
        yield from Body(self._steps, self._words, self._memories, uses, root).scope(root)
        for bits, places in found:
            for place, word in zip(places, words_of(bits), strict=True):
                yield f"s[{place.word}] = {self._text(word)};"

    def _find_quiet_clocks(self) -> None:
        """Clocks of one bit that no logic reads, and that act at edges of one kind alone."""
        design, read = self._lowered.design, set[int]()
        for cell in design.cells:
            read.update(*cell.operands)
        for register in design.registers:
            read.update(register.following)
        for memory in design.memories:
            read.update(*(x.address for x in memory.reads))
            for write in memory.writes:
                read.update(write.address, write.data, write.enable)
        for event in (*self._lowered.events, *self._lowered.watches):
            read.update((event.enable,), *event.values)
        read.update(*self._source.settled)
        seen_in = dict(self._incoming)
        for net in {edge.net for edge in self._lowered.edges} - read:
            kinds = {edge.rising for edge in self._lowered.edges if edge.net == net}
            word, _ = self._stored.get(net, (-1, 0))
            alone = sum(place[0] == word for place in self._stored.values()) == 1
            if word in seen_in and alone and len(kinds) == 1:
                self._source.quiet[word] = (int(not kinds.pop()), seen_in[word])

    def _gathered(self, bits: Bits) -> Iterator[WordPlace]:
        low = 0
        while low < len(bits):
            if bits[low] < 2:
                low += 1
                continue
            word, shift = self._stored[bits[low]]
            width = 1
            while low + width < len(bits) and self._stored.get(bits[low + width]) == (
                word,
                shift + width,
            ):
                width += 1
            yield WordPlace(word, shift, low, width)
            low += width
