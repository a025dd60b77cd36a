"""Cells of a plain design as gates on single bits."""

from collections.abc import Sequence

from ...netlist import CellKind, PlainCell
from .network import ALIKE, AND, BELOW, CARRY, ODD3, OR, OR_BOTH, XOR, Network

Nodes = list[int]

_GATES = 2000
"""Maximal gates of a product or a quotient; larger ones are computed instance by instance."""

_RIPPLE = 28
"""Maximal bits of a sum whose carry ripples in a shallow network too, a level of gates a bit.

Only wider sums would be the deepest paths of bitlane's circuit."""

_DIVISIONS = (CellKind.DIVIDE, CellKind.MODULO, CellKind.DIVIDE_SIGNED, CellKind.MODULO_SIGNED)


def by_numbers(cell: PlainCell) -> bool:
    """Return whether ``cell`` would take too many gates."""
    width = len(cell.result)
    if cell.kind is CellKind.MULTIPLY:
        return width * min(sum(bit > 1 for bit in bits) for bits in cell.operands) > _GATES
    return cell.kind in _DIVISIONS and 3 * width * width > _GATES


def bits_of_cell(network: Network, cell: PlainCell, operands: Sequence[Nodes]) -> Nodes:
    """Return the nodes of the result of ``cell``, from the nodes of its operands."""
    gates = _ShallowGates(network) if network.shallow else _Gates(network)
    a = operands[0]
    b = operands[1] if len(operands) > 1 else []
    match cell.kind:
        case CellKind.AND | CellKind.OR | CellKind.XOR:
            table = {CellKind.AND: AND, CellKind.OR: OR, CellKind.XOR: XOR}[cell.kind]
            return [network.gate(table, x, y) for x, y in zip(a, b, strict=True)]
        case CellKind.NOT:
            return gates.inverted(a)
        case CellKind.MUX:
            return gates.chosen(a, operands[1:])
        case CellKind.ADD:
            return gates.sum(a, b, 0)[0]
        case CellKind.SUBTRACT:
            return gates.sum(a, gates.inverted(b), 1)[0]
        case CellKind.NEGATE:
            return gates.negative(a)
        case CellKind.MULTIPLY:
            return gates.product(a, b)
        case CellKind.LEFT:
            return gates.left(a, b)
        case CellKind.RIGHT:
            return gates.right(a, b, 0)
        case CellKind.RIGHT_SIGNED:
            return gates.right(a, b, a[-1])
        case CellKind.DIVIDE | CellKind.MODULO:
            quotient, rest = gates.divided(a, b)
            some = network.fold(OR, b, 0)
            chosen = quotient if cell.kind is CellKind.DIVIDE else rest
            return [network.both(some, x) for x in chosen]
        case CellKind.DIVIDE_SIGNED | CellKind.MODULO_SIGNED:
            return gates.divided_signed(a, b, rest=cell.kind is CellKind.MODULO_SIGNED)
    return [gates.truth(cell.kind, a, b)]


class _Gates:
    def __init__(self, network: Network) -> None:
        self._network = network

    def inverted(self, a: Nodes) -> Nodes:
        return [self._network.negated(x) for x in a]

    def chosen(self, default: Nodes, choices: Sequence[Nodes]) -> Nodes:
        """Return the value of the first of ``choices`` (condition, value) whose condition holds."""
        result = default
        pairs = list(zip(choices[::2], choices[1::2], strict=True))
        for (condition,), value in reversed(pairs):
            select = self._network.select
            result = [select(condition, x, y) for x, y in zip(value, result, strict=True)]
        return result

    def where(self, condition: int, value: Nodes, otherwise: Nodes) -> Nodes:
        return self.chosen(otherwise, [[condition], value])

    def sum(self, a: Nodes, b: Nodes, carry: int) -> tuple[Nodes, int]:
        """Return ``a + b + carry`` in as many bits, and the carry out of them."""
        result = []
        for x, y in zip(a, b, strict=True):
            result.append(self._network.gate(ODD3, x, y, carry))
            carry = self._network.gate(CARRY, x, y, carry)
        return result, carry

    def negative(self, a: Nodes) -> Nodes:
        return self.sum([0] * len(a), self.inverted(a), 1)[0]

    def product(self, a: Nodes, b: Nodes) -> Nodes:
        if sum(x > 1 for x in a) < sum(x > 1 for x in b):
            a, b = b, a
        result = [0] * len(a)
        for index, bit in enumerate(b):
            if bit:
                added = [self._network.both(bit, x) for x in a[: len(a) - index]]
                result[index:] = self.sum(result[index:], added, 0)[0]
        return result

    def less(self, a: Nodes, b: Nodes) -> int:
        return self._network.negated(self.sum(a, self.inverted(b), 1)[1])

    def left(self, a: Nodes, amount: Nodes) -> Nodes:
        return list(reversed(self.right(list(reversed(a)), amount, 0)))

    def right(self, a: Nodes, amount: Nodes, fill: int) -> Nodes:
        for index, bit in enumerate(amount):
            by = min(1 << min(index, 30), len(a))
            a = self.where(bit, [*a[by:], *[fill] * by], a)
        return a

    def divided(self, a: Nodes, b: Nodes) -> tuple[Nodes, Nodes]:
        """Return quotient and remainder; both are arbitrary if ``b`` is 0."""
        rest: Nodes = [0] * len(b)
        quotient: Nodes = [0] * len(a)
        for index in reversed(range(len(a))):
            # The remainder has fewer bits than `a` here, so the shift loses none.
            rest = [a[index], *rest[:-1]]
            difference, quotient[index] = self.sum(rest, self.inverted(b), 1)
            rest = self.where(quotient[index], difference, rest)
        return quotient, rest

    def divided_signed(self, a: Nodes, b: Nodes, *, rest: bool) -> Nodes:
        """Divide absolute values, then correct for rounding down; 0 if ``b`` is 0."""
        network, minus_a, minus_b = self._network, a[-1], b[-1]
        quotient, left = self.divided(
            self.where(minus_a, self.negative(a), a), self.where(minus_b, self.negative(b), b)
        )
        apart = network.differ(minus_a, minus_b)
        some = network.both(apart, network.fold(OR, left, 0))
        if rest:
            positive = self.where(minus_b, self.negative(b), b)
            left = self.where(some, self.sum(positive, self.inverted(left), 1)[0], left)
            result = self.where(minus_b, self.negative(left), left)
        else:
            # -q, or if there is a remainder -q - 1, which is ~q.
            minus = self.where(some, self.inverted(quotient), self.negative(quotient))
            result = self.where(apart, minus, quotient)
        divisible = network.fold(OR, b, 0)
        return [network.both(divisible, x) for x in result]

    def truth(self, kind: CellKind, a: Nodes, b: Nodes) -> int:
        """Return the bit of a reduction or a comparison."""
        network = self._network
        match kind:
            case CellKind.ALL:
                return network.fold(AND, a, 1)
            case CellKind.ANY:
                return network.fold(OR, a, 0)
            case CellKind.ODD:
                return network.fold(XOR, a, 0)
            case CellKind.EQUAL | CellKind.UNEQUAL:
                pairs = zip(a, b, strict=True)
                differ = network.fold(OR, [network.differ(x, y) for x, y in pairs], 0)
                return differ if kind is CellKind.UNEQUAL else network.negated(differ)
            case CellKind.LESS_SIGNED | CellKind.LESS_EQUAL_SIGNED:
                a, b = ([*x[:-1], network.negated(x[-1])] for x in (a, b))
        if kind in (CellKind.LESS_EQUAL, CellKind.LESS_EQUAL_SIGNED):
            return network.negated(self.less(b, a))
        return self.less(a, b)


