"""The engine synthesises for every family: no latch, no multiple driver, no unmapped memory."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bitlane_rtl.configurations import full
from bitlane_rtl.core import Core
from support.rtl.synthesis import SynthesisError, synthesise, synthesise_rtlil


@pytest.mark.parametrize(("family", "ports"), [("ice40", 1), ("ecp5", 2), ("gowin", 2)])
def test_core(family: str, ports: int, record_property: Callable[[str, object], None]) -> None:
    configuration = replace(full(32, block_ram=family == "ice40"), read_ports=ports)
    cells = synthesise(Core(configuration), family)
    largest = sorted(cells.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{count} {name}" for name, count in largest)
    record_property("report", f"AXI4 core, 32 bits, all operators, {family}: {listed}")
    assert sum(cells.values()) > 1000


def test_latch_is_an_error() -> None:
    text = """
    module \\top
      wire input 1 \\enable
      wire input 2 \\d
      wire output 3 \\q
      cell $dlatch \\latch
        parameter \\WIDTH 1
        parameter \\EN_POLARITY 1
        connect \\EN \\enable
        connect \\D \\d
        connect \\Q \\q
      end
    end
    """
    with pytest.raises(SynthesisError, match=r"(?i)latch"):
        synthesise_rtlil(text, "ecp5")


def test_multiple_driver_is_an_error() -> None:
    text = """
    module \\top
      wire input 1 \\a
      wire input 2 \\b
      wire output 3 \\q
      connect \\q \\a
      connect \\q \\b
    end
    """
    with pytest.raises(SynthesisError, match="conflicting drivers"):
        synthesise_rtlil(text, "ice40")


def test_cell_that_the_device_lacks_is_an_error() -> None:
    text = """
    module \\top
      wire input 1 \\a
      wire output 2 \\q
      cell \\ALIEN \\alien
        connect \\A \\a
        connect \\Q \\q
      end
    end
    """
    with pytest.raises(SynthesisError, match="ALIEN"):
        synthesise_rtlil(text, "gowin")
