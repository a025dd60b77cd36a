"""Amaranth's combinational cells as plain ones: patterns and priorities are spelt out.

A cell of no bits has no result, and a reduction or comparison of no bits is a constant.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from .design import Bits, CellKind, NotPlain, PlainCell

_UNARY = {"~": CellKind.NOT, "-": CellKind.NEGATE}
_BINARY = {
    "+": CellKind.ADD,
    "-": CellKind.SUBTRACT,
    "*": CellKind.MULTIPLY,
    "&": CellKind.AND,
    "|": CellKind.OR,
    "^": CellKind.XOR,
    "u//": CellKind.DIVIDE,
    "s//": CellKind.DIVIDE_SIGNED,
    "u%": CellKind.MODULO,
    "s%": CellKind.MODULO_SIGNED,
}
_REDUCTIONS = {
    "b": CellKind.ANY,
    "r|": CellKind.ANY,
    "r&": CellKind.ALL,
    "r^": CellKind.ODD,
}
_SHIFTS = {"<<": CellKind.LEFT, "u>>": CellKind.RIGHT, "s>>": CellKind.RIGHT_SIGNED}
_COMPARISONS = {
    "==": (CellKind.EQUAL, False),
    "!=": (CellKind.UNEQUAL, False),
    "u<": (CellKind.LESS, False),
    "u>": (CellKind.LESS, True),
    "u<=": (CellKind.LESS_EQUAL, False),
    "u>=": (CellKind.LESS_EQUAL, True),
    "s<": (CellKind.LESS_SIGNED, False),
    "s>": (CellKind.LESS_SIGNED, True),
    "s<=": (CellKind.LESS_EQUAL_SIGNED, False),
    "s>=": (CellKind.LESS_EQUAL_SIGNED, True),
}
"""The cell of a comparison, and whether its operands are swapped."""
_TRUE_OF_NOTHING = (CellKind.ALL, CellKind.EQUAL, CellKind.LESS_EQUAL, CellKind.LESS_EQUAL_SIGNED)
_FIRST_FREE = 1 << 48
"""Nets from here on are new: Amaranth's have the number of their cell above 16 bits."""


def bits_of(value: Iterable[int]) -> Bits:
    """Return Amaranth's nets as plain numbers."""
    return tuple(map(int, value))


