"""Every chip's bitstreams say which chip they are for, as the boards with it say."""

from pathlib import Path

import pytest

from bitlane.command_line.cli import DONE, UNUSABLE, main
from bitlane_boards import boards
from bitlane_boards.flow.families import FLOWS
from support.boards.board_builds import built

pytestmark = pytest.mark.slow

BY_HAND = {"colorlight-5a-75b", "colorlight-i9", "ecpix5"}
"""Boards that no test builds: each takes minutes, and varies the one of test_network."""

BUILT = {
    board.chip: name
    for name, board in sorted(boards().items(), reverse=True)
    if name not in BY_HAND
}
"""A board for each chip: most are built by other tests, too."""


# From the other end than the tests that build them, too: whoever asks for the same build waits.
@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", sorted(BUILT.values(), reverse=True))
def test_flash_takes_a_boards_own_bitstream_and_no_other_chip_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = tmp_path / "openFPGALoader"
    loader.write_text("#!/bin/sh\n")
    loader.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    board = boards()[name]
    suffix = FLOWS[board.family].bitstream
    file = tmp_path / f"top.{suffix}"
    file.write_bytes((built(board) / f"{name}.{suffix}").read_bytes())
    for other in boards().values():
        code = DONE if other.chip == board.chip else UNUSABLE
        assert main(["flash", other.name, str(file)]) == code, other.name
