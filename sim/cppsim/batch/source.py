"""C++ of a design for both backends: the simulator's own statements, on a state in narrow words.

The text needs no header: a GPU's compiler has none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ..cpp.simulation import SimulationSource, WordPlace, element_bits, write_simulation
from ..cpp.words import WORD
from ..netlist.design import Bits, NotPlain
from .circuit import BatchCircuit
from .description import BatchError, Description, MemoryPlace, PortPlace

__all__ = ["WrittenBatch", "write_batch"]

_STORE = re.compile(r"^( *)s\[(\d+)\] = (.*);$")
_LOAD = re.compile(r"\bs\[(\d+)\]")
_TELL = re.compile(r"told->add\((\d+), values, \d+\);")

_TEXT = """\
constexpr uint32_t STATE_WORDS = {state_words};
constexpr uint64_t ROW_BYTES = {row_bytes};

struct alignas(8) State {{
{members}
}};
static_assert(sizeof(State) == 4 * STATE_WORDS, "the state is laid out otherwise");

struct Top : State {{
{memories}

  void bind(uint8_t *rows, uint64_t of, uint64_t at) {{
    (void)rows; (void)of; (void)at;
{binds}
  }}

  uint64_t get(uint32_t word) const {{
    switch (word) {{
{gets}
    }}
    return 0;
  }}

  void set(uint32_t word, uint64_t value) {{
    switch (word) {{
{sets}
    }}
  }}

  // Whatever a check says the first time.
  void tell(uint32_t number) {{
    if (!failed) failed = number + 1, failed_at = cycles;
  }}

  int step() {{
{step}
  }}

  void changed() {{
{changed}
  }}

  void cycle() {{
{cycle}
    cycles++;
  }}

