"""Write a design as a C++ structure that clocks itself: its state, ``cycle`` and ``settle``.

``cycle`` is one rising edge and all that leads up to it, each thing evaluated once at most. What
serves storage ports, and what hears of notices, is the including file's.
"""

from collections.abc import Iterator, Sequence

from cppsim.cpp.body import Body
from cppsim.cpp.edge import Clocked, Group, Store, in_turn, resets
from cppsim.cpp.order import in_reach
from cppsim.cpp.scopes import Scope
from cppsim.cpp.words import WORD, Words, literal, words_of
from cppsim.netlist.design import Bits, Memory, Notice, NotPlain, PlainDesign
from cppsim.netlist.narrow import narrow
from cppsim.netlist.tidy import in_order

from ..netlist.storage import StorageAccess, StoragePort

__all__ = ["program"]


def program(
    design: PlainDesign, storage: Sequence[StoragePort], shown: Sequence[Bits] = ()
) -> tuple[str, dict[str, str]]:
    """C++ text of ``struct Top``, for behind words.h and storage.h, and its variables by port.

    ``settle`` puts ``shown`` into words, each from a new one on. Cuts ``design`` into words. Raises
    ``NotPlain`` if a bit depends on itself.
    """
    written = _Program(design, storage, shown)
    return written.text(), written.names


