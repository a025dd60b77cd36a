"""Fold constants, and merge cells that compute the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .design import COMPARISONS, Bits, CellKind, PlainCell, constant_of
from .passes import postorder

_SWAPPABLE = frozenset(
    {
        CellKind.AND,
        CellKind.OR,
        CellKind.XOR,
        CellKind.ADD,
        CellKind.MULTIPLY,
        CellKind.EQUAL,
        CellKind.UNEQUAL,
    }
)
_TRUE_OF_SAME = (CellKind.EQUAL, CellKind.LESS_EQUAL, CellKind.LESS_EQUAL_SIGNED)


def folded(cell: PlainCell) -> PlainCell | Bits:
    """Return an equal cell that is not larger, or the bits that equal the result."""
    match cell.kind:
        case CellKind.AND | CellKind.OR | CellKind.XOR:
            return _pointwise(cell)
        case CellKind.NOT if max(cell.operands[0]) < 2:
            return tuple(1 - bit for bit in cell.operands[0])
        case CellKind.MUX:
            return _choice(cell)
        case CellKind.ANY | CellKind.ALL | CellKind.ODD:
            return _reduction(cell)
        case CellKind.ADD | CellKind.SUBTRACT | CellKind.MULTIPLY:
            return _arithmetic(cell)
        case CellKind.LEFT | CellKind.RIGHT | CellKind.RIGHT_SIGNED:
            return _shift(cell)
    return _comparison(cell) if cell.kind in COMPARISONS else cell


def _ordered(cell: PlainCell) -> PlainCell:
    """``cell`` with operands in an order that does not depend on who wrote it."""
    first, second = cell.operands
    if cell.kind in _SWAPPABLE and second < first:
        return PlainCell(cell.kind, (second, first), cell.result)
    return cell


def _pointwise(cell: PlainCell) -> PlainCell | Bits:
    bits: list[int] = []
    for a, b in zip(*cell.operands, strict=True):
        low, high = min(a, b), max(a, b)
        if cell.kind is CellKind.XOR:
            if low == high:
                bits.append(0)
            elif low == 0:
                bits.append(high)
            else:
                return _ordered(cell)
        elif low == high or low == int(cell.kind is CellKind.AND):
            bits.append(high)
        elif low == int(cell.kind is CellKind.OR):
            bits.append(low)
        else:
            return _ordered(cell)
    return tuple(bits)


def _choice(cell: PlainCell) -> PlainCell | Bits:
    default, *rest = cell.operands
    known: set[int] = {0}
    choices: list[tuple[Bits, Bits]] = []
    for condition, value in zip(rest[::2], rest[1::2], strict=True):
        if condition == (1,):
            default = value
            break
        if condition[0] not in known:
            known.add(condition[0])
            choices.append((condition, value))
    while choices and choices[-1][1] == default:
        choices.pop()
    if not choices:
        return default
    if len(cell.result) == 1 and default == (0,) and all(x == (1,) for _, x in choices):
        bits = tuple(bit for (bit,), _ in choices)
        return bits if len(bits) == 1 else PlainCell(CellKind.ANY, (bits,), cell.result)
    if len(cell.result) == len(choices) == 1:
        condition, value = choices[0]
        if (default, value) == ((1,), (0,)):
            return PlainCell(CellKind.NOT, (condition,), cell.result)
        if default == (0,):
            return PlainCell(CellKind.AND, tuple(sorted((condition, value))), cell.result)
        if value == (1,):
            return PlainCell(CellKind.OR, tuple(sorted((condition, default))), cell.result)
    operands = [default, *(bits for choice in choices for bits in choice)]
    return PlainCell(CellKind.MUX, tuple(operands), cell.result)


def _reduction(cell: PlainCell) -> PlainCell | Bits:
    (operand,) = cell.operands
    if cell.kind is CellKind.ODD:
        return (sum(operand) & 1,) if max(operand) < 2 else cell
    neutral = int(cell.kind is CellKind.ALL)
    if 1 - neutral in operand:
        return (1 - neutral,)
    left = tuple(bit for bit in dict.fromkeys(operand) if bit != neutral)
    if len(left) < 2:
        return left or (neutral,)
    return PlainCell(cell.kind, (left,), cell.result)


def _arithmetic(cell: PlainCell) -> PlainCell | Bits:
    first, second = cell.operands
    if cell.kind is CellKind.MULTIPLY:
        for constant, other in ((first, second), (second, first)):
            if max(constant) < 2 and sum(constant) < 2:
                if not any(constant):
                    return constant
                index = constant.index(1)
                return (*(0,) * index, *other)[: len(other)]
        return _ordered(cell)
    if not any(second):
        return first
    if not any(first) and cell.kind is CellKind.ADD:
        return second
    return _ordered(cell)


def _shift(cell: PlainCell) -> PlainCell | Bits:
    operand, amount = cell.operands
    while amount and not amount[-1]:
        amount = amount[:-1]
    if max(amount, default=0) > 1:
        return PlainCell(cell.kind, (operand, amount), cell.result)
    width = len(operand)
    by = min(constant_of(amount), width)
    if cell.kind is CellKind.LEFT:
        return ((0,) * by + operand)[:width]
    fill = operand[-1] if cell.kind is CellKind.RIGHT_SIGNED else 0
    return operand[by:] + (fill,) * by


def _comparison(cell: PlainCell) -> PlainCell | Bits:
    first, second = cell.operands
    if first == second:
        return (int(cell.kind in _TRUE_OF_SAME),)
    if cell.kind in (CellKind.EQUAL, CellKind.UNEQUAL):
        return _equality(cell)
    if cell.kind in (CellKind.LESS, CellKind.LESS_EQUAL):
        return _order(cell)
    return cell


def _equality(cell: PlainCell) -> PlainCell | Bits:
    pairs = dict.fromkeys(zip(*cell.operands, strict=True))
    left = [(a, b) for a, b in pairs if a != b]
    if any(a < 2 and b < 2 for a, b in left):
        return (int(cell.kind is CellKind.UNEQUAL),)
    if len(left) == 1:
        low, high = sorted(left[0])
        if low == int(cell.kind is CellKind.EQUAL):
            return (high,)
        if low < 2:
            return PlainCell(CellKind.NOT, ((high,),), cell.result)
    if len(left) == len(cell.operands[0]):
        return _ordered(cell)
    first, second = zip(*left, strict=True)
    return _ordered(PlainCell(cell.kind, (tuple(first), tuple(second)), cell.result))


def _order(cell: PlainCell) -> PlainCell | Bits:
    """A comparison of unsigned numbers that are not the same."""
    first, second = cell.operands
    while first[-1] == second[-1]:
        first, second = first[:-1], second[:-1]
    strict = cell.kind is CellKind.LESS
    least, most = (0,) * len(first), (1,) * len(first)
    if (second == least or first == most) and strict:
        return (0,)
    if (first == least or second == most) and not strict:
        return (1,)
    if first == least:
        return _reduction(PlainCell(CellKind.ANY, (second,), cell.result))
    if second == least or first == most:
        return _equality(PlainCell(CellKind.EQUAL, (first, second), cell.result))
    if second == most:
        return _equality(PlainCell(CellKind.UNEQUAL, (first, second), cell.result))
    return PlainCell(cell.kind, (first, second), cell.result)


def share(cells: Iterable[PlainCell], same: dict[int, int]) -> list[PlainCell]:
    """Return ``cells``, folded, with one of each set of equal cells.

    ``same`` maps bits to equal bits; the bits of dropped cells are added to it.
    """
    _resolve(same)
    known: dict[tuple[CellKind, tuple[Bits, ...]], Bits] = {}
    shared: list[PlainCell] = []
    for cell in _sources_first([_with(x, same) for x in cells]):
        found = folded(_with(cell, same))
        if isinstance(found, PlainCell):
            before = known.setdefault((found.kind, found.operands), found.result)
            if before is found.result:
                shared.append(found)
                continue
            found = before
        same |= zip(cell.result, found, strict=True)
    _resolve(same)
    return shared


def _resolve(same: dict[int, int]) -> None:
    for bit in same:
        end = same[bit]
        while end in same:
            end = same[end]
        same[bit] = end


def _with(cell: PlainCell, same: Mapping[int, int]) -> PlainCell:
    operands = tuple(tuple(same.get(bit, bit) for bit in bits) for bits in cell.operands)
    return PlainCell(cell.kind, operands, cell.result)


def _sources_first(cells: Sequence[PlainCell]) -> Iterator[PlainCell]:
    """Return the cells, each after those that it depends on unless they form a loop."""
    drivers = {bit: number for number, cell in enumerate(cells) for bit in cell.result}

    def needs(number: int) -> list[int]:
        found = {drivers[x] for bits in cells[number].operands for x in bits if x in drivers}
        return sorted(found, reverse=True)

    return (cells[number] for number in postorder(range(len(cells)), needs))
