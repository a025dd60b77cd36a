"""Write the C++ that tells the driver about one circuit: its ports, its clock, its storage."""

from collections.abc import Mapping, Sequence

from ..evaluator import Access, StoragePort
from .tune import State

__all__ = ["glue", "mangle"]

_TEMPLATE = """\
#include "model.cc"
#include "driver.h"

namespace {{

struct Circuit {{
  using Top = cxxrtl_design::p_top;
  static constexpr bool single_pass = {single_pass};
  static constexpr size_t buffers = {buffers};

  static driver::Chunk *port(Top &top, size_t index) {{
    switch (index) {{
{ports}
    default: return nullptr;
    }}
  }}

  static size_t width(size_t index) {{
    static constexpr size_t table[] = {{{widths}}};
    return table[index];
  }}

  static void clock(Top &top, bool before, bool now) {{
    (void)top; (void)before; (void)now;
{clock}
  }}

  static void commit(Top &top) {{
    (void)top;
{commit}
  }}

  static void rollback(Top &top) {{
    (void)top;
{rollback}
  }}

  static size_t serve(Top &top, const driver::Buffer *buffers) {{
    size_t fault = 0;
    (void)top; (void)buffers;
{serve}
    return fault;
  }}
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


def glue(
    widths: Mapping[str, int],
    clock: str,
    storage: Sequence[StoragePort],
    *,
    state: State | None = None,
    clocked: bool = True,
) -> str:
    """The C++ source of a library for the model in ``model.cc``.

    Ports are numbered in the order of ``widths``, buffers in the order in which ``storage`` first
    names them. ``state`` is that of a tuned model, which settles in one pass. Without ``clocked``
    the model has no rising edges to see.
    """
    buffers = list(dict.fromkeys(port.buffer for port in storage))
    ports = [
        f"    case {index}: return driver::chunks(top.{mangle(name)});"
        for index, name in enumerate(widths)
    ]
    level = mangle(clock)
    edges = [f"    top.{level}.data[0] = now;"]
    if clocked:
        edges.append(f"    top.prev_{level}.data[0] = before;")
    if state is None:
        commit, rollback = ["    top.commit();"], []
    else:
        commit = [f"    top.{name}.curr = top.{name}.next;" for name in state.registers]
        commit += ["    cxxrtl::observer observer;"]
        commit += [f"    top.{name}.commit(observer);" for name in state.memories]
        rollback = [f"    top.{name}.next = top.{name}.curr;" for name in state.registers]
        rollback += [f"    top.{name}.write_queue.clear();" for name in state.memories]
    # All reads come first: a word that is written at the same edge reads as before.
    order = sorted(range(len(storage)), key=lambda index: storage[index].access is Access.WRITE)
    return _TEMPLATE.format(
        single_pass=str(state is not None).lower(),
        buffers=len(buffers),
        ports="\n".join(ports),
        widths=", ".join(map(str, widths.values())),
        commit="\n".join(commit),
        rollback="\n".join(rollback),
        clock="\n".join(edges),
        serve="\n".join(_serve(index, storage[index], buffers, widths) for index in order),
    )


def _serve(index: int, port: StoragePort, buffers: Sequence[str], widths: Mapping[str, int]) -> str:
    size = widths[port.data] // 8
    pointers = [f"driver::chunks(top.{mangle(name)})" for name in port.ports[1:]]
    arguments = ", ".join(
        [
            f"buffers[{buffers.index(port.buffer)}]",
            f"driver::chunks(top.{mangle(port.enable)})[0]",
            *pointers,
        ]
    )
    if port.access is Access.READ:
        call = f"driver::read<{size}, {widths[port.address]}>"
    else:
        call = f"driver::write<{size}, {widths[port.address]}>"
    return f"    if (!{call}({arguments}) && !fault) fault = {index + 1};"
