"""cppsim's folder, alone in an empty environment, passes its tests with each Amaranth it allows.

The oldest version, the newest of the index, and the newest with pre-releases: the last two are
the same while the index has no pre-release.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = [pytest.mark.deep, pytest.mark.timeout(3600)]

PROJECT = Path(__file__).parents[2] / "cppsim"
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
ALLOWED = next(
    text for text in SETTINGS["project"]["dependencies"] if text.startswith("amaranth")
).removeprefix("amaranth")
OLDEST = re.search(r">=([\d.]+)", ALLOWED)


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
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(tests, cwd=folder, env=alone, capture_output=True, text=True, check=False)
    freeze = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout
    print(*re.findall(r"^amaranth==.*$", listed, flags=re.M), ran.stdout.splitlines()[-1:])
    assert ran.returncode == 0, ran.stdout[-5000:]
