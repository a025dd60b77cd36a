"""A unit's ECP5 carry chains are proven equal to its simulated circuit, with Yosys' cell models.

Registers and counts have the same names in both; each is proven equal, given those before it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.back import rtlil

from bitlane_boards.flow.families import YOSYS
from bitlane_boards.flow.tools import ToolError, run_tool
from bitlane_rtl.search import additions
from bitlane_rtl.search.unit import Unit

pytestmark = pytest.mark.slow

PROOF = (
    "read_verilog -DNO_INCLUDES +/lattice/cells_sim_ecp5.v; read_rtlil cells.il;"
    " hierarchy -top cells; proc; flatten; opt_clean; design -save cells; design -reset;"
    " read_rtlil plain.il; hierarchy -top plain; proc; flatten; opt_clean;"
    " design -copy-from cells cells; equiv_make plain cells both; hierarchy -top both; opt_clean;"
    " equiv_simple; equiv_status -assert"
)


def prove_equal(row_bits: int, folder: Path) -> str:
    """Return Yosys' log. Raises ``ToolError`` if a unit is a different circuit on an ECP5."""
    for name, family in (("plain", "none"), ("cells", "ecp5")):
        platform: Any = SimpleNamespace(family=family)
        text = rtlil.convert(Unit(row_bits), name=name, platform=platform)
        assert ("CCU2C" in text) == (name == "cells")
        (folder / f"{name}.il").write_text(text)
    run_tool(YOSYS, ["-p", PROOF], folder, folder / "log", lambda _: None)
    return (folder / "log").read_text()


@pytest.mark.parametrize("row_bits", [4, 64, 512])
def test_units_are_equal(
    row_bits: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    log = prove_equal(row_bits, tmp_path)
    (proven,) = re.findall(r"Of those cells (\d+) are proven and 0 are unproven", log)
    record_property("report", f"{row_bits} bits: {proven} bits of counts and registers are equal")
    assert int(proven) >= 3 * row_bits, "some have no name in common"


def test_chains_of_512_bits_fill_tiles() -> None:
    """Chains take whole tiles of four cells, because no other chain could begin inside a tile."""
    platform: Any = SimpleNamespace(family="ecp5")
    text = rtlil.convert(Unit(512), platform=platform)
    assert text.count("cell \\CCU2C") == 400


WRONG = [
    *[("_COMPARED", 0x6997), ("_COUNTS", 0x6006), ("_COUNTS", 0xE00A), ("_COUNT", 0xC000)],
    *[("_NEXT", 0x000A), ("_NEXT", 0xF006), ("_LAST", 0x8000)],
]
"""Names of tables in `additions`, each with a wrong value."""


@pytest.mark.parametrize(("table", "wrong"), WRONG)
def test_a_wrong_table_shows(
    table: str, wrong: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(additions, table, wrong)
    with pytest.raises(ToolError, match="unproven"):
        prove_equal(16, tmp_path)
