"""The base of both C++ writers: registers, memories, uses of an edge, and messages."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..netlist import WORD, Bits, Memory, PlainDesign, constant_of, word_count
from ..netlist.passes import narrow, ordered_statements
from .body import Body, Scope
from .code import Snippet, assignment, block
from .edge import Clocked, Group, Store, in_turn, resets
from .words import Words, words_of

_MESSAGES = "messages"
"""The variable that every message changes, so that messages keep their order."""


MessageCall = tuple[int, Sequence[Bits], str]
"""A message: where its bit is 1, values are passed to the call that begins with this text."""


def element_bits(width: int) -> int:
    """Bits of the elements of the array of a memory of ``width`` bits; wider rows take several."""
    return next((size for size in (8, 16, 32) if width <= size), WORD)


class Writer:
    """Writes the statements of ``design``, which it cuts into words.

    ``shown`` are bits that are used beside those of the design. Raises ``NotPlain``
    if a bit depends on itself.
    """

    def __init__(self, design: PlainDesign, shown: Sequence[Bits] = ()) -> None:
        self._design = design
        self._words = Words()
        self._clocked: list[Clocked] = []
        self._root = Scope()
        narrow(design, WORD)
        self._steps = ordered_statements(design, shown)

    # --- state --------------------------------------------------------------------------------

    def _declare_registers(self, variable: Callable[[Bits, int], str]) -> None:
        """Group the registers; ``variable`` declares a word of bits and what it is at power-on."""
        groups: dict[object, Group] = {}
        for number, register in enumerate(self._design.registers):
            # Those that load at every edge need not wait for one another.
            key = (number,) if register.enable is None else register.enable
            group = groups.setdefault(key, Group(self._root.inner(), {}, register.enable))
            for low in range(0, len(register.result), WORD):
                piece = register.part(slice(low, low + WORD))
                group.add(variable(piece.result, constant_of(piece.start)), piece)
        self._clocked += groups.values()

    def _declare_memory(self, memory: Memory, name: str) -> str:
        """Return the declaration of the array ``name`` of ``memory``; add the memory's writes.

        All rows are 0: Python copies others in.
        """
        self._words.arrays[id(memory)] = name
        count = word_count(memory.width)
        size = f"[{max(1, memory.depth)}]" + (f"[{count}]" if count > 1 else "")
        self._clocked += [
            Store(self._root.inner(), target=memory, write=write, array=name)
            for write in memory.writes
            if write.enable
        ]
        return f"uint{element_bits(memory.width)}_t {name}{size} = {{}};"

    # --- statements ---------------------------------------------------------------------------

    def _edge_of(
        self, calls: Sequence[MessageCall], shown: Iterable[Bits] = ()
    ) -> Iterator[Snippet]:
        """Yield the statements of an edge, with ``calls`` and `_before_edge`.

        ``shown`` are the bits that `_before_edge` reads.
        """
        root, groups = self._root, [x for x in self._clocked if isinstance(x, Group)]
        uses = [use for x in self._clocked for use in x.uses(root)]
        uses += [((x.reset,), root) for y in groups for _, x in y.registers if x.reset is not None]
        uses += [(bits, root) for bits in shown]
        scoped = self._scoped(calls, root, uses)
        # Memories are not read where one is written.
        dry = frozenset(x.scope for x in self._clocked if x.memory())
        body = self._body(uses, root, dry)
        yield from body.scope(root)
        yield from self._messages(scoped, body)
        yield from self._before_edge()
        before, after = resets(groups, self._words)
        yield from before
        yield from in_turn(self._clocked, body, self._words, root)
        yield from after

    def _before_edge(self) -> Iterable[Snippet]:
        """Return further statements that read values from before the edge."""
        return ()

    def _body(
        self,
        uses: Sequence[tuple[Bits, Scope]],
        root: Scope,
        dry: frozenset[Scope] = frozenset(),
    ) -> Body:
        return Body(self._steps, self._words, uses, root, dry)

    def _scoped(
        self, calls: Sequence[MessageCall], root: Scope, uses: list[tuple[Bits, Scope]]
    ) -> list[tuple[MessageCall, Scope]]:
        """Return each call with a scope for its values; add the bits of all to ``uses``."""
        scoped = [(call, root.inner()) for call in calls]
        for (enable, values, _), scope in scoped:
            uses.append(((enable,), root))
            uses += [(bits, scope) for bits in values]
        return scoped

    def _messages(
        self, scoped: Sequence[tuple[MessageCall, Scope]], body: Body
    ) -> Iterator[Snippet]:
        """Yield the statements that add messages."""
        for (enable, values, call), scope in scoped:
            words = [part for bits in values for part in words_of(bits)]
            texts = [self._text(part) for part in words]
            lines = (
                f"const uint64_t values[] = {{{', '.join([*texts, '0'])}}};",
                f"{call}, values, {len(words)});",
            )
            message = Snippet(lines, frozenset(self._words.names(*words)), frozenset({_MESSAGES}))
            head = f"if ({self._text((enable,))}) {{"
            yield block(self._words.names((enable,)), (head, (*body.scope(scope), message)))

    def _assigned(self, target: str, bits: Bits) -> Snippet:
        """Return the statement that assigns ``bits`` to ``target``."""
        return assignment(target, self._text(bits), self._words.names(bits))

    def _text(self, bits: Bits) -> str:
        return self._words.text(bits)
