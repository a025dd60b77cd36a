"""`bitlane bench --search`: cycles of the search array as they are expected, beside its peers."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bitlane_rtl.configuration import Search
from bitlane_sim.bench import modes
from bitlane_sim.bench.search import SearchRow, configured, measure_search
from bitlane_sim.numpy_device.cycles import search_cycles
from support.command_line import CommandLine

pytestmark = pytest.mark.slow

SEARCH = Search(units=4, row_bits=64, queries=16, nearest=4)
ROW = SearchRow(
    rows=1000, row_bits=512, queries=100, cycles=50_000, expected=50_000, faiss=3e8, numpy=1e7
)


def test_the_circuit_takes_the_cycles_that_are_expected() -> None:
    configuration = configured(SEARCH, 4096)
    rows = list(measure_search(configuration, 4096, (1, 16), "compiled", lambda text: None))
    assert [row.queries for row in rows] == [1, 16]
    assert all(row.met for row in rows), rows
    assert all(row.numpy > 0 for row in rows)


def test_what_is_expected_adds_up() -> None:
    """Two tiles of four units, the second of one row, for two queries; every row is a hit."""
    configuration = configured(replace(SEARCH, nearest=1), 5)
    stored = 2 + 4 + 2 + 3  # the beats of the queries and of the first tile, and its load
    tiles = (4 + 2 + 1) + (1 + 2 + 1)  # each loads its rows, and takes the queries
    hits = 10 + (3 + 5 - 1)  # ten still wait; the last one has the latency of the units
    lists = 32 + 5 + 2 * (2 + 1)  # behind all FIFOs of hits, whose depth is 32
    assert search_cycles(configuration, 5, 2) == stored + tiles + hits + lists


@pytest.mark.parametrize(
    ("cycles", "met"), [(47_600, True), (52_400, True), (52_600, False), (47_400, False)]
)
def test_five_per_cent_are_met(cycles: int, met: bool) -> None:
    assert replace(ROW, cycles=cycles).met is met


def measures(*rows: SearchRow) -> object:
    def measure(*ignored: object) -> Iterator[SearchRow]:
        yield from rows

    return measure


def test_the_fastest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    slow = replace(ROW, cycles=1_000_000, expected=1_000_000)
    monkeypatch.setattr(modes, "measure_search", measures(ROW, slow))
    file = tmp_path / "search.json"
    ran = cli("bench", "--search", "--check", "--evaluator", "pysim", "--json", str(file))
    assert ran.code == 0
    shown = ran.out.splitlines()
    assert shown[-2].endswith(" 1.000   0.200   0.300   0.010  FAISS is the fastest")
    assert shown[-1].endswith(" 1.000   0.010   0.300   0.010  FAISS is the fastest")
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["comparisons"] for row in rows] == [2e8, 1e7]


def test_a_search_that_takes_longer_is_not_met(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    late = replace(ROW, cycles=60_000)
    monkeypatch.setattr(modes, "measure_search", measures(late))
    words = ("bench", "--search", "--evaluator", "pysim")
    assert cli(*words).code == 0
    assert cli(*words, "--check").code == 1


def test_faiss_may_be_missing(monkeypatch: pytest.MonkeyPatch, cli: CommandLine) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    configuration = configured(SEARCH, 64)
    (row,) = measure_search(configuration, 64, (2,), "compiled", lambda text: None)
    assert row.faiss == 0
    monkeypatch.setattr(modes, "measure_search", measures(row))
    ran = cli("bench", "--search", "--evaluator", "pysim")
    assert ran.code == 0
    assert "missing" in ran.out
    assert ran.out.endswith("FAISS is not installed: pip install faiss-cpu\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--units", "4"], "--units: goes only with --search"),
        (["--search", "--plot", "picture.png"], "--plot: goes only without --search"),
        (["--units", "0"], "--units: goes only with --search"),
        (["--search", "--units", "2000"], "search.units: 2000 is outside 1 to 1024"),
        (["--search", "--units", "0"], "search.units: 0 is outside 1 to 1024"),
        (["--search", "--mhz", "0"], "--mhz: 0; expected 1 or more"),
    ],
)
def test_bad_input(words: list[str], message: str, cli: CommandLine) -> None:
    assert cli.refuse("bench", *words) == f"bitlane: {message}"
