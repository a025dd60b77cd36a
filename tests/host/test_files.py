"""Files are written whole or not at all, and unwritable ones are refused before anything runs."""

import os
import stat
from pathlib import Path

import pytest

from bitlane.errors import BitlaneError
from bitlane.files import expect_writable, expected_instead, parse_size, write_atomically


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    write_atomically(tmp_path / "a", b"1")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "a")]
    assert modes[0] == modes[1]


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "private", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o600)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "private"]


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link, tmp_path):
        with pytest.raises(OSError, match="it is not a file"):
            write_atomically(target, b"new")
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_what_cannot_be_written_is_known_and_nothing_is_left(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    for path, wanted in (
        (tmp_path, "a file, not a folder"),
        (file / "a", f"a file in a folder; {file} is none"),
        (Path("/proc/a"), "a folder that can be written to; /proc cannot"),
        (tmp_path / "a", None),
        (tmp_path / "new" / "folder" / "a", None),
    ):
        assert expected_instead(path) == wanted
    assert list(tmp_path.iterdir()) == [file]


def test_an_options_folder_has_to_be_there(tmp_path: Path) -> None:
    expect_writable("--json", tmp_path / "a")
    with pytest.raises(BitlaneError, match=f"--json: .*; expected a folder .*; {tmp_path}/new is"):
        expect_writable("--json", tmp_path / "new" / "a")


# --- numbers of bytes as people write them ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("0x10", 16),
        ("64KiB", 65536),
        ("2MiB", 2 << 20),
        ("0x2GiB", 2 << 30),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "x", "1.5MiB", "1GB", "1kib", "-1", "-1KiB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)
