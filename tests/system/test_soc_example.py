"""examples/soc: the exported core and driver work in a third-party system, as its page says."""

import re
import sys
from pathlib import Path

import pytest

from support.processes import succeed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_circuit,
    pytest.mark.any_face,
    pytest.mark.reads("examples"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "soc"


@pytest.mark.parametrize("bus", ["axi4", "wishbone"])
def test_the_processor_finds_every_byte_right(bus: str, tmp_path: Path) -> None:
    output = succeed(sys.executable, EXAMPLE / "simulate.py", "--bus", bus, tmp_path)
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, flags=re.M | re.S)
    # The number of cycles depends on the compiler.
    printed, shown = (re.sub(r"\d+ cycles", "N cycles", x) for x in (output, shown))
    assert printed == shown


def test_every_file_of_it_is_told() -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    table = "".join(line for line in page.splitlines() if line.startswith("| `"))
    files = {path.name for path in EXAMPLE.iterdir() if path.is_file()} - {"README.md"}
    assert set(re.findall(r"`(\w+\.\w+)`", table)) == files
