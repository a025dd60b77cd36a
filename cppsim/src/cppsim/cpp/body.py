"""C++ statements for the combinational part of a design, each in the scope that needs it.

Most of a circuit is idle in most cycles: the next value of a register with its enable low need not
be computed, nor the branch of a multiplexer that is not selected. A cell that only one branch reads
is evaluated in that branch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..netlist import ORDERS, WORD, Bits, CellKind, Memory, MemoryRead, PlainCell, word_count
from ..netlist.passes import RowRead, Statement
from .code import Snippet, assignment, block
from .words import Words, operation, words_of

_WORTH = 2
"""Instructions that make a branch worth a misprediction now and then."""


@dataclass(eq=False, slots=True)
class Scope:
    """Statements that are executed together, within those of ``parent``."""

    parent: "Scope | None" = None
    depth: int = 0
    steps: list[int] = field(default_factory=list)
    """Numbers of the steps evaluated here, in order."""

    def inner(self) -> "Scope":
        return Scope(self, self.depth + 1)


def assign_scopes(
    steps: Sequence[Statement],
    uses: Iterable[tuple[Bits, Scope]],
    root: Scope,
    cost: Sequence[int],
    dry: frozenset[Scope] = frozenset(),
) -> dict[int, list[Scope]]:
    """Give each of ``steps``, which are in order, a scope; none to those that nothing needs.

    ``uses`` are bits that are read at the end of a scope; ``cost`` says what each step takes.
    Within the scopes ``dry`` no memory is read. Returns a scope for each value, the default first,
    of the multiplexers that are worth a branch, by the number of their step.
    """
    drivers = {bit: number for number, step in enumerate(steps) for bit in step.result}
    wanted: list[Scope | None] = [None] * len(steps)

    def want(bits: Bits, scope: Scope) -> None:
        for bit in bits:
            number = drivers.get(bit)
            if number is not None:
                before = wanted[number]
                wanted[number] = scope if before is None else _common(before, scope)

    for bits, user in uses:
        want(bits, user)
    arms: dict[int, list[Scope]] = {}
    for number in reversed(range(len(steps))):
        scope, step = wanted[number], steps[number]
        if scope is None:
            continue
        if isinstance(step, RowRead) and not dry.isdisjoint(_around(scope)):
            scope = wanted[number] = root
        if isinstance(step, PlainCell) and step.kind is CellKind.MUX:
            arms[number] = []
            for position, bits in enumerate(step.operands):
                if position % 2:
                    want(bits, scope)
                else:
                    arms[number].append(scope.inner())
                    want(bits, arms[number][-1])
        else:
            for bits in step.operands:
                want(bits, scope)
    return _settle(wanted, arms, cost)


def _around(scope: Scope | None) -> Iterator[Scope]:
    while scope is not None:
        yield scope
        scope = scope.parent


def _common(first: Scope, second: Scope) -> Scope:
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return first


def _settle(
    wanted: list[Scope | None], arms: dict[int, list[Scope]], cost: Sequence[int]
) -> dict[int, list[Scope]]:
    """Fill the scopes; dissolve the arms of multiplexers that are not worth a branch."""
    total: dict[Scope, int] = {}
    branches: dict[int, list[Scope]] = {}
    dissolved: dict[Scope, Scope] = {}
    # The steps of an arm come before its multiplexer, so the total is complete here.
    for number, scope in enumerate(wanted):
        if scope is None:
            continue
        inner = arms.get(number, [])
        most = max((total.get(arm, 0) for arm in inner), default=0)
        total[scope] = total.get(scope, 0) + cost[number]
        if most >= _WORTH:
            branches[number] = inner
            total[scope] += sum(total.get(arm, 0) for arm in inner) // len(inner)
        else:
            for arm in inner:
                dissolved[arm] = scope
                total[scope] += total.get(arm, 0)
    for number, scope in enumerate(wanted):
        home = scope
        while home in dissolved:
            home = dissolved[home]
        if home is not None:
            home.steps.append(number)
    return branches


class Body:
    """The statements that compute the bits of ``uses``.

    A use is a tuple of bits that is read at the end of a scope within ``root``. Memories are not
    read in the scopes ``dry``, nor in scopes within them.
    """

    def __init__(
        self,
        steps: Sequence[Statement],
        words: Words,
        uses: Sequence[tuple[Bits, Scope]],
        root: Scope,
        dry: frozenset[Scope] = frozenset(),
    ) -> None:
        self._steps = steps
        self._words = words
        for number, step in enumerate(steps):
            for k, word in enumerate(words_of(step.result)):
                words.define(_local(number, k), word)
        self._arms = assign_scopes(steps, uses, root, [self._cost(step) for step in steps], dry)

    def _cost(self, step: Statement) -> int:
        """About how many instructions a step takes."""
        if isinstance(step, RowRead):
            return 2 + len(words_of(step.result))
        return 1 + sum(max(0, self._words.runs(bits) - 1) * 2 for bits in step.operands)

    def reads(self, scope: Scope) -> tuple[set[int], set[int]]:
        """The bits that the statements of ``scope`` read, and the memories, by their identity."""
        bits: set[int] = set()
        memories: set[int] = set()
        for number in scope.steps:
            step = self._steps[number]
            bits.update(*step.operands)
            if isinstance(step, RowRead):
                memories.add(id(step.memory))
            for arm in self._arms.get(number, []):
                inner_bits, inner_memories = self.reads(arm)
                bits |= inner_bits
                memories |= inner_memories
        return bits, memories

    def scope(self, scope: Scope) -> Iterator[Snippet]:
        """The statements of ``scope`` and of those within it that belong to multiplexers."""
        for number in scope.steps:
            step = self._steps[number]
            arms = self._arms.get(number)
            if isinstance(step, RowRead):
                names = self._words.names(*step.operands) | {self._words.arrays[id(step.memory)]}
                for k, text in enumerate(self._row(*step)):
                    yield assignment(_local(number, k), text, names, "const uint64_t")
            elif arms is None:
                yield from self._cell(number, step)
            else:
                yield from self._branch(number, step, arms)

    def _row(self, memory: Memory, read: MemoryRead) -> list[str]:
        """Expressions for the words of the row that ``read`` reads."""
        name, at = self._words.arrays[id(memory)], self._words.text(read.address)
        count = word_count(memory.width)
        texts = [f"{name}[{at}]" + (f"[{k}]" if count > 1 else "") for k in range(count)]
        if memory.depth < 1 << len(read.address):
            texts = [f"{at} < {memory.depth} ? {text} : 0" for text in texts]
        return texts

    def _branch(self, number: int, cell: PlainCell, arms: Sequence[Scope]) -> Iterator[Snippet]:
        name = f"n{number}"
        yield Snippet((f"{_type(cell.result)} {name};",), changes=frozenset({name}))
        default, *others = cell.operands
        conditions, values = others[::2], others[1::2]
        heads = [f"if ({self._words.text(condition)}) {{" for condition in conditions]
        branches = [
            ("} else " * (k > 0) + head, self._arm(name, value, arm))
            for k, (head, value, arm) in enumerate(zip(heads, values, arms[1:], strict=True))
        ]
        branches.append(("} else {", self._arm(name, default, arms[0])))
        yield block(self._words.names(*conditions), *branches)

    def _arm(self, name: str, value: Bits, arm: Scope) -> Iterator[Snippet]:
        yield from self.scope(arm)
        yield assignment(name, self._words.text(value), self._words.names(value))

    def _cell(self, number: int, cell: PlainCell) -> Iterator[Snippet]:
        """A cell; of one that is wider than a word, `wide` in words.h does the work."""
        words, name = self._words, f"n{number}"
        if max(len(cell.result), *(len(bits) for bits in cell.operands)) <= WORD:
            kind = f"const {_type(cell.result)}"
            yield assignment(name, operation(cell, words), words.names(*cell.operands), kind)
            return
        operands = [f"a{number}_{k}" for k in range(len(cell.operands))]
        for operand, bits in zip(operands, cell.operands, strict=True):
            text = f"{{{', '.join(map(words.text, words_of(bits)))}}}"
            yield assignment(f"{operand}[]", text, words.names(bits), "const uint64_t")
        width = len(cell.operands[0])
        function, arguments = f"wide::{cell.kind.name.lower()}<{width}>", ", ".join(operands)
        if len(cell.operands) > 1 and len(cell.operands[1]) != width:
            # An amount has a width of its own.
            function = f"wide::{cell.kind.name.lower()}<{width}, {len(cell.operands[1])}>"
        if cell.kind in ORDERS:
            yield assignment(name, f"{function}({arguments})", operands, "const uint64_t")
            return
        array, count = f"w{number}", len(words_of(cell.result))
        yield Snippet((f"uint64_t {array}[{count}];",), changes=frozenset({array}))
        call = (f"{function}({array}, {arguments});",)
        yield Snippet(call, frozenset(operands), frozenset({array}))
        for k in range(count):
            yield assignment(_local(number, k), f"{array}[{k}]", {array}, "const uint64_t")


def _type(bits: Bits) -> str:
    """Return the C++ type of a variable: a byte for one bit, as a comparison results in."""
    return "uint8_t" if len(bits) == 1 else "uint64_t"


def _local(number: int, word: int) -> str:
    return f"n{number}_{word}" if word else f"n{number}"