class _Program:
    def __init__(
        self, design: PlainDesign, storage: Sequence[StoragePort], shown: Sequence[Bits]
    ) -> None:
        self._design = design
        self._storage = storage
        self._shown = [word for bits in shown for word in words_of(bits)]
        self._words = Words()
        self._state: list[str] = []
        self.names: dict[str, str] = {}
        self._bits: dict[str, Bits] = {port.name: port.bits for port in design.ports}
        self._memories: dict[int, str] = {}
        self._clocked: list[Clocked] = []
        self._root = Scope()
        narrow(design, WORD)
        try:
            self._steps = in_order(design)
        except NotPlain:
            # Bits of one word may depend on others of it, as in a chain, and be no loop for that.
            narrow(design, 1)
            self._steps = in_order(design)
        self._declare()

    def text(self) -> str:
        return "\n".join(
            [
                "struct Top {",
                *(f"  {line}" for line in self._state),
                "",
                "  // A rising edge. Returns the number of a storage port at fault, from 1, or 0.",
                "  template <class Heard>",
                "  size_t cycle(const driver::Buffer *buffers, Heard &heard) {",
                "    size_t fault = 0;",
                "    (void)buffers; (void)heard;",
                *(f"    {line}" for line in self._cycle()),
                "    return fault;",
                "  }",
                "",
                "  // Lets the outputs show what follows from state and inputs.",
                "  void settle() {",
                *(f"    {line}" for line in self._settle()),
                "  }",
                "};",
                "",
            ]
        )

    # --- state --------------------------------------------------------------------------------

    def _declare(self) -> None:
        self._state.append(f"uint64_t shown[{len(self._shown) + 1}] = {{}};")
        for number, port in enumerate(self._design.ports):
            name = self.names[port.name] = f"port{number}"
            words = words_of(port.bits)
            self._state.append(f"uint64_t {name}[{len(words)}] = {{}}; // {port.name}")
            if not port.output:
                for k, word in enumerate(words):
                    self._words.define(f"{name}[{k}]", word)
        groups: dict[object, Group] = {}
        for number, register in enumerate(self._design.registers):
            # Those that load at every edge need not wait for one another.
            key = (number,) if register.enable is None else register.enable
            group = groups.setdefault(key, Group(self._root.inner(), {}, register.enable))
            for low in range(0, len(register.result), WORD):
                piece = register.part(slice(low, low + WORD))
                group.add(self._variable(piece.result, piece.start), piece)
        self._clocked += groups.values()
        for memory in self._design.memories:
            self._declare_memory(memory)

    def _variable(self, bits: Bits, start: Bits) -> str:
        name = f"r{len(self._state)}"
        value = sum(bit << place for place, bit in enumerate(start))
        self._state.append(f"uint64_t {name} = {literal(value)};")
        self._words.define(name, bits)
        return name

    def _declare_memory(self, memory: Memory) -> None:
        name = self._memories[id(memory)] = f"m{len(self._state)}"
        count = -(-memory.width // WORD)
        size = f"[{len(memory.rows)}]" + (f"[{count}]" if count > 1 else "")
        rows = (
            [literal(row >> WORD * k & (1 << WORD) - 1) for k in range(count)]
            for row in memory.rows
        )
        texts = (words[0] if count == 1 else f"{{{', '.join(words)}}}" for words in rows)
        content = ", ".join(texts) if any(memory.rows) else ""
        self._state.append(f"{_element(memory.width)} {name}{size} = {{{content}}};")
        self._clocked += [
            Store(self._root.inner(), target=memory, write=write, array=name)
            for write in memory.writes
        ]

    # --- one edge -----------------------------------------------------------------------------

    def _cycle(self) -> list[str]:
        shown = [port for port in self._design.ports if port.output and len(port.bits) == 1]
        groups = [x for x in self._clocked if isinstance(x, Group)]
        uses = [use for x in self._clocked for use in x.uses(self._root)]
        uses += [
            ((x.reset,), self._root)
            for group in groups
            for _, x in group.registers
            if x.reset is not None
        ]
        uses += [(self._bits[x], self._root) for port in self._storage for x in _asked(port)]
        uses += [(port.bits, self._root) for port in shown]
        notices = [(x, self._root.inner()) for x in self._design.notices]
        for notice, scope in notices:
            uses.append(((notice.enable,), self._root))
            uses += [(bits, scope) for bits in notice.values]
        dry = frozenset(x.scope for x in self._clocked if x.memory())
        body = Body(self._steps, self._words, self._memories, uses, self._root, dry)
        lines = list(body.scope(self._root))
        for number, (notice, scope) in enumerate(notices):
            lines += self._tell(number, notice, body.scope(scope))
        lines += [f"{self.names[x.name]}[0] = {self._text(x.bits)};" for x in shown]
        calls = []
        for index, access in enumerate(self._storage):
            asked = [f"asked{index}_{k}" for k in range(len(_asked(access)))]
            for name, whole in zip(asked, _asked(access), strict=True):
                words = ", ".join(map(self._text, words_of(self._bits[whole])))
                lines.append(f"const uint64_t {name}[] = {{{words}}};")
            calls.append(self._call(index, access, asked))
        before, after = resets(groups, self._words)
        lines += before
        lines += in_turn(self._clocked, body, self._words, self._root)
        lines += after
        # A word that is written at the same edge reads as before.
        kinds = zip(calls, self._storage, strict=True)
        lines += [x for x, _ in sorted(kinds, key=lambda x: x[1].access is StorageAccess.WRITE)]
        return in_reach(lines)

    def _tell(self, number: int, notice: Notice, before: Iterator[str]) -> Iterator[str]:
        words = [self._text(part) for bits in notice.values for part in words_of(bits)]
        yield f"if ({self._text((notice.enable,))}) {{"
        yield from (f"  {line}" for line in before)
        yield f"  const uint64_t values[] = {{{', '.join([*words, '0'])}}};"
        yield f"  heard.add({number}, {str(notice.failed).lower()}, values, {len(words)});"
        yield "}"

    def _text(self, bits: Bits) -> str:
        return self._words.text(bits)

    def _call(self, index: int, port: StoragePort, asked: Sequence[str]) -> str:
        buffers = list(dict.fromkeys(x.buffer for x in self._storage))
        arguments = [f"buffers[{buffers.index(port.buffer)}]", *asked]
        if port.access is StorageAccess.READ:
            arguments.append(self.names[port.data])
        size = len(self._bits[port.data]) // 8
        call = f"storage::{port.access.value}<{size}>({', '.join(arguments)})"
        return f"if (!{call} && !fault) fault = {index + 1};"

    # --- between edges ------------------------------------------------------------------------

    def _settle(self) -> Iterator[str]:
        root = Scope()
        outputs = [port for port in self._design.ports if port.output]
        uses = [(bits, root) for bits in (*(port.bits for port in outputs), *self._shown)]
        yield from Body(self._steps, self._words, self._memories, uses, root).scope(root)
        for port in outputs:
            for k, word in enumerate(words_of(port.bits)):
                yield f"{self.names[port.name]}[{k}] = {self._text(word)};"
        for k, word in enumerate(self._shown):
            yield f"shown[{k}] = {self._text(word)};"


def _asked(port: StoragePort) -> tuple[str, ...]:
    """The ports by which the circuit asks for an access: its outputs."""
    read = (port.enable, port.address)
    return read if port.access is StorageAccess.READ else (*read, port.data, port.mask)


def _element(width: int) -> str:
    return next((f"uint{size}_t" for size in (8, 16, 32) if width <= size), "uint64_t")
