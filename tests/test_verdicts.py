"""Tests of stored verdicts: what is checked again, and what never is stored."""

import re
import shutil
import time
from pathlib import Path

import pytest

from bitlane_sim.builds import CACHE
from support import verdicts
from support.inputs import Inputs
from support.processes import run_python
from support.rotation import REPLAY
from support.verdicts import (
    AGAIN,
    AT_THE_PINS,
    CONFIRMED,
    KNOWN,
    NOW,
    Passed,
    Verdicts,
    digest,
    forget,
    is_checked_again,
    stored,
    summary,
)

TESTS = Path(__file__).parent
PARTS = ["circuit", "tool 1"]


@pytest.fixture(autouse=True)
def _a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BITLANE_CACHE", str(tmp_path / "cache"))


class Checks:
    """A check that counts its runs, and where its verdicts came from."""

    def __init__(self) -> None:
        self.runs, self.origins = 0, list[object]()

    def __call__(self, parts: list[str], *, fails: bool = False) -> str:
        def check() -> str:
            self.runs += 1
            assert not fails
            return "proven"

        return Verdicts(lambda _, value: self.origins.append(value)).passes(parts, check)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    monkeypatch.setattr(verdicts, "AGAIN", 1 << 255)
    return Checks()


def entries() -> list[Path]:
    return [entry.folder / "verdict.json" for entry in CACHE.entries()]


def test_what_passed_is_not_checked_again(checks: Checks) -> None:
    first, second = checks(PARTS), checks(PARTS)
    assert (checks.runs, checks.origins) == (1, [NOW, KNOWN])
    assert first.startswith("proven, ")
    assert second == f"{first} (known)"


def test_other_inputs_are_checked(checks: Checks) -> None:
    for parts in (PARTS, ["circuit", "tool 2"], PARTS[::-1], ["circuittool 1"], [*PARTS, ""]):
        checks(parts)
    assert (checks.runs, checks.origins) == (5, [NOW] * 5)


def test_a_failure_is_never_stored(checks: Checks) -> None:
    for _ in range(2):
        with pytest.raises(AssertionError):
            checks(PARTS, fails=True)
    assert (checks.runs, checks.origins, entries()) == (2, [], [])


def test_an_entry_of_an_older_form_is_replaced(checks: Checks) -> None:
    checks(PARTS)
    [path] = entries()
    folder = path.parent

    def older(folder: Path) -> None:
        (folder / path.name).write_text('{"passed": "proven", "seconds": 1}', encoding="utf-8")

    shutil.rmtree(folder)
    CACHE.cached(verdicts.KIND, folder.name, older)
    for _ in range(2):
        checks(PARTS)
    assert (checks.runs, checks.origins) == (2, [NOW, NOW, KNOWN])


def test_an_entry_of_another_check_means_that_the_check_runs(checks: Checks) -> None:
    checks([])
    [path] = entries()
    checks(PARTS)
    [other] = {each.parent for each in entries()} - {path.parent}
    shutil.rmtree(other)
    shutil.copytree(path.parent, other)
    for _ in range(2):
        checks(PARTS)
    assert checks.origins == [NOW, NOW, NOW, KNOWN]


@pytest.mark.parametrize("place", ["", ".lock"])
def test_a_check_that_passed_passes_though_something_is_in_the_place_of_its_entry(
    checks: Checks, place: str
) -> None:
    checks(PARTS)
    [path] = entries()
    shutil.rmtree(path.parent)
    blocked = path.parent.with_name(f"{path.parent.name}{place}")
    blocked.mkdir() if place else blocked.touch()
    for _ in range(2):
        checks(PARTS)
    assert checks.origins == [NOW] * 3


SECONDS = ("NaN", "Infinity", "-1", "[]", '"long"', "1" + "0" * 400)
UNREADABLE = [
    *("", "{", "[]", "removed", '{"proven": "x", "seconds": 1}'),
    *('{"passed": "x"}', '{"passed": 1, "seconds": 1}', '{"passed": null, "seconds": 1}'),
    *(f'{{"passed": "x", "seconds": {seconds}}}' for seconds in SECONDS),
]


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("damage", UNREADABLE)
def test_an_entry_that_cannot_be_read_means_that_the_check_runs(
    checks: Checks, damage: str, sealed: bool
) -> None:
    checks(PARTS)
    [path] = entries()
    text = damage.replace('{"', f'{{"key": "{path.parent.name}", "', 1)

    def fill(folder: Path) -> None:
        (folder / path.name).write_text(text, encoding="utf-8")

    if damage == "removed":
        path.unlink()
    elif sealed:
        shutil.rmtree(path.parent)
        CACHE.cached(verdicts.KIND, path.parent.name, fill)
    else:
        path.write_text(text, encoding="utf-8")
    checks(PARTS)
    assert (checks.runs, checks.origins) == (2, [NOW, NOW])
    checks(PARTS)
    assert checks.origins[2] == KNOWN


