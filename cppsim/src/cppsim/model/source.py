"""Write a design as a C++ structure that clocks itself, and the library around it.

``cycle`` is one rising edge and the logic before it, each cell evaluated at most once; ``settle``
computes the outputs. The library serves the storage ports and receives the messages.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from ..compiling import HEADERS as WORDS
from ..cpp import Snippet, assignment, in_reach, lines_of, literal, words_of
from ..cpp.body import Scope
from ..cpp.writer import MessageCall, Writer
from ..netlist import CLOCK, Bits, PlainDesign, word_count
from .storage import StorageAccess, StoragePort, buffer_names, in_order

HEADERS = (WORDS, Path(str(files("cppsim") / "model")))
"""Folders of the headers that a library includes."""


def program(
    design: PlainDesign, storage: Sequence[StoragePort], shown: Sequence[Bits] = ()
) -> tuple[str, dict[str, str]]:
    """Write ``struct Top``, which needs words.h and storage.h; return it and its ports' variables.

    ``settle`` stores ``shown`` in words, each from a new word on. Cuts ``design`` into words.
    Raises ``NotPlain`` if a bit depends on itself.
    """
    written = _Program(design, storage, shown)
    return written.text(), written.names


class _Program(Writer):
    def __init__(
        self, design: PlainDesign, storage: Sequence[StoragePort], shown: Sequence[Bits]
    ) -> None:
        super().__init__(design, shown)
        self._storage = storage
        self._shown = [word for bits in shown for word in words_of(bits)]
        self._state: list[str] = []
        self.names: dict[str, str] = {}
        self._sampled = [x for x in design.ports if x.output and len(x.bits) == 1]
        """Ports that show after an edge what they were before it."""
        self._bits: dict[str, Bits] = {port.name: port.bits for port in design.ports}
        self._declare()

    def text(self) -> str:
        pointers = ", ".join([*self._words.arrays.values(), "nullptr"])
        return "\n".join(
            [
                "struct Top {",
                *(f"  {line}" for line in self._state),
                "",
                "  // A rising edge. Returns the number of a storage port at fault, from 1, or 0.",
                "  template <class ModelMessages>",
                "  size_t cycle(const driver::Buffer *buffers, ModelMessages &messages) {",
                "    size_t fault = 0;",
                "    (void)buffers; (void)messages;",
                *(f"    {line}" for line in lines_of(self._cycle())),
                "    return fault;",
                "  }",
                "",
                "  void *memory(size_t number) {",
                f"    void *const table[] = {{{pointers}}};",
                "    return table[number];",
                "  }",
                "",
                "  // Lets the outputs show what follows from state and inputs.",
                "  void settle() {",
                *(f"    {line}" for line in lines_of(self._settle())),
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
        self._declare_registers(self._variable)
        for memory in self._design.memories:
            self._state.append(self._declare_memory(memory, f"m{len(self._state)}"))

    def _variable(self, bits: Bits, start: int) -> str:
        name = f"r{len(self._state)}"
        self._state.append(f"uint64_t {name} = {literal(start)};")
        self._words.define(name, bits)
        return name

    # --- one edge -----------------------------------------------------------------------------

    def _cycle(self) -> list[Snippet]:
        messages: list[MessageCall] = [
            (x.enable, x.values, f"messages.add({number}, {str(x.failed).lower()}")
            for number, x in enumerate(self._design.messages)
        ]
        shown = [port.bits for port in self._sampled]
        shown += [self._bits[name] for port in self._storage for name in port.requests]
        codes = list(self._edge_of(messages, shown))
        calls = (self._call(index, port) for index, port in in_order(self._storage))
        return in_reach([*codes, *calls])

    def _before_edge(self) -> Iterator[Snippet]:
        for port in self._sampled:
            yield self._assigned(f"{self.names[port.name]}[0]", port.bits)
        for index, access in enumerate(self._storage):
            for k, name in enumerate(access.requests):
                bits = self._bits[name]
                text = f"{{{', '.join(map(self._text, words_of(bits)))}}}"
                reads = self._words.names(bits)
                yield assignment(f"asked{index}_{k}[]", text, reads, "const uint64_t")

    def _call(self, index: int, port: StoragePort) -> Snippet:
        asked = [f"asked{index}_{k}" for k in range(len(port.requests))]
        buffer = buffer_names(self._storage).index(port.buffer)
        arguments = [f"buffers[{buffer}]", *asked]
        changes = {"fault"}
        if port.access is StorageAccess.READ:
            arguments.append(self.names[port.data])
            changes |= self._words.names(self._bits[port.data])
        size = len(self._bits[port.data]) // 8
        call = f"storage::{port.access.value}<{size}>({', '.join(arguments)})"
        line = f"if (!{call} && !fault) fault = {index + 1};"
        return Snippet((line,), frozenset({"fault", *asked}), frozenset(changes))

    # --- between edges ------------------------------------------------------------------------

    def _settle(self) -> Iterator[Snippet]:
        root = Scope()
        outputs = [port for port in self._design.ports if port.output]
        uses = [(bits, root) for bits in (*(port.bits for port in outputs), *self._shown)]
        yield from self._body(uses, root).scope(root)
        for port in outputs:
            for k, word in enumerate(words_of(port.bits)):
                yield self._assigned(f"{self.names[port.name]}[{k}]", word)
        for k, word in enumerate(self._shown):
            yield self._assigned(f"shown[{k}]", word)


_TABLES = """\
  static uint64_t *word(Top &top, size_t index) {{
    uint64_t *const table[] = {{{words}}};
    return table[index];
  }}

  static bool kept(size_t index) {{
    static constexpr bool table[] = {{{kept}}};
    return table[index];
  }}
