"""The cache: whole entries only, however a build ends; damage, size, command, and digests."""

import ctypes
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from cppsim import __main__ as command
from cppsim.compiling import CACHE, WORK, CacheWarning, cache, provide, source_digest
from cppsim.errors import SimulationError
from support.processes import run_python


def touch(folder: Path) -> None:
    (folder / "made").touch()


def cached(key: str = "key", build: Callable[[Path], object] = touch) -> Path:
    return CACHE.cached("kind", key, build)


def never(folder: Path) -> None:
    pytest.fail("built twice")


def test_cache_folder_is_chosen_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPPSIM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert CACHE.folder() == Path.home() / ".cache" / "cppsim"
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert CACHE.folder() == Path("/somewhere/cppsim")
    monkeypatch.setenv("CPPSIM_CACHE", "/elsewhere")
    assert CACHE.folder() == Path("/elsewhere")


def below_a_file(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "a file").write_bytes(b"")
    patch.setenv("CPPSIM_CACHE", str(folder / "a file" / "below"))


def on_a_full_disk(folder: Path, patch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    patch.setenv("CPPSIM_CACHE", str(folder / "a cache"))
    patch.setattr("tempfile.TemporaryFile", lambda **_: full.open("wb"))


def without_a_home_folder(folder: Path, patch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("CPPSIM_CACHE", "XDG_CACHE_HOME"):
        patch.delenv(variable, raising=False)
    patch.setattr(Path, "home", nowhere)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (below_a_file, r"a file/below: .*; set CPPSIM_CACHE to a folder"),
        (on_a_full_disk, r"a cache: No space left on device; .* is used until"),
        (
            without_a_home_folder,
            r"the cache: this user has no home folder; .* is used until .*; set",
        ),
    ],
)
def test_a_cache_that_cannot_be_written_is_reported_once_and_replaced(
    place: Callable[..., None], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, monkeypatch)
    with pytest.warns(CacheWarning, match=line) as warned:
        first = cached()
    assert (first / "made").exists()
    assert tmp_path not in first.parents
    assert str(first.parent.parent) in str(warned[0].message)
    assert cached(build=never) == first
    assert cached("another").name == "another"
    assert len(warned) == 1


