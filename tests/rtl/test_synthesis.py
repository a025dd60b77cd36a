"""The engine synthesises for every family without latches, multiple drivers or unmapped memory."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full, small
from bitlane_rtl.core import Core
from support.rtl.synthesis import SynthesisError, synthesise, synthesise_rtlil

pytestmark = [pytest.mark.slow, pytest.mark.judges("bitlane_rtl", "support.rtl.synthesis")]

CORES = {
    "ice40": replace(small(32, block_ram=True), read_ports=1),
    "ecp5": full(32),
    "gowin": small(32),
}


@pytest.mark.rotates(1)
@pytest.mark.parametrize(("family", "configuration"), CORES.items(), ids=CORES)
def test_core(
    family: str, configuration: Configuration, record_property: Callable[[str, object], None]
) -> None:
    cells = synthesise(Core(configuration), family)
    largest = sorted(cells.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{count} {name}" for name, count in largest)
    record_property("report", f"AXI4 core, 32 bits, {family}: {listed}")
    assert sum(cells.values()) > 1000


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
        synthesise_rtlil(f"module \\top\n {ports} {WRONG[message]} end\n", family)
