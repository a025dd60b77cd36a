"""What works the phases of a circuit out: chunks of code for a core, tables for a GPU's block."""

from collections.abc import Iterator, Sequence

from ..gates.levels import LevelCall, Levels
from ..gates.phase import Phase
from .description import MemoryPlace
from .gated import Gated, WaitingWrite
from .text import header, structures, table

__all__ = ["Chunks", "Tables"]

_PHASES = ("step", "levels", "settle")


class Chunks:
    """Phases as code, with scratch words from ``first`` on: a tile has ``words`` then."""

    def __init__(self, gates: Gated, memories: Sequence[MemoryPlace], first: int) -> None:
        self._gates = gates
        self._memories = memories
        self._phases = {
            name: Phase(name, gates.network, gates.sources, gates.calls, outputs, first).written()
            for name, outputs in gates.outputs.items()
        }
        self.words = first + max(phase.scratch for phase in self._phases.values())

    def lines(self) -> Iterator[str]:
        for name in ("gates.h", "rows.h", "arithmetic.h"):
            yield header("batch", name)
        for name in _PHASES:
            phase = self._phases.get(name)
            yield from phase.functions if phase else ()
            steps = "\n".join(f"  {line}" for line in (phase.steps if phase else ()))
            yield f"inline void {name}(const Tile &t) {{\n{steps}\n}}"
        stores = "\n".join(f"  {self._store(x)}" for x in self._gates.stores)
        yield f"inline void store(const Tile &t) {{\n{stores}\n}}"

    def _store(self, store: WaitingWrite) -> str:
        kind = f"{store.address}, {str(store.single).lower()}"
        memory = self._memories[store.memory].arguments
        return f"write_row<{kind}, {memory}>(t, t.b + {store.first});"


class Tables:
    """Phases as tables, with slots from ``first`` on: a tile has ``words`` then."""

    def __init__(
        self, gates: Gated, memories: Sequence[MemoryPlace], regions: dict[str, int], first: int
    ) -> None:
        self._gates = gates
        self._memories = memories
        self._levels = {
            name: Levels(gates.network, gates.sources, regions, gates.calls, outputs, first).made()
            for name, outputs in gates.outputs.items()
        }
        self._stage = first + max(levels.slots for levels in self._levels.values())
        self._staged = 0
        self._kinds: dict[tuple[str, int], int] = {}
        self._taken: list[int] = []
        self._calls: list[tuple[int, ...]] = []
        self._results: list[tuple[int, int, int]] = []
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._ends: list[tuple[int, int, int]] = []
        self._phases = {name: self._put(name) for name in _PHASES}
        self.words = self._stage + self._staged

    def _put(self, name: str) -> tuple[int, int]:
        """Add a phase. Returns where its levels begin, and how many there are."""
        first = len(self._ends)
        self._ends.append((len(self._rows), len(self._calls), len(self._results)))
        levels = self._levels.get(name)
        if levels is None:
            return first, 0
        for rows, calls in zip(levels.gates, levels.called, strict=True):
            self._rows += rows
            stage = self._stage
            for call in calls:
                stage = self._call(call, stage)
            self._staged = max(self._staged, stage - self._stage)
            self._ends.append((len(self._rows), len(self._calls), len(self._results)))
        return first, len(levels.gates)

    def _call(self, call: LevelCall, stage: int) -> int:
        """Add a call that stages from a word on. Returns the first word behind that."""
        function = self._gates.functions[call.function]
        width, taken = len(call.result), len(self._taken)
        self._taken += call.taken
        if function.memory is None:
            kind = self._kinds.setdefault((function.kind, width), 1 + len(self._kinds))
            self._calls.append((kind, taken, 0, width, 0, 0, 0, stage, 0))
        else:
            x = self._memories[function.memory]
            sizes = (len(call.taken), width, x.depth, x.count, x.element)
            self._calls.append((0, taken, *sizes, stage, x.offset))
        for bit, word in enumerate(call.result):
            self._results.append((stage + bit // 32 * 32, bit % 32, word))
        return stage + -(-width // 32) * 32

    def lines(self) -> Iterator[str]:
        yield header("batch", "tables.h")
        gates = [x[0] << 54 | x[3] << 36 | x[2] << 18 | x[1] for x in self._rows]
        yield from table("GATE", gates, "GATES", "uint64_t")
        yield from table("OUT", [x[4] for x in self._rows], "OUTS")
        yield from table("TAKEN_WORD", self._taken, "TAKEN")
        yield structures("LevelCall", "CALLS", self._calls)
        yield structures("ResultBit", "RESULTS", self._results, "TABLE")
        yield structures("LevelEnds", "LEVELS", self._ends)
        for name, (first, count) in self._phases.items():
            yield f"constexpr uint32_t {name.upper()}_LEVELS = {first};"
            yield f"constexpr uint32_t {name.upper()}_LEVEL_COUNT = {count};"
        yield from self._stores()
        yield from self._arithmetic()
        yield header("batch", "levels.h")

    def _stores(self) -> Iterator[str]:
        rows, seen = list[tuple[int, ...]](), list[int]()
        for store in self._gates.stores:
            x = self._memories[store.memory]
            place = (store.first, store.address, store.width, x.depth, x.count, x.element)
            rows.append((*place, int(store.single), seen.count(store.memory), x.offset))
            seen.append(store.memory)
        yield structures("LevelStore", "STORES", rows)
        yield f"constexpr uint32_t STORE_COUNT = {len(rows)};"
        yield f"constexpr uint32_t STORE_ROUNDS = {1 + max((x[7] for x in rows), default=-1)};"

    def _arithmetic(self) -> Iterator[str]:
        widest = max((width for _, width in self._kinds), default=1)
        yield f"constexpr uint32_t ARITHMETIC_WORDS = {-(-widest // 64)};"
        yield "inline void arithmetic(uint32_t function, uint64_t *a, uint64_t *b, uint64_t *r) {"
        yield "  switch (function) {"
        for (kind, width), number in self._kinds.items():
            yield f"  case {number}: wide::{kind}<{width}>(r, a, b); break;"
        yield "  }\n}"
