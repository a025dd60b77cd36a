"""The cache: whole things only, whoever builds them, and however that ends."""

import os
from pathlib import Path

import pytest

from cppsim.compiling.cache import Cache, CacheWarning
from cppsim.compiling.entries import WORK
from cppsim.errors import SimulationError
from support.processes import run_python

CACHE = Cache("cppsim")


def test_cache_folder_is_chosen_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPPSIM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert CACHE.folder() == Path.home() / ".cache" / "cppsim"
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert CACHE.folder() == Path("/somewhere/cppsim")
    monkeypatch.setenv("CPPSIM_CACHE", "/elsewhere")
    assert CACHE.folder() == Path("/elsewhere")


def test_a_cache_that_cannot_be_written_is_reported_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a file"
    file.write_bytes(b"")
    monkeypatch.setenv("CPPSIM_CACHE", str(file / "below"))
    with pytest.warns(
        CacheWarning, match=r"a file/below: .*; set CPPSIM_CACHE to a folder"
    ) as warned:
        first = CACHE.cached("kind", "key", lambda folder: (folder / "made").touch())
    assert (first / "made").exists()
    assert str(first.parent.parent) in str(warned[0].message)
    assert CACHE.cached("kind", "key", lambda folder: pytest.fail("built twice")) == first
    assert (CACHE.cached("another", "key", lambda folder: None), len(warned)) == (
        first.parents[1] / "another" / "key",
        1,
    )


def test_a_full_disk_is_reported_and_another_place_used(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full.open("wb"))
    with pytest.warns(CacheWarning, match=r"a cache: No space left on device; .* is used until"):
        made = CACHE.cached("kind", "key", lambda folder: (folder / "made").touch())
    assert (made / "made").exists()
    assert fresh_cache not in made.parents


def test_tools_keep_their_caches_in_ours_where_they_could_not_otherwise(
    fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CACHE.tool_environment() == dict(os.environ)
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    environment = CACHE.tool_environment()
    assert environment["XDG_CACHE_HOME"] == environment["HOME"] == str(fresh_cache / "tools")
    assert environment.keys() == os.environ.keys()


def test_a_user_without_a_home_folder_has_a_cache_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("CPPSIM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    warned = (
        r"the cache: this user has no home folder; .* is used until Python ends; set CPPSIM_CACHE"
    )
    with pytest.warns(CacheWarning, match=warned):
        first = CACHE.cached("kind", "key", lambda folder: (folder / "made").touch())
    assert (first / "made").exists()
    assert CACHE.cached("kind", "key", lambda folder: pytest.fail("built twice")) == first


def test_a_cache_that_one_may_not_look_into_is_no_error(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_dir = Path.is_dir

    def refuse_once(path: Path) -> bool:
        monkeypatch.setattr(Path, "is_dir", is_dir)
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse_once)
    ready = CACHE.cached("kind", "key", lambda folder: (folder / "made").touch())
    assert ready == fresh_cache / "kind" / "key"
    assert (ready / "made").exists()


def test_failed_build_leaves_nothing_behind(fresh_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("done")
        raise SimulationError("no luck")

    with pytest.raises(SimulationError, match="no luck"):
        CACHE.cached("kind", "key", fail)
    assert list((fresh_cache / "kind").iterdir()) == []
    ready = CACHE.cached("kind", "key", lambda folder: (folder / "whole").touch())
    assert (ready / "whole").exists()


def test_a_process_that_is_killed_leaves_nothing_half_done(fresh_cache: Path) -> None:
    script = (
        "import os, signal\nfrom cppsim.compiling.cache import Cache\n"
        "def build(folder):\n"
        "    (folder / 'made').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Cache('cppsim').cached('kind', 'key', build)"
    )
    assert run_python("-c", script).returncode < 0
    assert not (fresh_cache / "kind" / "key").exists()
    ready = CACHE.cached("kind", "key", lambda folder: (folder / "made").write_text("whole"))
    assert (ready / "made").read_text() == "whole"
    assert [path.name for path in (fresh_cache / "kind").iterdir()] == ["key"]


def test_without_locks_the_work_of_other_processes_stays(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks on this file system")

    CACHE.cached("kind", "first", lambda folder: None)  # once a process, this removes old work
    work = fresh_cache / "kind" / f"key{WORK}other"
    work.mkdir()
    monkeypatch.setattr("fcntl.flock", refuse)
    CACHE.cached("kind", "key", lambda folder: (folder / "made").touch())
    assert work.is_dir()


def test_a_disk_that_is_full_leaves_nothing_half_done(fresh_cache: Path) -> None:
    def fill(folder: Path) -> None:
        with (folder / "made").open("w") as file, Path("/dev/full").open("w") as full:
            file.write("half")
            full.write("the other half")

    with pytest.raises(OSError, match="No space left"):
        CACHE.cached("kind", "key", fill)
    ready = CACHE.cached("kind", "key", lambda folder: (folder / "made").write_text("whole"))
    assert (ready / "made").read_text() == "whole"


def test_what_is_known_needs_no_place_to_write(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = CACHE.cached("kind", "key", lambda folder: (folder / "made").touch())
    monkeypatch.setattr("cppsim.compiling.cache._writable", lambda *_: pytest.fail("written to"))
    assert CACHE.cached("kind", "key", lambda folder: pytest.fail("built twice")) == ready
