"""The UDP stack synthesises for families with LUT RAM, and stays small on ECP5."""

from collections.abc import Callable

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module, Value

from bitlane_rtl.ethernet.udp_stack import UdpStack
from support.ethernet.packets import BOARD
from support.rtl.synthesis import synthesise_rtlil

pytestmark = pytest.mark.slow

LIMIT = 1400
"""Most LUT4 on ECP5."""


@pytest.mark.parametrize("family", ["ecp5", "gowin"])
def test_udp_stack(family: str, record_property: Callable[[str, object], None]) -> None:
    stack = UdpStack(BOARD)
    m = Module()
    clocks = [ClockDomain(name) for name in ("rx", "tx", "sync")]
    m.domains += clocks
    m.submodules.stack = stack
    flat = [Value.cast(port) for _, _, port in stack.signature.flatten(stack)]
    ports = [*flat, *(signal for clock in clocks for signal in (clock.clk, clock.rst))]
    cells = synthesise_rtlil(rtlil.convert(m, name="top", ports=ports), family)
    listed = ", ".join(f"{n} {name}" for name, n in sorted(cells.items(), key=lambda x: -x[1]))
    record_property("report", f"UDP stack, {family}: {listed}")
    if family == "ecp5":
        assert cells["DP16KD"] == 4
        assert 900 < cells["LUT4"] <= LIMIT
