"""Tables by which the threads of a GPU's block evaluate a part of a network, level by level.

A level depends only on levels before it, and no gate reads a word that another gate of its level
writes. So a register's word can be overwritten in a later level than its last read. `Schedule`
assigns levels, `Levels` allocates words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .network import Network
from .phase import Call, Output, Place
from .schedule import BUFFER, Schedule


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
    sources : mapping of int to Place
        Words of the nodes that are not gates.
    regions : mapping of str to int
        First words of the regions.
    calls : sequence of Call
    outputs : sequence of Output
    first, slots : int
        First slot and number of slots, words for intermediate values.
    gates, called : list of list
        Gates and calls of each level.
    kept : dict of Place to int
        Slots of the outputs in other regions than ``regions``.
    """

    network: Network
    sources: Mapping[int, Place]
    regions: Mapping[str, int]
    calls: Sequence[Call]
    outputs: Sequence[Output]
    first: int
    slots: int = 0
    gates: list[list[tuple[int, int, int, int, int]]] = field(default_factory=list)
    called: list[list[LevelCall]] = field(default_factory=list)
    kept: dict[Place, int] = field(default_factory=dict)

    def made(self) -> "Levels":
        """Fill the tables; return this object."""
        words = {node: self._at(place) for node, place in self.sources.items()}
        targets = [(x.node, self._at(x.place) if self._there(x) else None) for x in self.outputs]
        schedule = Schedule(self.network, words, self.calls, targets)
        _Allocator(self, schedule, words).allocate()
        for output, node in zip(self.outputs, schedule.last, strict=True):
            if not self._there(output):
                self.kept[output.place] = words[node]
        return self

    def _there(self, output: Output) -> bool:
        return output.place[0] in self.regions

    def _at(self, place: Place) -> int:
        region, word = place
        return self.regions[region] + word


class _Allocator:
    """Allocate words for nodes, level by level; a slot is reused after its last read."""

    def __init__(self, levels: Levels, schedule: Schedule, words: dict[int, int]) -> None:
        self._levels = levels
        self._schedule = schedule
        self._words = words
        self._free: list[int] = []

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
            self._levels.gates.append([self._gate(node) for node in gates[level]])
            self._levels.called.append([self._call(call) for call in calls[level]])
            for node in ends[level]:
                self._free.append(self._words[node])
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

    def _gate(self, node: int) -> tuple[int, int, int, int, int]:
        table, inputs = self._schedule.gates[node]
        a, b, c = ([self._words[x] for x in inputs] + [0, 0, 0])[:3]
        self._words[node] = word = self._schedule.written.get(node, -1)
        if word < 0:
            self._words[node] = word = self._slot()
        return table, a, b, c, word

    def _call(self, call: Call) -> LevelCall:
        taken = tuple(self._words[node] for node in call.taken)
        for node in call.result:
            self._words[node] = self._slot()
        return LevelCall(call.function, taken, tuple(self._words[node] for node in call.result))

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._levels.slots += 1
        return self._levels.first + self._levels.slots - 1