def test_tools_keep_their_caches_in_ours_where_they_could_not_otherwise(
    fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CACHE.tool_environment() == dict(os.environ)
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    environment = CACHE.tool_environment()
    assert environment["XDG_CACHE_HOME"] == environment["HOME"] == str(fresh_cache / "tools")
    assert environment.keys() == os.environ.keys()


def test_a_cache_that_one_may_not_look_into_is_no_error(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_dir = Path.is_dir

    def refuse_once(path: Path) -> bool:
        monkeypatch.setattr(Path, "is_dir", is_dir)
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse_once)
    ready = cached()
    assert ready == fresh_cache / "kind" / "key"
    assert (ready / "made").exists()


def refuse(folder: Path) -> None:
    (folder / "half").write_text("done")
    raise SimulationError("No luck")


def fill_the_disk(folder: Path) -> None:
    with (folder / "made").open("w") as file, Path("/dev/full").open("w") as full:
        file.write("half")
        full.write("the other half")


KILLED = """
import os, signal
from cppsim.compiling.cache import Cache
def build(folder):
    (folder / 'made').write_text('half')
    os.kill(os.getpid(), signal.SIGKILL)
Cache('cppsim').cached('kind', 'key', build)
"""


@pytest.mark.parametrize("build", [refuse, fill_the_disk, None])
def test_a_build_that_fails_or_is_killed_leaves_nothing_half_done(
    fresh_cache: Path, build: Callable[[Path], object] | None
) -> None:
    if build:
        with pytest.raises((SimulationError, OSError), match=r"No luck|No space left"):
            cached(build=build)
        assert list((fresh_cache / "kind").iterdir()) == []
    else:
        assert run_python("-c", KILLED).returncode < 0
        assert not (fresh_cache / "kind" / "key").exists()
    assert (cached() / "made").read_text() == ""
    assert [path.name for path in (fresh_cache / "kind").iterdir()] == ["key"]


def test_without_locks_the_work_of_other_processes_stays(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks on this file system")

    cached("first")  # once a process, this removes old work
    work = fresh_cache / "kind" / f"key{WORK}other"
    work.mkdir()
    monkeypatch.setattr("fcntl.flock", refuse)
    cached()
    assert work.is_dir()


def moved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy ``folder`` to a folder of the same name, which no process has tried to write."""
    other = shutil.copytree(folder, folder.parent / "elsewhere" / folder.name)
    monkeypatch.setenv("CPPSIM_CACHE", str(other))
    return other


def test_what_is_known_needs_no_place_to_write(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = moved(cached().parents[1], monkeypatch)
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: pytest.fail("written to"))
    assert cached(build=never) == other / "kind" / "key"


# --- damage, size and command ---------------------------------------------------------------------

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
    other = moved(fresh_cache, monkeypatch)
    os.truncate(other / library.relative_to(fresh_cache), 1000)

    def refuse(**_: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.warns(CacheWarning, match=r"a cache: Read-only file system; .* until") as warned:
        anew = provide(SOURCE)
    assert [warning.filename for warning in warned] == [__file__]
    assert other not in anew.parents
    assert ctypes.CDLL(str(anew)).answer() == 42
    assert provide(SOURCE) == anew


def fill(key: str, size: int = 600_000) -> Path:
    return cached(key, lambda folder: (folder / "made").write_bytes(bytes(size)))


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

    entry = cached(build=build)
    sums = json.loads((entry / "checksums.json").read_text())
    assert sums == {"inner/file": [9, 0xCBF43926]}


# --- digests of sources ---------------------------------------------------------------------------


NAME = "made_for_digests"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / NAME
    (folder / "part").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "part" / "one.py").write_text("x = 1\n")
    (folder / "part" / "two.h").write_text("int x;\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    assert NAME not in sys.modules, "a digest imports nothing"


def move_a_line(package: Path) -> None:
    (package / "__init__.py").write_text("x = 1\n")
    (package / "part" / "one.py").write_text("")


def add_what_nobody_reads(package: Path) -> None:
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"compiled")
    (package / "part" / ".#one.py").symlink_to("somebody@somewhere:1")
    (package / "notes.txt").write_text("to do")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": lambda package: (package / "part" / "one.py").write_text("x = 2\n"),
    "edit_header": lambda package: (package / "part" / "two.h").write_text("int y;\n"),
    "add": lambda package: (package / "part" / "three.py").touch(),
    "remove": lambda package: (package / "part" / "one.py").unlink(),
    "rename": lambda package: (package / "part" / "one.py").rename(package / "part" / "other.py"),
    "move_a_line": move_a_line,
    "add_what_nobody_reads": add_what_nobody_reads,
}


@pytest.mark.parametrize("behind_a_link", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_gives_another_digest(package: Path, change: str, behind_a_link: bool) -> None:
    if behind_a_link:
        (package / "part").rename(package.parent / "elsewhere")
        (package / "part").symlink_to(package.parent / "elsewhere")
    module = "cppsim.mode"
    before, both = source_digest(NAME), source_digest(NAME, module)
    assert both not in {before, source_digest(module)}
    CHANGES[change](package)
    same = change == "add_what_nobody_reads"
    assert (source_digest(NAME) == before) is (source_digest(NAME, module) == both) is same


def test_a_package_without_sources_is_refused(package: Path) -> None:
    archive = package.parent / "packages.zip"
    with ZipFile(archive, "w") as packed:
        packed.write(package / "__init__.py", f"{NAME}/__init__.py")
    sys.path[0] = str(archive)
    with pytest.raises(FileNotFoundError, match=f"package {NAME} has no source files"):
        source_digest("cppsim.mode", NAME)


def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match="no module named 'never_made'"):
        source_digest("never_made")
