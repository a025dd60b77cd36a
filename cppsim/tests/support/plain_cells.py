"""Random plain cells, and their results, in plain Python. No tests here."""

import operator
import random
from collections.abc import Callable, Mapping

from cppsim.netlist.design import COMPARISONS, Bits, CellKind, PlainCell

RESULT = 1000
"""The first bit of every cell's result."""

_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
    "NOT": lambda a, _: ~a,
    "ADD": operator.add,
    "SUBTRACT": operator.sub,
    "MULTIPLY": operator.mul,
    "NEGATE": lambda a, _: -a,
    "DIVIDE": lambda a, b: a // b if b else 0,
    "MODULO": lambda a, b: a % b if b else 0,
    "EQUAL": operator.eq,
    "UNEQUAL": operator.ne,
    "LESS": operator.lt,
    "LESS_EQUAL": operator.le,
    "ANY": lambda a, _: a != 0,
    "ODD": lambda a, _: a.bit_count() & 1,
    "LEFT": lambda a, b: a << min(b, 64),
    "RIGHT": operator.rshift,
}
"""Results of cells of up to 64 bits by their kinds, of signed numbers for kinds that are signed."""
_DIVISIONS = (CellKind.DIVIDE, CellKind.DIVIDE_SIGNED, CellKind.MODULO, CellKind.MODULO_SIGNED)
_REDUCTIONS = (CellKind.ANY, CellKind.ALL, CellKind.ODD)


def random_cell(chance: random.Random) -> PlainCell:
    """Return a cell of few bits, many of them constants or the same."""
    kind = chance.choice([kind for kind in CellKind if kind not in _DIVISIONS])
    width = chance.randint(1, 4)

    def bits(count: int) -> Bits:
        constants = chance.random()
        return tuple(
            chance.randint(0, 1) if chance.random() < constants else chance.randint(2, 5)
            for _ in range(count)
        )

    if kind is CellKind.MUX:
        pairs = [bits(size) for _ in range(chance.randint(1, 3)) for size in (1, width)]
        operands = [bits(width), *pairs]
        if chance.random() < 0.3:
            operands[-1] = operands[0]
    elif kind in (CellKind.NOT, CellKind.NEGATE):
        operands = [bits(width)]
    elif kind in _REDUCTIONS:
        operands = [bits(width + 1)]
    elif kind in (CellKind.LEFT, CellKind.RIGHT, CellKind.RIGHT_SIGNED):
        operands = [bits(width), bits(chance.randint(1, 3))]
    else:
        operands = [bits(width), bits(width)]
    size = 1 if kind in (*_REDUCTIONS, *COMPARISONS) else width
    return PlainCell(kind, tuple(operands), tuple(range(RESULT, RESULT + size)))


def number_of(bits: Bits, values: Mapping[int, int], *, signed: bool = False) -> int:
    """Return the number of ``bits``: constants, and those in ``values``."""
    digits = [values.get(bit, bit) for bit in bits]
    value = sum(digit << index for index, digit in enumerate(digits))
    return value - (digits[-1] << len(digits)) if signed else value


def value_of(cell: PlainCell, values: Mapping[int, int]) -> int:
    """Return the result of ``cell``."""
    kind, mask = cell.kind, (1 << len(cell.result)) - 1
    if kind is CellKind.MUX:
        default, *rest = cell.operands
        for condition, value in zip(rest[::2], rest[1::2], strict=True):
            if number_of(condition, values):
                return number_of(value, values)
        return number_of(default, values)
    first, *others = (number_of(bits, values) for bits in cell.operands)
    return computed(kind, len(cell.operands[0]), first, *others) & mask


def computed(kind: CellKind, width: int, first: int, second: int = 0) -> int:
    """Return the result of an operation on operands of ``width`` bits."""
    if kind is CellKind.ALL:
        return int(first == (1 << width) - 1)
    name = kind.name.removesuffix("_SIGNED")
    if name != kind.name:
        first -= first >> width - 1 << width
        second -= second >> width - 1 << width if name != "RIGHT" else 0
    return int(_OPERATIONS[name](first, second))
