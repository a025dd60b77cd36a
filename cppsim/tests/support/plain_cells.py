"""Random plain cells and gate networks, and their results in plain Python. No tests here."""

import operator
import random
from collections.abc import Callable, Iterable, Mapping

from cppsim.batch.bitslice.network import Gate, Network
from cppsim.netlist.design import Bits, CellKind, PlainCell

RESULT = 1000
"""The first bit of every cell's result."""

_POINTWISE: Mapping[CellKind, Callable[[int, int], int]] = {
    CellKind.AND: operator.and_,
    CellKind.OR: operator.or_,
    CellKind.XOR: operator.xor,
    CellKind.ADD: operator.add,
    CellKind.SUBTRACT: operator.sub,
    CellKind.MULTIPLY: operator.mul,
    CellKind.LEFT: operator.lshift,
}
_COMPARISONS: Mapping[CellKind, Callable[[int, int], bool]] = {
    CellKind.EQUAL: operator.eq,
    CellKind.UNEQUAL: operator.ne,
    CellKind.LESS: operator.lt,
    CellKind.LESS_EQUAL: operator.le,
    CellKind.LESS_SIGNED: operator.lt,
    CellKind.LESS_EQUAL_SIGNED: operator.le,
}
_SIGNED = (CellKind.LESS_SIGNED, CellKind.LESS_EQUAL_SIGNED, CellKind.RIGHT_SIGNED)
_ONE_BIT = (CellKind.ANY, CellKind.ALL, CellKind.ODD, *_COMPARISONS)
_DIVISIONS = (CellKind.DIVIDE, CellKind.DIVIDE_SIGNED, CellKind.MODULO, CellKind.MODULO_SIGNED)


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
    elif kind in (CellKind.ANY, CellKind.ALL, CellKind.ODD):
        operands = [bits(width + 1)]
    elif kind in (CellKind.LEFT, CellKind.RIGHT, CellKind.RIGHT_SIGNED):
        operands = [bits(width), bits(chance.randint(1, 3))]
    else:
        operands = [bits(width), bits(width)]
    size = 1 if kind in _ONE_BIT else width
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
    width = len(cell.operands[0])
    if kind in _SIGNED:
        first = number_of(cell.operands[0], values, signed=True)
        if kind is not CellKind.RIGHT_SIGNED:
            others = [number_of(cell.operands[1], values, signed=True)]
    if kind in _POINTWISE:
        return _POINTWISE[kind](first, others[0]) & mask
    if kind in _COMPARISONS:
        return int(_COMPARISONS[kind](first, others[0]))
    if kind in (CellKind.RIGHT, CellKind.RIGHT_SIGNED):
        return first >> others[0] & mask
    single = {
        CellKind.NOT: ~first,
        CellKind.NEGATE: -first,
        CellKind.ANY: first != 0,
        CellKind.ALL: first == (1 << width) - 1,
        CellKind.ODD: first.bit_count() & 1,
    }
    return int(single[kind]) & mask


def evaluated(gates: Mapping[int, Gate], values: Mapping[int, int], ones: int) -> dict[int, int]:
    """Return the words of all nodes from those of sources; ``ones`` is a word of ones."""
    words = {0: 0, 1: ones, **values}
    for node, (table, inputs) in gates.items():
        words[node] = 0
        for row in range(8):
            if table >> row & 1:
                term = ones
                for index in range(3):
                    word = words[inputs[index]] if index < len(inputs) else 0
                    term &= word if row >> index & 1 else ~word & ones
                words[node] |= term
    return words


def random_network(
    chance: random.Random, sources: int, gates: int
) -> tuple[Network, list[int], list[int]]:
    """Return a random network, its sources, and some nodes as its outputs."""
    network = Network()
    given = [network.source() for _ in range(sources)]
    nodes = [0, 1, *given]
    for _ in range(gates):
        inputs: Iterable[int] = chance.choices(nodes, k=chance.randint(1, 3))
        nodes.append(network.gate(random_table(chance, len(list(inputs))), *inputs))
    return network, given, chance.choices(nodes, k=8)


def random_table(chance: random.Random, inputs: int) -> int:
    """Return a random table that depends on its first ``inputs`` alone."""
    rows = 1 << inputs
    answers = chance.randrange(1 << rows)
    return sum(answers << rows * k for k in range(8 // rows))
