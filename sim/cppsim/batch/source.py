"""C++ of a design for both backends: its gates on words of instances, and what runs programs.

The text needs no header but that of the backend's words: a GPU's compiler has none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ..cpp.simulation import element_bits
from ..cpp.words import WORD
from ..netlist.design import NotPlain
from .circuit import BatchCircuit
from .description import BatchError, Description, MemoryPlace, PortPlace
from .gated import Gated, Store, gated, memory_arguments

__all__ = ["WrittenBatch", "write_batch"]

_TEXT = """\
constexpr uint64_t ROW_BYTES = {row_bytes};

// Words of a tile: what there is once, numbers of 64 bits, the state twice, and that of instances
// that have ended.
constexpr uint32_t NUMBERS = {numbers}, STATE = {state}, STATES = {states};
constexpr uint32_t TILE_WORDS = {tile_words};
constexpr bool EDGES = {edges}, CLOCKED = {clocked};

{headers}
{chunks}
{phases}

inline void store(const Tile &t) {{
{stores}
}}

{tables}
{runner}"""

_HEADERS = (
    ("cpp", "words.h"),
    *(("batch", name) for name in ("gates.h", "tile.h", "rows.h", "arithmetic.h")),
)

_KEPT = ("cycles", "failed", "failed_at")
"""What every instance counts: its cycles, the first check that failed, from 1, and when.

