"""C++ expressions for the bits of a design, in unsigned words of 64 bits.

A variable holds up to 64 bits and zeros above them; every expression here keeps that. Variables of
one bit may be bytes, for which C++ does what it does for its `int`: who shifts left, extends a sign
or negates makes a word of them first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from ..netlist import SIGNED, WORD, Bits, CellKind, PlainCell, constant_of

_INFIX = {
    CellKind.AND: "&",
    CellKind.OR: "|",
    CellKind.XOR: "^",
    CellKind.ADD: "+",
    CellKind.SUBTRACT: "-",
    CellKind.MULTIPLY: "*",
    CellKind.EQUAL: "==",
    CellKind.UNEQUAL: "!=",
    CellKind.LESS: "<",
    CellKind.LESS_EQUAL: "<=",
    CellKind.LESS_SIGNED: "<",
    CellKind.LESS_EQUAL_SIGNED: "<=",
}
_MASK = (1 << WORD) - 1
_DIVISIONS = {
    CellKind.DIVIDE: "word::divide",
    CellKind.DIVIDE_SIGNED: "word::divide_signed",
    CellKind.MODULO: "word::modulo",
    CellKind.MODULO_SIGNED: "word::modulo_signed",
}


def literal(value: int) -> str:
    """A constant of 64 bits, so that shifts and signs are those of a word."""
    return f"{value}ull" if value < 10 else f"{value:#x}ull"


def words_of(bits: Bits) -> list[Bits]:
    """``bits`` in words, the least significant first."""
    return [bits[low : low + WORD] for low in range(0, len(bits), WORD)]


@dataclass(frozen=True, slots=True)
class BitField:
    """``width`` bits of a value, from its bit ``low`` on, lie in ``word`` from bit ``shift`` on."""

    word: int
    shift: int
    low: int
    width: int


def repeated(bits: Bits, first: int) -> int:
    """Return the number of equal bits from ``first`` on."""
    end = first + 1
    while end < len(bits) and bits[end] == bits[first]:
        end += 1
    return end - first


def adjacent(bits: Bits, first: int, locations: Mapping[int, tuple[object, int]]) -> int:
    """Return the number of bits from ``first`` on that are adjacent in one word."""
    word, low = locations[bits[first]]
    end = first + 1
    while end < len(bits) and locations.get(bits[end]) == (word, low + end - first):
        end += 1
    return end - first


class Words:
    """The variable of each bit and its index there, and the width of each variable.

    ``arrays`` has the array of each memory, by the memory's identity.
    """

    def __init__(self) -> None:
        self.locations: dict[int, tuple[str, int]] = {}
        self.widths: dict[str, int] = {}
        self.arrays: dict[int, str] = {}
        self._defined: dict[str, list[int]] = {}

    def define(self, name: str, bits: Bits) -> None:
        """``name`` is a variable that holds ``bits``, up to 64."""
        self.locations |= {bit: (name, index) for index, bit in enumerate(bits)}
        self.widths[name] = len(bits)
        self._defined.setdefault(name, []).extend(bits)

    @contextmanager
    def renamed(self, names: Mapping[str, str]) -> Iterator[None]:
        """Within the ``with`` block, read other variables in place of those in ``names``."""
        defined = (bit for name in names for bit in self._defined[name])
        changed = {bit: self.locations[bit] for bit in defined if self.locations[bit][0] in names}
        self.locations |= {bit: (names[x], low) for bit, (x, low) in changed.items()}
        self.widths |= {other: self.widths[x] for x, other in names.items()}
        yield
        self.locations |= changed

    def text(self, bits: Bits) -> str:
        """Return an expression of up to 64 bits, in parentheses if it is more than a name."""
        constant, parts = 0, []
        for low, high in self._parts(bits):
            if bits[low] < 2:
                constant |= constant_of(bits[low:high], low)
            elif high - low > 1 and bits[low] == bits[low + 1]:
                parts.append(self._repeated(bits[low], high - low, low))
            else:
                parts.append(self._part(bits[low], high - low, low))
        if constant or not parts:
            parts.append(literal(constant))
        return parts[0] if len(parts) == 1 else "(" + " | ".join(parts) + ")"

    def names(self, *values: Iterable[int]) -> set[str]:
        """Return the variables that hold bits of ``values``."""
        return {self.locations[bit][0] for bits in values for bit in bits if bit > 1}

    def raw(self, bits: Bits) -> str:
        """Return an expression that is 0 if all of ``bits``, which are one run, are 0."""
        if bits[0] < 2 or repeated(bits, 0) == len(bits):
            return self.text(bits)
        name, low = self.locations[bits[0]]
        width = self.widths[name]
        if len(bits) == 1 or len(bits) == width:
            return self.text(bits)
        if low + len(bits) == width:
            return f"({name} >> {low})"
        return f"({name} & {literal(((1 << len(bits)) - 1) << low)})"

    def cuts(self, bits: Bits) -> set[int]:
        """Return the first index of each part that ``text`` would put together."""
        return {low for low, _ in self._parts(bits)}

    def runs(self, bits: Bits) -> int:
        """Return the number of parts that ``text`` would put together, without constants."""
        return sum(bits[low] > 1 for low, _ in self._parts(bits))

    def _parts(self, bits: Bits) -> Iterator[tuple[int, int]]:
        """Yield the ends of each part: constants, one bit repeated, or a run of one variable."""
        low = 0
        while low < len(bits):
            high = low + 1
            if bits[low] < 2:
                while high < len(bits) and bits[high] < 2:
                    high += 1
            else:
                high = low + max(repeated(bits, low), adjacent(bits, low, self.locations))
            yield low, high
            low = high

    def _part(self, first: int, count: int, to: int) -> str:
        """``count`` bits of a variable from ``first`` on, moved to ``to``."""
        name, low = self.locations[first]
        width = self.widths[name]
        text = name
        if low > to:
            text = f"({name} >> {low - to})"
        elif to > low:
            # A variable of one bit may be a byte.
            text = f"({name if width > 1 else f'uint64_t({name})'} << {to - low})"
        clean_below = not (low and to)
        clean_above = low + count == width or to + count == WORD
        if clean_below and clean_above:
            return text
        return f"({text} & {literal(((1 << count) - 1) << to)})"

    def _repeated(self, bit: int, count: int, to: int) -> str:
        mask = ((1 << count) - 1) << to
        text = f"-uint64_t({self.text((bit,))})"
        return f"({text})" if mask == _MASK else f"({text} & {literal(mask)})"


def _segments(words: Words, *operands: Bits) -> list[tuple[Bits, ...]]:
    """Operands of the same width cut where any of them changes from one variable to another."""
    cuts = sorted({0, len(operands[0])}.union(*(words.cuts(bits) for bits in operands)))
    return [tuple(bits[low:high] for bits in operands) for low, high in pairwise(cuts)]


def _truth(words: Words, cell: PlainCell) -> str | None:
    """The answer of a reduction or an equality of bits from here and there, each where it is.

    None for other cells, and where nothing would have to be put together.
    """
    if cell.kind not in (CellKind.ANY, CellKind.ALL, CellKind.EQUAL, CellKind.UNEQUAL):
        return None
    segments = _segments(words, *cell.operands)
    if len(segments) == 1:
        return None
    single: list[str] = []
    wide: list[str] = []
    for segment in segments:
        bits = segment[0]
        if cell.kind in (CellKind.EQUAL, CellKind.UNEQUAL):
            different = _different(words, *segment)
            if different:
                (single if len(bits) == 1 else wide).append(different)
        elif cell.kind is CellKind.ANY:
            if set(bits) != {0}:
                (single if len(bits) == 1 else wide).append(words.raw(bits))
        elif set(bits) != {1}:
            whole = literal((1 << len(bits)) - 1)
            single.append(
                words.text(bits) if len(bits) == 1 else f"({words.text(bits)} == {whole})"
            )
    if cell.kind is CellKind.ALL:
        return " & ".join(single) or "1u"
    if wide:
        return f"({' | '.join([*wide, *single])}) {'==' if cell.kind is CellKind.EQUAL else '!='} 0"
    answer = " | ".join(single) or "0u"
    return f"({answer}) ^ 1u" if cell.kind is CellKind.EQUAL else answer


def _different(words: Words, a: Bits, b: Bits) -> str:
    """Not 0 where ``a`` and ``b`` differ; empty if they cannot."""
    if a == b:
        return ""
    for one, other in ((a, b), (b, a)):
        if set(other) == {0}:
            return words.raw(one)
    return f"({words.text(a)} ^ {words.text(b)})"


def operation(cell: PlainCell, words: Words) -> str:
    """The expression of a cell no wider than a word."""
    truth = _truth(words, cell)
    return truth if truth is not None else _operation(cell, words.text)


def _operation(cell: PlainCell, text: Callable[[Bits], str]) -> str:
    width = len(cell.result)
    operands = cell.operands
    mask = literal((1 << width) - 1)

    def cut(expression: str) -> str:
        return expression if width == WORD else f"({expression}) & {mask}"

    match cell.kind:
        case CellKind.AND | CellKind.OR | CellKind.XOR:
            return f"{text(operands[0])} {_INFIX[cell.kind]} {text(operands[1])}"
        case CellKind.NOT:
            return f"{text(operands[0])} ^ {mask}"
        case CellKind.ADD | CellKind.SUBTRACT | CellKind.MULTIPLY:
            return cut(f"{text(operands[0])} {_INFIX[cell.kind]} {text(operands[1])}")
        case CellKind.NEGATE:
            return cut(f"-{text(operands[0])}")
        case CellKind.MUX:
            default, *rest = operands
            pairs = zip(rest[::2], rest[1::2], strict=True)
            return "".join(f"{text(c)} ? {text(v)} : " for c, v in pairs) + text(default)
        case CellKind.ALL:
            return f"{text(operands[0])} == {literal((1 << len(operands[0])) - 1)}"
        case CellKind.ANY:
            return f"{text(operands[0])} != 0"
        case CellKind.ODD:
            return f"uint64_t(__builtin_parityll({text(operands[0])}))"
        case CellKind.LEFT:
            return cut(_shifted(text(operands[0]), "<<", operands[1], text))
        case CellKind.RIGHT:
            return _shifted(text(operands[0]), ">>", operands[1], text)
        case CellKind.RIGHT_SIGNED:
            amount = text(operands[1])
            if len(operands[1]) > 6:
                amount = f"word::least({amount}, 63)"
            return cut(f"uint64_t({sign_extended(text(operands[0]), width)} >> {amount})")
    if cell.kind in _DIVISIONS:
        signed = cell.kind in SIGNED
        values = (sign_extended(text(x), width) if signed else text(x) for x in operands)
        return cut(f"{_DIVISIONS[cell.kind]}({', '.join(values)})")
    sides = [sign_extended(text(x), len(x)) if cell.kind in SIGNED else text(x) for x in operands]
    return f"{sides[0]} {_INFIX[cell.kind]} {sides[1]}"


def _shifted(operand: str, operator: str, amount: Bits, text: Callable[[Bits], str]) -> str:
    shifted = f"uint64_t({operand}) {operator} {text(amount)}"
    # C++ leaves shifts by a word or more undefined.
    return shifted if len(amount) <= 6 else f"({text(amount)} < 64 ? {shifted} : 0)"


def sign_extended(operand: str, width: int) -> str:
    if width == WORD:
        return f"int64_t({operand})"
    return f"(int64_t(uint64_t({operand}) << {WORD - width}) >> {WORD - width})"
