"""The wheels work in an environment that holds nothing else, and cppsim's folder passes its tests.

`make package` installs the wheels on every Python that they allow, as `BITLANE_EVERY_PYTHON` asks;
a version that is not on the PATH fails its test. cppsim is tested with the oldest Amaranth that it
allows, with the newest of the index, and with the newest pre-release, if there is one.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bitlane
import cppsim

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

ROOT = Path(__file__).parents[2]

SCRIPT = """
import numpy as np
import bitlane
with bitlane.open("sim") as device:
    print(bitlane.__version__, device.bit_xor(np.array([1, 2, 3], np.uint8), 255).tolist())
"""


def allowed() -> list[str]:
    """Return the versions of Python that both projects name, the oldest first."""
    found = []
    for folder in (ROOT, ROOT / "cppsim"):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        found.append(re.findall(r":: (3\.\d+)\b", "\n".join(project["classifiers"])))
        assert project["requires-python"] == f">={found[-1][0]}"
    assert found[0] == found[1]
    return found[0]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both wheels and return their folder."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "cppsim"):
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
        subprocess.run([*build, project], check=True, capture_output=True)
    return folder


PYTHONS = allowed() if "BITLANE_EVERY_PYTHON" in os.environ else ["{}.{}".format(*sys.version_info)]


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheels_alone_compute(version: str, dist: Path, tmp_path: Path) -> None:
    python = shutil.which(f"python{version}")
    assert python, f"no python{version} on the PATH, which the metadata name: install it first"
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    bin_folder = tmp_path / "venv" / "bin"
    own = dist / f"bitlane-{bitlane.__version__}-py3-none-any.whl"
    alone = dist / f"cppsim-{cppsim.__version__}-py3-none-any.whl"
    install = [bin_folder / "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*install, f"bitlane[sim] @ {own.as_uri()}", f"cppsim @ {alone.as_uri()}", folder=tmp_path)

    told = run(bin_folder / "bitlane", "info", "sim", folder=tmp_path)
    assert re.search(r"^state +idle$", told, flags=re.M), told
    computed = run(bin_folder / "python", "-c", SCRIPT, folder=tmp_path)
    assert computed == f"{bitlane.__version__} [254, 253, 252]\n"


def run(*words: str | Path, folder: Path) -> str:
    """Run a command in ``folder`` without this environment; return its output."""
    ran = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=clean(folder),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def clean(folder: Path) -> dict[str, str]:
    return {**without_python(), "BITLANE_CACHE": str(folder / "cache"), "BITLANE_DEVICE": "sim"}


def without_python() -> dict[str, str]:
    """Return the environment without the variables that Python reads."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


PROJECT = ROOT / "cppsim"
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
ALLOWED = next(
    text for text in SETTINGS["project"]["dependencies"] if text.startswith("amaranth")
).removeprefix("amaranth")
OLDEST = re.search(r">=([\d.]+)", ALLOWED)


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("wanted", ["oldest", "newest", "newest with pre-releases"])
def test_the_folder_alone_passes_its_tests(wanted: str, tmp_path: Path) -> None:
    assert OLDEST, f"{ALLOWED!r}: expected the oldest version"
    amaranth = f"amaranth=={OLDEST[1]}" if wanted == "oldest" else f"amaranth{ALLOWED}"
    folder = tmp_path / "cppsim"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pre = ["--pre"] if "pre-releases" in wanted else []
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *pre, amaranth], check=True)
    tools = SETTINGS["dependency-groups"]["test"]
    subprocess.run([*pip, "--editable", str(folder), *tools], check=True)
    tests = [python, "-m", "pytest", "-q", "-m", "not slow and not deep", "-n", "2"]
    ran = subprocess.run(
        tests, cwd=folder, env=without_python(), capture_output=True, text=True, check=False
    )
    freeze = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout
    print(*re.findall(r"^amaranth==.*$", listed, flags=re.M), ran.stdout.splitlines()[-1:])
    assert ran.returncode == 0, ran.stdout[-5000:]