class _ShallowGates(_Gates):
    """The same in few levels instead of few gates."""

    def sum(self, a: Nodes, b: Nodes, carry: int) -> tuple[Nodes, int]:
        """Return ``a + b + carry`` in as many bits, and the carry out of them."""
        if len(a) <= _RIPPLE:
            return super().sum(a, b, carry)
        before = [carry, *self._carries(a, b, carry)]
        bits = zip(a, b, before[:-1], strict=True)
        return [self._network.gate(ODD3, *three) for three in bits], before[-1]

    def _carries(self, a: Nodes, b: Nodes, carry: int) -> Nodes:
        """Return the carries out of each bit of a sum, in a logarithmic number of levels.

        A run of bits makes a carry, or passes one on: ``(made, passed)``. Runs of four bits are
        joined first, as that takes the fewest gates.
        """
        gate, both = self._network.gate, self._network.both
        runs = [(both(x, y), gate(OR, x, y)) for x, y in zip(a, b, strict=True)]
        runs[0] = gate(CARRY, a[0], b[0], carry), 0
        groups = [self._joined_runs(runs[low : low + 4]) for low in range(0, len(runs), 4)]
        ends = self._joined_runs([group[-1] for group in groups])
        result = [made for made, _ in groups[0]]
        for group, (before, _), (end, _) in zip(groups[1:], ends, ends[1:], strict=False):
            result += [gate(OR_BOTH, *run, before) for run in group[:-1]] + [end]
        return result

    def _joined_runs(self, runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Join each run with all before it."""
        width = 1
        while width < len(runs):
            runs = [
                self._joined(run, runs[k // width * width - 1]) if k & width else run
                for k, run in enumerate(runs)
            ]
            width *= 2
        return runs

    def _joined(self, high: tuple[int, int], low: tuple[int, int]) -> tuple[int, int]:
        network = self._network
        return network.gate(OR_BOTH, *high, low[0]), network.both(high[1], low[1])

    def product(self, a: Nodes, b: Nodes) -> Nodes:
        """Return ``a * b`` in as many bits: a tree of full adders leaves two bits a column."""
        gate, width = self._network.gate, len(a)
        if sum(x > 1 for x in a) < sum(x > 1 for x in b):
            a, b = b, a
        columns: list[Nodes] = [[] for _ in a]
        for column, bit in enumerate(b):
            for k, x in enumerate(a[: width - column] if bit else ()):
                columns[column + k].append(self._network.both(bit, x))
        while any(len(bits) > 2 for bits in columns):
            added: list[Nodes] = [[] for _ in a]
            for column, bits in enumerate(columns):
                whole = len(bits) // 3 * 3
                for three in zip(*(bits[k:whole:3] for k in range(3)), strict=True):
                    added[column].append(gate(ODD3, *three))
                    if column + 1 < width:
                        added[column + 1].append(gate(CARRY, *three))
                added[column] += bits[whole:]
            columns = added
        first, second = ([bits[k] if k < len(bits) else 0 for bits in columns] for k in range(2))
        return self.sum(first, second, 0)[0]

    def less(self, a: Nodes, b: Nodes) -> int:
        """Return whether ``a < b``, by a tree: a part is less, or alike and the lower part less."""
        gate = self._network.gate
        parts = [(gate(BELOW, x, y), gate(ALIKE, x, y)) for x, y in zip(a, b, strict=True)]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [self._joined(high, low) for low, high in pairs] + parts[len(parts) & ~1 :]
        return parts[0][0] if parts else 0
