"""The wheels work in an environment that holds nothing else.

`make package` installs them on every Python that they allow; a version that is not on the PATH
fails its test. pip installs the wheels' requirements.
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
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "BITLANE_CACHE": str(folder / "cache"), "BITLANE_DEVICE": "sim"}
