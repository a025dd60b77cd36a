"""Exported stream cores on Icarus and Verilator, between the streams of cocotbext-axi."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bitlane_rtl.stream_unit import StreamConfiguration
from bitlane_sim.export import Destination, export_stream
from support.cocotb.runs import Outcome, run_verilog, with_output
from support.cocotb.simulators import Simulator, icarus, verilator
from support.cocotb.stream_suite import CORE

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

NO_DATAFLOW = ("-fno-dfg",)
"""Verilator 5.48 loses bit 7 and above of sums in beats of 32 bits unless this optimisation is off.

Icarus, Amaranth's simulator and cppsim compute them right, and so does Verilator with ``-O0``.
"""

INPUTS, REGISTERS = 7, 1
"""Tests of a core with control inputs, and of one with registers."""


def run(
    simulator: Simulator, folder: Path, width: int, *, registers: bool, change: Callable[[str], str]
) -> Outcome:
    """Run the suite on the core, whose Verilog ``change`` may change."""
    to = Destination("core", Path("core.v"))
    text, _ = export_stream(StreamConfiguration(data_width=width), to, registers=registers)
    only = "test_registers" if registers else "test_(packets|reductions|faults)"
    options = NO_DATAFLOW if simulator.name == "verilator" else ()
    variables = {CORE: str(width)}
    return run_verilog(
        simulator, folder, change(text), "stream_suite", variables, only=only, options=options
    )


@pytest.mark.parametrize(
    ("find", "width", "registers"),
    [(icarus, 64, False), (verilator, 32, False), (icarus, 32, True)],
)
def test_stream_core(
    find: Callable[[], Simulator], width: int, registers: bool, tmp_path: Path
) -> None:
    outcome = run(find(), tmp_path, width, registers=registers, change=str)
    tests = REGISTERS if registers else INPUTS
    assert (len(outcome.passed), list(outcome.failed)) == (tests, []), str(outcome)


BUGS = {
    "TLAST is lost": ("m_axis_y_tlast", "offered & 1'h0"),
    "all bytes are kept": ("m_axis_y_tkeep", "offered | 8'hff"),
    "the flags are inverted": ("m_axis_y_tuser", "~offered"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    def change(text: str) -> str:
        return with_output(text, *BUGS[bug])

    outcome = run(icarus(), tmp_path, 64, registers=False, change=change)
    assert outcome.failed, str(outcome)
