"""Lives of an index: random ones beside FAISS and NumPy, and calls that are interrupted or fail.

Such a call leaves the index, its file and its device as they were.
"""

import gc
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane import BinaryIndex, Device, LinkError, SearchError
from support.host.arrays import link_of, model, random, same
from support.host.indexes import expect_found, index_of
from support.host.interrupts import attempt
from support.host.life_cycles import Life
from support.seeds import stride

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