"""

_SOURCE = """\
#include "words.h"
#include "messages.h"
#include "storage.h"
#include "ported.h"

namespace {{

{program}
struct Circuit {{
  using Top = ::Top;
  static constexpr size_t buffers = {buffers};

{tables}
  static void settle(Top &top) {{ top.settle(); }}

  static size_t edge(Top &top, const driver::Buffer *buffers, driver::ModelMessages &messages) {{
    return top.cycle(buffers, messages);
  }}

  static void *memory(Top &top, size_t number) {{ return top.memory(number); }}

  static void clock(Top &top, bool level) {{ top.{clock}[0] = level; }}

  static uint64_t *shown(Top &top) {{ return top.shown; }}
}};

}} // namespace

DRIVER_INTERFACE(Circuit)
"""


def program_glue(
    program: str,
    variables: Mapping[str, str],
    widths: Mapping[str, int],
    outputs: Collection[str],
    storage: Sequence[StoragePort],
) -> str:
    """The C++ source of a library for ``program``, which has its ports in ``variables``.

    Ports are numbered in the order of ``widths``, buffers in the order in which ``storage`` first
    names them.
    """
    return _SOURCE.format(
        program=program,
        buffers=len(buffer_names(storage)),
        tables=port_tables(variables, widths, outputs),
        clock=variables[CLOCK],
    )


def sampled_ports(widths: Mapping[str, int], outputs: Collection[str]) -> list[str]:
    """Ports that show after an edge what they were before it: ``outputs`` of one bit."""
    return [name for name, width in widths.items() if name in outputs and width == 1]


def port_tables(
    variables: Mapping[str, str], widths: Mapping[str, int], outputs: Collection[str]
) -> str:
    """Return the tables of ports that ported.h reads, in the order of ``widths``.

    ``variables`` names the arrays of words in which they are.
    """
    sampled = set(sampled_ports(widths, outputs))
    words = [(name, k) for name, width in widths.items() for k in range(word_count(width))]
    return _TABLES.format(
        words=", ".join(f"top.{variables[name]} + {k}" for name, k in words),
        kept=", ".join(str(name in sampled).lower() for name, _ in words),
    )
