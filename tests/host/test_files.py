"""Files are written whole or not at all; headers of NumPy's files are checked, sizes too."""

import os
import stat
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from bitlane.errors import BitlaneError, NpyError
from bitlane.files import expect_writable, expected_instead, parse_size, write_atomically
from bitlane.npy import read_npy


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


# --- NumPy's array files --------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def file_of(header: str, content: bytes = b"\0\0\0") -> Path:
    """Write a .npy file with this header, the text of a Python dictionary; return its path."""
    text = header.encode("latin-1")
    path = Path("x.npy")
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content)
    return path


def test_an_array_comes_as_it_was_written() -> None:
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n"
    assert read_npy(file_of(header, b"\1\2\3")).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)",
        "  {}\n x",
        "1 +",
        "'''",
        "\0",
        "[]",
        "{1: 2, 'descr': '|u1'}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': ('3',)}",
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**62}, {2**62})}}",
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**80},)}}",
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': {'(' * 300}3{',)' * 300}}}",
        "__import__('os').mkdir('made')",
        "{'descr': (), 'fortran_order': False, 'shape': (3,)}",
        "{'descr': [('a',)], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': ('|u1', (3,)), 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 1" + "0" * 23 + ")}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (" + "1," * 70 + ")}",
    ],
)
def test_headers_that_are_none(header: str) -> None:
    with pytest.raises(NpyError, match=r"^a NumPy array file"):
        read_npy(file_of(header))
    assert [path.name for path in Path().iterdir()] == ["x.npy"]


def test_a_file_that_was_cut_off() -> None:
    path = Path("x.npy")
    np.save(path, np.arange(5))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(NpyError):
            read_npy(path)


def test_a_header_is_not_longer_than_numpy_reads() -> None:
    Path("x.npy").write_bytes(b"\x93NUMPY\2\0" + b"\xff" * 4 + b"{}")
    tracemalloc.start()
    try:
        with pytest.raises(NpyError, match="a header of 4294967295 bytes; expected at most 10000"):
            read_npy(Path("x.npy"))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["|u1", "<f8", "<U1000000"])
def test_memory_is_taken_for_what_the_file_holds(kind: str) -> None:
    path = file_of(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (1000000000,)}}")
    tracemalloc.start()
    try:
        with pytest.raises(NpyError, match="expected no more elements than there are bytes"):
            read_npy(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["|b1", "<u2", ">i4", "<f8", ">f2"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_comes_back(kind: str, shape: tuple[int, ...], order: str) -> None:
    content = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind, order=order)
    np.save("x.npy", content)
    again = read_npy(Path("x.npy"))
    assert (again.dtype, again.shape) == (content.dtype, shape)
    assert np.array_equal(again, content)
