"""Exported cores on Icarus Verilog and on Verilator, between the bus models of cocotbext-axi."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.cocotb.runs import run_suite
from support.cocotb.simulators import Simulator, icarus, verilator

pytestmark = pytest.mark.slow

TESTS = 20


@pytest.mark.parametrize(
    ("find", "width", "ports"), [(icarus, 32, 1), (verilator, 64, 2), (icarus, 128, 2)]
)
def test_core(
    find: Callable[[], Simulator],
    width: int,
    ports: int,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    simulator = find()
    outcome = run_suite(simulator, tmp_path, width=width, ports=ports)
    assert (len(outcome.passed), list(outcome.failed)) == (TESTS, []), str(outcome)
    record_property(
        "report", f"cocotb, {simulator.version}, {width} bits, {ports} read ports: {TESTS} passed"
    )


def test_the_driver_in_c_drives_the_core(tmp_path: Path) -> None:
    """Records byte for byte as Python's, interrupts, a fault, and going on after it."""
    outcome = run_suite(verilator(), tmp_path, width=64, ports=2, suite="c_suite")
    assert (len(outcome.passed), list(outcome.failed)) == (3, []), str(outcome)
