"""The plain form of a netlist: operations whose operands fit their results, bit for bit.

Every operand has exactly the width that its operation works at, so that a back end needs no rule of
any language about how widths or signs extend.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice

from ..errors import SimulationError

# Numbers are words of 64 bits, the least significant first.

WORD = 64
"""Bits of a word."""

_MASK = (1 << WORD) - 1


def word_count(width: int) -> int:
    """Return the number of words that hold ``width`` bits."""
    return -(-width // WORD)


def to_words(value: int, count: int) -> list[int]:
    """Return the low ``count`` words of ``value``, which may be negative."""
    return [value >> WORD * k & _MASK for k in range(count)]


def from_words(words: Iterable[int]) -> int:
    """Return the unsigned number of ``words``."""
    return sum(int(word) << WORD * k for k, word in enumerate(words))


Bits = tuple[int, ...]
"""Bits of a value, least significant first: a net's number, or 0 and 1 for the constants."""


def constant_of(bits: Iterable[int], low: int = 0) -> int:
    """Return the number that ``bits``, all 0 or 1, are from the bit ``low`` on."""
    return sum(bit << index for index, bit in enumerate(bits, low))


class NotPlain(SimulationError):
    """A netlist has a feature without a plain form."""


class CellKind(Enum):
    """The operation of a cell. *w* is the width of its result."""

    AND = "and"
    OR = "or"
    XOR = "xor"
    NOT = "not"
    """Those take operands of w bits."""
    MUX = "mux"
    """A default of w bits, then pairs: a condition of one bit, and the w bits if it is 1. The first
    condition that is 1 counts; where a circuit has more than one, any would do."""
    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    NEGATE = "negate"
    """Modulo 2**w, on operands of w bits."""
    DIVIDE = "divide"
    DIVIDE_SIGNED = "divide, signed"
    MODULO = "modulo"
    MODULO_SIGNED = "modulo, signed"
    """Rounded down, as in Python, on operands of w bits; 0 where the divisor is 0."""
    EQUAL = "equal"
    UNEQUAL = "unequal"
    LESS = "less"
    LESS_EQUAL = "less or equal"
    LESS_SIGNED = "less, signed"
    LESS_EQUAL_SIGNED = "less or equal, signed"
    """One bit, from two operands of the same width."""
    ALL = "all"
    ANY = "any"
    ODD = "odd"
    """One bit, from one operand of two bits or more."""
    LEFT = "left"
    RIGHT = "right"
    RIGHT_SIGNED = "right, signed"
    """w bits shifted by an unsigned amount of any width; what is shifted out is lost."""


POINTWISE = frozenset({CellKind.AND, CellKind.OR, CellKind.XOR, CellKind.NOT})
"""Each bit of the result follows from the bits of the operands at its index."""
ORDERS = frozenset(kind for kind in CellKind if kind.value.startswith("less"))
COMPARISONS = ORDERS | {CellKind.EQUAL, CellKind.UNEQUAL}
SIGNED = frozenset(kind for kind in CellKind if kind.value.endswith("signed"))
"""The operands are signed, but for the amount of a shift."""


@dataclass(frozen=True, slots=True)
class DesignPort:
    """A port of the top level."""

    name: str
    output: bool
    bits: Bits


@dataclass(frozen=True, slots=True)
class PlainCell:
    """A cell of combinational logic."""

    kind: CellKind
    operands: tuple[Bits, ...]
    result: Bits


