"""An index is the same after it was saved and loaded; other files are refused by name."""

import io
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane import ArrayIndexError, BinaryIndex, SearchError
from bitlane.api.device import Device
from bitlane.errors import DataTypeError, LinkError
from support.host.arrays import model, random, same


@pytest.fixture
def device() -> Iterator[Device]:
    with model(memory_bytes=1 << 13) as device:
        yield device


def filled(device: Device, *counts: int, metric: str = "hamming") -> tuple[BinaryIndex, Any]:
    """Return an index of 24-bit rows, added in calls of ``counts`` rows, and the rows."""
    index = BinaryIndex(device, 24, metric=metric)
    parts = [random((count, 3), "u1", count) for count in counts]
    for part in parts:
        index.add(part)
    return index, np.concatenate([np.zeros((0, 3), "u1"), *parts])


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
@pytest.mark.parametrize("counts", [(), (5,), (40, 1, 300), (2500,)])
def test_an_index_that_is_saved_and_loaded_finds_the_same(
    device: Device, tmp_path: Path, metric: str, counts: tuple[int, ...]
) -> None:
    index, rows = filled(device, *counts, metric=metric)
    file = tmp_path / "index.npz"
    index.save(file)
    with model() as other:
        again = BinaryIndex.load(other, str(file))
        assert (again.ntotal, again.dimension, again.metric) == (len(rows), 24, metric)
        for one, two in zip(index.search(rows[:3], 4), again.search(rows[:3], 4), strict=True):
            assert same(one, two)
        again.add(random((1, 3), "u1"))
        assert again.ntotal == len(rows) + 1
    with np.load(file) as archive:
        assert same(archive["rows"], rows)


def test_a_row_comes_back_from_wherever_it_is(device: Device) -> None:
    index, rows = filled(device, 40, 1, 3000)
    assert rows.nbytes > 1 << 13, "the device has room for all"
    for i in (0, 39, 40, 41, 3040, np.int64(2000)):
        assert same(index.reconstruct(i), rows[i])
    for i in (-1, 3041):
        with pytest.raises(ArrayIndexError, match=f"i: {i}; expected 0 to 3040"):
            index.reconstruct(i)
    with pytest.raises(SearchError, match=r"i: 1\.5; expected a whole number"):
        index.reconstruct(1.5)  # type: ignore[arg-type]
    index.reset()
    with pytest.raises(ArrayIndexError, match="i: 0; the index is empty"):
        index.reconstruct(0)


def test_a_row_that_is_given_back_is_a_copy(device: Device) -> None:
    index, rows = filled(device, 3000)
    index.reconstruct(2999)[:] = 0
    assert same(index.reconstruct(2999), rows[2999])


def archive(**members: Any) -> bytes:
    target = io.BytesIO()
    np.savez(target, **members)
    return target.getvalue()


ROWS = np.zeros((2, 3), np.uint8)


def with_byte(content: bytes, signature: bytes, at: int, byte: int) -> bytes:
    """Return ``content`` with one byte replaced, ``at`` behind the last ``signature``."""
    place = content.rindex(signature) + at
    return content[:place] + bytes([byte]) + content[place + 1 :]


GOOD = {"format": "bitlane.BinaryIndex 1", "metric": "hamming", "rows": ROWS}
OWN = GOOD | {"format": "bitlane.BinaryIndex 2", "ids": np.array([7, -3])}


