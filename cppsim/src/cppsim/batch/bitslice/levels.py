"""Tables by which the threads of a GPU's block evaluate a part of a network, level by level.

A level depends only on levels before it, and no gate reads a word that another gate of its level
writes. So a register's word can be overwritten in a later level than its last read. `Schedule`
assigns levels, `Levels` allocates words.
"""

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, permutations

from ...netlist.passes import postorder
from .network import Gate, Network, remapped
from .phase import Call, Location, Output, needed_calls

BUFFER = 0b10101010
"""The truth table of a buffer."""

_OCTET = 8
"""Threads whose accesses to words of 16 bytes a GPU executes together.

Shared memory serves them in one clock if the numbers of their words differ modulo 8."""

_WINDOW = 64
"""Gates among which the next one of an octet is looked for."""

_ORDERS = tuple(permutations(range(3)))


class Schedule:
    """The levels, from 1, of the gates and calls that ``targets`` need.

    ``words`` has the words of the sources. ``targets`` are nodes, each with the word that it is
    written to, or None.

    Attributes
    ----------
    count : int
        The number of levels, with level 0, the sources.
    gates : dict of int to Gate
    calls : list of Call
    level : dict of int to int
        The level of each node.
    last : list of int
        For each target the gate that writes it; no other gate reads that gate.
    written, copied : dict of int to int
        Words that a gate in ``last`` writes in its level, or after all levels.
    """

    def __init__(
        self,
        network: Network,
        words: Mapping[int, int],
        calls: Sequence[Call],
        targets: Sequence[tuple[int, int | None]],
    ) -> None:
        self._drivers = {node: call for call in calls for node in call.result}
        roots = [node for node, _ in targets]
        self.calls = needed_calls(network, self._drivers, roots)
        taken = [node for call in self.calls for node in call.taken]
        self.gates: dict[int, Gate] = dict(network.merged([*taken, *roots]))
        self.level: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self.copied: dict[int, int] = {}
        self.last = self._last_gates(network, roots)
        self._readers = self._all_readers()
        self._early()
        self.count = 1 + max(self.level.values(), default=0)
        self._overwrite(words, [word for _, word in targets])
        self._spread()
        self._delay()
        self._gather_calls()

    def _last_gates(self, network: Network, roots: Sequence[int]) -> list[int]:
        """Return for each of ``roots`` a gate without readers: the root, or a buffer of it."""
        reads = Counter(x for _, inputs in self.gates.values() for x in inputs)
        reads.update(x for call in self.calls for x in call.taken)
        reads.update(roots)
        result: list[int] = []
        for root in roots:
            node = root
            if reads[root] > 1 or root not in self.gates:
                node = network.source()
                self.gates[node] = BUFFER, (root,)
            result.append(node)
        return result

    def _all_readers(self) -> dict[int, list[int]]:
        """Return the gates and calls that read each node; a call is named by its first result."""
        readers: dict[int, list[int]] = {}
        for node in (*self.gates, *(call.result[0] for call in self.calls)):
            for other in self._inputs(node):
                readers.setdefault(other, []).append(node)
        return readers

    def _inputs(self, node: int) -> Sequence[int]:
        call = self._drivers.get(node)
        return call.taken if call else self.gates[node][1] if node in self.gates else ()

    def _early(self) -> None:
        """Assign the first possible level to all nodes, 0 to sources."""
        roots = (*self.gates, *(call.result[0] for call in self.calls))
        for node in postorder(roots, self._inputs):
            inside = node in self.gates or node in self._drivers
            behind = 1 + max((self.level[x] for x in self._inputs(node)), default=0)
            self.level[node] = behind if inside else 0

    def _overwrite(self, words: Mapping[int, int], targets: Sequence[int | None]) -> None:
        """Move gates that write over a source to a level after all readers of the source."""
        sources = {word: node for node, word in words.items()}
        self._replaced: dict[int, int] = {}
        """The gates that write over sources, by source."""
        for node, word in zip(self.last, targets, strict=True):
            if word is not None:
                self.written[node] = word
                if word in sources:
                    self._replaced[sources[word]] = node
        before = {node: source for source, node in self._replaced.items()}
        done: set[int] = set()
        for root in before:
            path, left = set[int](), [root]
            while left:
                node = left[-1]
                if node in done:
                    left.pop()
                    continue
                path.add(node)
                readers = [x for x in self._readers.get(before[node], ()) if x != node]
                missing = [x for x in readers if x in before and x not in done]
                circle = any(x in path for x in missing)
                if missing and not circle:
                    left.append(missing[0])
                    continue
                behind = 1 + max((self.level[x] for x in readers), default=0)
                if circle or behind >= self.count:
                    self.copied[node] = self.written.pop(node)
                else:
                    self.level[node] = max(self.level[node], behind)
                done.add(node)
                path.discard(node)
        for node in self.copied:
            del self._replaced[before[node]]

    def _spread(self) -> None:
        """Delay outputs to levels with few gates: most have time."""
        load = Counter(self.level[node] for node in self.gates)
        # Outputs that write over an operand of another output come first.
        for node in sorted(self.last, key=self.level.__getitem__, reverse=True):
            if node not in self.copied:
                early = self.level[node]
                level = min(range(early, self._end(node)), key=load.__getitem__)
                load[early] -= 1
                load[level] += 1
                self.level[node] = level

    def _delay(self) -> None:
        """Delay gates whose operands then wait in two slots more at most."""
        fixed = {*self.last}
        # Readers come first.
        for node in sorted(self.gates, key=self.level.__getitem__, reverse=True):
            latest = self._end(node) - 1
            if node not in fixed and latest > self.level[node]:
                inputs = self.gates[node][1]
                if sum(self._wait_longer(x, node, latest) for x in inputs) <= 2:
                    self.level[node] = latest

    def _end(self, node: int) -> int:
        """Return the first level that is too late: of a reader, or of a gate over an operand."""
        ends = [self.level[x] for x in self._readers.get(node, ())]
        over = (self._replaced.get(x, node) for x in self._inputs(node))
        return min([*ends, *(self.level[x] for x in over if x != node)], default=self.count)

    def _gather_calls(self) -> None:
        """Delay calls to the last of as few levels as possible: a level with calls takes long."""
        spans = [
            (min(map(self._end, call.result)) - 1, self.level[call.result[0]], call)
            for call in self.calls
        ]
        levels, left = list[int](), spans
        while left:
            latest = min(span[0] for span in left)
            levels.append(max(early for _, early, _ in left if early <= latest))
            left = [span for span in left if span[1] > latest]
        for latest, early, call in spans:
            level = max(x for x in levels if early <= x <= latest)
            self.level |= dict.fromkeys(call.result, level)

    def _wait_longer(self, operand: int, node: int, level: int) -> bool:
        """Return whether ``operand`` takes a slot until ``level`` only for ``node``."""
        others = (self.level[x] for x in self._readers[operand] if x != node)
        return self.level[operand] > 0 and max(others, default=0) < level


