"""A batch circuit as phases of gates, on words that hold one bit of as many instances as they can.

Words of a tile, the instances that go together, are in regions. What logic reads at an edge is the
state before it, in the words of ``q``; what follows goes to ``n``, which cores have beside it, and
on a GPU is ``q`` once all have read that. Writes of memories wait in ``w`` until the edge is over.
All else is in ``b``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..cpp.words import WORD, words_of
from ..netlist.design import Bits, Memory, MemoryWrite, NotPlain, PlainCell
from ..netlist.narrow import narrow
from ..netlist.tidy import Statement, in_order
from .bitslice.cells import bits_of_cell, by_numbers
from .bitslice.network import Network
from .bitslice.phase import Call, Output, Place
from .circuit import BatchCircuit
from .description import MemoryPlace

__all__ = ["Function", "Gated", "WaitingWrite", "gated"]


@dataclass(frozen=True, slots=True)
class Function:
    """What a call does: a read of a memory, by its number, or arithmetic of a ``kind``."""

    kind: str
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class WaitingWrite:
    """A write of a memory: its address, data and enables wait in ``w`` from ``first`` on."""

    memory: int
    first: int
    address: int
    width: int
    single: bool


@dataclass(slots=True)
class Gated:
    """A network, what each phase puts out of it, and where bits are.

    ``functions`` says what calls do, by how C++ calls them. ``checks`` has words of ``b`` that say
    which instances fail, and the numbers of the checks; the first ``events`` are told at edges.
    ``places`` says of a bit that is kept its region, ``b`` or ``q``, and its word there; ``starts``
    has those words of both that begin as ones. ``settled`` has bits that follow from others, with
    the words of ``b`` that show them after ``settle``, and before an edge after ``step``.
    ``inputs`` are bits that are given, and ``active`` those of them that are clocks. ``seen`` are
    words of ``b`` with those into which they are copied after a step; ``pending`` and ``levels``
    those of clocks that the design makes. ``base``, ``state`` and ``waiting`` say how many words
    there are of ``b``, ``q`` and ``w``.
    """

    network: Network = field(default_factory=Network)
    sources: dict[int, Place] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
    outputs: dict[str, list[Output]] = field(default_factory=dict)
    checks: list[tuple[int, int]] = field(default_factory=list)
    events: int = 0
    stores: list[WaitingWrite] = field(default_factory=list)
    places: dict[int, Place] = field(default_factory=dict)
    starts: dict[str, set[int]] = field(default_factory=lambda: {"b": set(), "q": set()})
    settled: dict[int, int] = field(default_factory=dict)
    inputs: set[int] = field(default_factory=set)
    seen: list[tuple[int, int]] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    levels: list[tuple[int, int]] = field(default_factory=list)
    base: int = 0
    state: int = 0
    waiting: int = 0


def gated(circuit: BatchCircuit, memories: list[MemoryPlace]) -> Gated:
    """The gates of ``circuit``. Raises ``NotPlain`` for a combinational loop."""
    design = circuit.lowered.design
    try:
        statements = in_order(design)
    except NotPlain:
        # Bits of one word may depend on others of it, as in a chain, and be no loop for all that.
        narrow(design, 1)
        statements = in_order(design)
    return _Gater(circuit, memories, statements).result


class _Gater:
    def __init__(
        self, circuit: BatchCircuit, memories: list[MemoryPlace], statements: list[Statement]
    ) -> None:
        self._circuit = circuit
        self._lowered = circuit.lowered
        self._places = memories
        self.result = Gated()
        self._network = self.result.network
        self._nodes: dict[int, int] = {0: 0, 1: 1}
        self._derived: list[tuple[int, int, int]] = []
        """Of clocks that the design makes: number of the edge, words of what is due and level."""
        self._constants()
        self._inputs()
        self._edges()
        self._registers()
        self._logic(statements)
        self._step()
        if self._lowered.edges or self._lowered.watches:
            self._levels()
        self.result.outputs["settle"] = list(self._shown())

    # --- words --------------------------------------------------------------------------------

    def _word(self, count: int = 1) -> int:
        self.result.base += count
        return self.result.base - count

    def _source(self, region: str, word: int) -> int:
        node = self._network.source()
        self.result.sources[node] = region, word
        return node

    def _constants(self) -> None:
        """Words for whoever has to look a constant up."""
        for node in (0, 1):
            self.result.sources[node] = "b", self._word()
        self.result.starts["b"].add(1)

    def _inputs(self) -> None:
        clocks: dict[int, bool] = {}
        for edge in self._lowered.edges:
            clocks[edge.net] = clocks.get(edge.net, True) and edge.reset
        self._given: dict[int, tuple[int, int]] = {}
        """Of bits of words with clocks the nodes of what is given, and of what logic has seen."""
        for given in self._lowered.inputs:
            for number, bits in enumerate(words_of(given.bits)):
                self._input(bits, given.start >> WORD * number, clocks)

    def _input(self, bits: Bits, start: int, clocks: dict[int, bool]) -> None:
        resets = [clocks[bit] for bit in bits if bit in clocks]
        for place, bit in enumerate(bits):
            word = self._word()
            self.result.inputs.add(bit)
            self.result.places[bit] = "b", word
            self._nodes[bit] = node = self._source("b", word)
            words = [word]
            if resets:
                words.append(self._word())
                self.result.seen.append((word, words[1]))
                seen = self._source("b", words[1])
                self._given[bit] = node, seen
                if not all(resets):
                    # At an edge everything shows what it did before it, the clock itself included.
                    self._nodes[bit] = seen
            if start >> place & 1:
                self.result.starts["b"].update(words)

    def _edges(self) -> None:
        for number, edge in enumerate(self._lowered.edges):
            if edge.net in self._given:
                after, before = self._given[edge.net]
                old, new = (before, after) if edge.rising else (after, before)
                self._nodes[edge.bit] = self._network.both(new, self._network.negated(old))
            else:
                due, level = self._word(), self._word()
                self._nodes[edge.bit] = self._source("b", due)
                self._derived.append((number, due, level))
                self.result.pending.append(due)
                if edge.before:
                    self.result.starts["b"].add(level)

    def _registers(self) -> None:
        for register in self._lowered.design.registers:
            for bit, start in zip(register.result, register.start, strict=True):
                word = self.result.state
                self.result.state += 1
                self.result.places[bit] = "q", word
                self._nodes[bit] = self._source("q", word)
                if start:
                    self.result.starts["q"].add(word)

    # --- logic --------------------------------------------------------------------------------

    def _of(self, bits: Bits) -> list[int]:
        return [self._nodes[bit] for bit in bits]

    def _logic(self, statements: list[Statement]) -> None:
        numbers = {id(memory): k for k, memory in enumerate(self._circuit.memories.values())}
        for step in statements:
            if not isinstance(step, PlainCell):
                memory, read = step
                address = self._address(memory, read.address)
                number = numbers[id(memory)]
                name = f"read_row<{len(address)}, {self._places[number].arguments}>"
                self.result.functions[name] = Function("read", number)
                self._call(name, address, read.result)
            elif by_numbers(step):
                a, b = map(self._of, step.operands)
                kind = step.kind.name.lower()
                self.result.functions[f"{kind}<{len(a)}>"] = Function(kind)
                self._call(f"{kind}<{len(a)}>", [*a, *b], step.result)
            else:
                nodes = bits_of_cell(self._network, step, [self._of(x) for x in step.operands])
                self._nodes |= zip(step.result, nodes, strict=True)

    def _call(self, function: str, taken: list[int], result: Bits) -> None:
        nodes = tuple(self._network.source() for _ in result)
        self._nodes |= zip(result, nodes, strict=True)
        self.result.calls.append(Call(function, tuple(taken), nodes))

    def _address(self, memory: Memory, bits: Bits) -> list[int]:
        """Nodes of an address; what is beyond 32 bits counts as a bit that no row has."""
        nodes = self._of(bits)
        if len(nodes) <= 31:
            return nodes
        return [*nodes[:30], self._network.fold(0b11101110, nodes[30:], 0)]

    def _step(self) -> None:
        network, outputs = self._network, list[Output]()
        for register in self._lowered.design.registers:
            for place, (bit, following) in enumerate(
                zip(register.result, self._of(register.following), strict=True)
            ):
                own = self._nodes[bit]
                if register.enable is not None:
                    following = network.select(self._nodes[register.enable], following, own)
                if register.reset is not None:
                    reset, value = self._nodes[register.reset], register.reset_value[place]
                    following = network.select(reset, value, following)
                outputs.append(Output(following, ("n", self.result.places[bit][1])))
        for number, memory in enumerate(self._circuit.memories.values()):
            for write in memory.writes:
                if write.enable:
                    outputs += self._store(number, memory, write)
        for number, event in enumerate(self._lowered.events):
            outputs += self._tell(number, event.enable)
        self.result.events = len(self.result.checks)
        if not self._lowered.edges:
            outputs += self._shown()
        self.result.outputs["step"] = outputs

    def _store(self, number: int, memory: Memory, write: MemoryWrite) -> Iterator[Output]:
        address = self._address(memory, write.address)
        enables = self._of(write.enable)
        single = len(set(enables)) == 1
        nodes = [*address, *self._of(write.data), *(enables[:1] if single else enables)]
        first = self.result.waiting
        self.result.waiting += len(nodes)
        self.result.stores.append(WaitingWrite(number, first, len(address), memory.width, single))
        for place, node in enumerate(nodes):
            yield Output(node, ("w", first + place))

    def _tell(self, number: int, enable: int) -> Iterator[Output]:
        if number in self._circuit.checks:
            word = self._word()
            self.result.checks.append((word, number))
            yield Output(self._nodes[enable], ("b", word))

    def _levels(self) -> None:
        """Clocks that the design makes, and what it checks at all times."""
        network, outputs = self._network, list[Output]()
        for number, due, level in self._derived:
            edge = self._lowered.edges[number]
            now, before = self._nodes[edge.net], self._source("b", level)
            old, new = (before, now) if edge.rising else (now, before)
            after = self._word()
            outputs.append(Output(network.both(new, network.negated(old)), ("b", due)))
            outputs.append(Output(now, ("b", after)))
            self.result.levels.append((after, level))
        first = len(self._lowered.events)
        for number, event in enumerate(self._lowered.watches):
            outputs += self._tell(first + number, event.enable)
        self.result.outputs["levels"] = outputs

    def _shown(self) -> Iterator[Output]:
        for bits in self._circuit.names.values():
            for bit in bits:
                if bit > 1 and bit not in self.result.places:
                    if bit not in self.result.settled:
                        self.result.settled[bit] = self._word()
                    word = self.result.settled[bit]
                    yield Output(self._nodes[bit], ("b", word))
