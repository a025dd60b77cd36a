"""The report on LiteDRAM's read-modify-write: its program prints what the page shows."""

import subprocess
import sys

import pytest

from support.docs.pages import ROOT

pytestmark = pytest.mark.slow


def test_the_program_prints_what_the_page_shows() -> None:
    """If this fails with a newer LiteDRAM, the fault may be mended there."""
    page = (ROOT / "docs" / "litedram_report.md").read_text(encoding="utf-8")
    program = ROOT / "examples" / "litedram" / "read_modify_write.py"
    assert f"    python {program.relative_to(ROOT)}\n" in page
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert f"```text\n{done.stdout}```\n" in page
