"""The cycles on the pages are those of the circuit: the record, and the rows of README."""

import json
import re
from collections.abc import Iterable
from itertools import islice

import pytest

from bitlane_sim.bench.contract import Row, measure
from bitlane_sim.device.simulator import choose_evaluator
from support.docs.pages import ROOT

RECORD = ROOT / "docs" / "performance" / "cycles.json"

HEAD = "| Work, 64 bits | Unit | Bound | Measured |"


def recorded() -> list[dict[str, object]]:
    """Return the recorded rows of the engine of 64 bits."""
    return [row for row in json.loads(RECORD.read_text())["rows"] if row["width"] == 64]


def measured() -> Iterable[Row]:
    return measure([64], choose_evaluator(), lambda _: None)


def test_the_first_rows_are_what_the_circuit_takes() -> None:
    """They need one circuit, that of ``sim``."""
    rows = [json.loads(json.dumps(row.as_dict())) for row in islice(measured(), 11)]
    assert rows == recorded()[:11]


@pytest.mark.slow
def test_all_rows_are_what_the_circuit_takes() -> None:
    assert [json.loads(json.dumps(row.as_dict())) for row in measured()] == recorded()


def test_the_rows_of_the_readme_are_recorded() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition(HEAD)[2].partition("\n\n")[0]
    shown = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", table, flags=re.M)
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    section = page.partition("### 64 bits")[2].partition("###")[0]
    known = [re.split(r" +\| +", line.strip("| ")) for line in section.splitlines()]
    rows = {(row[0], row[1], row[3], row[5]) for row in known if len(row) == 8}
    assert len(shown) == 7
    assert set(shown[1:]) <= rows
