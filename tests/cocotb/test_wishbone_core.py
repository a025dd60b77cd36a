"""Exported cores on Wishbone on Icarus and Verilator, between models of a memory and a manager."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bitlane_rtl.configurations import one_port
from bitlane_sim.export.destination import Destination
from bitlane_sim.export.wishbone import export_wishbone
from support.cocotb.bench import CORE
from support.cocotb.runs import MEMORY_BYTES, Outcome, run_verilog, with_output
from support.cocotb.simulators import Simulator, icarus, verilator

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

TESTS = 14


def run(
    simulator: Simulator,
    folder: Path,
    width: int,
    *,
    change: Callable[[str], str] = str,
    only: str | None = None,
) -> Outcome:
    """Run the suite on the core of ``width``, whose Verilog ``change`` may change."""
    configuration = replace(one_port(width), memory_bytes=MEMORY_BYTES)
    to = Destination("core", Path("core.v"))
    text, _ = export_wishbone(configuration, 16, "bitlane export", to)
    core = {"data_width": width, "read_ports": 1, "memory_bytes": MEMORY_BYTES}
    variables = {CORE: json.dumps(core)}
    return run_verilog(simulator, folder, change(text), "wishbone_suite", variables, only=only)


@pytest.mark.parametrize(("find", "width"), [(icarus, 32), (verilator, 64)])
def test_core(find: Callable[[], Simulator], width: int, tmp_path: Path) -> None:
    outcome = run(find(), tmp_path, width)
    assert (len(outcome.passed), list(outcome.failed)) == (TESTS, []), str(outcome)


BUGS = {
    "all bytes are written": ("wbm_sel_o", "offered | 4'hf"),
    "WE is lost": ("wbm_we_o", "offered & 1'h0"),
    "CYC falls with STB": ("wbm_cyc_o", "offered & wbm_stb_o"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_bug_is_caught(bug: str, tmp_path: Path) -> None:
    """The bugs are put into the exported text, where others would meet them."""

    def change(text: str) -> str:
        return with_output(text, *BUGS[bug])

    outcome = run(icarus(), tmp_path, 32, change=change, only=r"test_long_bursts/chance=0\.5")
    assert outcome.failed, str(outcome)
