"""The netlists of many circuits as digests: what changes none of them changes no circuit.

As a program: prints the digests as JSON; given a file of them, ends with 0 if all are the same, and
with 1, and the name, at the first that is not.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from amaranth.back import rtlil  # type: ignore[attr-defined]  # stubs lag
from amaranth.hdl import Elaboratable

from bitlane_boards import boards
from bitlane_boards.flow.top import Top
from bitlane_rtl.configurations import copy, full, small
from bitlane_rtl.core import Core

__all__ = ["circuits", "digest"]


def circuits() -> Iterator[tuple[str, Callable[[], Elaboratable]]]:
    """Circuits by name: those with names, of several widths and choices, and the boards'."""
    one_port = replace(full(), read_ports=1, loops=6, slots=32, operand_registers=True)
    few = replace(full(32), modes=small().modes, bursts=2, counters=False, address_width=30)
    configurations = {
        "copy": copy(),
        "small": small(),
        "full": full(),
        "full, 32 bits, block RAM": full(32, block_ram=True),
        "full, one port, more loops": one_port,
        "full, 32 bits, two bursts": few,
        "copy, 64 bits": copy(64),
        "full, 128 bits": full(128),
    }
    for name, configuration in configurations.items():
        yield name, partial(Core, configuration)
    for name, board in boards().items():
        yield name, partial(Top, board)
    yield "full, 512 bits", partial(Core, full(512))


def digest(circuit: Elaboratable) -> str:
    """The same for the same netlist, wherever its source stands."""
    return hashlib.sha256(rtlil.convert(circuit, emit_src=False).encode()).hexdigest()


def _main(before: str = "") -> int:
    known = json.loads(Path(before).read_text(encoding="utf-8")) if before else {}
    found = {}
    for name, build in circuits():
        found[name] = digest(build())
        if known and known[name] != found[name]:
            print(name)
            return 1
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
