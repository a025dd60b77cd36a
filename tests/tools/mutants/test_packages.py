"""Every file that is changed has tests, and the tables name what exists."""

from pathlib import Path

import pytest

from mutants import equivalent
from mutants.finders import changes
from mutants.packages import PACKAGES, PROJECT, Package

HOST = PACKAGES["host"]


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_every_file_has_tests_that_exist(package: Package) -> None:
    files = package.sources()
    assert len(files) > 50
    for file in files:
        own = package.own_tests(file)
        assert own, file
        for test in (*own, *package.whole_tests(file)):
            assert (PROJECT / test).exists(), f"{file}: {test}"


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_every_prefix_is_that_of_a_file(package: Package) -> None:
    files = [path.relative_to(PROJECT / package.folder) for path in _files(package)]
    names = [path.as_posix() for path in files]
    for prefix in (*package.own, *package.whole, *package.cold):
        assert any(name.startswith(prefix) for name in names), prefix


def _files(package: Package) -> list[Path]:
    return [path for path in (PROJECT / package.folder).rglob("*") if path.is_file()]


def test_the_namesake_comes_first() -> None:
    own = HOST.own_tests("links/frames.py")
    assert own[0] == "tests/host/links/test_frames.py"
    assert "tests/host/links/test_arq.py" in own
    assert len(own) == len(set(own)) == len([*(PROJECT / "tests/host/links").glob("test_*.py")])


def test_other_tests_follow_those_of_the_folder() -> None:
    own, whole = HOST.own_tests("links/frames.py"), HOST.whole_tests("links/frames.py")
    assert not {*own} & {*whole}
    assert whole.index("tests/host/test_validate.py") < whole.index("tests/system/test_pool.py")


def test_changes_of_a_compiler_start_without_its_results() -> None:
    cppsim = PACKAGES["cppsim"]
    assert cppsim.is_cold("netlist/lowering.py")
    assert not cppsim.is_cold("running/waits.py")
    assert all(PACKAGES["rtl"].is_cold(file) for file in PACKAGES["rtl"].sources())


def test_every_explained_change_can_still_be_made() -> None:
    for known in equivalent.read():
        package = PACKAGES[known.package]
        source = (PROJECT / package.folder / known.file).read_text(encoding="utf-8")
        all_changes = changes(source, known.file, circuit=package.circuit)
        assert len([each for each in all_changes if known.matches(each)]) == 1, str(known)
        assert known.reason