def test_one_in_ten_is_checked_again_by_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 200
    for number in range(count):
        Checks()([str(number)])
    shares = []
    for commit in ("aaaaaaaa", "bbbbbbbb"):
        monkeypatch.setenv(REPLAY, commit)
        again = Checks()
        for number in range(count):
            again([str(number)])
        assert set(again.origins) == {KNOWN, CONFIRMED}
        assert count / AGAIN / 2 < again.runs < count / AGAIN * 2
        shares.append(again.origins)
    assert shares[0] != shares[1]


@pytest.mark.parametrize(("seconds", "every"), [(0, 10), (10, 10), (40.4, 40), (500, 500)])
def test_a_long_check_is_drawn_as_rarely_as_it_has_seconds(
    seconds: float, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, commits = 0, 20 * every
    for commit in map("{:08}".format, range(commits)):
        monkeypatch.setenv(REPLAY, commit)
        runs += is_checked_again("key", seconds)
    assert 10 <= runs <= 40, "about 20"


def test_the_seconds_of_a_check_are_those_that_it_took(
    checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 142.04])
    with monkeypatch.context() as stopped:
        stopped.setattr(time, "monotonic", lambda: next(clock))
        assert checks(PARTS) == "proven, 42.0 s"
    [path] = entries()
    assert stored(path.parent.name) == Passed("proven, 42.0 s", 42.0)


def test_a_contradiction_is_an_error_that_names_the_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks()
    checks(PARTS)
    [path] = entries()
    monkeypatch.setattr(verdicts, "AGAIN", 1)
    with pytest.raises(AssertionError) as error:
        checks(PARTS, fails=True)
    assert path.parent.name in error.value.__notes__[0]
    assert entries() == [], "the check runs until it passes"


def test_a_verdict_that_cannot_be_removed_hides_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(f"{folder} is read-only")

    checks = Checks()
    checks(PARTS)
    monkeypatch.setattr(verdicts, "AGAIN", 1)
    monkeypatch.setattr(verdicts, "remove", refuse)
    with pytest.raises(AssertionError, match="assert not True"):
        checks(PARTS, fails=True)


def test_without_a_home_folder_the_check_runs(
    checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Path:
        raise RuntimeError("no home folder")

    monkeypatch.delenv("BITLANE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    checks(PARTS)
    assert checks.origins == [NOW]


def test_the_digest_of_a_package_is_that_of_all_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "judged_package"
    (package / "part").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)

    def now() -> str:
        digest.cache_clear()
        return digest("judged_package")

    seen = set()
    for name in ("__init__.py", "part/code.cc", "part/table.json"):
        (package / name).write_text("1")
        seen.add(now())
        (package / name).write_text("2")
        seen.add(now())
    (package / "part" / "code.cc").rename(package / "code.cc")
    seen.add(now())
    assert len(seen) == 7
    (package / "__init__.pyc").write_bytes(b"compiled")
    assert now() in seen
    digest.cache_clear()
    with pytest.raises(ModuleNotFoundError, match="no module named 'judged_nothing'"):
        digest("judged_nothing")


JUDGING = """
import os, warnings
from pathlib import Path
import pytest

pytestmark = pytest.mark.judges("support.seeds")

@pytest.fixture
def closing():
    yield
    assert os.environ["FAILS"] != "fixture"

class Dropped:
    def __del__(self):
        if os.environ["FAILS"] == "finalizer":
            raise ValueError

@pytest.mark.parametrize("number", [1])
def test_number(number, closing, request, record_property):
    with Path(os.environ["RAN"]).open("a") as file:
        file.write("x")
    record_property("report", f"number {number}")
    dropped = Dropped()
    assert os.environ["FAILS"] != "test"
    del dropped
"""


class Judging:
    """A module with a marked test, which counts its runs."""

    def __init__(self, folder: Path) -> None:
        self.path, self._ran = folder / "test_judging.py", folder / "ran"
        self.path.write_text(JUDGING)

    @property
    def runs(self) -> int:
        return len(self._ran.read_text())

    def run(self, *words: str, fails: str = "") -> str:
        """Run it; return what pytest prints."""
        own = ["-p", "no:cacheprovider", "-c", TESTS.parent / "pyproject.toml"]
        # `support` imports cppsim before pytest finds its plugin.
        own += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        ran = run_python(
            "-c",
            "import sys, pytest; from support import verdicts; verdicts.AGAIN = 1 << 255;"
            "sys.exit(pytest.main(sys.argv[1:]))",
            *own,
            f"--rootdir={self.path.parent}",
            *words,
            self.path,
            FAILS=fails,
            RAN=str(self._ran),
        )
        assert ran.returncode == bool(fails), ran.stdout + ran.stderr
        return ran.stdout


@pytest.mark.slow
def test_a_marked_test_is_run_once_for_a_module_its_packages_variables_and_tier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging = Judging(tmp_path)
    assert re.search(r"^number 1, \d+\.\d s$", judging.run(), flags=re.M)
    assert re.search(r"^number 1, \d+\.\d s \(known\)$", judging.run(), flags=re.M)
    assert judging.runs == 1
    judging.path.write_text(JUDGING + "# other\n")
    assert "(known)" not in judging.run()
    for runs, variable in enumerate(("CXXFLAGS", "SEED"), 3):
        monkeypatch.setenv(variable, "1")
        assert "(known)" not in judging.run()
        assert judging.runs == runs
    assert "(known)" in judging.run()
    assert "(known)" not in judging.run("--hypothesis-profile", "deep")


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["fixture", "finalizer"])
def test_a_marked_test_that_fails_in_any_phase_runs_again(tmp_path: Path, fails: str) -> None:
    judging = Judging(tmp_path)
    judging.run(fails=fails)
    assert entries() == []
    judging.run()
    assert judging.runs == 2
    assert len(entries()) == 1


