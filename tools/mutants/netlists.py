"""The netlists of many circuits as digests: a change of none of them changes no circuit.

As a program: prints the digests as JSON; given a file of them, and which source file has changed,
ends with 0 if those of all circuits with it are the same, and with 1 at the first that is not.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from amaranth.back import rtlil  # type: ignore[attr-defined]  # stubs lag
from amaranth.hdl import Elaboratable

from bitlane_boards import boards
from bitlane_boards.board import Board
from bitlane_boards.pins import VENDOR_CELLS
from bitlane_boards.readback import board_circuit
from bitlane_rtl.configurations import copy, full, one_port, small
from bitlane_rtl.core import Core
from cppsim.circuits import Circuit
from cppsim.model.source import program
from cppsim.netlist.passes import trim
from mutants.relevance import AROUND_ENGINE


def circuits(file: str = "") -> dict[str, Callable[[], Elaboratable]]:
    """Circuits by name that ``file`` is a part of; by default all."""
    if file.startswith(AROUND_ENGINE):
        return _boards()
    if file.startswith("ethernet/"):
        return _boards(lambda board: board.ethernet is not None)
    if file.startswith("search/"):
        return _boards(lambda board: board.configuration.search is not None)
    if file and not file.startswith("ports/"):
        return _cores()
    return _cores() | _boards()


def _cores() -> dict[str, Callable[[], Elaboratable]]:
    """Those with names, of several widths and choices."""
    more_loops = replace(one_port(), loops=6, slots=32, operand_registers=True)
    few = replace(full(32), modes=small().modes, bursts=2, counters=False, address_width=30)
    configurations = {
        "copy": copy(),
        "full": full(),
        "full, 32 bits, block RAM": full(32, block_ram=True),
        "full, 128 bits": full(128),
        "full, one port, more loops": more_loops,
        "full, 32 bits, two bursts": few,
        "small": small(),
        "copy, 64 bits": copy(64),
    }
    return {name: partial(Core, each) for name, each in configurations.items()}


def _boards(has: Callable[[Board], bool] = lambda _: True) -> dict[str, Callable[[], Elaboratable]]:
    chosen = {name: board for name, board in boards().items() if has(board)}
    return {name: partial(board_circuit, board) for name, board in chosen.items()}


def netlist(build: Callable[[], Elaboratable]) -> Mapping[str, str]:
    """A circuit as Amaranth gives it to Yosys, and as it is simulated, as digests.

    Its source's places do not count, nor in the second do the bits that nothing reads.
    """
    circuit = Circuit(build())
    ports = [circuit.domain.clk, *circuit.inputs.values(), *circuit.outputs.values()]
    text = str(rtlil.convert(circuit, ports=ports, emit_src=False))
    simulated = Circuit(build(), VENDOR_CELLS)
    design, contents = simulated.design, list(map(list, simulated.contents))
    trim(design)
    model, _ = program(design, ())
    stored = [(x.number, x.columns, contents[x.number]) for x in design.memories]
    return {"netlist": _digest(text), "simulated": _digest(f"{model}{stored}")}


def is_same(known: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Whether two netlists are the same, or are simulated in the same way."""
    return any(known[name] == found[name] for name in known)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _main(before: str = "", file: str = "") -> int:
    if not before:
        print(json.dumps({name: netlist(build) for name, build in circuits().items()}))
        return 0
    known = json.loads(Path(before).read_text(encoding="utf-8"))
    same = all(is_same(known[name], netlist(build)) for name, build in circuits(file).items())
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
