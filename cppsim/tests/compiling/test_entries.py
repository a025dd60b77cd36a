"""Entries of the cache: damage is found, the size is limited, and a command shows and clears."""

import ctypes
import fcntl
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cppsim import __main__ as command
from cppsim.compiling import cache
from cppsim.compiling.cache import CACHE, CacheWarning
from cppsim.compiling.library import provide
from cppsim.errors import SimulationError

SOURCE = 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }\n'


def flip_a_bit(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    library.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "the first 1000 bytes": lambda library: os.truncate(library, 1000),
    "an empty file": lambda library: os.truncate(library, 0),
    "a missing file": Path.unlink,
    "another bit": flip_a_bit,
    "empty checksums": lambda library: os.truncate(library.parent / "checksums.json", 0),
    "other checksums": lambda library: (library.parent / "checksums.json").write_text("[1]"),
    "no checksums": lambda library: (library.parent / "checksums.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_library_is_compiled_anew(
    fresh_cache: Path, damage: Callable[[Path], object]
) -> None:
    library = provide(SOURCE)
    size = library.stat().st_size
    damage(library)
    with pytest.warns(CacheWarning) as warned:
        assert provide(SOURCE) == library
    [warning] = warned
    assert str(warning.message) == f"{library.parent}: damaged; it is built anew"
    assert warning.filename == __file__
    # Other bytes may differ: ziglang writes the random name of a temporary file into a library.
    assert library.stat().st_size == size
    assert ctypes.CDLL(str(library)).answer() == 42
    assert provide(SOURCE) == library
    assert [path.name for path in (fresh_cache / "cppsim").iterdir()] == [library.parent.name]


def test_a_damaged_library_in_a_cache_that_cannot_be_written(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = provide(SOURCE)
    os.truncate(library, 1000)

    def refuse(folder: Path) -> None:
        raise OSError(30, "Read-only file system", str(folder))

    cache._writable.cache_clear()
    monkeypatch.setattr(cache, "_try_to_write", refuse)
    with pytest.warns(CacheWarning, match=r"a cache: Read-only file system; .* until") as warned:
        other = provide(SOURCE)
    assert [warning.filename for warning in warned] == [__file__]
    assert other.stat().st_size > library.stat().st_size
    assert provide(SOURCE) == other


def fill(key: str, size: int = 600_000) -> Path:
    return CACHE.cached("kind", key, lambda folder: (folder / "made").write_bytes(bytes(size)))


def test_the_limit_removes_what_was_not_used_for_longest(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPPSIM_CACHE_LIMIT", "2")
    for age, key in enumerate(("used", "old", "older")):
        os.utime(fill(key), (1e9 - age, 1e9 - age))
    fill("used")
    cache._shrink_once.cache_clear()
    fill("new")
    kind = fresh_cache / "kind"
    assert {path.name for path in kind.iterdir()} == {"used", "new", "old"}
    cache._shrink_once.cache_clear()
    fill("larger", 1 << 20)
    assert {path.name for path in kind.iterdir()} == {"larger", "new"}


def test_what_killed_processes_left_is_removed_and_no_more(fresh_cache: Path) -> None:
    kind = fresh_cache / "kind"
    for key in ("killed", "building"):
        (kind / f"{key}.work-1").mkdir(parents=True)
        (kind / f"{key}.lock").touch()
    (kind / "removed.work-1").mkdir()
    with (kind / "building.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert CACHE.clear() == (0, 0)
        assert {path.name for path in kind.iterdir()} == {"building.work-1", "building.lock"}
    assert CACHE.clear() == (0, 0)
    assert list(kind.iterdir()) == []


def test_a_limit_that_is_not_a_number(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPPSIM_CACHE_LIMIT", "2G")
    message = "CPPSIM_CACHE_LIMIT: '2G' is not a number of MiB; expected 2048"
    with pytest.raises(SimulationError, match=f"^{message}$"):
        provide(SOURCE)
    assert not fresh_cache.exists()


@pytest.mark.parametrize("words", [[], ["--clear"]])
def test_a_file_in_place_of_the_folder_is_one_line(
    fresh_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    fresh_cache.write_text("notes", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["cppsim", "cache", *words])
    with pytest.raises(SystemExit):
        command.main()
    output = f"python -m cppsim: CPPSIM_CACHE: {fresh_cache} is a file; expected a folder\n"
    assert capsys.readouterr().err == output


def test_the_command_shows_and_clears(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["cppsim", "cache", *words])
        command.main()
        return capsys.readouterr().out

    assert run() == f"{fresh_cache}: 0 entries, 0 bytes of 2,147,483,648\n"
    size = provide(SOURCE).stat().st_size
    fill("another", 100)
    (fresh_cache / "kind" / "killed.lock").touch()
    (fresh_cache / "kind" / "another.work-x1").mkdir()
    users = fresh_cache / "of the user" / "thesis"
    users.mkdir(parents=True)
    assert run() == f"{fresh_cache}: 2 entries, {size + 100:,} bytes of 2,147,483,648\n"
    assert run("--clear") == f"{fresh_cache}: 2 entries removed, {size + 100:,} bytes\n"
    assert run() == f"{fresh_cache}: 0 entries, 0 bytes of 2,147,483,648\n"
    assert [path.name for path in fresh_cache.glob("*/*")] == ["thesis"]
    provide(SOURCE)


def test_the_checksums_of_an_entry(fresh_cache: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "inner").mkdir()
        (folder / "inner" / "file").write_bytes(b"123456789")
        (folder / "link").symlink_to("nowhere")

    entry = CACHE.cached("kind", "key", build)
    sums = json.loads((entry / "checksums.json").read_text())
    assert sums == {"inner/file": [9, 0xCBF43926]}