Ports of these names, behind a ``$``."""


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """The text that both backends compile, what it is, and memories of an instance at power-on."""

    text: str
    description: Description
    rows: bytes


def write_batch(circuit: BatchCircuit) -> WrittenBatch:
    """The C++ of ``circuit``. Raises ``BatchError`` for a combinational loop."""
    memories = _memories(circuit)
    try:
        gates = gated(circuit, memories)
    except NotPlain as error:
        raise BatchError(str(error)) from error
    return _Writer(circuit, memories, gates).written()


def _memories(circuit: BatchCircuit) -> list[MemoryPlace]:
    places: list[MemoryPlace] = []
    offset = 0
    for name, memory in circuit.memories.items():
        count = max(1, -(-memory.width // WORD))
        depth = max(1, len(memory.rows))
        # Elements of less than 32 bits cannot be read many at a time.
        element = max(32, element_bits(memory.width))
        place = MemoryPlace(name, memory.width, depth, element, count, offset)
        places.append(place)
        offset += -(-place.bytes // 8) * 8
    return places


class _Writer:
    def __init__(self, circuit: BatchCircuit, memories: list[MemoryPlace], gates: Gated) -> None:
        self._circuit = circuit
        self._memories = memories
        self._gates = gates
        self._frozen = [due for due in gates.pending] + [level for _, level in gates.levels]
        self._numbers = gates.base
        self._state = gates.base + WORD * len(_KEPT)

    def written(self) -> WrittenBatch:
        gates, lowered = self._gates, self._circuit.lowered
        words = self._state + 3 * gates.state + len(self._frozen)
        row_bytes = sum(-(-x.bytes // 8) * 8 for x in self._memories)
        checks = {number + 1: text for number, text in self._circuit.checks.items()}
        ports = {x.name: x for x in self._ports()}
        memories = {x.name: x for x in self._memories}
        description = Description(ports, memories, words, row_bytes, checks)
        text = _TEXT.format(
            row_bytes=row_bytes,
            numbers=self._numbers,
            state=self._state,
            states=gates.state,
            tile_words=words,
            edges=_truth(lowered.edges),
            clocked=_truth([*lowered.edges, *lowered.watches]),
            headers="\n".join(_header(*x) for x in _HEADERS),
            chunks="\n".join(x for phase in gates.phases for x in phase.functions),
            phases="\n".join(self._phases()),
            stores="\n".join(map(self._store, gates.stores)),
            tables="\n".join(self._tables(ports)),
            runner=_header("batch", "batch.h"),
        )
        return WrittenBatch(text, description, b"".join(map(self._rows, self._memories)))

    def _phases(self) -> Iterator[str]:
        steps = {phase.name: phase.steps for phase in self._gates.phases}
        for name in ("step", "levels", "settle"):
            lines = "\n".join(f"  {line}" for line in steps.get(name, ()))
            yield f"inline void {name}(const Tile &t) {{\n{lines}\n}}"

    def _store(self, store: Store) -> str:
        kind = f"{store.address}, {str(store.single).lower()}"
        memory = memory_arguments(self._memories, store.memory)
        return f"  write_row<{kind}, {memory}>(t, t.b + {store.first} * BESIDE);"

    def _tables(self, ports: Mapping[str, PortPlace]) -> Iterator[str]:
        """What the runner looks up; each table with how many it has, or one of nothing."""
        gates = self._gates
        clocks = [gates.places[self._circuit.names[name][0]][1] for name in self._circuit.clocks]
        yield from _table("ONES_B", sorted(gates.starts["b"]))
        yield from _table("ONES_Q", sorted(gates.starts["q"]))
        yield from _table("CLOCK", clocks, "CLOCKS")
        yield from _table("PENDING", gates.pending)
        yield from _table("FROZEN", self._frozen)
        yield from _table("SEEN", gates.seen)
        yield from _table("MADE", gates.levels)
        firsts, bits, constants = [0], list[int](), list[int]()
        for port in ports.values():
            for low in range(0, port.width, WORD) if port.name in self._circuit.names else ():
                word = self._circuit.names[port.name][low : low + WORD]
                constants.append(sum(1 << place for place, bit in enumerate(word) if bit == 1))
                bits += [self._bit(bit) | place for place, bit in enumerate(word) if bit > 1]
                firsts.append(len(bits))
        yield f"constexpr uint32_t PORT_WORDS = {len(constants)};"
        yield from _table("PORT", firsts, "PORTS")
        yield from _table("BIT", bits, "BITS")
        yield from _table("CONSTANT", constants, "CONSTANTS", "uint64_t")

    def _bit(self, bit: int) -> int:
        """The word of a bit as the runner has it, with room for its place in a port."""
        if bit in self._gates.places:
            region, word = self._gates.places[bit]
            return word << 7 | (region == "q") << 6
        return self._gates.settled[bit] << 7

    # --- memories and ports -------------------------------------------------------------------

    def _rows(self, place: MemoryPlace) -> bytes:
        """A memory at power-on, up to where the next one begins."""
        size = place.count * place.element // 8
        rows = self._circuit.memories[place.name].rows
        content = b"".join(row.to_bytes(size, "little") for row in rows)
        return content.ljust(-(-place.bytes // 8) * 8, b"\0")

    def _ports(self) -> Iterator[PortPlace]:
        first = 0
        gates, lowered = self._gates, self._circuit.lowered
        watched = bool(gates.pending or lowered.watches)
        clocks = {word for word, _ in gates.seen}
        for name, bits in self._circuit.names.items():
            kept = [gates.places.get(bit, ("", -1))[1] for bit in bits if bit > 1]
            given = gates.inputs.issuperset(bits)
            yield (
                place := PortPlace(
                    name,
                    len(bits),
                    name in self._circuit.signed,
                    first,
                    input=given and name not in self._circuit.clocks,
                    settled=-1 in kept,
                    active=given and (watched or not clocks.isdisjoint(kept)),
                )
            )
            first += place.words
        for name in _KEPT:
            yield PortPlace(f"${name}", 64, False, first)
            first += 1


def _truth(values: Sequence[object]) -> str:
    return str(bool(values)).lower()


def _table(
    name: str, values: Sequence[Any], plural: str | None = None, kind: str = "uint32_t"
) -> Iterator[str]:
    """A table of numbers, or of pairs, which C++ does not want to be empty."""
    pairs = name in ("SEEN", "MADE")
    texts = [f"{{{x[0]}, {x[1]}}}" if pairs else f"{x}u" for x in values]
    if kind == "uint64_t":
        texts = [f"{x}ull" for x in values]
    nothing = "{0, 0}" if pairs else "0"
    yield f"constexpr uint32_t {name}_COUNT = {len(values)};"
    yield (
        f"TABLE {kind} {plural or name}[]{'[2]' if pairs else ''} = "
        f"{{{', '.join(texts) or nothing}}};"
    )


def _header(package: str, name: str) -> str:
    text = (files("cppsim") / package / name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
