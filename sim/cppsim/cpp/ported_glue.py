"""Write the C++ around a model that tells the driver about it: its ports and its edges."""

from collections.abc import Collection, Mapping, Sequence

from ..netlist.design import CLOCK
from ..netlist.storage import StoragePort

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
#include "told.h"
#include "storage.h"
#include "ported.h"

namespace {{

{program}
struct Circuit {{
  using Top = ::Top;
  static constexpr size_t buffers = {buffers};

{tables}
  static void settle(Top &top) {{ top.settle(); }}

  static size_t edge(Top &top, const driver::Buffer *buffers, driver::Heard &heard) {{
    return top.cycle(buffers, heard);
  }}

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
        buffers=len({port.buffer for port in storage}),
        tables=port_tables(variables, widths, outputs),
        clock=variables[CLOCK],
    )


def kept_ports(widths: Mapping[str, int], outputs: Collection[str]) -> list[str]:
    """Ports that show after an edge what they were before it: ``outputs`` of one bit."""
    return [name for name, width in widths.items() if name in outputs and width == 1]


def port_tables(
    variables: Mapping[str, str], widths: Mapping[str, int], outputs: Collection[str]
) -> str:
    """Return the tables of ports that ported.h reads, in the order of ``widths``.

    ``variables`` names the arrays of words in which they are.
    """
    kept = set(kept_ports(widths, outputs))
    words = [(name, k) for name, width in widths.items() for k in range(-(-width // 64))]
    return _TABLES.format(
        words=", ".join(f"top.{variables[name]} + {k}" for name, k in words),
        kept=", ".join(str(name in kept).lower() for name, _ in words),
    )
