"""Every chip's bitstreams say which chip they are for, as the boards with it say."""

from pathlib import Path

import pytest

from bitlane.command_line.cli import DONE, UNUSABLE, main
from bitlane_boards import boards
from bitlane_boards.flow.families import FLOWS
from support.boards.small_builds import blinking

pytestmark = pytest.mark.slow

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
