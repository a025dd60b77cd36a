"""Tables by which the threads of a GPU's block work a part of a network out, level by level.

What is in one level depends on levels before it only, and nobody in a level reads what another one
writes there. So a word of state can be written over once all have read it. `schedule` says which
level is whose, `Levels` where everything is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .network import Network
from .phase import Call, Output, Place
from .schedule import BUFFER, Schedule

__all__ = ["LevelCall", "Levels"]


@dataclass(frozen=True, slots=True)
class LevelCall:
    """A call with the words that it takes, and those that it gives."""

    function: str
    taken: tuple[int, ...]
    result: tuple[int, ...]


@dataclass(slots=True)
class Levels:
    """Gates as (table, three words that are read, a word that is written), and calls, by level.

    ``sources`` says where nodes are that are no gates, and ``regions`` where regions begin; what
    goes to a region that is not there is ``kept`` in a slot, by its place. Slots, words for what is
    in between, are counted from ``first`` on, and there are ``slots``.
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
        """Itself, with its tables."""
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
    """Gives words to nodes, level after level: a slot that nobody reads any more serves again."""

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
        """Of nodes in slots the last level in which they are read; what is kept has none."""
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
