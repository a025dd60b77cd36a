"""A unit's carry chains still count the differing bits after nextpnr has routed them."""

import ctypes
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module

from bitlane_boards.board import Family
from bitlane_boards.flow.families import FLOWS, YOSYS
from bitlane_boards.flow.tools import run_tool
from bitlane_boards.pins import GateModel
from bitlane_boards.readback import ecp5
from bitlane_boards.readback.json_netlist import JsonNetlist, convert
from bitlane_boards.readback.pins import BoardPin, Side
from bitlane_rtl.search.unit import Unit

pytestmark = pytest.mark.slow

ROW_BITS = 64


@pytest.fixture(scope="module")
def netlist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the routed netlist of a unit behind pins of an LFE5U-25F."""
    folder = tmp_path_factory.mktemp("unit")
    m = Module()
    m.domains.sync = domain = ClockDomain("sync", reset_less=True)
    m.submodules.unit = unit = Unit(ROW_BITS)
    platform: Any = SimpleNamespace(family="ecp5")
    ports = [domain.clk, unit.bits, unit.load, unit.distance]
    (folder / "top.il").write_text(rtlil.convert(m, name="top", platform=platform, ports=ports))
    flow = FLOWS[Family.ECP5]
    script = "read_rtlil top.il; synth_ecp5 -top top -json top.json"
    run_tool(YOSYS, ("-p", script), folder, folder / "log", lambda _: None)
    flow.finish(folder / "top.json")
    part = ("--25k", "--package", "CABGA381", "--lpf-allow-unconstrained")
    files = ("--json", "top.json", "--write", "routed.json")
    run_tool(flow.nextpnr, (*part, *files), folder, folder / "log", lambda _: None)
    return folder / "routed.json"


def distances(path: Path, row: int, queries: list[int]) -> list[int]:
    """Simulate the netlist ``path``; return the distances of ``queries`` from ``row``."""
    latency = Unit(ROW_BITS).latency
    pins = {
        f"{name}{bit}": BoardPin(name, "", False, side, bit)
        for name, width, side in (
            *(("bits", ROW_BITS, Side.IN), ("load", 1, Side.IN)),
            ("distance", ROW_BITS.bit_length(), Side.OUT),
        )
        for bit in range(width)
    }
    pins["clk"] = BoardPin("clk", "", False, Side.IN)
    model = GateModel(convert(JsonNetlist.read(path), ecp5.CELLS, pins), "a unit")
    entry, came = model.entry(), ctypes.c_int()
    types = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p)
    clock = ctypes.CFUNCTYPE(ctypes.c_int, *types)(entry.run_until)
    seen = []
    for cycle, bits in enumerate([row, *queries, *[0] * latency]):
        model.set("load0", cycle == 0)
        for bit in range(ROW_BITS):
            model.set(f"bits{bit}", bits >> bit & 1)
        assert clock(entry.model, entry.numbers["clk"], 1, ctypes.byref(came))
        seen.append(sum(model.get(f"distance{bit}") << bit for bit in range(7)))
    model.close()
    return seen[latency:][: len(queries)]


def test_distances(netlist: Path) -> None:
    generator = random.Random(64)
    for _ in range(5):
        row = generator.getrandbits(ROW_BITS)
        others = [generator.getrandbits(ROW_BITS) for _ in range(50)]
        queries = [row, row ^ (1 << ROW_BITS) - 1, *others]
        expected = [(row ^ query).bit_count() for query in queries]
        assert distances(netlist, row, queries) == expected, f"row {row:#x}"


def test_a_changed_table_shows(netlist: Path, tmp_path: Path) -> None:
    content = json.loads(netlist.read_text())
    cells = content["modules"]["top"]["cells"].values()
    chained = [cell for cell in cells if cell["parameters"].get("MODE") == "CCU2"]
    table = chained[len(chained) // 2]["parameters"]
    table["INITVAL"] = "".join("10"[int(bit)] for bit in table["INITVAL"])
    (tmp_path / "changed.json").write_text(json.dumps(content))
    queries = [random.Random(1).getrandbits(ROW_BITS) for _ in range(50)]
    got = distances(tmp_path / "changed.json", 0, queries)
    assert got != [query.bit_count() for query in queries]
