"""The design of a circuit as a network of gates, whose words hold one bit of many instances.

The words of a tile are in four regions. ``q`` holds the registers before a clock edge, ``n`` after
it: threads double-buffer them, a GPU overwrites ``q`` once all gates have read it. ``w`` buffers
writes of memories until the edge is over. ``b`` holds inputs, outputs and all other words.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...netlist import Bits, Memory, MemoryWrite, PlainCell
from ...netlist.lowered import DesignMessage, InputWord, clock_plan, edge_sides
from ...netlist.passes import ordered_statements
from ..circuit import BatchCircuit
from ..description import MemoryLayout
from .cells import bits_of_cell, by_numbers
from .network import Network
from .phase import Call, Location, Output


@dataclass(frozen=True, slots=True)
class Function:
    """The function of a call: ``read`` of a ``memory``, or arithmetic of another ``kind``."""

    kind: str
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class BufferedWrite:
    """A write port of a memory; the words of its address, data and enables begin at ``first``.

    The address has ``address`` bits, the data ``width``. There is a ``single`` enable, or one for
    each bit of the data.
    """

    memory: int
    first: int
    address: int
    width: int
    single: bool


@dataclass(frozen=True, slots=True)
class Check:
    """The check ``number``: its ``word`` of ``b`` is 1 in the instances that violate it.

    The ``count`` words from ``first`` on have the bits of the values in its message.
    """

    word: int
    number: int
    first: int
    count: int


@dataclass(slots=True)
class BitslicedDesign:
    """A design as a network of gates, with the words that hold its bits.

    Attributes
    ----------
    network : Network
    sources : dict of int to Location
        Words of the network's inputs, by node.
    calls : list of Call
        Reads of memories, and arithmetic that would take too many gates.
    functions : dict of str to Function
        The functions that calls call, by their C++ names.
    outputs : dict of str to list of Output
        Outputs of each phase: ``step``, ``levels`` and ``settle``.
    checks : list of Check
    message_words : list of int
        Words of ``b`` for the values of each instance's first failed check.
    clocked_checks : int
        The number of checks, the first ones, that are evaluated at clock edges only.
    writes : list of BufferedWrite
    stored : dict of int to Location
        Words of inputs (``b``) and registers (``q``), by bit.
    initial_ones : dict of str to set of int
        Words of ``b`` and ``q`` that are 1 at power-on.
    combinational : dict of int to int
        Words of ``b`` that show bits of combinational signals after ``settle``; after ``step`` they
        show the values before the edge.
    inputs : set of int
        Bits of inputs.
    previous_inputs : list of (int, int)
        Words of inputs with clocks, and the words that hold their levels before the last step.
    pending_edges : list of int
        Words that are 1 if a derived clock has an edge in the next step.
    derived_levels : list of (int, int)
        Words of the new and the previous level of each derived clock.
    base_words, state_words, buffer_words : int
        Sizes of ``b``, ``q`` and ``w``.
    """

    network: Network
    sources: dict[int, Location] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
    outputs: dict[str, list[Output]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    message_words: list[int] = field(default_factory=list)
    clocked_checks: int = 0
    writes: list[BufferedWrite] = field(default_factory=list)
    stored: dict[int, Location] = field(default_factory=dict)
    initial_ones: dict[str, set[int]] = field(default_factory=lambda: {"b": set(), "q": set()})
    combinational: dict[int, int] = field(default_factory=dict)
    inputs: set[int] = field(default_factory=set)
    previous_inputs: list[tuple[int, int]] = field(default_factory=list)
    pending_edges: list[int] = field(default_factory=list)
    derived_levels: list[tuple[int, int]] = field(default_factory=list)
    base_words: int = 0
    state_words: int = 0
    buffer_words: int = 0


def bitslice(
    circuit: BatchCircuit, memories: list[MemoryLayout], *, shallow: bool
) -> BitslicedDesign:
    """Return the gates of ``circuit``, in few levels or few; both have the same words.

    Raises ``NotPlain`` for a combinational loop.
    """
    return _Bitslicer(circuit, memories, Network(shallow=shallow)).result


class _Bitslicer:
    def __init__(
        self, circuit: BatchCircuit, memories: list[MemoryLayout], network: Network
    ) -> None:
        self._circuit = circuit
        self._lowered = circuit.lowered
        self._plan = clock_plan(circuit.lowered)
        self._memories = memories
        self.result = BitslicedDesign(network)
        self._network = network
        self._nodes: dict[int, int] = {0: 0, 1: 1}
        self._derived: list[tuple[int, int, int]] = []
        """Derived clocks: the number of the edge, and the words of its pending edge and level."""
        self._constants()
        self._inputs()
        self._edges()
        self._registers()
        self._logic()
        self._step()
        if self._lowered.edges or self._lowered.comb_messages:
            self._levels()
        self.result.outputs["settle"] = list(self._shown())
        widest = max((check.count for check in self.result.checks), default=0)
        self.result.message_words += (self._word() for _ in range(widest))

    # --- words --------------------------------------------------------------------------------

    def _word(self, count: int = 1) -> int:
        self.result.base_words += count
        return self.result.base_words - count

    def _source(self, region: str, word: int) -> int:
        node = self._network.source()
        self.result.sources[node] = region, word
        return node

    def _constants(self) -> None:
        """Allocate words for the constants 0 and 1, which calls can read."""
        for node in (0, 1):
            self.result.sources[node] = "b", self._word()
        self.result.initial_ones["b"].add(1)

    def _inputs(self) -> None:
        self._given: dict[int, tuple[int, int]] = {}
        """Nodes of the present and the previous level, for bits of inputs with clocks."""
        for given in self._plan.inputs:
            self._input(given)

    def _input(self, given: InputWord) -> None:
        for index, bit in enumerate(given.bits):
            word = self._word()
            self.result.inputs.add(bit)
            self.result.stored[bit] = "b", word
            self._nodes[bit] = node = self._source("b", word)
            words = [word]
            if given.has_previous:
                words.append(self._word())
                self.result.previous_inputs.append((word, words[1]))
                previous = self._source("b", words[1])
                self._given[bit] = node, previous
                if given.late:
                    # Logic reads the level before the edge, also of the clock itself.
                    self._nodes[bit] = previous
            if given.start >> index & 1:
                self.result.initial_ones["b"].update(words)

    def _edges(self) -> None:
        for number, edge in enumerate(self._lowered.edges):
            if number not in self._plan.derived:
                after, before = self._given[edge.net]
                old, new = edge_sides(edge, before, after)
                self._nodes[edge.bit] = self._network.both(new, self._network.negated(old))
            else:
                due, level = self._word(), self._word()
                self._nodes[edge.bit] = self._source("b", due)
                self._derived.append((number, due, level))
                self.result.pending_edges.append(due)
                if edge.before:
                    self.result.initial_ones["b"].add(level)

    def _registers(self) -> None:
        for register in self._lowered.design.registers:
            for bit, start in zip(register.result, register.start, strict=True):
                word = self.result.state_words
                self.result.state_words += 1
                self.result.stored[bit] = "q", word
                self._nodes[bit] = self._source("q", word)
                if start:
                    self.result.initial_ones["q"].add(word)

    # --- logic --------------------------------------------------------------------------------

    def _of(self, bits: Bits) -> list[int]:
        return [self._nodes[bit] for bit in bits]

    def _logic(self) -> None:
        numbers = {id(memory): k for k, memory in enumerate(self._circuit.memories.values())}
        for step in ordered_statements(self._lowered.design):
            if not isinstance(step, PlainCell):
                memory, read = step
                address = self._address(read.address)
                number = numbers[id(memory)]
                name = f"read_row<{len(address)}, {self._memories[number].arguments}>"
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

    def _address(self, bits: Bits) -> list[int]:
        """Return the nodes of an address; the bits above 30 become one, which no row has."""
        nodes = self._of(bits)
        if len(nodes) <= 31:
            return nodes
        return [*nodes[:30], self._network.fold(0b11101110, nodes[30:], 0)]

    def _step(self) -> None:
        network, outputs = self._network, list[Output]()
        for register in self._lowered.design.registers:
            for index, (bit, following) in enumerate(
                zip(register.result, self._of(register.following), strict=True)
            ):
                own = self._nodes[bit]
                if register.enable is not None:
                    following = network.select(self._nodes[register.enable], following, own)
                if register.reset is not None:
                    reset, value = self._nodes[register.reset], register.reset_value[index]
                    following = network.select(reset, value, following)
                outputs.append(Output(following, ("n", self.result.stored[bit][1])))
        for number, memory in enumerate(self._circuit.memories.values()):
            for write in memory.writes:
                if write.enable:
                    outputs += self._store(number, memory, write)
        for number, message in enumerate(self._lowered.edge_messages):
            outputs += self._check(number, message)
        self.result.clocked_checks = len(self.result.checks)
        if not self._lowered.edges:
            outputs += self._shown()
        self.result.outputs["step"] = outputs

    def _store(self, number: int, memory: Memory, write: MemoryWrite) -> Iterator[Output]:
        address = self._address(write.address)
        enables = self._of(write.enable)
        single = len(set(enables)) == 1
        nodes = [*address, *self._of(write.data), *(enables[:1] if single else enables)]
        first = self.result.buffer_words
        self.result.buffer_words += len(nodes)
        self.result.writes.append(BufferedWrite(number, first, len(address), memory.width, single))
        for index, node in enumerate(nodes):
            yield Output(node, ("w", first + index))

    def _check(self, number: int, message: DesignMessage) -> Iterator[Output]:
        if number in self._circuit.checks:
            values = [bit for bits in message.values for bit in bits]
            word, first = self._word(), self._word(len(values))
            self.result.checks.append(Check(word, number, first, len(values)))
            yield Output(self._nodes[message.enable], ("b", word))
            for index, bit in enumerate(values):
                yield Output(self._nodes[bit], ("b", first + index))

    def _levels(self) -> None:
        """Evaluate derived clocks, and checks that hold at all times."""
        network, outputs = self._network, list[Output]()
        for number, due, level in self._derived:
            edge = self._lowered.edges[number]
            now, before = self._nodes[edge.net], self._source("b", level)
            old, new = edge_sides(edge, before, now)
            after = self._word()
            outputs.append(Output(network.both(new, network.negated(old)), ("b", due)))
            outputs.append(Output(now, ("b", after)))
            self.result.derived_levels.append((after, level))
        first = len(self._lowered.edge_messages)
        for number, message in enumerate(self._lowered.comb_messages):
            outputs += self._check(first + number, message)
        self.result.outputs["levels"] = outputs

    def _shown(self) -> Iterator[Output]:
        for bits in self._circuit.names.values():
            for bit in bits:
                if bit > 1 and bit not in self.result.stored:
                    if bit not in self.result.combinational:
                        self.result.combinational[bit] = self._word()
                    word = self.result.combinational[bit]
                    yield Output(self._nodes[bit], ("b", word))
