"""A board fits its chip and meets its clock, as built from source to bitstream.

Of ECP5, the boards that `tests/verify/netlists` reads back are built. Every chip's bitstreams say
which chip they are for, as the boards with it say.
"""

import json
from pathlib import Path

import pytest

from bitlane.command_line import DONE, UNUSABLE, main
from bitlane_boards import boards
from bitlane_boards.board import Family
from bitlane_boards.flow import FLOWS
from support.boards.board_builds import blinking, built
from support.boards.session import built_boards

pytestmark = [pytest.mark.slow, pytest.mark.any_face]


@pytest.mark.rotates(1)
@pytest.mark.parametrize("name", [*built_boards(Family.ICE40), *built_boards(Family.GOWIN)])
def test_a_board_fits_and_meets_its_clock(name: str) -> None:
    folder = built(boards()[name])
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["clock_mhz"] == boards()[name].clock_hz / 1e6 <= report["achieved_mhz"]
    used, available = zip(*report["cells"].values(), strict=True)
    assert all(0 < some <= every for some, every in zip(used, available, strict=True))
    assert report["bitstream_bytes"] == (folder / report["bitstream"].split("/")[-1]).stat().st_size


CHIPS = {board.chip: name for name, board in sorted(boards().items())}
"""A board for each chip."""


@pytest.mark.parametrize("name", sorted(CHIPS.values()))
def test_flash_takes_a_bitstream_of_the_boards_chip_and_no_other_chip_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = tmp_path / "openFPGALoader"
    loader.write_text("#!/bin/sh\n")
    loader.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    board = boards()[name]
    file = tmp_path / f"top.{FLOWS[board.family].bitstream}"
    file.write_bytes(blinking(board))
    for other in boards().values():
        code = DONE if other.chip == board.chip else UNUSABLE
        assert main(["flash", other.name, str(file)]) == code, other.name
