"""Exported cores on Icarus Verilog, between the bus models of cocotbext-axi.

The one of 64 bits runs the same tests on Verilator.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.cocotb.runs import run_suite
from support.cocotb.simulators import icarus

pytestmark = pytest.mark.slow

TESTS = 20


@pytest.mark.parametrize(("width", "ports"), [(32, 1), (128, 2)])
def test_core(
    width: int, ports: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    simulator = icarus()
    outcome = run_suite(simulator, tmp_path, width=width, ports=ports)
    assert (len(outcome.passed), list(outcome.failed)) == (TESTS, []), str(outcome)
    record_property(
        "report", f"cocotb, {simulator.version}, {width} bits, {ports} read ports: {TESTS} passed"
    )