@dataclass(frozen=True, slots=True)
class StateRegister:
    """Takes ``following`` at a rising edge of the clock where the bit ``enable``, if any, is 1.

    Where ``reset``, if any, is 1, it takes ``reset_value``, whatever ``enable`` is.
    """

    result: Bits
    following: Bits
    start: Bits
    enable: int | None
    reset: int | None
    reset_value: Bits

    @property
    def conditions(self) -> Bits:
        """Return the bits of ``enable`` and ``reset``, if the register has them."""
        return tuple(bit for bit in (self.enable, self.reset) if bit is not None)

    def part(self, part: slice) -> "StateRegister":
        """A register of some of the bits."""
        return replace(
            self,
            result=self.result[part],
            following=self.following[part],
            start=self.start[part],
            reset_value=self.reset_value[part],
        )

    def joined(self, above: "StateRegister") -> "StateRegister":
        """One register of this one's bits and those of ``above``, which loads when this does."""
        return replace(
            self,
            result=self.result + above.result,
            following=self.following + above.following,
            start=self.start + above.start,
            reset_value=self.reset_value + above.reset_value,
        )


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """Stores ``data`` at a rising edge where ``enable``, a bit for each bit of the row, is 1."""

    address: Bits
    data: Bits
    enable: Bits


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """Shows the row at ``address``."""

    address: Bits
    result: Bits


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory without its content, which is data. Of writes at one edge the last wins.

    Attributes
    ----------
    number
        Its position among the memories of the netlist.
    depth
        The number of rows.
    columns
        The columns of its bits in a row of the netlist, in order: all, until a pass trims the bits
        that nothing reads.
    """

    name: str
    number: int
    depth: int
    columns: tuple[int, ...]
    reads: tuple[MemoryRead, ...]
    writes: tuple[MemoryWrite, ...]
    signed: bool = False

    @property
    def width(self) -> int:
        """Return the bits of a row."""
        return len(self.columns)


def row_bytes(rows: Iterable[int], columns: Sequence[int], element: int) -> bytes:
    """Return the bytes of an array of ``rows``, in elements of ``element`` bits.

    A row has the bits at ``columns`` of a number, which may be negative. Rows of more than 64 bits
    have several elements.
    """
    size = max(1, word_count(len(columns))) * element // 8
    mask = (1 << len(columns)) - 1
    runs = list(_runs(columns))
    if runs in ([], [(0, mask, 0)]):
        return b"".join([(row & mask).to_bytes(size, "little") for row in rows])
    chosen = (sum((row >> low & part) << at for low, part, at in runs) for row in rows)
    return b"".join(row.to_bytes(size, "little") for row in chosen)


def _runs(columns: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of adjacent ``columns``: the first column, a mask, and its new column."""
    first = 0
    for end in range(1, len(columns) + 1):
        if end == len(columns) or columns[end] != columns[end - 1] + 1:
            yield columns[first], (1 << end - first) - 1, first
            first = end


@dataclass(frozen=True, slots=True)
class FormattedValue:
    """A part of a message: ``width`` bits, shown as Python does by ``description``."""

    width: int
    signed: bool
    description: str


@dataclass(frozen=True, slots=True)
class PlainMessage:
    """A message at every rising edge at which ``enable`` is 1, with ``values`` in ``message``.

    It is a print, or the report of a failed check.
    """

    enable: int
    values: tuple[Bits, ...]
    message: tuple[str | FormattedValue, ...]
    failed: bool


@dataclass(slots=True)
class PlainDesign:
    """A circuit with one clock, ``clk``. Bits that nothing drives are inputs of the circuit."""

    ports: list[DesignPort] = field(default_factory=list)
    names: dict[str, Bits] = field(default_factory=dict)
    cells: list[PlainCell] = field(default_factory=list)
    registers: list[StateRegister] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    messages: list[PlainMessage] = field(default_factory=list)

    def first_free(self) -> int:
        """Return the first number that no bit has, nor any bit above it."""
        values = [bit for port in self.ports for bit in port.bits]
        values += [bit for cell in self.cells for bit in cell.result]
        values += [bit for register in self.registers for bit in register.result]
        values += [bit for x in self.memories for read in x.reads for bit in read.result]
        return 1 + max(values, default=1)


CLOCK = "clk"
"""Name of the clock's port in every design."""


def messages_of(
    words: Iterable[int], sizes: Sequence[Sequence[int]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the number of each message in ``words``, and its values.

    ``sizes`` has by the number of a message the words of each of its values.
    """
    left = iter(words)
    for number in left:
        yield number, tuple(from_words(islice(left, size)) for size in sizes[number])


def formatted(message: Sequence[str | FormattedValue], values: Iterable[int]) -> str:
    """Return ``message`` with its values replaced by ``values``, which are unsigned."""
    given, parts = iter(values), []
    for part in message:
        if isinstance(part, str):
            parts.append(part)
            continue
        value, description = next(given), part.description
        if part.signed and part.width and value >> (part.width - 1) & 1:
            value -= 1 << part.width
        if description.endswith("s"):
            parts.append(format(_text(value), description[:-1]))
        else:
            parts.append(format(value, description))
    return "".join(parts)


def _text(value: int) -> str:
    """Characters, the first one in the lowest byte; bytes that are 0 are left out."""
    count = -(-value.bit_length() // 8)
    return value.to_bytes(count, "little").replace(b"\0", b"").decode()
