"""examples/soc: the exported core and driver work in a third-party system, as its page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "soc"


def test_the_processor_finds_every_byte_right(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLE / "simulate.py", tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, flags=re.M | re.S)
    # The number of cycles depends on the compiler.
    printed, shown = (re.sub(r"\d+ cycles", "N cycles", x) for x in (ran.stdout, shown))
    assert printed == shown


def test_every_file_of_it_is_told() -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    table = "".join(line for line in page.splitlines() if line.startswith("| `"))
    files = {path.name for path in EXAMPLE.iterdir() if path.is_file()} - {"README.md"}
    assert set(re.findall(r"`(\w+\.\w+)`", table)) == files
