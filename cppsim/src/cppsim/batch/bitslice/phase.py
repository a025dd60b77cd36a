"""C++ functions that evaluate a part of a network: they load sources and store outputs.

The gates are cut into chunks, each a function: a compiler takes much longer for one long function
than for some short ones. Scratch words pass values to later chunks and to calls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...netlist.passes import postorder
from .network import Gate, Network

_LOADS = 100
"""Maximal loads of a chunk."""
_GATES = 400
"""Maximal gates of a chunk."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a C++ function of a tile, with the nodes of its operands and of its result."""

    function: str
    taken: tuple[int, ...]
    result: tuple[int, ...]


Location = tuple[str, int]
"""A word, by its region and its number there."""


@dataclass(frozen=True, slots=True)
class Output:
    """A node, and the word in which the phase stores it."""

    node: int
    location: Location


@dataclass(slots=True)
class Phase:
    """Chunks of gates as C++ functions, and the statements that call them and other functions.

    ``sources`` has the words of nodes that are not gates; the ``scratch`` words begin at ``first``.
    ``functions`` is the text of the chunks, ``steps`` are the statements.
    """

    name: str
    network: Network
    sources: Mapping[int, Location]
    calls: Sequence[Call]
    outputs: Sequence[Output]
    first: int = 0
    scratch: int = 0
    functions: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def written(self) -> "Phase":
        """Write the functions; return this object."""
        drivers = {node: call for call in self.calls for node in call.result}
        nodes = [output.node for output in self.outputs]
        calls = needed_calls(self.network, drivers, nodes)
        # Calls come early, so that few chunks end for them.
        roots = [*(node for call in calls for node in call.taken), *nodes]
        gates = self.network.merged(roots)
        items = list(_in_turn(gates, drivers, [*(call.result[0] for call in calls), *nodes]))
        _Writer(self, gates, drivers).write(items)
        return self

    def words(self, count: int = 1) -> int:
        """Allocate ``count`` scratch words; return the first."""
        self.scratch += count
        return self.first + self.scratch - count


def needed_calls(network: Network, drivers: Mapping[int, Call], roots: Sequence[int]) -> list[Call]:
    """Return the calls on which ``roots`` depend."""
    found: dict[int, Call] = {}
    seen: set[int] = set()
    left = list(roots)
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        call = drivers.get(node)
        if call is not None:
            found[id(call)] = call
            left += call.taken
        elif node in network.gates:
            left += network.gates[node][1]
    return list(found.values())


_Item = int | Call


def _in_turn(
    gates: Mapping[int, Gate], drivers: Mapping[int, Call], roots: Sequence[int]
) -> Iterator[_Item]:
    """Return gates and calls after their operands, near their first use by ``roots``."""
    # The first result of a call stands for the call.
    made = {node: node for node in gates} | {x: call.result[0] for x, call in drivers.items()}

    def known(nodes: Sequence[int]) -> list[int]:
        return [made[x] for x in nodes if x in made]

    def needs(node: int) -> list[int]:
        return known(drivers[node].taken if node in drivers else gates[node][1])

    return (drivers.get(node, node) for node in postorder(known(roots), needs))


class _Writer:
    """Write chunks one after the other."""

    def __init__(
        self, phase: Phase, gates: Mapping[int, Gate], drivers: Mapping[int, Call]
    ) -> None:
        self._phase = phase
        self._gates = gates
        self._outputs: dict[int, list[str]] = {}
        for output in phase.outputs:
            self._outputs.setdefault(output.node, []).append(_text(output.location))
        self._words = {node: _text(location) for node, location in phase.sources.items()}
        """Words of nodes between chunks, as C++."""
        self._left: dict[int, int] = {}
        """Number of gates and calls that have yet to read a node."""
        self._free: list[int] = []
        self._slots: dict[int, int] = {}
        for call in {id(x): x for x in drivers.values()}.values():
            self._words |= dict.fromkeys(call.result, "")
        self._begin()

    def _begin(self) -> None:
        self._loads: list[str] = []
        self._body: list[str] = []
        self._names: dict[int, str] = {0: "none()", 1: "all()"}
        self._made: list[int] = []

    def write(self, items: Sequence[_Item]) -> None:
        for item in items:
            for node in self._inputs(item):
                self._left[node] = self._left.get(node, 0) + 1
        for node in self._outputs:
            if node in self._phase.sources or node < 2:
                self._name(node)
                self._put_out(node)
                self._end_if_full()
        for item in items:
            if isinstance(item, int):
                self._gate(item)
                self._end_if_full()
            else:
                self._call(item)
        self._end()

    def _inputs(self, item: _Item) -> Sequence[int]:
        return self._gates[item][1] if isinstance(item, int) else item.taken

    def _gate(self, node: int) -> None:
        table, inputs = self._gates[node]
        for other in inputs:
            self._name(other)
            self._left[other] -= 1
        self._names[node] = name = f"n{node}"
        self._body.append(f"const W {name} = {self._logic(table, inputs)};")
        self._put_out(node)
        self._made.append(node)

    def _logic(self, table: int, inputs: Sequence[int]) -> str:
        if not inputs:
            return self._names[table & 1]
        names = [self._names[node] for node in inputs]
        if len(inputs) == 1 and table & 0b11 == 0b10:
            return names[0]
        return f"lut<{table:#x}>({', '.join(names)})"

    def _call(self, call: Call) -> None:
        """End the chunk, with the call's operands in consecutive words, and call."""
        phase = self._phase
        taken, given = phase.words(max(1, len(call.taken))), phase.words(len(call.result))
        for index, node in enumerate(call.taken):
            self._name(node)
            self._left[node] -= 1
            self._body.append(f"{_text(('b', taken + index))} = {self._names[node]};")
        self._end()
        where = f"t.b + {taken}, t.b + {given}"
        phase.steps.append(f"{call.function}(t, {where});")
        for index, node in enumerate(call.result):
            self._words[node] = _text(("b", given + index))
        for node in call.result:
            if node in self._outputs:
                self._name(node)
                self._put_out(node)

    def _put_out(self, node: int) -> None:
        self._body += [f"{text} = {self._names[node]};" for text in self._outputs.get(node, ())]

    def _name(self, node: int) -> None:
        """Load ``node`` into a variable, unless this chunk has one."""
        if node not in self._names:
            self._names[node] = f"n{node}"
            self._loads.append(f"GIVEN n{node} = {self._words[node]};")

    def _end_if_full(self) -> None:
        if len(self._loads) >= _LOADS or len(self._made) >= _GATES:
            self._end()

    def _end(self) -> None:
        """Write the chunk; store the nodes that later chunks read."""
        phase = self._phase
        for node in self._made:
            if self._left.get(node):
                slot = self._free.pop() if self._free else phase.words()
                self._slots[node] = slot
                self._words[node] = _text(("b", slot))
                self._body.append(f"{self._words[node]} = n{node};")
        for node in self._names:
            if node in self._slots and not self._left.get(node):
                self._free.append(self._slots.pop(node))
        if self._body:
            name = f"{phase.name}{len(phase.functions)}"
            lines = "\n".join(f"  {line}" for line in (*self._loads, *self._body))
            phase.functions.append(f"CHUNK({name}) {{\n{lines}\n}}\n")
            phase.steps.append(f"{name}(t, t.b, t.q, t.n);")
        self._begin()


def _text(location: Location) -> str:
    region, word = location
    return f"{region}[{word}]"
