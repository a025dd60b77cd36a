"""The digest of sources: another one whenever anything differs that Python or a compiler reads."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from cppsim.compiling.cache import source_digest

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


def edit(package: Path) -> None:
    (package / "part" / "one.py").write_text("x = 2\n")


def move_a_line(package: Path) -> None:
    (package / "__init__.py").write_text("x = 1\n")
    (package / "part" / "one.py").write_text("")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": edit,
    "edit_header": lambda package: (package / "part" / "two.h").write_text("int y;\n"),
    "add": lambda package: (package / "part" / "three.py").touch(),
    "remove": lambda package: (package / "part" / "one.py").unlink(),
    "rename": lambda package: (package / "part" / "one.py").rename(package / "part" / "other.py"),
    "move_a_line": move_a_line,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_gives_another_digest(package: Path, change: str) -> None:
    before = source_digest(NAME)
    CHANGES[change](package)
    assert source_digest(NAME) != before


def test_links_are_followed(package: Path) -> None:
    (package / "part").rename(package.parent / "elsewhere")
    (package / "part").symlink_to(package.parent / "elsewhere")
    before = source_digest(NAME)
    edit(package)
    assert source_digest(NAME) != before


def test_what_nobody_reads_changes_nothing(package: Path) -> None:
    before = source_digest(NAME)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"compiled")
    (package / "part" / ".#one.py").symlink_to("somebody@somewhere:1")
    (package / "notes.txt").write_text("to do")
    assert source_digest(NAME) == before


def test_packages_and_modules_can_be_asked_together(package: Path) -> None:
    module = "cppsim.mode"
    both = source_digest(NAME, module)
    assert both not in {source_digest(NAME), source_digest(module)}
    edit(package)
    assert source_digest(NAME, module) != both


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