class CellWriter:
    """Writes plain cells. ``same`` maps nets to equal nets or constants.

    New nets have numbers from ``first`` on.
    """

    def __init__(self, first: int = _FIRST_FREE) -> None:
        self.cells: list[PlainCell] = []
        self.same: dict[int, int] = {}
        self._next = first
        self._known: dict[tuple[CellKind, tuple[Bits, ...]], int] = {}

    def new(self, width: int) -> Bits:
        self._next += width
        return tuple(range(self._next - width, self._next))

    def equate(self, result: Sequence[int], bits: Sequence[int]) -> None:
        self.same |= zip(result, bits, strict=True)

    def put(self, kind: CellKind, operands: tuple[Bits, ...], result: Bits) -> None:
        if result:
            self.cells.append(PlainCell(kind, operands, result))

    def bit(self, kind: CellKind, *operands: Bits) -> int:
        """Return the bit of a cell of one bit; equal cells share one."""
        key = (kind, operands)
        if key not in self._known:
            (self._known[key],) = result = self.new(1)
            self.put(kind, operands, result)
        return self._known[key]

    def all_of(self, *bits: int) -> int:
        """Return a bit that is 1 where all of ``bits`` are."""
        left = tuple(dict.fromkeys(bit for bit in bits if bit != 1))
        if 0 in left:
            return 0
        if len(left) < 2:
            return left[0] if left else 1
        if len(left) == 2:
            return self.bit(CellKind.AND, left[:1], left[1:])
        return self.bit(CellKind.ALL, left)

    def any_of(self, *bits: int) -> int:
        """Return a bit that is 1 where one of ``bits`` is."""
        left = tuple(dict.fromkeys(bit for bit in bits if bit != 0))
        if 1 in left:
            return 1
        if len(left) < 2:
            return left[0] if left else 0
        if len(left) == 2:
            return self.bit(CellKind.OR, left[:1], left[1:])
        return self.bit(CellKind.ANY, left)

    def not_of(self, bit: int) -> int:
        return 1 - bit if bit < 2 else self.bit(CellKind.NOT, (bit,))

    def equal(self, a: Bits, b: Bits) -> int:
        return self.bit(CellKind.EQUAL, a, b) if a else 1

    def select(self, default: Bits, choices: Sequence[tuple[int, Bits]], result: Bits) -> None:
        """``result`` is the first of ``choices``, a condition and a value, that applies."""
        operands = [default]
        for condition, value in choices:
            if condition == 1:
                operands = [value, *operands[1:]]
                break
            if condition:
                operands += [(condition,), value]
        if len(operands) == 1:
            self.equate(result, operands[0])
        else:
            self.put(CellKind.MUX, tuple(operands), result)

    def take(self, number: int, cell: Any) -> None:
        """Write cell ``number`` of a netlist. Raises ``NotPlain`` for one that is not known."""
        match type(cell).__name__:
            case "Operator":
                self._operator(number, cell)
            case "Part":
                self._part(number, cell)
            case "Matches":
                hit = self._matches(bits_of(cell.value), cell.patterns)
                self.equate(result_of(number, 1), (hit,))
            case "PriorityMatch" | "Match":
                self._first(number, int(cell.en), self.conditions(cell))
            case kind:
                raise not_known(kind, cell)

    def _operator(self, number: int, cell: Any) -> None:
        kind, operands = cell.operator, tuple(map(bits_of, cell.inputs))
        result = result_of(number, cell.width)
        if kind == "m":
            self.select(operands[2], [(operands[0][0], operands[1])], result)
        elif len(operands) == 1 and kind in _UNARY:
            self.put(_UNARY[kind], operands, result)
        elif kind in _BINARY:
            self.put(_BINARY[kind], operands, result)
        elif kind in _SHIFTS:
            if operands[1]:
                self.put(_SHIFTS[kind], operands, result)
            else:
                self.equate(result, operands[0])
        elif kind in _REDUCTIONS:
            self._predicate(_REDUCTIONS[kind], operands, result)
        else:
            plain, swapped = _COMPARISONS[kind]
            self._predicate(plain, operands[::-1] if swapped else operands, result)

    def _predicate(self, kind: CellKind, operands: tuple[Bits, ...], result: Bits) -> None:
        """A cell that answers in one bit."""
        if not operands[0]:
            self.equate(result, (int(kind in _TRUE_OF_NOTHING),))
        elif len(operands) == 1 and len(operands[0]) == 1:
            self.equate(result, operands[0])
        else:
            self.put(kind, operands, result)

    def _part(self, number: int, cell: Any) -> None:
        value, offset = bits_of(cell.value), bits_of(cell.offset)
        sign = value[-1] if cell.value_signed and value else 0
        width = max(len(value), cell.width)
        value += (sign,) * (width - len(value))
        if cell.stride != 1 and offset:
            scaled = len(offset) + cell.stride.bit_length()
            stride = tuple(cell.stride >> index & 1 for index in range(scaled))
            product = self.new(scaled)
            offset += (0,) * (scaled - len(offset))
            self.put(CellKind.MULTIPLY, (offset, stride), product)
            offset = product
        result = result_of(number, cell.width)
        if not offset:
            self.equate(result, value[: cell.width])
            return
        kind = CellKind.RIGHT_SIGNED if cell.value_signed else CellKind.RIGHT
        self.put(kind, (value, offset), (*result, *self.new(width - cell.width)))

    def _matches(self, value: Bits, patterns: Iterable[str]) -> int:
        """Return a bit that is 1 where ``value`` matches one of ``patterns``."""
        found = []
        for pattern in patterns:
            cared = [
                (bit, int(x)) for bit, x in zip(value, reversed(pattern), strict=True) if x != "-"
            ]
            if len(cared) == 1:
                bit, expected = cared[0]
                found.append(bit if expected else self.not_of(bit))
            else:
                found.append(self.equal(tuple(x for x, _ in cared), tuple(x for _, x in cared)))
        return self.any_of(*found)

    def conditions(self, switch: Any) -> Sequence[int]:
        """Return the conditions of a switch's branches, without their priority."""
        if type(switch).__name__ == "PriorityMatch":
            return bits_of(switch.inputs)
        # Amaranth 0.6 has patterns here, and no cells for them.
        value = bits_of(switch.value)
        return [self._matches(value, patterns) for patterns in switch.patterns]

    def _first(self, number: int, left: int, conditions: Sequence[int]) -> None:
        """Write the first of ``conditions`` that is 1 while ``left`` is 1, one-hot."""
        result = result_of(number, len(conditions))
        for index, (bit, out) in enumerate(zip(conditions, result, strict=True)):
            self.equate((out,), (self.all_of(left, bit),))
            if index + 1 < len(conditions):
                left = self.all_of(left, self.not_of(bit))


def result_of(number: int, width: int) -> Bits:
    """Return the bits of the result of cell ``number`` of Amaranth's netlist."""
    return tuple(range(number << 16, (number << 16) + width))


def not_known(kind: str, thing: Any) -> NotPlain:
    """Return the error for a part of a design, with its name and source line if it has them."""
    name, src_loc = getattr(thing, "type", ""), getattr(thing, "src_loc", None)
    words = [repr(name)] * bool(name) + (["at {}:{}".format(*src_loc)] if src_loc else [])
    about = f": {' '.join(words)}" if words else ""
    cure = "; cppsim.register_cell gives it logic" if kind == "Instance" else ""
    return NotPlain(f"{kind} is not known here{about}{cure}")
