"""Files of an index, and its life beside FAISS and NumPy; other files are refused.

A call that is interrupted or fails leaves the index, its file and its device as they were.
"""

import gc
import io
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane import BinaryIndex, DataTypeError, Device, LinkError, SearchError
from support.host.arrays import link_of, model, random, same
from support.host.indexes import METRICS, expect_equal, expect_found, index_of
from support.host.interrupts import attempt
from support.host.life_cycles import Life
from support.host.refusals import refused
from support.seeds import stride


@pytest.fixture
def device() -> Iterator[Device]:
    with model(memory_bytes=1 << 13) as device:
        yield device


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.npz"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("counts", [(), (5,), (40, 1, 300), (2500,)])
def test_an_index_that_is_saved_and_loaded_finds_the_same(
    device: Device, file: Path, metric: str, counts: tuple[int, ...]
) -> None:
    rows = random((sum(counts), 3), "u1")
    index = index_of(rows[:0], device=device, metric=metric)
    for end, size in zip(np.cumsum(counts), counts, strict=True):
        index.add(rows[end - size : end])
    index.save(file)
    with model() as other:
        again = BinaryIndex.load(other, str(file))
        assert (again.ntotal, again.dimension, again.metric) == (len(rows), 24, metric)
        expect_equal(index.search(rows[:3], 4), again.search(rows[:3], 4))
        again.add(random((1, 3), "u1"))
        assert again.ntotal == len(rows) + 1
    with np.load(file) as archive:
        assert same(archive["rows"], rows)


def test_ids_are_saved(device: Device, file: Path) -> None:
    rows, ids = random((40, 3), "u1"), np.arange(40)[::-1] * 10 - 5
    index = index_of(rows, ids)
    index.remove_ids(ids[::3])
    index.save(file)
    again = BinaryIndex.load(device, file)
    assert same(again.ids, index.ids)
    expect_equal(again.search(rows, 4), index.search(rows, 4))
    with np.load(file) as archive:
        assert same(archive["ids"], index.ids)
        assert str(archive["format"]) == "bitlane.BinaryIndex 2"


def archive(**members: Any) -> bytes:
    target = io.BytesIO()
    np.savez(target, **members)
    return target.getvalue()


ROWS = np.zeros((2, 3), np.uint8)


