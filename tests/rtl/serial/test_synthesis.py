"""The serial link synthesises for every family, into block RAM, and stays small."""

import re
from collections.abc import Callable

import pytest

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.serial.serial_bridge import SerialBridge
from support.rtl.synthesis import synthesise

pytestmark = pytest.mark.slow

CONFIGURATION = Configuration(data_width=32, address_width=17, memory_bytes=1 << 17, block_ram=True)

RAM = {"ice40": {"SB_RAM40_4K": 4}, "ecp5": {"DP16KD": 1}, "gowin": {"SDPX9B": 1}}

LUTS = {"ice40": "SB_LUT4", "ecp5": "LUT4", "gowin": "LUT[1-4]"}
LIMIT = 720
"""Most LUTs. Yosys' releases differ by a few from those of today: see `SerialBridge`."""


@pytest.mark.parametrize("family", ["ice40", "ecp5", "gowin"])
def test_serial_link(family: str, record_property: Callable[[str, object], None]) -> None:
    cells = synthesise(SerialBridge(CONFIGURATION, 8), family)
    largest = sorted(cells.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{count} {name}" for name, count in largest)
    record_property("report", f"serial link, {family}: {listed}")
    assert {name: cells.get(name) for name in RAM[family]} == RAM[family]
    luts = sum(count for name, count in cells.items() if re.fullmatch(LUTS[family], name))
    assert 300 < luts <= LIMIT
