"""The engine synthesises for every family without latches, multiple drivers or unmapped memory,
and its parts take the recorded LUT4.

Each part is synthesised in place, with its submodules; nothing is optimised across its border.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bitlane_boards.area.chips import CHIPS
from bitlane_boards.area.place import Placer
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full, small
from bitlane_rtl.core import Core
from support.rtl.synthesis import SynthesisError, synthesise, synthesise_rtlil

pytestmark = [
    pytest.mark.slow,
    pytest.mark.judges(
        "bitlane_boards.area", "bitlane_boards.board", "bitlane_boards.flow", "bitlane_rtl"
    ),
]

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


# --- areas ----------------------------------------------------------------------------------------


MARGIN = 0.03
"""Relative tolerance of a part's LUT4; other versions of Yosys differ by less."""

LARGE = {
    "engine.data_path.bit_unit": 1329,
    "engine.data_path.decode": 154,
    "engine.data_path.bit_unit.pipeline.row_sum": 11,
    "engine.data_path.nest": 175,
    "engine.data_path.pairing": 63,
    "engine.data_path.reader_a": 1300,
    "engine.data_path.reader_a.realigner": 463,
    "engine.data_path.reader_a.spans": 308,
    "engine.data_path.reader_a.splitter": 60,
    "engine.data_path.reader_a.words": 346,
    "engine.data_path.repack": 150,
    "engine.data_path.watchdog": 15,
    "engine.data_path.writer": 996,
    "engine.data_path.writer.addresses": 160,
    "engine.registers": 334,
    "engine.sequencer": 332,
    "engine.sequencer.decoder": 123,
    "engine.sequencer.refusals": 152,
    "engine.data_path": 5711,
    "engine": 6525,
}
"""LUT4 on ECP5 by the path of the part."""
SMALL = {
    "engine.data_path.bit_unit": 198,
    "engine.data_path.decode": 66,
    "engine.data_path.nest": 122,
    "engine.data_path.pairing": 56,
    "engine.data_path.reader_a": 617,
    "engine.data_path.reader_a.realigner": 117,
    "engine.data_path.reader_a.spans": 155,
    "engine.data_path.reader_a.splitter": 89,
    "engine.data_path.reader_a.words": 62,
    "engine.data_path.repack": 63,
    "engine.data_path.watchdog": 78,
    "engine.data_path.writer": 600,
    "engine.data_path.writer.addresses": 97,
    "engine.registers": 195,
    "engine.sequencer": 309,
    "engine.sequencer.decoder": 140,
    "engine.sequencer.refusals": 107,
    "engine.data_path": 2667,
    "engine": 3322,
}
"""LUT4 on iCE40 by the path of the part."""


@pytest.mark.rotates(1)
@pytest.mark.parametrize(
    ("family", "configuration", "record"),
    [("ecp5", full(), LARGE), ("ice40", small(block_ram=True), SMALL)],
    ids=["full-64", "small-32"],
)
def test_parts_take_what_is_recorded(
    tmp_path: Path, family: str, configuration: Configuration, record: dict[str, int]
) -> None:
    parts = Placer(CHIPS[family], tmp_path, lambda line: None).parts(Core(configuration))
    found = {path: parts[path].lut4 for path in record}
    off = {path for path, lut4 in found.items() if abs(lut4 - record[path]) > MARGIN * record[path]}
    assert not off, f"{sorted(off)}; if that is as it should be, record {found}"