@dataclass(frozen=True, slots=True)
class LevelCall:
    """A call with the words of its operands and of its result."""

    function: str
    taken: tuple[int, ...]
    result: tuple[int, ...]


@dataclass(slots=True)
class Levels:
    """Gates and calls by level; a gate is (table, three words to read, the word to write).

    Attributes
    ----------
    network : Network
    sources : mapping of int to Location
        Words of the nodes that are not gates.
    regions : mapping of str to int
        First words of the regions.
    calls : sequence of Call
    outputs : sequence of Output
    first, slots : int
        First slot and number of slots, words for intermediate values.
    gates, called : list of list
        Gates and calls of each level.
    stored : dict of Location to int
        Slots of the outputs in other regions than ``regions``.
    """

    network: Network
    sources: Mapping[int, Location]
    regions: Mapping[str, int]
    calls: Sequence[Call]
    outputs: Sequence[Output]
    first: int
    slots: int = 0
    gates: list[list[tuple[int, int, int, int, int]]] = field(default_factory=list)
    called: list[list[LevelCall]] = field(default_factory=list)
    stored: dict[Location, int] = field(default_factory=dict)

    def made(self) -> "Levels":
        """Fill the tables; return this object."""
        words = {node: self._at(location) for node, location in self.sources.items()}
        targets = [(x.node, self._at(x.location) if self._there(x) else None) for x in self.outputs]
        schedule = Schedule(self.network, words, self.calls, targets)
        _Allocator(self, schedule, words).allocate()
        for output, node in zip(self.outputs, schedule.last, strict=True):
            if not self._there(output):
                self.stored[output.location] = words[node]
        return self

    def _there(self, output: Output) -> bool:
        return output.location[0] in self.regions

    def _at(self, location: Location) -> int:
        region, word = location
        return self.regions[region] + word


