"""C++ of a design: its gates on words of instances, and the interpreter of programs.

The text includes no header: a GPU's compiler has none. Each backend puts its types before the text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from ..cpp import element_bits
from ..errors import BatchError
from ..model import PortLayout
from ..netlist import WORD, NotPlain, row_bytes
from .bitslice import BitslicedDesign, bitslice
from .circuit import BatchCircuit
from .description import Description, MemoryLayout, Source
from .emit import Chunks, Tables, header, pairs, structures, table

_TEXT = """\
constexpr uint64_t ROW_BYTES = {row_bytes};

// The words of a tile: `b`, counters of 64 bits, the state; then scratch words of the backend, and
// the state of instances whose program has ended. `TILE_WORDS` hold their values between cycles.
constexpr uint32_t NUMBERS = {numbers}, STATE = {state}, STATES = {states};
constexpr uint32_t ENDED_WORDS = {ended_words};
constexpr uint32_t {sizes};
constexpr uint32_t GROUP_WORDS = {group_words}; // of a block, for the groups of its instances
constexpr bool EDGES = {edges}, CLOCKED = {clocked};

{words}
{tile}
{tables}
{phases}
{runner}"""

_BOTH = """\
#ifdef BLOCKS
{tables}
#else
{chunks}
#endif"""

_COUNTERS = ("cycles", "failed", "failed_at")
"""Counters of each instance, ports with a ``$``: cycles, the first failed check, its cycle.

Checks are numbered from 1."""

_FAILED_VALUES = "$failed_values"
"""The port of the values in the message of the first failed check, one behind the other."""

_GROUP_WORDS = 896
"""Words of a tile that hold the program counters and loops of a block's instances."""

_ALIGNED = 4
"""A tile's words are a multiple of this, which aligns numbers of 64 bits."""


def write_batch(circuit: BatchCircuit) -> "WrittenBatch":
    """Return the gates of ``circuit``. Raises ``BatchError`` for a combinational loop."""
    memories = _memories(circuit)
    try:
        gates = bitslice(circuit, memories, shallow=False)
    except NotPlain as error:
        raise BatchError(str(error)) from error
    return WrittenBatch(circuit, memories, gates)


