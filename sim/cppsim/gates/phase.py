"""C++ functions that work a part of a network out: sources are loaded, sinks are stored.

A compiler takes much longer for one long function than for some short ones: the gates are cut into
chunks. What a later chunk needs waits in scratch words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .network import Gate, Network

__all__ = ["Phase", "Call", "Sink"]

_GATES = 500
"""Of a chunk. Longer ones spill, shorter ones pass more by scratch words."""

_CALL = 40
"""What a call counts as."""


@dataclass(frozen=True, slots=True)
class Call:
    """What gates do not do: a C++ function of a tile, an array of what it takes, and of its result."""

    function: str
    taken: tuple[int, ...]
    result: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sink:
    """What is done with a node: ``text`` has its variable for ``{}``."""

    node: int
    text: str


@dataclass(slots=True)
class Phase:
    """Text of functions ``name0``, ``name1`` and so on, to be called in turn.

    ``sources`` says how nodes that are no gates are loaded. Scratch words are counted from
    ``first`` on, up to ``scratch``.
    """

    name: str
    network: Network
    sources: Mapping[int, str]
    calls: Sequence[Call]
    sinks: Sequence[Sink]
    first: int = 0
    scratch: int = 0
    functions: list[str] = field(default_factory=list)

    def written(self) -> "Phase":
        """Itself, with its functions."""
        drivers = {node: call for call in self.calls for node in call.result}
        roots = [sink.node for sink in self.sinks]
        roots += [node for call in self._needed_calls(drivers, roots) for node in call.taken]
        gates = self.network.merged(roots)
        items = list(_in_turn(gates, drivers, [sink.node for sink in self.sinks]))
        chunks = list(_cut(items, gates))
        self.functions = list(_Writer(self, gates, drivers, chunks).functions())
        return self

    def _needed_calls(
        self, drivers: Mapping[int, Call], roots: Sequence[int]
    ) -> Sequence[Call]:
        """The calls on which ``roots`` depend."""
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
                if id(call) not in found:
                    found[id(call)] = call
                    left += call.taken
            elif node in self.network.gates:
                left += self.network.gates[node][1]
        return list(found.values())


_Item = int | Call


def _in_turn(
    gates: Mapping[int, Gate], drivers: Mapping[int, Call], roots: Sequence[int]
) -> Iterator[_Item]:
    """Gates and calls after what they need, near their first use by ``roots``."""
    done: set[int] = set()
    for root in roots:
        left = [root]
        while left:
            node = left.pop()
            if node < 0:
                yield drivers.get(~node, ~node)
            elif node in done:
                continue
            elif node in drivers:
                done.update(drivers[node].result)
                left += [~node, *reversed(drivers[node].taken)]
            elif node in gates:
                done.add(node)
                left += [~node, *reversed(gates[node][1])]


def _cut(items: Sequence[_Item], gates: Mapping[int, Gate]) -> Iterator[list[_Item]]:
    chunk: list[_Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += 1 if isinstance(item, int) else _CALL
        if size >= _GATES:
            yield chunk
            chunk, size = [], 0
    yield chunk


class _Writer:
    def __init__(
        self,
        phase: Phase,
        gates: Mapping[int, Gate],
        drivers: Mapping[int, Call],
        chunks: Sequence[Sequence[_Item]],
    ) -> None:
        self._phase = phase
        self._gates = gates
        self._chunks = chunks
        self._sinks: dict[int, list[str]] = {}
        for sink in phase.sinks:
            self._sinks.setdefault(sink.node, []).append(sink.text)
        self._made = gates.keys() | drivers.keys()
        self._last: dict[int, int] = {}
        for number, chunk in enumerate(chunks):
            for item in chunk:
                self._last |= dict.fromkeys(self._inputs(item), number)
        self._slots: dict[int, int] = {}
        self._free: list[int] = []

    def _inputs(self, item: _Item) -> Sequence[int]:
        return self._gates[item][1] if isinstance(item, int) else item.taken

    def functions(self) -> Iterator[str]:
        phase = self._phase
        ends: dict[int, list[int]] = {}
        for node, number in self._last.items():
            ends.setdefault(number, []).append(node)
        for number, chunk in enumerate(self._chunks):
            body = list(self._body(number, chunk))
            for node in ends.get(number, []):
                if node in self._slots:
                    self._free.append(self._slots[node])
            lines = "\n".join(f"  {line}" for line in body)
            yield f"CHUNK({phase.name}{number}) {{\n{lines}\n}}\n"

    def _body(self, number: int, chunk: Sequence[_Item]) -> Iterator[str]:
        self._names: dict[int, str] = {0: "none()", 1: "all()"}
        if number == 0:
            for node, texts in self._sinks.items():
                if node not in self._made:
                    yield from self._load(node)
                    yield from (text.format(self._names[node]) for text in texts)
        for item in chunk:
            for node in self._inputs(item):
                yield from self._load(node)
            if isinstance(item, int):
                yield f"const W n{item} = {self._gate(*self._gates[item])};"
                self._names[item] = f"n{item}"
                yield from self._told(item, number)
            else:
                yield from self._call(item, number)

    def _gate(self, table: int, inputs: Sequence[int]) -> str:
        if not inputs:
            return self._names[table & 1]
        names = [self._names[node] for node in inputs]
        if len(inputs) == 1 and table & 0b11 == 0b10:
            return names[0]
        return f"lut<{table:#x}>({', '.join(names)})"

    def _call(self, call: Call, number: int) -> Iterator[str]:
        first = call.result[0]
        values = ", ".join(self._names[node] for node in call.taken)
        yield f"const W a{first}[] = {{{values or 'none()'}}};"
        yield f"W r{first}[{len(call.result)}];"
        yield f"{call.function}(t, a{first}, r{first});"
        for place, node in enumerate(call.result):
            self._names[node] = f"r{first}[{place}]"
            yield from self._told(node, number)

    def _told(self, node: int, number: int) -> Iterator[str]:
        """Its sinks, and a scratch word if a later chunk needs it."""
        yield from (text.format(self._names[node]) for text in self._sinks.get(node, ()))
        if self._last.get(node, number) > number:
            phase = self._phase
            if self._free:
                slot = self._free.pop()
            else:
                slot = phase.first + phase.scratch
                phase.scratch += 1
            self._slots[node] = slot
            yield f"b[{slot} * BESIDE] = {self._names[node]};"

    def _load(self, node: int) -> Iterator[str]:
        if node not in self._names:
            text = self._phase.sources.get(node) or f"b[{self._slots[node]} * BESIDE]"
            yield f"const W n{node} = {text};"
            self._names[node] = f"n{node}"
