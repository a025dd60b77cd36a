"""A network of gates with up to three inputs, each a truth table of eight bits.

A node is a number. 0 and 1 are the constants; `source` makes inputs of the network, `gate` logic.
Inputs that a table does not depend on are removed, and equal gates are one node.
"""

from collections.abc import Callable, Iterable
from functools import cache

_INPUTS = (0b10101010, 0b11001100, 0b11110000)
"""Truth tables of the first, the second and the third input."""

_A, _B, _C = _INPUTS

AND = _A & _B
OR = _A | _B
XOR = _A ^ _B
ODD3 = _A ^ _B ^ _C
CARRY = _A & _B | _A & _C | _B & _C
BELOW = ~_A & 0xFF & _B
"""1 where the first input is 0 and the second one 1."""
ALIKE = ~XOR & 0xFF
OR_BOTH = _A | _B & _C
"""The first input, or the second and the third one together."""
SELECT = _A & _B | ~_A & 0xFF & _C
"""A multiplexer with the inputs condition, value, otherwise."""

Gate = tuple[int, tuple[int, ...]]
"""A truth table and its inputs; the first input is the lowest bit of the table's index."""


class Network:
    """A network whose nodes have higher numbers than their inputs.

    A ``shallow`` one has few levels, as a GPU waits after each; another one has few gates.
    """

    def __init__(self, *, shallow: bool = False) -> None:
        self.shallow = shallow
        self.gates: dict[int, Gate] = {}
        self._known: dict[Gate, int] = {}
        self._next = 2

    def source(self) -> int:
        """Return a new node that is an input of the network."""
        self._next += 1
        return self._next - 1

    def gate(self, table: int, *inputs: int) -> int:
        """Return the node of ``table``, which ignores missing inputs."""
        table, left = _reduced(table, tuple(inputs))
        if not left:
            return table & 1
        if len(left) == 1 and table & 0b11 == 0b10:
            return left[0]
        key = (table, left)
        if key not in self._known:
            self._known[key] = self._next
            self.gates[self._next] = key
            self._next += 1
        return self._known[key]

    def negated(self, a: int) -> int:
        return self.gate(~_A & 0xFF, a)

    def both(self, a: int, b: int) -> int:
        return self.gate(AND, a, b)

    def differ(self, a: int, b: int) -> int:
        return self.gate(XOR, a, b)

    def select(self, condition: int, value: int, otherwise: int) -> int:
        return self.gate(SELECT, condition, value, otherwise)

    def fold(self, table: int, nodes: Iterable[int], nothing: int) -> int:
        """Reduce ``nodes`` by a table of two inputs, as a tree; ``nothing`` if there are none."""
        left = list(dict.fromkeys(nodes)) if table != XOR else list(nodes)
        while len(left) > 1:
            pairs = zip(left[::2], left[1::2], strict=False)
            left = [self.gate(table, *pair) for pair in pairs] + left[len(left) & ~1 :]
        return left[0] if left else nothing

    def merged(self, roots: Iterable[int]) -> dict[int, Gate]:
        """Return the gates that ``roots`` need; gates with one reader are merged into it."""
        needed = self._needed(roots)
        uses = dict.fromkeys(needed, 0)
        for node in needed:
            for other in self.gates[node][1]:
                if other in uses:
                    uses[other] += 1
        for root in roots:
            if root in uses:
                uses[root] += 1
        result: dict[int, Gate] = {}
        for node in sorted(needed):
            gate = self.gates[node]
            for other in sorted(gate[1], reverse=True):
                if other in result and uses[other] == 1:
                    joined = _joined(gate, other, result[other])
                    if joined:
                        gate = joined
                        del result[other]
            result[node] = gate
        return result

    def _needed(self, roots: Iterable[int]) -> set[int]:
        found: set[int] = set()
        left = list(roots)
        while left:
            node = left.pop()
            if node in self.gates and node not in found:
                found.add(node)
                left += self.gates[node][1]
        return found


def _joined(gate: Gate, other: int, inner: Gate) -> Gate | None:
    """Replace the input ``other`` of ``gate`` by ``inner``; None if that takes over 3 inputs."""
    table, inputs = gate
    left = tuple(dict.fromkeys([x for x in inputs if x != other] + list(inner[1])))
    if len(left) > 3:
        return None
    answers = 0
    for position in range(8):
        values = {node: position >> k & 1 for k, node in enumerate(left)}
        values[other] = inner[0] >> sum(values[x] << k for k, x in enumerate(inner[1])) & 1
        answers |= (table >> sum(values[x] << k for k, x in enumerate(inputs)) & 1) << position
    return _reduced(answers, left)


def remapped(table: int, entry: Callable[[int], int]) -> int:
    """Return the table whose entry ``number`` is the entry ``entry(number)`` of ``table``."""
    return sum((table >> entry(number) & 1) << number for number in range(8))


def _inserted(number: int, position: int, value: int) -> int:
    """Return ``number``, an index of a table, with the bit ``value`` put in at ``position``."""
    low = number & (1 << position) - 1
    return (number >> position << position + 1 | value << position | low) & 7


@cache
def _without(table: int, position: int, value: int) -> int:
    """Return ``table`` without the input at ``position``, which has the constant ``value``."""
    return remapped(table, lambda number: _inserted(number, position, value))


@cache
def _alike(table: int, first: int, second: int) -> int:
    """Return ``table`` without the input at ``second``, which equals that at ``first``."""
    return remapped(table, lambda number: _inserted(number, second, number >> first & 1))


def _reduced(table: int, inputs: tuple[int, ...]) -> Gate:
    """Remove constant inputs, repeated inputs, and inputs that the table ignores."""
    position = 0
    while position < len(inputs):
        node = inputs[position]
        first = inputs.index(node)
        if node < 2:
            table = _without(table, position, node)
        elif first < position:
            table = _alike(table, first, position)
        elif _without(table, position, 0) == _without(table, position, 1):
            table = _without(table, position, 0)
        else:
            position += 1
            continue
        inputs = inputs[:position] + inputs[position + 1 :]
        position = 0
    return _sorted(table, inputs)


def _sorted(table: int, inputs: tuple[int, ...]) -> Gate:
    order = sorted(range(len(inputs)), key=inputs.__getitem__)
    if order == list(range(len(inputs))):
        return table, inputs
    return _permuted(table, tuple(order)), tuple(inputs[k] for k in order)


@cache
def _permuted(table: int, order: tuple[int, ...]) -> int:
    """Return ``table`` for permuted inputs: input k was input ``order[k]``."""

    def before(number: int) -> int:
        others = number >> len(order) << len(order)
        return others | sum((number >> k & 1) << position for k, position in enumerate(order))

    return remapped(table, before)