def with_byte(content: bytes, at: int, byte: int) -> bytes:
    """Return an archive with one byte replaced, ``at`` in its directory's last entry."""
    place = content.rindex(b"PK\1\2") + at
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
def test_files_of_all_formats(device: Device, file: Path, members: Any, ids: Any) -> None:
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
        (with_byte(archive(**GOOD), 10, 97), "not an index"),
        (with_byte(archive(**GOOD), 8, 1), "not an index"),
        (with_byte(archive(**GOOD), 6, 99), "not an index"),
        (archive_of_shape("(1099511627776, 65536)"), "not an index"),
        (archive_of_shape(f"({10**23}, 3)"), "not an index"),
        (archive_of_shape("(5, 8"), "not an index"),
        (archive_with(b""), "not an index"),
        (npy(ROWS), r"expected one that BinaryIndex\.save wrote"),
        (archive_with(b"text, not an array"), "not an index"),
        (archive_with(npy(ROWS) + b"!"), "not an index"),
        (archive_with(npy(ROWS), zipfile.ZIP_DEFLATED), "not an index"),
        (archive(rows=ROWS), "not an index"),
        (archive(**GOOD | {"rows": np.array([None])}), "not an index"),
        (archive(**GOOD | {"format": "x" * 5000}), "not an index"),
        (archive(**GOOD | {"format": "\x1b]0;x\x07" * 9}), r"format '\\x1b\]0;x\\x07.*, not"),
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
    ids=lambda each: each if isinstance(each, str) else "",  # an archive has the time
)
def test_other_files(device: Device, file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with refused(device, SearchError, message) as caught:
        BinaryIndex.load(device, file)
    assert str(caught.value).isprintable()


def test_no_damage_of_a_file_hides_ids(file: Path) -> None:
    index = index_of(random((3, 3), "u1"), [5, 6, 9])
    index.save(file)
    content = file.read_bytes()
    for place in range(content.index(b"PK\x01\x02"), len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            ids = BinaryIndex.load(index.device, file).ids
        except SearchError:
            continue
        assert ids.tolist() == [5, 6, 9], place


def test_a_small_file_takes_little_memory(device: Device, file: Path) -> None:
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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda i, f: BinaryIndex.load(i.device, f / "none"), SearchError, "none: No such file"),
        (lambda i, f: BinaryIndex.load(i.device, f), SearchError, "Is a directory"),
        (lambda i, f: i.save(f / "none" / "x.npz"), SearchError, "No such file"),
        (lambda i, f: i.save(f), SearchError, "expected one that can be written"),
        (lambda i, f: i.save("a\0b"), SearchError, "null byte; expected one that can be written"),
        (lambda i, f: i.save("\ud800"), SearchError, "surrogates not allowed; expected one that"),
        (lambda i, f: BinaryIndex.load(i.device, "a\0b"), SearchError, r"that BinaryIndex\.save"),
        (lambda i, f: BinaryIndex.load(i.device, "\ud800"), SearchError, r"BinaryIndex\.save"),
        (lambda i, f: i.save(3), SearchError, "file: of type int; expected a path"),
        (lambda i, f: BinaryIndex.load(i.device, None), SearchError, "file: of type NoneType"),
        (lambda i, f: BinaryIndex.load("sim", f / "x.npz"), DataTypeError, "device: "),
    ],
)
def test_files_that_cannot_be_read_or_written_are_named(
    device: Device,
    tmp_path: Path,
    call: Callable[[Any, Path], Any],
    error: type[Exception],
    message: str,
) -> None:
    index = index_of(random((3, 3), "u1"), device=device)
    with refused(device, error, message):
        call(index, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_stays_as_it_was_if_the_rows_cannot_be_read(device: Device, file: Path) -> None:
    index = index_of(random((3, 3), "u1"), device=device)
    index.save(file)
    before = file.read_bytes()
    device.close()
    calls: list[Callable[[], Any]] = [
        lambda: index.save(file),
        lambda: BinaryIndex.load(device, file),
        lambda: index.reconstruct(0),
        lambda: index.add(ROWS),
        lambda: index.search(ROWS),
        lambda: index.range_search(ROWS, 1),
    ]
    for call in calls:
        with refused(device, LinkError, "the device is closed"):
            call()
    index.reset()
    assert file.read_bytes() == before
    assert zipfile.is_zipfile(file)


# --- calls that are interrupted or fail -----------------------------------------------------------

WHERE = (
    *("index.py", "database.py", "scan.py", "files.py", "driver.py", "allocator.py"),
    *("blocks.py", "finding.py", "ids.py", "selectors.py", "subsets.py"),
    *("weakref.py", "<string>"),
)
"""Sources that keep rows, memory and files; "<string>" is code that dataclasses generate."""

OLD, NEW = random((70, 3), "u1", 1), random((130, 3), "u1", 2)
"""The device has room for the first and a part of the second."""

FEW, MOST = np.arange(70) % 7 == 3, np.arange(70) % 7 != 3

ACTIONS: dict[str, Callable[[BinaryIndex, Path], object]] = {
    "add": lambda index, file: index.add(NEW),
    "save": lambda index, file: index.save(file),
    "load": lambda index, file: BinaryIndex.load(index.device, file),
    "search": lambda index, file: index.search(OLD[:3], 5),
    "search within": lambda index, file: index.range_search(OLD[:3], 5),
    "search some": lambda index, file: index.search(OLD[:3], 5, select=FEW),
    "remove few": lambda index, file: index.remove_ids(FEW),
    "remove most": lambda index, file: index.remove_ids(MOST),
    "merge": lambda index, file: index.merge_from(index_of(NEW)),
    "merge on the device": lambda index, file: index.merge_from(index_of(NEW, device=index.device)),
}

AFTER = {
    "add": np.concatenate([OLD, NEW]),
    "merge": np.concatenate([OLD, NEW]),
    "merge on the device": np.concatenate([OLD, NEW]),
    "remove few": OLD[~FEW],
    "remove most": OLD[~MOST],
}
"""The rows of an index after an action; `OLD` after all others."""


class Case:
    """An index of `OLD` in memory that holds less than `OLD` and `NEW`, and a file of another."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self.after = AFTER.get(name, OLD)
        self.file = folder / "index.npz"
        self.device = model(memory_bytes=1 << 10)
        index_of(NEW).save(self.file)
        self.before = self.file.read_bytes()
        self.index = index_of(OLD, device=self.device)

    def expect(self, where: str) -> None:
        """Assert that the rows and the file are the old ones or the new ones, and can be used."""
        rows = OLD if len(self.index) == len(OLD) else self.after
        self._expect_rows(rows, where)
        if self.file.read_bytes() != self.before:
            with np.load(self.file) as archive:
                assert same(archive["rows"], rows), where
        assert [path.name for path in self.file.parent.iterdir()] == [self.file.name], where
        self.index.add(NEW[:7])
        self._expect_rows(np.concatenate([rows, NEW[:7]]), where)
        assert len(BinaryIndex.load(self.device, self.file)) > 0, where

    def _expect_rows(self, rows: NDArray[np.uint8], where: str) -> None:
        assert len(self.index) == len(rows), where
        expect_found(self.index, NEW[-3:], rows, k=4)
        assert same(self.index.reconstruct_n(), rows), where

    def close(self, where: str) -> None:
        """Assert that no memory of the device is lost."""
        del self.index
        gc.collect()
        assert self.device.driver.allocator.pieces == 0, f"{where}: memory was not given back"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ACTIONS)
def test_ctrl_c_anywhere(name: str, tmp_path: Path) -> None:
    for place in count(step=stride(5 if name in AFTER else 11)):
        case = Case(tmp_path, name)
        came = attempt(ACTIONS[name], WHERE, place, case.index, case.file)
        where = f"{name}, place {place}"
        case.expect(where)
        case.close(where)
        if not came:
            break
    assert place > 11, "Ctrl-C came too seldom"


class Broken:
    """Lets the link of a device fail at its call number ``at``."""

    def __init__(self, device: Device, at: int, patch: pytest.MonkeyPatch) -> None:
        self.came = False
        numbers = count()
        link = link_of(device)

        def failing(call: Callable[..., Any]) -> Callable[..., Any]:
            def instead(*arguments: Any) -> Any:
                if next(numbers) == at:
                    self.fail()
                return call(*arguments)

            return instead

        for name in ("read", "write", "wait"):
            patch.setattr(link, name, failing(getattr(link, name)))

    def fail(self) -> NoReturn:
        self.came = True
        raise LinkError("the line is cut")


@pytest.mark.parametrize("name", ACTIONS)
def test_the_link_fails_at_any_call(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in count():
        case = Case(tmp_path, name)
        with monkeypatch.context() as patch:
            broken = Broken(case.device, at, patch)
            try:
                ACTIONS[name](case.index, case.file)
            except LinkError:
                assert broken.came
                if name in AFTER:
                    assert len(case.index) == len(OLD)
            else:
                assert not broken.came
        where = f"{name}, call {at}"
        case.device.driver.clear()
        case.expect(where)
        case.close(where)
        if not broken.came:
            break
    assert (at > 0) is (name != "remove few"), "rows that go move no others"


def test_a_failed_merge_leaves_both_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in count():
        case, other = Case(tmp_path), index_of(NEW)
        with monkeypatch.context() as patch:
            broken = Broken(case.device, at, patch)
            if at % 2:
                broken = Broken(other.device, at // 2, patch)
            try:
                case.index.merge_from(other)
            except LinkError:
                assert (len(case.index), len(other)) == (len(OLD), len(NEW))
                assert same(other.reconstruct_n(), NEW)
            else:
                assert (len(case.index), len(other)) == (len(OLD) + len(NEW), 0)
        if not broken.came:
            break
    assert at > 1


def test_a_file_stays_if_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def savez(target: BinaryIO, **_: object) -> NoReturn:
        target.write(b"half")
        raise OSError(28, "No space left on device")

    case = Case(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", savez)
        with pytest.raises(SearchError, match="No space left on device"):
            case.index.save(case.file)
    assert case.file.read_bytes() == case.before
    case.expect("disk full")


# --- random lives -------------------------------------------------------------------------------


def live(seeds: range, folder: Path) -> None:
    for seed in seeds:
        try:
            Life(seed, folder).live()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_a_life_of_an_index(tmp_path: Path) -> None:
    live(range(5000, 5020), tmp_path)


@pytest.mark.slow
def test_lives_of_an_index(tmp_path: Path) -> None:
    live(range(5020, 5300), tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, 5000, 500))
def test_many_lives_of_an_index(first: int, tmp_path: Path) -> None:
    live(range(first, first + 500), tmp_path)