  void settle() {{
{settle}
  }}
}};
"""

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
    try:
        source = write_simulation(circuit.lowered)
    except NotPlain as error:
        raise BatchError(str(error)) from error
    return _Writer(circuit, source).written()


class _Writer:
    def __init__(self, circuit: BatchCircuit, source: SimulationSource) -> None:
        self._circuit = circuit
        self._source = source
        self._types = [_type(width) for width in source.widths]

    def written(self) -> WrittenBatch:
        members, state_words = self._members()
        memories = self._memories()
        row_bytes = sum(-(-x.bytes // 8) * 8 for x in memories)
        checks = {number + 1: text for number, text in self._circuit.checks.items()}
        ports = {x.name: x for x in self._ports()}
        description = Description(
            ports, {x.name: x for x in memories}, state_words, row_bytes, checks
        )
        top = _TEXT.format(
            state_words=state_words,
            row_bytes=row_bytes,
            members="\n".join(f"  {x}" for x in members),
            memories="\n".join(f"  {_rows(x)} m{k};" for k, x in enumerate(memories)),
            binds="\n".join(f"    {_bind(x, k)}" for k, x in enumerate(memories)),
            gets="\n".join(f"    {x}" for port in ports.values() for x in self._gets(port)),
            sets="\n".join(f"    {x}" for port in ports.values() for x in self._sets(port)),
            step="\n".join(f"    {x}" for x in self._stepping()),
            changed="\n".join(f"    {x}" for x in self._changed()),
            cycle="\n".join(f"    {x}" for x in self._cycle()),
            settle="\n".join(f"    {self._line(x)}" for x in self._source.settle),
        )
        headers = [_header("cpp", "words.h"), _header("batch", "rows.h")]
        text = "\n".join([*headers, top, _header("batch", "batch.h")])
        return WrittenBatch(text, description, b"".join(map(self._rows, memories)))

    # --- state --------------------------------------------------------------------------------

    def _members(self) -> tuple[list[str], int]:
        """The state's variables, the widest first, and its words of 32 bits."""
        words = sorted(range(len(self._types)), key=lambda word: -self._types[word])
        lines = ["uint64_t cycles = 0, failed_at = 0;", "uint32_t failed = 0;"]
        lines += [f"uint{self._types[k]}_t s{k} = {self._source.starts[k]}ull;" for k in words]
        wide = [k for k in words if self._types[k] == 64]
        lines = [lines[0], *lines[2 : 2 + len(wide)], lines[1], *lines[2 + len(wide) :]]
        size = 8 * (2 + len(wide)) + 4 + sum(self._types[k] // 8 for k in words[len(wide) :])
        return lines, -(-size // 8) * 2

    def _memories(self) -> list[MemoryPlace]:
        places: list[MemoryPlace] = []
        offset = 0
        for name, memory in self._circuit.memories.items():
            count = max(1, -(-memory.width // WORD))
            depth = max(1, len(memory.rows))
            place = MemoryPlace(
                name, memory.width, depth, element_bits(memory.width), count, offset
            )
            places.append(place)
            offset += -(-place.bytes // 8) * 8
        return places

    def _rows(self, place: MemoryPlace) -> bytes:
        """A memory at power-on, up to where the next one begins."""
        size = place.count * place.element // 8
        rows = self._circuit.memories[place.name].rows
        content = b"".join(row.to_bytes(size, "little") for row in rows)
        return content.ljust(-(-place.bytes // 8) * 8, b"\0")

    # --- ports --------------------------------------------------------------------------------

    def _ports(self) -> Iterator[PortPlace]:
        first = 0
        for name, bits in self._circuit.names.items():
            words = [x.word for x in self._source.places[bits]]
            yield (
                place := PortPlace(
                    name,
                    len(bits),
                    name in self._circuit.signed,
                    first,
                    input=self._is_input(name, bits, words),
                    settled=bits in self._source.settled,
                    active=not self._source.passive.issuperset(words),
                )
            )
            first += place.words
        for name in _KEPT:
            yield PortPlace(f"${name}", 64, False, first)
            first += 1

    def _is_input(self, name: str, bits: Bits, words: Sequence[int]) -> bool:
        if bits in self._source.settled or name in self._circuit.clocks or min(bits) < 2:
            return False
        return self._source.inputs.issuperset(words)

    def _gets(self, port: PortPlace) -> Iterator[str]:
        if port.name not in self._circuit.names:
            yield f"case {port.first}: return {port.name.removeprefix('$')};"
            return
        for number, parts, constant in self._parts(port):
            texts = [_moved(f"uint64_t(s{x.word})", x, number) for x in parts]
            yield f"case {port.first + number}: return {' | '.join([*texts, f'{constant}ull'])};"

    def _sets(self, port: PortPlace) -> Iterator[str]:
        if not port.input:
            return
        for number, parts, _ in self._parts(port):
            stores = []
            for x in parts:
                mask = (1 << x.width) - 1 << x.shift
                value = _placed(x, number)
                kept = f"uint64_t(s{x.word}) & ~{mask:#x}ull"
                stores.append(f"s{x.word} = ({kept}) | ({value} & {mask:#x}ull);")
            yield f"case {port.first + number}: {' '.join(stores)} break;"

    def _parts(self, port: PortPlace) -> Iterator[tuple[int, list[WordPlace], int]]:
        """For each word of a port where its bits are, and its constant part."""
        bits = self._circuit.names[port.name]
        places = [part for place in self._source.places[bits] for part in _cut(place)]
        settled = bits in self._source.settled
        for number in range(port.words):
            low = WORD * number
            constant = 0
            if not settled:
                word = bits[low : low + WORD]
                constant = sum(1 << place for place, bit in enumerate(word) if bit == 1)
            yield number, [x for x in places if x.low // WORD == number], constant

    # --- methods ------------------------------------------------------------------------------

    def _line(self, line: str) -> str:
        """A line of the simulator's, on variables of this state."""
        line = _TELL.sub(self._tell, line).replace("(told->count != 0)", "0")
        store = _STORE.match(line)
        if store:
            blanks, word, value = store.groups()
            return f"{blanks}s{word} = {self._loads(value)};"
        return self._loads(line)

    def _loads(self, text: str) -> str:
        return _LOAD.sub(r"uint64_t(s\1)", text)

    def _tell(self, match: re.Match[str]) -> str:
        return f"tell({match[1]});" if int(match[1]) in self._circuit.checks else "(void)values;"

    def _stepping(self) -> Iterator[str]:
        yield from map(self._line, self._source.step)

    def _changed(self) -> Iterator[str]:
        if self._circuit.lowered.edges or self._circuit.lowered.watches:
            yield "while (step() & 1) {}"

    def _cycle(self) -> Iterator[str]:
        if not self._circuit.lowered.edges:
            yield "step();"
            return
        for level in (1, 0):
            for name in self._circuit.clocks:
                (place,) = self._source.places[self._circuit.names[name]]
                yield f"s{place.word} = {level};"
            yield "changed();"


def _type(width: int) -> int:
    return next((size for size in (8, 16, 32) if width <= size), 64)


def _cut(place: WordPlace) -> Iterator[WordPlace]:
    """Parts of ``place``, each in one word of the port."""
    low, end = place.low, place.low + place.width
    while low < end:
        high = min(end, (low // WORD + 1) * WORD)
        yield WordPlace(place.word, place.shift + low - place.low, low, high - low)
        low = high


def _moved(text: str, place: WordPlace, number: int) -> str:
    """Bits of a variable at their place in word ``number`` of a port."""
    mask = (1 << place.width) - 1
    return f"({text} >> {place.shift} & {mask:#x}ull) << {place.low - WORD * number}"


def _placed(place: WordPlace, number: int) -> str:
    """``value``, word ``number`` of a port, with its bits where they are in a variable."""
    mask = (1 << place.width) - 1
    return f"(value >> {place.low - WORD * number} & {mask:#x}ull) << {place.shift}"


def _rows(memory: MemoryPlace) -> str:
    if memory.count > 1:
        return f"batch::Rows<uint64_t, {memory.count}>"
    return f"batch::Column<uint{memory.element}_t>"


def _bind(memory: MemoryPlace, number: int) -> str:
    first = f"batch::first_of<uint{memory.element}_t>(rows, {memory.offset}, of, at)"
    return f"m{number} = {{{first}, of}};"


def _header(package: str, name: str) -> str:
    text = (files("cppsim") / package / name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
