"""The demo and tests where ziglang is the only C++ compiler, and where there is none at all.

`make compilers` runs them. Both places have a PATH without a compiler and empty caches, but ziglang
finds what it has compiled for this user before, by content. The second place is an environment of
its own, made of the demo's pins as its users' are, because the tests' own has ziglang.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

# One worker runs all, as it makes the environment without a compiler once.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_rtl,
    pytest.mark.any_face,
    pytest.mark.reads(
        *("README.md", "LICENSE", "cppsim", "tests/boards/conftest.py", "tests/boards/pins"),
        *("tests/sim/device", "tests/support"),
    ),
]

ROOT = Path(__file__).parents[2]

TOOLS = ("bash", "cat", "env", "git", "make", "python3", "rm", "sh", "sleep", "uname")
"""Programs on the PATH, none of which compiles C++."""

COMPILERS = ("g++", "clang++", "c++", "gcc", "clang", "cc")

ZIG = "ZIG_GLOBAL_CACHE_DIR"
"""Environment variable of ziglang's cache of C++'s library and of compiled sources, by content."""

CURE = "no C++ compiler found: install g++ or clang++, or run pip install ziglang"

COMPILED = (
    "cppsim/tests/test_engine.py",
    "cppsim/tests/batch/test_circuit.py",
    "cppsim/tests/model/test_models.py",
    "tests/sim/device/test_simulator.py",
    "tests/boards/pins/test_pin_simulation.py",
)
"""Tests of everything that hands C++ to a compiler."""

OF_COMPILED_CODE = ("interrupted_fast_forward", "needs_no_settled_model")
"""Parts of the names of tests of waits that look into compiled code."""

INTERPRETED = (
    (),
    ("tests/sim/device/test_simulator.py", "-k", "pysim"),
    # Amaranth's simulator stands in for cppsim, which warns.
    (
        "cppsim/tests/running/test_waits.py",
        *("-k", " and ".join(f"not {part}" for part in OF_COMPILED_CODE)),
        *("-W", "default::cppsim.FallbackWarning"),
    ),
)
"""Arguments of pytest for tests that pass without a compiler; the first stand for the demo."""

PASSED = r"[1-9]\d* passed"
"""How pytest's last line begins if tests ran and all passed."""

PYTEST = (
    *("hypothesis", "iniconfig", "packaging", "pluggy", "pygments", "pytest", "pytest-timeout"),
    "sortedcontainers",
)


@dataclass(frozen=True)
class Place:
    """A Python, and the variables of the environment that it runs in."""

    python: Path
    variables: Mapping[str, str]

    def run(self, *words: str | Path, folder: Path = ROOT) -> "subprocess.CompletedProcess[str]":
        """Run Python with ``words``; expect that it succeeds."""
        done = subprocess.run(
            [self.python, *words],
            cwd=folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def test(self, *words: str) -> str:
        """Run pytest with ``words`` here; return its last line."""
        done = self.run(
            "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-c", "pyproject.toml", *words
        )
        return done.stdout.splitlines()[-1]


def variables(folder: Path) -> dict[str, str]:
    """Return an environment with an empty home, empty caches, and no compiler on the PATH."""
    programs = folder / "bin"
    programs.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, f"{name} is not on the PATH: install it first"
        (programs / name).symlink_to(found)
    assert not any(shutil.which(name, path=str(programs)) for name in COMPILERS)
    kept = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
    return {**kept, "HOME": str(folder), "PATH": str(programs)}


@pytest.fixture(scope="module")
def ziglang(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The tests' own Python, whose ziglang is the only compiler."""
    folders = os.pathsep.join(
        str(ROOT / name) for name in ("rtl", "cppsim/src", "sim", "host", "boards")
    )
    own = variables(tmp_path_factory.mktemp("ziglang"))
    libraries = {ZIG: os.environ.get(ZIG, str(Path.home() / ".cache" / "zig"))}
    return Place(Path(sys.executable), {**own, **libraries, "PYTHONPATH": folders})


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Python with bitlane and what its demo needs, without ziglang."""
    folder = tmp_path_factory.mktemp("nothing")
    place = Place(folder / "venv" / "bin" / "python", variables(folder))
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pins = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    found = re.findall(r"^(\S+)(==(?:.*\\\n)*.*\n)", pins, flags=re.M)
    text = "".join(name + rest for name, rest in found if name in PYTEST)
    (folder / "pytest.txt").write_text(text, encoding="utf-8")
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    demo = ROOT / "requirements" / "demo.txt"
    # As this process, pip may have to know of a mirror, which its settings at home say.
    installer = Place(place.python, os.environ)
    installer.run(*pip, "--no-compile", "--require-hashes", "-r", demo, "-r", folder / "pytest.txt")
    installer.run(*pip, "--no-compile", "--no-deps", "--no-build-isolation", ROOT / "cppsim", ROOT)
    return place


DEMO = "demo"


@pytest.mark.rotates(1)
@pytest.mark.parametrize("module", [DEMO, *COMPILED])
def test_ziglang_runs_the_demo_and_the_tests_of_compiled_code(
    module: str, ziglang: Place, tmp_path: Path
) -> None:
    if module != DEMO:
        assert re.match(PASSED, ziglang.test(module, "-m", "not slow and not deep"))
        return
    done = ziglang.run("-m", "bitlane", "demo", folder=tmp_path)
    assert "on simulator compiled, 64 bits" in done.stdout
    assert "297 held-out images" in done.stdout
    assert done.stdout.endswith("All checks passed.\n")
    # The compilation is reported unless it lasts less than a second.
    line = r"bitlane: compiling the circuit, once for this circuit; zig's first compilation .*\n"
    assert re.fullmatch(f"({line})?", done.stderr)


@pytest.mark.rotates(1)
@pytest.mark.parametrize("words", INTERPRETED, ids=[DEMO, "simulator", "cppsim"])
def test_without_a_compiler_the_demo_and_the_tests_of_interpreted_code_pass(
    words: tuple[str, ...], nothing: Place, tmp_path: Path
) -> None:
    """The demo does less, and says so."""
    if words:
        assert re.match(PASSED, nothing.test(*words))
        return
    done = nothing.run("-m", "bitlane", "demo", folder=tmp_path)
    assert "on simulator pysim, 64 bits" in done.stdout
    assert "Reduced, because this simulation is slow: " in done.stdout
    assert done.stdout.endswith("All checks passed.\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("bitlane: Amaranth's simulator runs the circuit")
    assert line.endswith(CURE)
