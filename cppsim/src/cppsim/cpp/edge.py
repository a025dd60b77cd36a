"""A rising edge in C++: registers load, memories are written.

All of this happens at once in the circuit, and in sequence here. A statement that reads a variable
comes before the statement that changes it; where that is impossible, the old value is saved under
another name.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..netlist import WORD, Bits, Memory, MemoryWrite, StateRegister, constant_of
from .body import Body, Scope
from .code import Snippet, assignment, block, in_reach
from .words import Words, literal

Uses = Iterator[tuple[Bits, Scope]]


@dataclass(eq=False)
class Clocked(ABC):
    """State that changes at an edge, with a scope for the logic that only it needs."""

    scope: Scope = field(default_factory=Scope)
    variables: dict[str, Bits] = field(default_factory=dict)
    """The variables that it changes, with their bits."""

    @abstractmethod
    def uses(self, root: Scope) -> Uses:
        """Yield the bits that it reads, and the scope that reads them."""

    @abstractmethod
    def codes(self, body: Body, words: Words) -> Iterator[Snippet]:
        """Yield its statements."""

    def memory(self) -> int:
        """Return the identity of the memory that it changes, or 0."""
        return 0


@dataclass(eq=False)
class Group(Clocked):
    """Registers that load together."""

    enable: int | None = None
    registers: list[tuple[str, StateRegister]] = field(default_factory=list)

    def add(self, name: str, register: StateRegister) -> None:
        self.registers.append((name, register))
        self.variables[name] = register.result

    def uses(self, root: Scope) -> Uses:
        if self.enable is not None:
            yield (self.enable,), root
        for _, register in self.registers:
            yield register.following, root if self.enable is None else self.scope

    def codes(self, body: Body, words: Words) -> Iterator[Snippet]:
        loads, stores = [], []
        later: set[int] = set()
        for name, register in reversed(self.registers):
            value, reads = words.text(register.following), words.names(register.following)
            if later.isdisjoint(register.result):
                loads.append(assignment(name, value, reads))
            else:
                # Another one still loads what this one was.
                following = _beside("next", name)
                loads.append(assignment(following, value, reads, "const uint64_t"))
                stores.append(assignment(name, following, {following}))
            later.update(register.following)
        loads.reverse()
        if self.enable is None:
            yield from (*loads, *stores)
            return
        inner = in_reach((*body.scope(self.scope), *loads, *stores))
        head = f"if ({words.text((self.enable,))}) {{"
        yield block(words.names((self.enable,)), (head, inner))


@dataclass(eq=False, kw_only=True)
class Store(Clocked):
    """A write of the memory in the array ``array``."""

    target: Memory
    write: MemoryWrite
    array: str

    def uses(self, root: Scope) -> Uses:
        yield self.write.enable, root
        yield self.write.address, self.scope
        yield self.write.data, self.scope

    def codes(self, body: Body, words: Words) -> Iterator[Snippet]:
        enables = tuple(dict.fromkeys(self.write.enable))
        head = f"if ({' | '.join(words.text((bit,)) for bit in enables)}) {{"
        yield block(words.names(enables), (head, self._stores(body, words)))

    def _stores(self, body: Body, words: Words) -> Iterator[Snippet]:
        write, rows, width = self.write, self.target.depth, self.target.width
        yield from body.scope(self.scope)
        address = f"const uint64_t at = {words.text(write.address)};"
        yield Snippet((address,), frozenset(words.names(write.address)))
        guard = f"if (at < {rows}) " if rows < 1 << len(write.address) else ""
        for k, low in enumerate(range(0, width, WORD)):
            part = slice(low, low + WORD)
            row = f"{self.array}[at]" + (f"[{k}]" if width > WORD else "")
            data, reads = words.text(write.data[part]), words.names(write.data[part])
            if len(set(write.enable)) > 1:
                mask = words.text(write.enable[part])
                data = _merge(row, data, mask)
                reads |= words.names(write.enable[part]) | {self.array}
            line = f"{guard}{row} = {data};"
            yield Snippet((line,), frozenset(reads), frozenset({self.array}))

    def memory(self) -> int:
        return id(self.target)


def in_turn(clocked: Sequence[Clocked], body: Body, words: Words, root: Scope) -> Iterator[Snippet]:
    """Yield the statements of all of ``clocked``; none sees the effect of another one.

    Those that change a memory read no other in their scopes, so that an order always exists.
    """
    owners = {bit: x for x in clocked for bits in x.variables.values() for bit in bits}
    reads: dict[Clocked, set[int]] = {}
    before: dict[Clocked, set[Clocked]] = {x: set() for x in clocked}
    """The readers of its variables, which come before it if possible."""
    must: dict[Clocked, set[Clocked]] = {x: set() for x in clocked}
    """The readers of its memory, which must come before it."""
    touched: dict[Clocked, set[int]] = {}
    for x in clocked:
        read, touched[x] = body.reads(x.scope)
        for bits, _ in x.uses(root):
            read.update(bits)
        reads[x] = read & owners.keys()
        for bit in reads[x]:
            if owners[bit] is not x:
                before[owners[bit]].add(x)
    for x in clocked:
        memory = x.memory()
        if memory:
            must[x] = {y for y in clocked if memory in touched[y] and y is not x}
            # Of several writes of one memory the last one wins.
            must[x] |= {y for y in clocked[: clocked.index(x)] if y.memory() == memory}

    order: list[Clocked] = []
    kept: dict[str, str] = {}
    left = dict.fromkeys(clocked)
    while left:
        free = [x for x in left if not must[x] & left.keys()]
        x = min(free, key=lambda x: len(before[x] & left.keys()))
        del left[x]
        order.append(x)
        late = {bit for y in before[x] & left.keys() for bit in reads[y]}
        for name, bits in x.variables.items():
            if not late.isdisjoint(bits):
                kept[name] = _beside("old", name)
    for name, old in kept.items():
        yield assignment(old, name, {name}, "const uint64_t")
    gone: dict[str, str] = {}
    for x in order:
        with words.renamed(gone):
            yield from list(x.codes(body, words))
        gone |= {name: kept[name] for name in x.variables if name in kept}


def resets(groups: Iterable[Group], words: Words) -> tuple[list[Snippet], list[Snippet]]:
    """Return statements that save the resets, and those that reset registers at the edge's end."""
    resetting: dict[int, list[tuple[str, StateRegister]]] = {}
    for group in groups:
        for name, register in group.registers:
            if register.reset is not None:
                resetting.setdefault(register.reset, []).append((name, register))
    before, after = [], []
    for number, (bit, registers) in enumerate(resetting.items()):
        saved, text = f"reset{number}", words.text((bit,))
        before.append(assignment(saved, text, words.names((bit,)), "const uint64_t"))
        loads = [assignment(name, literal(constant_of(x.reset_value)), ()) for name, x in registers]
        after.append(block({saved}, (f"if ({saved}) {{", loads)))
    return before, after


def _beside(what: str, variable: str) -> str:
    """Return a name derived from ``variable``, which may be an element of an array."""
    return f"{what}_{variable.replace('[', '').replace(']', '')}"


def _merge(target: str, data: str, mask: str) -> str:
    """Return ``target`` with the bits of ``mask`` replaced by those of ``data``."""
    return f"({target} & ~{mask}) | ({data} & {mask})"
