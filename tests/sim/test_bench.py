"""`bitlane bench` measures the circuit in cycles, by cause, and prints which rows are met.

The rows themselves are recorded; `tests/docs/test_written.py` measures them again.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bitlane.command_line import UNUSABLE
from bitlane.driver import Command
from bitlane_rtl.abi import Lane, Op
from bitlane_rtl.configuration import Configuration, Search
from bitlane_sim import commands
from bitlane_sim.bench import modes
from bitlane_sim.bench.contract import Row, full_engine
from bitlane_sim.bench.job import execute
from bitlane_sim.bench.plot import draw
from bitlane_sim.bench.profile import Point, Profile, Spent, Waits, bursts, spend
from bitlane_sim.bench.search import SearchRow, configured, measure_search
from bitlane_sim.commands import move
from bitlane_sim.device import Simulator
from bitlane_sim.numpy_device import search_cycles
from cppsim.errors import SimulationError
from support.command_line import CommandLine

pytestmark = pytest.mark.any_face


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with closing(Simulator(Configuration(), "compiled")) as simulator:
        yield simulator


def test_traffic_counts_from_the_doorbell(simulator: Simulator) -> None:
    traffic = execute(simulator, [move(Op.XOR, 256, 0, 1024, 4096)])
    assert traffic.beats == {"r": 32, "r_b": 32, "w": 32}
    assert (traffic.first, traffic.last, traffic.done) == (14, 45, 46)
    assert (traffic.written, traffic.bound, traffic.writing) == (32, 32, 32)


def test_command_that_is_refused_is_an_error(simulator: Simulator) -> None:
    with pytest.raises(SimulationError, match="FAULT 0x307"):
        execute(simulator, [move(Op.NOT, 64, 1 << 30, None, 0)])


def test_queued_commands_do_not_overlap() -> None:
    queue = commands.queue(Op.XOR, 3, 64, a=1, y=2)
    assert [each.y.base - commands.Y for each in queue] == [2, 130, 258]
    assert [each.a.base - commands.A for each in queue] == [1, 129, 257]
    assert all(each.b is not None and each.run == 64 for each in queue)


def test_goals_bound_from_below_or_above() -> None:
    assert not Row("w", 64, "beat/cycle", 1.0, 0.98, None, 0.97).met
    assert Row("w", 64, "beat/cycle", 1.0, 0.98, None, 0.98).met
    assert Row("w", 64, "cycles", 11, 20, 14, 20, less=True).met
    assert not Row("w", 64, "cycles", 11, 20, 14, 21, less=True).met
    assert Row("w", 64, "cycles", 0, 0, 1, 0, less=True).ratio is None
    assert Row("w", 128, "cycles", 7, None, 10, 99, less=True).met is None


def _measures(*rows: Any) -> Callable[..., Iterator[Any]]:
    def measure(*ignored: object) -> Iterator[Any]:
        yield from rows

    return measure


def test_table_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine) -> None:
    file = tmp_path / "bench.json"
    met = Row("w", 64, "cycles", 11, 20, 14, 20, less=True)
    monkeypatch.setattr(modes, "measure", _measures(met))
    ran = cli("bench", "--width", "64", "--check", "--json", str(file))
    record = json.loads(file.read_text())
    assert record["kind"] == "cycles"
    assert set(record["versions"]) == {"bitlane", "Python", "amaranth"}
    assert [(row["work"], row["measured"]) for row in record["rows"]] == [("w", 20)]
    assert ran.code == 0
    assert "1 of 1 rows met" in ran.out
    assert list(tmp_path.iterdir()) == [file]


def test_missed_goal_is_shown_and_fails_when_checked(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    missed = Row("slow work", 32, "beat/cycle", 1.0, 0.98, 0.9, 0.5)
    monkeypatch.setattr(modes, "measure", _measures(missed))
    ran = cli("bench", "--width", "32")
    assert ran.code == 0
    assert "0.980   1.000  0.900    0.5000  0.500  NO" in ran.out
    assert "0 of 1 rows met" in ran.out
    assert cli("bench", "--width", "32", "--check").code == 1


def test_failed_run_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    def broken(*ignored: object) -> Iterator[Row]:
        raise SimulationError("bench: the engine stopped with FAULT 0x1")

    monkeypatch.setattr(modes, "measure", broken)
    ran = cli("bench", "--json", str(tmp_path / "bench.json"))
    line = "bitlane: bench: the engine stopped with FAULT 0x1\n"
    assert (ran.code, ran.err) == (UNUSABLE, line)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--width", "48"], "invalid choice: 48"),
        (["--evaluator", "verilator"], "invalid choice: 'verilator'"),
        (["--json", "nowhere/at/all.json"], "expected a folder that is there; nowhere/at is not"),
        (["--json", "."], "--json: .; expected a file, not a folder"),
        (["--json", "/proc/bench.json"], "expected a folder that can be written to; /proc cannot"),
        (["--plot", "nowhere/picture.png"], "--plot: nowhere/picture.png; expected a folder"),
        (["--plot", "picture.tex"], "--plot: picture.tex ends in none of .png, .svg, .pdf"),
        (["--search", "--width", "32"], "--width: goes only without --search"),
        (["--mhz", "50"], "--mhz: goes only with --search"),
        (["--units", "4"], "--units: goes only with --search"),
        (["--search", "--plot", "picture.png"], "--plot: goes only without --search"),
        (["--units", "0"], "--units: goes only with --search"),
        (["--search", "--units", "2000"], "search.units: 2000 is outside 1 to 1024"),
        (["--search", "--units", "0"], "search.units: 0 is outside 1 to 1024"),
        (["--search", "--mhz", "0"], "--mhz: 0; expected 1 or more"),
    ],
)
def test_bad_input(words: list[str], message: str, cli: CommandLine) -> None:
    assert message in cli.refuse("bench", *words)


# --- cycles by cause ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profiled() -> Iterator[Simulator]:
    with closing(Simulator(full_engine(64, 2), "pysim")) as simulator:
        yield simulator


@pytest.mark.slow
def test_bursts_end_where_blocks_do() -> None:
    assert bursts([(0, 64 * 4)], 4) == [16, 16, 16, 16]
    assert bursts([(56, 16)], 4) == [2, 2]
    assert bursts([(3, 1)], 4) == [1]
    assert bursts([(3, 2)], 4) == [2]
    assert bursts([(127, 2), (0, 4)], 8) == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "latency", "expected"),
    [
        (commands.logic(Op.NOT, 64), 0, Waits(busy=8, read_a=1, read_b=0, write=1, command=12)),
        (commands.logic(Op.XOR, 512), 0, Waits(busy=64, read_a=1, read_b=0, write=1, command=12)),
        # The memory is late twice: with the first beat, and with the response.
        (
            commands.logic(Op.XOR, 512),
            30,
            Waits(busy=64, read_a=31, read_b=0, write=31, command=12),
        ),
        # Four elements a beat, one element a cycle.
        (commands.gather(64), 0, Waits(busy=16, read_a=40, read_b=0, write=1, command=22)),
        (commands.scatter(64), 0, Waits(busy=64, read_a=1, read_b=0, write=1, command=13)),
    ],
)
def test_cycles_by_cause(
    profiled: Simulator, command: Command, latency: int, expected: Waits
) -> None:
    assert spend(profiled, command, latency=latency) == expected


@pytest.mark.slow
def test_causes_sum_to_the_time_it_took(profiled: Simulator) -> None:
    for command in (commands.rows(4), commands.count(Lane.BITS_64, Lane.BITS_8, 512)):
        whole = execute(profiled, [command], latency=3, stall=0.5).done
        assert spend(profiled, command, latency=3, stall=0.5).total == whole


@pytest.mark.slow
def test_slow_second_operand_is_blamed(profiled: Simulator) -> None:
    """Stalls of the write port are its own; those of R delay whichever operand they hit."""
    waits = spend(profiled, commands.logic(Op.XOR, 2048), stall=0.8)
    assert waits.busy == 256
    assert min(waits.read_a, waits.read_b, waits.write) > 0


@pytest.mark.slow
def test_picture_is_drawn_and_reproducible(tmp_path: Path) -> None:
    points = tuple(
        Point(op, 32, ports, size, bound * size / (size + 64), bound)
        for op, ports, bound in (("NOT", 2, 1.0), ("XOR", 1, 0.5))
        for size in (64, 4096, 65536)
    )
    spent = (
        Spent("64 B NOT", 32, Waits(8, 1, 0, 1, 10)),
        Spent("gather", 32, Waits(1, 7, 0, 0, 0)),
    )
    files = [tmp_path / name for name in ("one.png", "two.png", "one.svg", "two.svg")]
    for file in files:
        draw(Profile(points, spent), file)
    pictures = [file.read_bytes() for file in files]
    assert pictures[0].startswith(b"\x89PNG")
    assert b"<svg" in pictures[2]
    assert pictures[0] == pictures[1]
    assert pictures[2] == pictures[3]


# --- bitlane bench --search -----------------------------------------------------------------------


SEARCH = Search(units=4, row_bits=64, queries=16, nearest=4)
ROW = SearchRow(
    rows=1000, row_bits=512, queries=100, cycles=50_000, expected=50_000, faiss=3e8, numpy=1e7
)


@pytest.mark.slow
def test_the_circuit_takes_the_cycles_that_are_expected() -> None:
    configuration = configured(SEARCH, 4096)
    rows = list(measure_search(configuration, 4096, (1, 16), "compiled", lambda text: None))
    assert [row.queries for row in rows] == [1, 16]
    assert all(row.met for row in rows), rows
    assert all(row.numpy > 0 for row in rows)


@pytest.mark.slow
def test_what_is_expected_adds_up() -> None:
    """Two tiles of four units, the second of one row, for two queries; every row is a hit."""
    configuration = configured(replace(SEARCH, nearest=1), 5)
    stored = 2 + 4 + 2 + 3  # the beats of the queries and of the first tile, and its load
    tiles = (4 + 2 + 1) + (1 + 2 + 1)  # each loads its rows, and takes the queries
    hits = 10 + (3 + 5 - 1)  # ten still wait; the last one has the latency of the units
    lists = 32 + 5 + 2 * (2 + 1)  # behind all FIFOs of hits, whose depth is 32
    assert search_cycles(configuration, 5, 2) == stored + tiles + hits + lists


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cycles", "met"), [(47_600, True), (52_400, True), (52_600, False), (47_400, False)]
)
def test_five_per_cent_are_met(cycles: int, met: bool) -> None:
    assert replace(ROW, cycles=cycles).met is met


@pytest.mark.slow
def test_the_fastest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    far = replace(ROW, cycles=1_000_000, expected=1_000_000)
    monkeypatch.setattr(modes, "measure_search", _measures(ROW, far))
    file = tmp_path / "search.json"
    ran = cli("bench", "--search", "--check", "--evaluator", "pysim", "--json", str(file))
    assert ran.code == 0
    shown = ran.out.splitlines()
    assert shown[-2].endswith(" 1.000   0.200   0.300   0.010  FAISS is the fastest")
    assert shown[-1].endswith(" 1.000   0.010   0.300   0.010  FAISS is the fastest")
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["comparisons"] for row in rows] == [2e8, 1e7]


@pytest.mark.slow
def test_a_search_that_takes_longer_is_not_met(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    late = replace(ROW, cycles=60_000)
    monkeypatch.setattr(modes, "measure_search", _measures(late))
    words = ("bench", "--search", "--evaluator", "pysim")
    assert cli(*words).code == 0
    assert cli(*words, "--check").code == 1


@pytest.mark.slow
def test_faiss_may_be_missing(monkeypatch: pytest.MonkeyPatch, cli: CommandLine) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    configuration = configured(SEARCH, 64)
    (row,) = measure_search(configuration, 64, (2,), "compiled", lambda text: None)
    assert row.faiss == 0
    monkeypatch.setattr(modes, "measure_search", _measures(row))
    ran = cli("bench", "--search", "--evaluator", "pysim")
    assert ran.code == 0
    assert "missing" in ran.out
    assert ran.out.endswith("FAISS is not installed: pip install faiss-cpu\n")
