"""Tables by which the threads of a GPU's block work a part of a network out, level by level.

What is in one level depends on levels before it only. Nobody waits for code to be fetched: there is
hardly any, and the tables are read in order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .network import Gate, Network
from .phase import Call, Output, Place, needed_calls

__all__ = ["LevelCall", "Levels"]

_BUFFER = 0b10101010
"""The table of what is but its first input."""


@dataclass(frozen=True, slots=True)
class LevelCall:
    """A call with the words that it takes, and those that it gives."""

    function: str
    taken: tuple[int, ...]
    result: tuple[int, ...]


@dataclass(slots=True)
class Levels:
    """Gates as (table, three words that are read, a word that is written), and calls, by level.

    ``sources`` says where nodes are that are no gates, and ``regions`` where regions begin. Slots,
    words for what is in between, are counted from ``first`` on, and there are ``slots``.
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

    def made(self) -> "Levels":
        """Itself, with its tables."""
        drivers = {node: call for call in self.calls for node in call.result}
        roots = [output.node for output in self.outputs]
        calls = needed_calls(self.network, drivers, roots)
        gates = self.network.merged([*(x for call in calls for x in call.taken), *roots])
        _Scheduler(self, gates, drivers, calls).schedule()
        return self


class _Scheduler:
    def __init__(
        self,
        levels: Levels,
        gates: Mapping[int, Gate],
        drivers: Mapping[int, Call],
        calls: Sequence[Call],
    ) -> None:
        self._levels = levels
        self._gates = gates
        self._calls = calls
        self._level: dict[int, int] = {}
        self._call_level: dict[int, int] = {}
        self._find_levels(drivers)
        self._count = 1 + max([*self._level.values(), *self._call_level.values()], default=0)
        self._words = {node: self._at(place) for node, place in levels.sources.items()}
        self._free: list[int] = []

    def _find_levels(self, drivers: Mapping[int, Call]) -> None:
        """One more than that of whatever a gate or a call reads; sources are in none."""
        for root in [*self._gates, *(call.result[0] for call in self._calls)]:
            left = [root]
            while left:
                node = left[-1]
                call = drivers.get(node)
                if call is not None:
                    known, inputs = id(call) in self._call_level, call.taken
                else:
                    known, inputs = node in self._level, self._gates[node][1]
                missing = [x for x in inputs if not self._known(x, drivers)]
                if known or not missing:
                    left.pop()
                    if not known:
                        level = 1 + max((self._of(x, drivers) for x in inputs), default=0)
                        if call is not None:
                            self._call_level[id(call)] = level
                        else:
                            self._level[node] = level
                else:
                    left += missing
        self._drivers = drivers

    def _known(self, node: int, drivers: Mapping[int, Call]) -> bool:
        if node in drivers:
            return id(drivers[node]) in self._call_level
        return node not in self._gates or node in self._level

    def _of(self, node: int, drivers: Mapping[int, Call]) -> int:
        if node in drivers:
            return self._call_level[id(drivers[node])]
        return self._level.get(node, 0)

    def schedule(self) -> None:
        levels = self._levels
        by_level: list[list[int]] = [[] for _ in range(self._count)]
        for node, level in self._level.items():
            by_level[level].append(node)
        calls: list[list[Call]] = [[] for _ in range(self._count)]
        for call in self._calls:
            calls[self._call_level[id(call)]].append(call)
        last = self._last_uses()
        ends: dict[int, list[int]] = {}
        for node, level in last.items():
            ends.setdefault(level, []).append(node)
        direct = self._direct()
        for number in range(1, self._count):
            rows, made = [], list[LevelCall]()
            for node in by_level[number]:
                word = direct[node] if node in direct else self._slot()
                self._words[node] = word
                rows.append(self._row(*self._gates[node], word))
            for call in calls[number]:
                for node in call.result:
                    self._words[node] = self._slot()
                taken, result = (
                    tuple(self._words[node] for node in nodes)
                    for nodes in (call.taken, call.result)
                )
                made.append(LevelCall(call.function, taken, result))
            levels.gates.append(rows)
            levels.called.append(made)
            for node in ends.get(number, ()):
                self._release(node, direct)
        copies = [
            self._row(_BUFFER, (output.node,), word)
            for output in levels.outputs
            for word in (self._at(output.place),)
            if direct.get(output.node) != word
        ]
        if copies:
            levels.gates.append(copies)
            levels.called.append([])

    def _last_uses(self) -> dict[int, int]:
        """The last level in which nodes are read; outputs are read at the end."""
        last: dict[int, int] = {}

        def use(nodes: Iterable[int], level: int) -> None:
            for node in nodes:
                last[node] = max(level, last.get(node, 0))

        for node, level in self._level.items():
            use([*self._gates[node][1], node], level)
        for call in self._calls:
            use([*call.taken, *call.result], self._call_level[id(call)])
        use((output.node for output in self._levels.outputs), self._count)
        return last

    def _direct(self) -> dict[int, int]:
        """Gates with an output, in a word that is no source, need no slot."""
        outputs: dict[int, list[int]] = {}
        for output in self._levels.outputs:
            outputs.setdefault(output.node, []).append(self._at(output.place))
        sources = set(self._words.values())
        return {
            node: words[0]
            for node, words in outputs.items()
            if node in self._gates and words[0] not in sources
        }

    def _at(self, place: Place) -> int:
        region, word = place
        return self._levels.regions[region] + word

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._levels.slots += 1
        return self._levels.first + self._levels.slots - 1

    def _release(self, node: int, direct: Mapping[int, int]) -> None:
        if node not in self._levels.sources and node not in direct and node > 1:
            self._free.append(self._words[node])

    def _row(self, table: int, inputs: Sequence[int], word: int) -> tuple[int, int, int, int, int]:
        a, b, c = ([self._words[x] for x in inputs] + [0, 0, 0])[:3]
        return table, a, b, c, word
