"""C++ statements for the combinational part of a design, each in the scope that needs it."""

from collections.abc import Iterator, Mapping, Sequence

from ..netlist.design import Bits, CellKind, Memory, MemoryRead, PlainCell
from ..netlist.numbers import WORD
from ..netlist.passes import Statement
from .code import Snippet, assignment, block
from .scopes import Scope, place
from .words import Words, operation, words_of

_ORDERS = (
    CellKind.LESS,
    CellKind.LESS_EQUAL,
    CellKind.LESS_SIGNED,
    CellKind.LESS_EQUAL_SIGNED,
)


class Body:
    """The statements that compute the bits of ``uses``.

    A use is a tuple of bits that is read at the end of a scope within ``root``. ``memories`` names
    the arrays. Memories are not read in the scopes ``dry``, nor in scopes within them.
    """

    def __init__(
        self,
        steps: Sequence[Statement],
        words: Words,
        memories: Mapping[int, str],
        uses: Sequence[tuple[Bits, Scope]],
        root: Scope,
        dry: frozenset[Scope] = frozenset(),
    ) -> None:
        self._steps = steps
        self._words = words
        self._memories = memories
        for number, step in enumerate(steps):
            result = step.result if isinstance(step, PlainCell) else step[1].result
            for k, word in enumerate(words_of(result)):
                words.define(_local(number, k), word)
        self._arms = place(steps, uses, root, [self._cost(step) for step in steps], dry)

    def _cost(self, step: Statement) -> int:
        """About how many instructions a step takes."""
        if not isinstance(step, PlainCell):
            return 2 + len(words_of(step[1].result))
        return 1 + sum(max(0, self._words.runs(bits) - 1) * 2 for bits in step.operands)

    def reads(self, scope: Scope) -> tuple[set[int], set[int]]:
        """The bits that the statements of ``scope`` read, and the memories, by their identity."""
        bits: set[int] = set()
        memories: set[int] = set()
        for number in scope.steps:
            step = self._steps[number]
            if isinstance(step, PlainCell):
                bits.update(*step.operands)
            else:
                bits.update(step[1].address)
                memories.add(id(step[0]))
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
            if not isinstance(step, PlainCell):
                memory, read = step
                names = self._words.names(read.address) | {self._memories[id(memory)]}
                for k, text in enumerate(self._row(memory, read)):
                    yield assignment(_local(number, k), text, names, "const uint64_t")
            elif arms is None:
                yield from self._cell(number, step)
            else:
                yield from self._branch(number, step, arms)

    def _row(self, memory: Memory, read: MemoryRead) -> list[str]:
        """Expressions for the words of the row that ``read`` reads."""
        name, at = self._memories[id(memory)], self._words.text(read.address)
        count = -(-memory.width // WORD)
        texts = [f"{name}[{at}]" + (f"[{k}]" if count > 1 else "") for k in range(count)]
        if len(memory.rows) < 1 << len(read.address):
            texts = [f"{at} < {len(memory.rows)} ? {text} : 0" for text in texts]
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
        if cell.kind in _ORDERS:
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