def archive_with(rows: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive whose member ``rows.npy`` has this content."""
    target = io.BytesIO(archive(**{name: GOOD[name] for name in ("format", "metric")}))
    with zipfile.ZipFile(target, "a", compression) as file:
        file.writestr("rows.npy", rows)
    return target.getvalue()


def npy(rows: NDArray[Any]) -> bytes:
    target = io.BytesIO()
    np.save(target, rows)
    return target.getvalue()


def archive_of_shape(shape: str) -> bytes:
    """Return an archive whose rows have ``shape`` in their header, but no elements."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return archive_with(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)


@pytest.mark.parametrize(("members", "ids"), [(GOOD, [0, 1]), (OWN, [7, -3])])
def test_files_of_all_formats(device: Device, tmp_path: Path, members: Any, ids: Any) -> None:
    file = tmp_path / "index.npz"
    file.write_bytes(archive(**members))
    index = BinaryIndex.load(device, file)
    assert (index.ids.tolist(), index.metric) == (ids, "hamming")
    assert same(index.reconstruct_batch(ids), ROWS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an index"),
        (b"text, not an archive", "not an index"),
        (archive(**GOOD)[:200], "not an index"),
        (archive(**GOOD).replace(bytes(ROWS), bytes(5) + b"!"), "not an index, or damaged"),
        (with_byte(archive(**GOOD), b"PK\1\2", 10, 97), "not an index"),
        (with_byte(archive(**GOOD), b"PK\1\2", 8, 1), "not an index"),
        (with_byte(archive(**GOOD), b"PK\1\2", 6, 99), "not an index"),
        (archive_of_shape("(1099511627776, 65536)"), "not an index"),
        (archive_of_shape(f"({10**23}, 3)"), "not an index"),
        (archive_of_shape("(5, 8"), "not an index"),
        (archive_with(b""), "not an index"),
        (archive_with(b"text, not an array"), "not an index"),
        (archive_with(npy(ROWS) + b"!"), "not an index"),
        (archive_with(npy(ROWS), zipfile.ZIP_DEFLATED), "not an index"),
        (archive(rows=ROWS), "not an index"),
        (archive(**GOOD | {"rows": np.array([None])}), "not an index"),
        (archive(**GOOD | {"format": "x" * 5000}), "not an index"),
        (
            archive(**GOOD | {"format": "\x1b]0;x\x07" * 9}),
            r"format '\\x1b\]0;x\\x07.*, not",
        ),
        (archive(**GOOD | {"format": "bitlane.BinaryIndex 3"}), "format 'bitlane.BinaryIndex 3'"),
        (archive(**OWN | {"ids": np.array([7])}), r"ids of int64 and shape \(1,\), not int64 \(2,"),
        (archive(**OWN | {"ids": np.array([[7, 3]])}), r"ids of int64 and shape \(1, 2\)"),
        (archive(**OWN | {"ids": np.array([7.0, 3.0])}), "ids of float64"),
        (archive(**OWN | {"ids": np.array([7, 7])}), "ids: 7 twice; expected each id once"),
        (archive(**OWN | {"ids": np.array([7, -1])}), "ids: -1; expected others"),
        (archive(**OWN | {"ids": np.array([None, 3])}), "not an index, or damaged"),
        (archive(**GOOD | {"rows": ROWS.astype("u2")}), "rows of uint16"),
        (archive(**GOOD | {"rows": ROWS[0]}), r"shape \(3,\)"),
        (archive(**GOOD | {"rows": ROWS[:, :0]}), r"shape \(2, 0\)"),
        (archive(**GOOD | {"metric": "cosine"}), "metric: 'cosine'"),
    ],
)
def test_other_files(device: Device, tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "index.npz"
    file.write_bytes(content)
    with pytest.raises(SearchError, match=message) as caught:
        BinaryIndex.load(device, file)
    assert str(caught.value).isprintable()
    assert device.driver.allocator.pieces == 0


def test_a_small_file_takes_little_memory(device: Device, tmp_path: Path) -> None:
    file = tmp_path / "index.npz"
    rows = np.zeros((1 << 16, 1 << 10), np.uint8)
    file.write_bytes(archive_with(npy(rows), zipfile.ZIP_DEFLATED))
    assert file.stat().st_size < 1 << 17
    tracemalloc.start()
    try:
        with pytest.raises(SearchError, match="not an index"):
            BinaryIndex.load(device, file)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_an_array_of_numpys_is_refused(device: Device, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    with pytest.raises(SearchError, match=r"expected one that BinaryIndex\.save wrote"):
        BinaryIndex.load(device, tmp_path / "rows.npy")


def test_files_that_cannot_be_read_or_written_are_named(device: Device, tmp_path: Path) -> None:
    index, _ = filled(device, 3)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: BinaryIndex.load(device, tmp_path / "none"), "none: No such file"),
        (lambda: BinaryIndex.load(device, tmp_path), "Is a directory"),
        (lambda: index.save(tmp_path / "none" / "x.npz"), "No such file"),
        (lambda: index.save(tmp_path), "expected one that can be written"),
        (lambda: index.save("a\0b"), "null byte; expected one that can be written"),
        (lambda: index.save("\ud800"), "surrogates not allowed; expected one that can be"),
        (lambda: BinaryIndex.load(device, "a\0b"), "expected one that BinaryIndex.save wrote"),
        (lambda: BinaryIndex.load(device, "\ud800"), "expected one that BinaryIndex.save wrote"),
        (lambda: index.save(3), "file: of type int; expected a path"),  # type: ignore[arg-type]
        (lambda: BinaryIndex.load(device, None), "file: of type NoneType"),  # type: ignore[arg-type]
    ]
    for call, message in wrong:
        with pytest.raises(SearchError, match=message):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_file_stays_as_it_was_if_the_rows_cannot_be_read(device: Device, tmp_path: Path) -> None:
    index, rows = filled(device, 3)
    file = tmp_path / "index.npz"
    index.save(file)
    before = file.read_bytes()
    device.close()
    with pytest.raises(LinkError, match="the device is closed"):
        index.save(file)
    with pytest.raises(LinkError, match="the device is closed"):
        BinaryIndex.load(device, file)
    with pytest.raises(LinkError, match="the device is closed"):
        index.reconstruct(0)
    with pytest.raises(DataTypeError, match="device: "):
        BinaryIndex.load("sim", file)  # type: ignore[arg-type]
    assert file.read_bytes() == before
    assert zipfile.is_zipfile(file)
    assert len(rows) == 3
