"""Shortened carry chains carry what they did, whatever comes in where nothing is connected."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module, Signal

from bitlane_boards.flow import YOSYS, ToolError, bare, run_tool, shorten
from support.seeds import seeds

pytestmark = pytest.mark.any_face


class Chains(Elaboratable):
    """Sums and comparisons, with constants and without, of which some carry-outs are read."""

    def __init__(self) -> None:
        self.a = Signal(9)
        self.b = Signal(9)
        self.sums = Signal(40)
        self.signs = Signal(5)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = self.a, self.b
        m.d.comb += [
            self.sums[:10].eq(a + b),
            self.sums[10:20].eq(a - b),
            self.sums[20:30].eq(a + 1),
            self.sums[30:40].eq(a + b + 1),
            self.signs[0].eq(a < b),
            self.signs[1].eq(a <= b),
            self.signs[2].eq(a < 300),
            self.signs[3].eq(a.as_signed() >= b.as_signed()),
            self.signs[4].eq(a + 77 > b),
        ]
        return m


@pytest.fixture(scope="module")
def netlist(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Yosys' netlist of `Chains`."""
    folder = tmp_path_factory.mktemp("chains")
    chains = Chains()
    ports = [chains.a, chains.b, chains.sums, chains.signs]
    (folder / "top.il").write_text(rtlil.convert(chains, name="top", ports=ports))
    script = "read_rtlil top.il; synth_ecp5 -top top -json top.json"
    run_tool(YOSYS, ["-p", script], folder, folder / "log", lambda _: None)
    return (folder / "top.json").read_text()


def prove_equal(one: str, other: str, folder: Path) -> None:
    """Raises ``ToolError`` if any input makes a difference; what is "x" in ``other`` is any."""
    for name, text in (("one", one), ("other", other)):
        top = {name: json.loads(text)["modules"]["top"]}
        (folder / f"{name}.json").write_text(json.dumps({"modules": top}))
    script = (
        "read_json one.json; read_json other.json;"
        " setundef -anyseq other; read_verilog -DNO_INCLUDES +/lattice/cells_sim_ecp5.v;"
        " miter -equiv one other both; hierarchy -top both; proc; flatten; opt_clean;"
        " sat -verify -prove trigger 0 both"
    )
    run_tool(YOSYS, ["-p", script], folder, folder / "log", lambda _: None)


@pytest.mark.slow
def test_chains_of_a_netlist_carry_the_same(netlist: str, tmp_path: Path) -> None:
    shortened = shorten(netlist)
    cells = json.loads(shortened)["modules"]["top"]["cells"].values()
    chains = [cell for cell in cells if cell["type"] == "CCU2C"]
    assert sum(cell["connections"]["CIN"] == ["x"] for cell in chains) >= 4
    assert sum(cell["connections"]["COUT"] == ["x"] for cell in chains) >= 4
    prove_equal(netlist, shortened, tmp_path)
    broken = json.loads(shortened)
    for cell in broken["modules"]["top"]["cells"].values():
        if cell["connections"].get("CIN") == ["x"]:
            cell["connections"]["D0"] = ["0"]
    with pytest.raises(ToolError):
        prove_equal(netlist, json.dumps(broken), tmp_path)


def half(cell: dict[str, Any], a: int, b: int, carry_in: int) -> int:
    """The carry-out of a CCU2C's first half, by Yosys' lattice/ccu2c_sim.vh."""
    table = int(cell["parameters"]["INIT0"], 2)
    pins = cell["connections"]
    row = a + 2 * b + 4 * int(pins["C0"][0]) + 8 * int(pins["D0"][0])
    generated = cell["parameters"]["INJECT1_0"] == "NO" and table >> a + 2 * b & 1
    return carry_in if table >> row & 1 else int(generated)


@pytest.mark.parametrize("seed", seeds(10, 50))
def test_a_constant_carry_in_goes_into_the_first_cell(seed: int) -> None:
    choose = random.Random(seed)
    parameters = {"INIT0": f"{choose.getrandbits(16):016b}"}
    parameters["INJECT1_0"] = choose.choice(["NO", "YES"])
    pins = {name: [choose.choice("01")] for name in ("CIN", "C0", "D0")}
    cell = {"parameters": parameters, "connections": {**pins, "S0": [2], "COUT": [3]}}
    before = [half(cell, a, b, int(pins["CIN"][0])) for a in (0, 1) for b in (0, 1)]
    bare(cell, {2: 1, 3: 2})
    assert cell["connections"]["CIN"] == ["x"]
    for carry_in in (0, 1):
        assert [half(cell, a, b, carry_in) for a in (0, 1) for b in (0, 1)] == before, cell


def test_what_is_read_stays() -> None:
    pins: dict[str, list[int | str]] = {
        "CIN": ["0"],
        "C0": ["0"],
        "D0": ["1"],
        "S0": [2],
        "COUT": [3],
    }
    cell = {"parameters": {"INIT0": "0" * 16, "INJECT1_0": "NO"}, "connections": dict(pins)}
    bare(cell, {2: 2, 3: 2})
    assert cell["connections"] == pins
