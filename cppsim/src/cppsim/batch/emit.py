"""Emit the phases of a bit-sliced design: as functions for threads, as tables for a GPU."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files

from .bitslice import BitslicedDesign, BufferedWrite, LevelCall, Levels, Output, Phase
from .description import MemoryLayout


def header(package: str, name: str) -> str:
    """Return a header without its #include lines."""
    text = (files("cppsim") / package / name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#include"))


def table(name: str, values: Sequence[int], plural: str = "") -> Iterator[str]:
    """Yield a table and its size; an empty table has one entry, as C++ needs."""
    texts = ", ".join(f"{x}u" for x in values) or "0"
    yield f"constexpr uint32_t {name}_COUNT = {len(values)};"
    yield f"TABLE uint32_t {plural or name}[] = {{{texts}}};"


def pairs(name: str, values: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield a table of pairs and its size."""
    texts = ", ".join(f"{{{a}u, {b}u}}" for a, b in values) or "{0, 0}"
    yield f"constexpr uint32_t {name}_COUNT = {len(values)};"
    yield f"TABLE uint32_t {name}[][2] = {{{texts}}};"


def structures(values: Iterable[Iterable[int]]) -> str:
    """Return a C++ initializer for an array of structures."""
    return "{" + ", ".join("{" + ", ".join(f"{x}u" for x in row) + "}" for row in values) + "}"


_PHASES = ("step", "levels", "settle")


SHORT_BITS = 14
"""Bits of a word's number in a gate of eight bytes."""
LONG_BITS = 28
"""Bits of a word's number in a gate of 16 bytes."""


class Chunks:
    """Phases as functions. A tile has ``words``: at ``state`` registers, twice, then scratch."""

    def __init__(
        self, gates: BitslicedDesign, memories: Sequence[MemoryLayout], state: int
    ) -> None:
        self._gates = gates
        self._memories = memories
        self._waiting = state + 2 * gates.state_words
        first = self._waiting + gates.buffer_words
        self._phases = {
            name: self._phase(name, outputs, first) for name, outputs in gates.outputs.items()
        }
        self.words = first + max(phase.scratch for phase in self._phases.values())

    def _phase(self, name: str, outputs: Sequence[Output], first: int) -> Phase:
        gates = self._gates
        outputs = [
            replace(x, location=("b", self._waiting + x.location[1])) if x.location[0] == "w" else x
            for x in outputs
        ]
        return Phase(name, gates.network, gates.sources, gates.calls, outputs, first).written()

    def lines(self) -> Iterator[str]:
        yield f"constexpr uint32_t TILE_WORDS = {self._waiting};"
        for name in ("gates.h", "numbers.h"):
            yield header("batch", name)
        for name in _PHASES:
            phase = self._phases.get(name)
            yield from phase.functions if phase else ()
            steps = "\n".join(f"  {line}" for line in (phase.steps if phase else ()))
            yield f"inline void {name}(const Tile &t) {{\n{steps}\n}}"
        stores = "\n".join(f"  {self._store(x)}" for x in self._gates.writes)
        yield f"inline void store(const Tile &t) {{\n{stores}\n}}"

    def _store(self, store: BufferedWrite) -> str:
        kind = f"{store.address}, {str(store.single).lower()}"
        memory = self._memories[store.memory].arguments
        return f"write_row<{kind}, {memory}>(t, t.b + {self._waiting + store.first});"


class Tables:
    """Phases as tables. A tile has ``words``: at ``state`` the registers, then slots."""

    def __init__(
        self, gates: BitslicedDesign, memories: Sequence[MemoryLayout], state: int
    ) -> None:
        self._gates = gates
        self._memories = memories
        self._slots = state + gates.state_words
        regions = {"b": 0, "q": state, "n": state}
        nets = gates.network, gates.sources, regions, gates.calls
        self._levels = {
            name: Levels(*nets, outputs, self._slots).made()
            for name, outputs in gates.outputs.items()
        }
        words = self._slots + max(levels.slots for levels in self._levels.values())
        # Tables with numbers of 64 bits follow, also if a word has only 32 bits.
        self.words = -(-words // 2) * 2
        self._kinds: dict[tuple[str, int], int] = {}
        self._looked_up: list[int] = []
        self._calls: list[tuple[int, ...]] = []
        self._gates_made: list[tuple[int, int, int, int, int]] = []
        self._ends: list[tuple[int, int]] = []
        self._phases = {name: self._put(name) for name in _PHASES}
        self._stores: list[tuple[int, ...]] = []
        for store in gates.writes:
            self._store(store)

    def _put(self, name: str) -> tuple[int, int]:
        """Add a phase; return its first level and the number of its levels."""
        first, levels = len(self._ends), self._levels.get(name)
        count = len(levels.gates) if levels else 0
        if levels:
            for gates, calls in zip(levels.gates, levels.called, strict=True):
                self._ends.append((len(self._gates_made), len(self._calls)))
                self._gates_made += gates
                for call in calls:
                    self._call(call)
        self._ends.append((len(self._gates_made), len(self._calls)))
        return first, count

    def _call(self, call: LevelCall) -> None:
        function = self._gates.functions[call.function]
        width, words = len(call.result), self._words_of([*call.taken, *call.result])
        if function.memory is None:
            kind = self._kinds.setdefault((function.kind, width), 1 + len(self._kinds))
            self._calls.append((kind, words, 2 * width, width, 0, 0, 0, 0))
        else:
            x = self._memories[function.memory]
            sizes = (len(call.taken), width, x.depth, x.count, x.element)
            self._calls.append((0, words, *sizes, x.offset))

    def _words_of(self, words: Sequence[int]) -> int:
        """Append the numbers of ``words`` to their table; return the index of the first."""
        self._looked_up += words
        return len(self._looked_up) - len(words)

    def _store(self, store: BufferedWrite) -> None:
        x = self._memories[store.memory]
        first, count = store.first, store.address + store.width
        taken = range(first, first + count + (1 if store.single else store.width))
        words = self._words_of([self._levels["step"].stored["w", k] for k in taken])
        sizes = (store.address, store.width, x.depth, x.count, x.element)
        earlier = sum(row[-1] == x.offset for row in self._stores)
        self._stores.append((words, *sizes, earlier, int(store.single), x.offset))

    @property
    def bytes(self) -> int:
        """The size of all tables but the gates, with the entries that are unused."""
        long = 40 * (len(self._calls) + 1 + len(self._stores) + 1) + 8 * (len(self._ends) + 2)
        return long + -(-(len(self._looked_up) + 1) * self._short_or_long // 64) * 8

    @property
    def _short_or_long(self) -> int:
        """Bits of a word's number in the tables."""
        return 16 if self._number_bits == SHORT_BITS else 32

    def lines(self) -> Iterator[str]:
        sizes = {
            "TILE_WORDS": self._slots,
            "RUNNING_WORDS": self.words,
            "NUMBER_BITS": self._number_bits,
            "GATE_COUNT": len(self._gates_made),
            "CALL_COUNT": len(self._calls),
            "STORE_COUNT": len(self._stores),
            "STORE_ROUNDS": 1 + max((row[6] for row in self._stores), default=-1),
            "LEVEL_COUNT": len(self._ends),
            "WORD_COUNT": len(self._looked_up),
            "TABLES_BYTES": self.bytes,
        }
        for name, (first, count) in self._phases.items():
            sizes |= {f"{name.upper()}_LEVELS": first, f"{name.upper()}_LEVEL_COUNT": count}
        yield from (f"constexpr uint32_t {name} = {size};" for name, size in sizes.items())
        yield f"typedef uint{self._short_or_long}_t Number;"
        yield header("batch", "tables.h")
        words = f"{{{', '.join(map(str, self._looked_up))}}}"
        gates = structures(self._packed(x) for x in self._gates_made)
        calls, stores = structures(self._calls), structures(self._stores)
        yield f"TABLE Gate GATES[GATE_COUNT + 1] = {gates};"
        yield f"TABLE Tables TABLES = {{{calls}, {stores}, {structures(self._ends)}, {words}}};"
        yield from self._arithmetic()
        yield header("batch", "levels.h")

    @property
    def _number_bits(self) -> int:
        return SHORT_BITS if self.words <= 1 << SHORT_BITS else LONG_BITS

    def _packed(self, gate: tuple[int, int, int, int, int]) -> list[int]:
        """Pack a gate into the words of `Gate` in tables.h."""
        table, *words = gate
        number = table | sum(x << 8 + k * self._number_bits for k, x in enumerate(words))
        return [number >> low & (1 << 64) - 1 for low in range(0, 8 + 4 * self._number_bits, 64)]

    def _arithmetic(self) -> Iterator[str]:
        widest = max((width for _, width in self._kinds), default=1)
        yield f"constexpr uint32_t ARITHMETIC_WORDS = {-(-widest // 64)};"
        yield "inline void arithmetic(uint32_t function, uint64_t *a, uint64_t *b, uint64_t *r) {"
        yield "  switch (function) {"
        for (kind, width), number in self._kinds.items():
            yield f"  case {number}: wide::{kind}<{width}>(r, a, b); break;"
        yield "  }\n}"