class _Allocator:
    """Allocate words for nodes, level by level; a slot is reused after its last read."""

    def __init__(self, levels: Levels, schedule: Schedule, words: dict[int, int]) -> None:
        self._levels = levels
        self._schedule = schedule
        self._words = words
        self._free: list[list[int]] = [[] for _ in range(_OCTET)]
        """Free slots by their numbers modulo 8."""

    def allocate(self) -> None:
        schedule = self._schedule
        gates: list[list[int]] = [[] for _ in range(schedule.count)]
        for node in schedule.gates:
            gates[schedule.level[node]].append(node)
        calls: list[list[Call]] = [[] for _ in range(schedule.count)]
        for call in schedule.calls:
            calls[schedule.level[call.result[0]]].append(call)
        ends: list[list[int]] = [[] for _ in range(schedule.count)]
        for node, level in self._last_uses().items():
            ends[level].append(node)
        for level in range(1, schedule.count):
            self._levels.gates.append(self._rows(gates[level]))
            self._levels.called.append([self._call(call) for call in calls[level]])
            for node in ends[level]:
                word = self._words[node]
                self._free[word % _OCTET].append(word)
        if schedule.copied:
            copies = schedule.copied.items()
            rows = [(BUFFER, self._words[node], 0, 0, word) for node, word in copies]
            self._levels.gates.append(rows)
            self._levels.called.append([])

    def _last_uses(self) -> dict[int, int]:
        """Return the last level that reads each node in a slot; outputs have none."""
        schedule = self._schedule
        last: dict[int, int] = {}
        for node, (_, inputs) in schedule.gates.items():
            for other in (*inputs, node):
                last[other] = max(last.get(other, 0), schedule.level[node])
        for call in schedule.calls:
            for other in (*call.taken, *call.result):
                last[other] = max(last.get(other, 0), schedule.level[call.result[0]])
        ends = {*schedule.last, *self._levels.sources, 0, 1}
        return {node: level for node, level in last.items() if node not in ends}

    def _rows(self, nodes: Sequence[int]) -> list[tuple[int, int, int, int, int]]:
        """Return the gates of a level, so that few words of an octet are in the same bank."""
        rows = []
        left = deque(nodes)
        while left:
            read: tuple[dict[int, int], ...] = {}, {}, {}
            written: dict[int, int] = {}
            for _ in range(min(_OCTET, len(left))):
                node, order = self._next(left, read, written)
                table, inputs = self._schedule.gates[node]
                words = [self._words[x] for x in inputs]
                positions = order[: len(words)]
                row = [words[0] if words else 0] * 3
                for position, word in zip(positions, words, strict=True):
                    row[position] = word
                    read[position][word % _OCTET] = word
                word = self._schedule.written.get(node, -1)
                if word < 0:
                    word = self._slot(written)
                self._words[node] = word
                written[word % _OCTET] = word
                first, second, third = row
                rows.append((_reordered(table, positions), first, second, third, word))
        return rows

    def _next(
        self, left: deque[int], read: Sequence[dict[int, int]], written: Mapping[int, int]
    ) -> tuple[int, tuple[int, ...]]:
        """Take the gate out of ``left`` whose words, in some order, collide least with others.

        The octet reads the words in ``read``, by position and bank, and writes to ``written``.
        One word that many threads read takes one clock.
        """
        best, chosen, most = 0, _ORDERS[0], 5
        for number, node in enumerate(islice(left, _WINDOW)):
            words = [self._words[x] for x in self._schedule.gates[node][1]]
            target = self._schedule.written.get(node, -1)
            beside = target >= 0 and target % _OCTET in written
            for order in _ORDERS:
                pairs = zip(order, words, strict=False)
                unlike = (read[at].get(word % _OCTET, word) != word for at, word in pairs)
                count = beside + sum(unlike)
                if count < most:
                    best, chosen, most = number, order, count
            if not most:
                break
        left.rotate(-best)
        node = left.popleft()
        left.rotate(best)
        return node, chosen

    def _call(self, call: Call) -> LevelCall:
        taken = tuple(self._words[node] for node in call.taken)
        for node in call.result:
            self._words[node] = self._slot()
        return LevelCall(call.function, taken, tuple(self._words[node] for node in call.result))

    def _slot(self, banks: Collection[int] = ()) -> int:
        """Return a free slot, if possible in a bank that is not among ``banks``."""
        numbers = [number for number, free in enumerate(self._free) if free]
        if numbers:
            others = [number for number in numbers if number not in banks] or numbers
            return max((self._free[number] for number in others), key=len).pop()
        self._levels.slots += 1
        return self._levels.first + self._levels.slots - 1


@cache
def _reordered(table: int, positions: tuple[int, ...]) -> int:
    """Return ``table`` for three inputs, of which input k is at ``positions[k]``."""

    def before(number: int) -> int:
        return sum((number >> position & 1) << k for k, position in enumerate(positions))

    return remapped(table, before)
