"""Write the C++ around a model that tells the driver about it: its ports, its edges, its checks."""

from collections.abc import Mapping, Sequence

from ..evaluator import StorageAccess, StoragePort

__all__ = ["cxxrtl_glue", "mangle", "program_glue"]

_PROGRAM = """\
#include "words.h"
#include "storage.h"
#include "driver.h"

namespace {{

{program}
struct Circuit {{
  using Top = ::Top;
  using Chunk = uint64_t;
  static constexpr size_t buffers = {buffers};

  struct Checks {{
    std::string failure;
    void fail(size_t number) {{
      static const char *const messages[] = {{{messages}}};
      if (failure.empty()) failure = messages[number];
    }}
  }};

  static Chunk *port(Top &top, size_t index) {{
    Chunk *const table[] = {{{ports}}};
    return table[index];
  }}

  static size_t width(size_t index) {{
    static constexpr size_t table[] = {{{widths}}};
    return table[index];
  }}

  static bool kept(size_t index) {{
    static constexpr bool table[] = {{{kept}}};
    return table[index];
  }}

  static void settle(Top &top) {{ top.settle(); }}

  static size_t edge(Top &top, const driver::Buffer *buffers, Checks &checks) {{
    return top.cycle(buffers, checks);
  }}
}};

}} // namespace

DRIVER_INTERFACE(Circuit)
"""

_CXXRTL = """\
#include "model.cc"
#include "storage.h"
#include "cxxrtl.h"
#include "driver.h"

namespace {{

struct Circuit : cxxrtl_driver::Circuit {{
  using Top = cxxrtl_design::p_top;
  static constexpr size_t buffers = {buffers};

  static Chunk *port(Top &top, size_t index) {{
    switch (index) {{
{ports}
    default: return nullptr;
    }}
  }}

  static size_t width(size_t index) {{
    static constexpr size_t table[] = {{{widths}}};
    return table[index];
  }}

  // A commit carries registers on to what they are after the edge.
  static bool kept(size_t) {{ return false; }}

  static void clock(Top &top, bool before, bool now) {{
    (void)top; (void)before; (void)now;
{clock}
  }}

  static void settle(Top &top) {{ settled<Circuit>(top); }}

  static size_t edge(Top &top, const driver::Buffer *buffers, Checks &checks) {{
    (void)buffers;
    evaluated<Circuit>(top, checks);
    size_t fault = 0;
{serve}
    top.commit();
    return fault;
  }}

#ifdef DRIVER_WAVEFORM
  using Waveform = cxxrtl_driver::Waveform<Circuit>;
#endif
}};

}} // namespace

DRIVER_INTERFACE(Circuit)
DRIVER_WAVEFORM_INTERFACE
"""


def mangle(name: str) -> str:
    """CXXRTL's C++ name of the public wire ``name``."""
    parts = []
    for character in name:
        if character.isascii() and character.isalnum():
            parts.append(character)
        else:
            parts.append("__" if character == "_" else f"_{ord(character):x}_")
    return "p_" + "".join(parts)


def program_glue(
    program: str,
    variables: Mapping[str, str],
    widths: Mapping[str, int],
    outputs: Mapping[str, object],
    storage: Sequence[StoragePort],
    messages: Sequence[str],
) -> str:
    """The C++ source of a library for ``program``, which has its ports in ``variables``.

    Ports are numbered in the order of ``widths``, buffers in the order in which ``storage`` first
    names them, checks in the order of their ``messages``.
    """
    return _PROGRAM.format(
        program=program,
        buffers=len({port.buffer for port in storage}),
        messages=", ".join([*map(_quoted, messages), "nullptr"]),
        ports=", ".join(f"top.{variables[name]}" for name in widths),
        widths=", ".join(map(str, widths.values())),
        kept=", ".join(
            str(name in outputs and width == 1).lower() for name, width in widths.items()
        ),
    )


def _quoted(text: str) -> str:
    """A string literal of C++."""
    plain = set(range(0x20, 0x7F)) - set(b'"\\?')
    return '"' + "".join(chr(x) if x in plain else f"\\{x:03o}" for x in text.encode()) + '"'


def cxxrtl_glue(
    widths: Mapping[str, int],
    clock: str,
    storage: Sequence[StoragePort],
    *,
    clocked: bool = True,
) -> str:
    """The C++ source of a library for CXXRTL's model in ``model.cc``.

    Numbers are as in `program_glue`. Without ``clocked`` the model has no rising edges to see.
    """
    buffers = list(dict.fromkeys(port.buffer for port in storage))
    level = mangle(clock)
    edges = [f"    top.{level}.data[0] = now;"]
    if clocked:
        edges.append(f"    top.prev_{level}.data[0] = before;")
    # All reads come first: a word that is written at the same edge reads as before.
    order = sorted(
        range(len(storage)), key=lambda index: storage[index].access is StorageAccess.WRITE
    )
    return _CXXRTL.format(
        buffers=len(buffers),
        ports="\n".join(
            f"    case {index}: return chunks(top.{mangle(name)});"
            for index, name in enumerate(widths)
        ),
        widths=", ".join(map(str, widths.values())),
        clock="\n".join(edges),
        serve="\n".join(_serve(index, storage[index], buffers, widths) for index in order),
    )


def _serve(index: int, port: StoragePort, buffers: Sequence[str], widths: Mapping[str, int]) -> str:
    size = widths[port.data] // 8
    values = [f"chunks(top.{mangle(name)})" for name in port.ports]
    arguments = ", ".join([f"buffers[{buffers.index(port.buffer)}]", *values])
    call = f"storage::{port.access.value}<{size}, {widths[port.address]}>({arguments})"
    return f"    if (!{call} && !fault) fault = {index + 1};"