@pytest.mark.slow
def test_a_marked_test_is_not_stored_if_a_source_changes_during_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging, package = Judging(tmp_path), tmp_path / "judged_package.py"
    package.write_text("old = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    changing = "import judged_package\nPath(judged_package.__file__).write_text('old = False')\n"
    judging.path.write_text(JUDGING.replace("support.seeds", "judged_package") + changing)
    judging.run()
    assert judging.runs == 1
    assert entries() == [], "the test ran with the old source"


def test_a_marked_test_depends_on_the_files_of_tests_that_it_imports(tmp_path: Path) -> None:
    module, seen = tmp_path / "tests/part/test_one.py", set[str]()
    texts = {module: "from support.first import x\n", tmp_path / "tests/part/conftest.py": "\n"}
    texts[tmp_path / "tests/support/first.py"] = "from flips import second\n"
    texts[tmp_path / "tools/flips/second.py"] = "\n"
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path, text in texts.items():
        seen.add(Inputs(tmp_path).of_tests(module))
        path.write_text(text + "# other\n")
    seen.add(Inputs(tmp_path).of_tests(module))
    assert len(seen) == len(texts) + 1


PACKAGES = ("bitlane", "bitlane_boards", "bitlane_rtl", "bitlane_sim", "cppsim")

FOR_ITS_TOOLS = "test_reproducible.py"
"""It judges the tools: any circuit will do."""


def test_the_marks_name_all_packages_that_their_modules_import() -> None:
    marks = re.compile(r"import AT_THE_PINS|mark\.judges\(")
    modules = (path for path in TESTS.rglob("test_*.py") if path.name != FOR_ITS_TOOLS)
    marked = [path for path in modules if marks.search(path.read_text())]
    marked.remove(Path(__file__))
    assert len(marked) > 8
    for path in marked:
        text = path.read_text()
        named = {"bitlane.api"} | set(AT_THE_PINS.args if "AT_THE_PINS" in text else ())
        for inside in re.findall(r"mark\.judges\(([^)]*)\)", text):
            named |= set(re.findall(r'"([\w.]+)"', inside))
        for module in re.findall(r"^from ([\w.]+) import|^import ([\w.]+)", text, flags=re.M):
            name = "".join(module)
            name = "bitlane.api" if name == "bitlane" else name
            if name.partition(".")[0] in PACKAGES:
                assert any(f"{name}.".startswith(f"{each}.") for each in named), f"{path}: {name}"


def test_the_summary_counts_all_origins_of_a_folder() -> None:
    origins = [("rtl", NOW), *(("formal", each) for each in (NOW, KNOWN, CONFIRMED, NOW, KNOWN))]
    line = "formal 3 checked now, 1 of them again, 2 known; rtl 1 checked now, 0 known"
    assert summary(origins) == f"verdicts: {line}"


def test_only_verdicts_are_forgotten(checks: Checks) -> None:
    def fill(folder: Path) -> None:
        (folder / "model").touch()

    model = CACHE.cached("models", "key", fill)
    checks(PARTS)
    checks([])
    assert forget() == 2
    assert [entry.folder for entry in CACHE.entries()] == [model]
    checks(PARTS)
    assert checks.origins == [NOW] * 3


def test_a_cache_that_is_a_file_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("BITLANE_CACHE", str(file))
    assert verdicts.main() == 1
    told = f"BITLANE_CACHE: {file} is a file; expected a folder\n"
    assert capsys.readouterr().err == told
