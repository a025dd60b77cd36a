"""Evaluate at an edge only what may have changed, in C++: groups of cells and registers.

What a group computes follows from a few sources: registers, memories, inputs. Whoever changes one
sets the flag of each group that depends on it; without its flag a group is as it was. What is never
at rest, what follows from many sources, and what is not worth a flag is evaluated at every edge.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import combinations

from ..design import Bits, CellKind, PlainCell
from ..tidy import Statement
from .body import Body
from .edge import Clocked, Group, Store, Uses, in_turn
from .order import in_reach
from .scopes import Scope
from .words import WORD, Words, literal, words_of

__all__ = ["Activity"]

_MOST = 8
"""Sources that a group has: the more, the less it rests."""

_RATES = [1 - 0.95**sources for sources in range(_MOST + 1)]
"""How often a group is taken to be awake, by the number of its sources."""

_WORTH = 20
"""Instructions that are saved by merging two groups."""

_LEAST, _WATCHED = 20, 5
"""Instructions that a group has to have, and so many more for each word of its sources."""

_ARITHMETIC = frozenset({CellKind.ADD, CellKind.SUBTRACT, CellKind.MULTIPLY, CellKind.XOR})


@dataclass(eq=False)
class _Part:
    """Steps and registers that follow from the same ``sources``, a set of bits."""

    sources: int
    cost: int = 0
    steps: list[int] = field(default_factory=list)
    registers: list[Group] = field(default_factory=list)
    flag: int = 0

    @property
    def rate(self) -> float:
        return _RATES[self.sources.bit_count()]

    @property
    def test(self) -> str:
        return f"now & {literal(1 << self.flag)}"


class Activity:
    """Groups among ``steps``, which ``body`` writes, and the registers in ``clocked``.

    ``inputs`` are words that others change, those that change together in one list.

    Attributes
    ----------
    state : list of str
        Members of the model, complete when all statements have been written.
    """

    def __init__(
        self,
        steps: Sequence[Statement],
        body: Body,
        words: Words,
        clocked: Sequence[Clocked],
        inputs: Sequence[Sequence[str]],
    ) -> None:
        self._body, self._words = body, words
        self._clocked, self._inputs = clocked, inputs
        self._drivers = {bit: x for x in steps if isinstance(x, PlainCell) for bit in x.result}
        self.state = ["uint64_t awake = ~uint64_t(0);"]
        self._parts: list[_Part] = []
        self._segments: list[tuple[_Part | None, list[int]]] = []

    def divide(self, root: Scope) -> None:
        """Find the groups, and an order for what is in them and what is not."""
        merged = _merged(self._together(root))
        sizes = [len(x.variables) for x in self._clocked] + [0] * len(self._inputs)

        def gain(part: _Part) -> int:
            watched = sum(size for k, size in enumerate(sizes) if part.sources >> k & 1)
            return part.cost - _LEAST - _WATCHED * watched

        worth = sorted((part for part in merged if gain(part) > 0), key=gain, reverse=True)
        self._parts = worth[:WORD]
        for flag, part in enumerate(self._parts):
            part.flag = flag
            for group in part.registers:
                group.own = 1 << flag
        for number, x in enumerate(self._clocked):
            x.dependents = self._flags_of(number)
        self._segments = _in_order(self._body, root, self._parts)

    def _flags_of(self, source: int) -> int:
        return sum((part.sources >> source & 1) << part.flag for part in self._parts)

    def _together(self, root: Scope) -> list[_Part]:
        """What follows from the same few sources."""
        known, stored, never = self._sources()
        parts: dict[int, _Part] = {}

        def part_of(bits: set[int], memories: set[int]) -> _Part:
            sources = 0
            for bit in bits:
                sources |= known.get(bit, 0)
            for memory in memories:
                sources |= stored[memory]
            return parts.setdefault(sources, _Part(sources))

        for number in root.steps:
            part = part_of(*self._body.read_by([number]))
            known |= dict.fromkeys(self._body.result(number), part.sources)
            part.steps.append(number)
            part.cost += self._body.cost([number])
        for x in self._clocked:
            if isinstance(x, Group):
                part = part_of(*x.reads(self._body, root))
                part.registers.append(x)
                part.cost += 2 + 2 * len(x.variables) + self._body.cost(x.scope.steps)
        return [
            x for x in parts.values() if x.sources.bit_count() <= _MOST and not x.sources & never
        ]

    def _sources(self) -> tuple[dict[int, int], dict[int, int], int]:
        """Sources by bit and by memory, each a set of bits, and those that never rest."""
        variables: dict[str, int] = defaultdict(int)
        stored: dict[int, int] = defaultdict(int)
        never = 0
        for number, names in enumerate((*(x.variables for x in self._clocked), *self._inputs)):
            for name in names:
                variables[name] |= 1 << number
        for number, x in enumerate(self._clocked):
            if isinstance(x, Store):
                stored[id(x.target)] |= 1 << number
            if isinstance(x, Group) and x.enable is None:
                never |= any(self._counts(y.following, y.result) for _, y in x.registers) << number
        places = self._words.places.items()
        known = {bit: variables[place[0]] for bit, place in places if place[0] in variables}
        return known, stored, never

    def _counts(self, following: Bits, old: Bits) -> bool:
        """Whether ``following`` is computed from ``old``, and never just that, as in a counter."""
        cell = self._drivers.get(following[0])
        if cell is None or cell.result[: len(following)] != following:
            return False
        operands = [x[: len(following)] for x in cell.operands]
        if cell.kind is CellKind.MUX:
            values = [operands[0], *operands[2::2]]
            return old not in values and any(self._counts(x, old) for x in values)
        if cell.kind not in _ARITHMETIC:
            return False
        return old in operands or any(self._counts(x, old) for x in operands)

    # --- statements ---------------------------------------------------------------------------

    def before(self) -> Iterator[str]:
        """At the beginning of an edge."""
        yield "uint64_t now = awake;"
        yield "uint64_t next = 0;"
        for number, names in enumerate(self._inputs, len(self._clocked)):
            flags = self._flags_of(number)
            if flags:
                seen = {f"seen_{name.replace('[', '_').removesuffix(']')}": name for name in names}
                self.state += [f"uint64_t {x} = 0;" for x in seen]
                yield f"if ({' | '.join(f'({x} ^ {name})' for x, name in seen.items())}) {{"
                yield f"  now |= {literal(flags)};"
                yield from (f"  {x} = {name};" for x, name in seen.items())
                yield "}"

    def cells(self, root: Scope, uses: Sequence[tuple[Bits, Scope]]) -> Iterator[str]:
        """For the steps of ``root``; ``uses`` is what the edge reads at its end, and where."""
        body, words = self._body, self._words
        later = {bit for bits, _ in uses for bit in bits}
        later.update(*(body.reads(scope)[0] for _, scope in uses if scope is not root))
        read: list[set[int]] = []
        for _, steps in reversed(self._segments):
            read.append(set(later))
            later |= body.read_by(steps)[0]
        for part, steps in self._segments:
            lines = list(body.statements(steps))
            outside = read.pop()
            if part is None:
                yield from lines
                continue
            results = [word for x in steps for word in words_of(body.result(x))]
            kept = [word for word in results if not outside.isdisjoint(word)]
            names = [f"kept{len(self.state) + k}" for k in range(len(kept))]
            self.state += [f"uint64_t {name} = 0;" for name in names]
            yield f"if ({part.test}) {{"
            lines += [
                f"{name} = {words.text(word)};" for name, word in zip(names, kept, strict=True)
            ]
            yield from (f"  {line}" for line in in_reach(lines))
            yield "}"
            for name, word in zip(names, kept, strict=True):
                words.define(name, word)

    def clocked(self) -> list[Clocked]:
        """All of ``clocked``; the registers of a group are one."""
        grouped = {x for part in self._parts for x in part.registers}
        alone = [x for x in self._clocked if x not in grouped]
        return [*alone, *(_Registers(part) for part in self._parts if part.registers)]

    def after(self) -> Iterator[str]:
        """At the end of an edge."""
        yield "awake = next;"


class _Registers(Clocked):
    """The registers of a group."""

    def __init__(self, part: _Part) -> None:
        super().__init__()
        self._part = part
        for x in part.registers:
            self.variables |= x.variables

    def uses(self, root: Scope) -> Uses:
        for x in self._part.registers:
            yield from x.uses(root)

    def reads(self, body: Body, root: Scope) -> tuple[set[int], set[int]]:
        found = [x.reads(body, root) for x in self._part.registers]
        return set().union(*(bits for bits, _ in found)), set().union(*(x for _, x in found))

    def lines(self, body: Body, words: Words) -> Iterator[str]:
        yield f"if ({self._part.test}) {{"
        lines = in_turn(self._part.registers, body, words, Scope())
        yield from (f"  {line}" for line in in_reach(lines))
        yield "}"


def _merged(parts: Iterable[_Part]) -> list[_Part]:
    """``parts``, those made one that would be awake together as often as alone."""
    alive = dict(enumerate(parts))
    left: list[tuple[float, int, int]] = []

    def consider(a: int, b: int) -> None:
        one, other = alive[a], alive[b]
        sources = (one.sources | other.sources).bit_count()
        if sources <= _MOST:
            rate = _RATES[sources]
            loss = (rate - one.rate) * one.cost + (rate - other.rate) * other.cost
            if loss < _WORTH:
                heappush(left, (loss, a, b))

    for a, b in combinations(alive, 2):
        consider(a, b)
    free = len(alive)
    while left:
        _, a, b = heappop(left)
        if a in alive and b in alive:
            one, other = alive.pop(a), alive.pop(b)
            new = _Part(
                one.sources | other.sources,
                one.cost + other.cost,
                one.steps + other.steps,
                one.registers + other.registers,
            )
            others = list(alive)
            alive[free] = new
            for c in others:
                consider(c, free)
            free += 1
    return list(alive.values())


def _in_order(
    body: Body, root: Scope, parts: Sequence[_Part]
) -> list[tuple[_Part | None, list[int]]]:
    """The steps of ``root``, as many of a part together as can be; None: those of no part."""
    owners: dict[int, _Part | None] = dict.fromkeys(root.steps)
    owners |= {x: part for part in parts for x in part.steps}
    drivers = {bit: x for x in root.steps for bit in body.result(x)}
    users: dict[int, list[int]] = defaultdict(list)
    missing: dict[int, int] = {}
    ready: dict[_Part | None, list[int]] = defaultdict(list)
    for x in root.steps:
        needs = {drivers[bit] for bit in body.read_by([x])[0] & drivers.keys()}
        missing[x] = len(needs)
        for y in needs:
            users[y].append(x)
        if not needs:
            ready[owners[x]].append(x)

    def reach(part: _Part | None) -> list[int]:
        """What of a part can come next."""
        found = list(ready[part])
        less: dict[int, int] = defaultdict(int)
        for x in found:
            for y in users[x]:
                less[y] += 1
                if owners[y] is part and less[y] == missing[y]:
                    found.append(y)
        return found

    left = {part: len(part.steps) for part in parts}
    order: list[tuple[_Part | None, list[int]]] = []
    while any(ready.values()):
        runs = {part: reach(part) for part, steps in ready.items() if steps}
        whole = [x for x in runs if x and len(runs[x]) == left[x]]
        part = whole[0] if whole else max(runs, key=lambda x: len(runs[x]))
        steps = runs[part]
        del ready[part]
        if part:
            left[part] -= len(steps)
        inside = set(steps)
        for x in steps:
            for y in users[x]:
                missing[y] -= 1
                if not missing[y] and y not in inside:
                    ready[owners[y]].append(y)
        order.append((part, sorted(steps)))
    return order
