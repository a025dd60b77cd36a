"""A board fits its chip and meets its clock, as built from source to bitstream.

Of ECP5, the boards that `tests/verify/netlists` reads back are built.
"""

import json

import pytest

from bitlane_boards import boards
from bitlane_boards.board import Family
from support.boards.board_builds import built
from support.boards.netlists import built_boards

pytestmark = pytest.mark.slow


@pytest.mark.rotates(1)
@pytest.mark.parametrize("name", [*built_boards(Family.ICE40), *built_boards(Family.GOWIN)])
def test_a_board_fits_and_meets_its_clock(name: str) -> None:
    folder = built(boards()[name])
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["clock_mhz"] == boards()[name].clock_hz / 1e6 <= report["achieved_mhz"]
    used, available = zip(*report["cells"].values(), strict=True)
    assert all(0 < some <= every for some, every in zip(used, available, strict=True))
    assert report["bitstream_bytes"] == (folder / report["bitstream"].split("/")[-1]).stat().st_size
