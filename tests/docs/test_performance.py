"""The cycles on the pages are those of the circuit: those of the record."""

import json
from collections.abc import Iterable
from itertools import islice

import pytest

from bitlane_sim.bench.contract import Row, measure
from bitlane_sim.device.simulator import choose_evaluator
from support.docs.pages import ROOT

RECORD = ROOT / "docs" / "performance" / "cycles.json"


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