def _memories(circuit: BatchCircuit) -> list[MemoryLayout]:
    layouts: list[MemoryLayout] = []
    offset = 0
    for name, memory in circuit.memories.items():
        count = max(1, -(-memory.width // WORD))
        # Elements of less than 32 bits cannot be read many at a time.
        element = max(32, element_bits(memory.width))
        depth, signed = memory.depth, memory.signed
        layout = MemoryLayout(name, memory.width, depth, element, count, offset, signed)
        layouts.append(layout)
        offset += -(-layout.bytes // 8) * 8
    return layouts


def power_on_rows(layouts: Iterable[MemoryLayout], contents: Iterable[Iterable[int]]) -> bytes:
    """Return the bytes of an instance's memories, whose rows at power-on are ``contents``."""
    return b"".join(
        row_bytes(rows, range(x.width), x.element).ljust(-(-x.bytes // 8) * 8, b"\0")
        for x, rows in zip(layouts, contents, strict=True)
    )


class WrittenBatch:
    """The gates of a design, from which `source` writes C++ for the backend that runs it.

    ``rows`` are the bytes of an instance's memories at power-on, which the C++ does not have.
    """

    def __init__(
        self, circuit: BatchCircuit, memories: list[MemoryLayout], gates: BitslicedDesign
    ) -> None:
        self._circuit = circuit
        self._memories = memories
        self._gates = gates
        self._frozen = [*gates.pending_edges, *(level for _, level in gates.derived_levels)]
        self._state = gates.base_words + WORD * len(_COUNTERS)
        self.rows = power_on_rows(memories, circuit.contents)

    def source(self, backend: str | None = None) -> Source:
        """Return the C++ for ``backend``, ``"threads"`` or ``"cuda"``, or for both.

        The text for both holds either part behind ``#ifdef``, as an exported folder needs it.
        """
        ended = self._gates.state_words + len(self._frozen)
        parts: dict[str, str] = {}
        sizes: dict[str, int] = {}
        core_words = block_words = shared_words = shared_bytes = 0
        if backend != "cuda":
            core_words = sizes["CORE_WORDS"] = self._chunks.words + ended
            parts["chunks"] = "\n".join(self._chunks.lines())
        if backend != "threads":
            tables = self._level_tables
            shared_words, shared_bytes = tables.words, tables.bytes
            block_words = -(-(_GROUP_WORDS + shared_words + ended) // _ALIGNED) * _ALIGNED
            sizes["BLOCK_WORDS"] = block_words
            parts["tables"] = "\n".join(tables.lines())
        description = Description(
            ports={x.name: x for x in self._ports()},
            memories={x.name: x for x in self._memories},
            core_words=core_words,
            block_words=block_words,
            shared_words=shared_words,
            shared_bytes=shared_bytes,
            row_bytes=sum(-(-x.bytes // 8) * 8 for x in self._memories),
            checks={number + 1: message for number, message in self._circuit.checks.items()},
        )
        phases = _BOTH.format(**parts) if backend is None else next(iter(parts.values()))
        return Source(self._text(description, ended, sizes, phases), description)

    @cached_property
    def _chunks(self) -> Chunks:
        return Chunks(self._gates, self._memories, self._state)

    @cached_property
    def _level_tables(self) -> Tables:
        gates = bitslice(self._circuit, self._memories, shallow=True)
        return Tables(gates, self._memories, self._state)

    def _text(
        self, description: Description, ended: int, sizes: Mapping[str, int], phases: str
    ) -> str:
        gates, lowered = self._gates, self._circuit.lowered
        return _TEXT.format(
            row_bytes=description.row_bytes,
            numbers=gates.base_words,
            state=self._state,
            states=gates.state_words,
            ended_words=ended,
            sizes=", ".join(f"{name} = {size}" for name, size in sizes.items()),
            group_words=_GROUP_WORDS,
            edges=_truth(lowered.edges),
            clocked=_truth([*lowered.edges, *lowered.comb_messages]),
            words=header("cpp", "words.h"),
            tile=header("batch", "tile.h"),
            tables="\n".join(self._tables(description.ports)),
            phases=phases,
            runner=header("batch", "work.h") + "\n" + header("batch", "batch.h"),
        )

    def _tables(self, ports: Mapping[str, PortLayout]) -> Iterator[str]:
        """Yield the tables of the interpreter, each with its size; an empty one has one entry."""
        gates = self._gates
        clocks = [gates.stored[self._circuit.names[name][0]][1] for name in self._circuit.clocks]
        yield from table("ONES_B", sorted(gates.initial_ones["b"]))
        yield from table("ONES_Q", sorted(gates.initial_ones["q"]))
        yield from table("CLOCK", clocks, "CLOCKS")
        yield from table("PENDING", gates.pending_edges)
        yield from table("FROZEN", self._frozen)
        yield from pairs("PREVIOUS", gates.previous_inputs)
        yield from pairs("MADE", gates.derived_levels)
        values = next(iter(gates.message_words), 0)
        yield f"constexpr uint32_t CLOCKED_CHECKS = {gates.clocked_checks};"
        yield f"constexpr uint32_t CHECK_COUNT = {len(gates.checks)}, MESSAGE_WORDS = {values};"
        checks = [(x.word, x.number, x.first, x.count) for x in gates.checks]
        yield f"TABLE uint32_t CHECKS[][4] = {structures(checks or [(0, 0, 0, 0)])};"
        firsts, bits = [0], list[int]()
        for port in ports.values():
            if port.name == _FAILED_VALUES:
                words = [word << 1 for word in gates.message_words]
            else:
                words = list(map(self._bit, self._circuit.names.get(port.name, ())))
            for low in range(0, len(words), WORD):
                bits += words[low : low + WORD]
                firsts.append(len(bits))
        yield f"constexpr uint32_t PORT_WORDS = {len(firsts) - 1};"
        yield from table("PORT", firsts, "PORTS")
        yield from table("BIT", bits, "BITS")

    def _bit(self, bit: int) -> int:
        """Return the entry of a bit in the table BITS."""
        if bit in self._gates.stored:
            region, word = self._gates.stored[bit]
            return word << 1 | (region == "q")
        return self._gates.combinational.get(bit, bit) << 1

    # --- memories and ports -------------------------------------------------------------------

    def _ports(self) -> Iterator[PortLayout]:
        first = 0
        gates, lowered = self._gates, self._circuit.lowered
        always_active = bool(gates.pending_edges or lowered.comb_messages)
        clocks = {word for word, _ in gates.previous_inputs}
        for name, bits in self._circuit.names.items():
            words = [gates.stored.get(bit, ("", -1))[1] for bit in bits if bit > 1]
            given = gates.inputs.issuperset(bits) and name not in self._circuit.driven
            yield (
                layout := PortLayout(
                    name,
                    len(bits),
                    name in self._circuit.signed,
                    first,
                    input=given and name not in self._circuit.clocks,
                    settled=-1 in words,
                    active=given and (always_active or not clocks.isdisjoint(words)),
                )
            )
            first += layout.words
        if width := len(gates.message_words):
            yield (layout := PortLayout(_FAILED_VALUES, width, False, first))
            first += layout.words
        for name in _COUNTERS:
            yield PortLayout(f"${name}", 64, False, first)
            first += 1


def _truth(values: Sequence[object]) -> str:
    return str(bool(values)).lower()
