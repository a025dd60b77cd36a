"""`bitlane bench` measures the circuit in cycles and prints which rows are met.

The rows themselves are recorded; `tests/docs/test_written.py` measures them again.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bitlane.command_line.cli import UNUSABLE
from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from bitlane_sim.bench import modes
from bitlane_sim.bench.contract import Row
from bitlane_sim.bench.job import execute
from bitlane_sim.campaigns import commands
from bitlane_sim.campaigns.commands import move
from bitlane_sim.device.simulator import Simulator
from cppsim.errors import SimulationError
from support.command_line import CommandLine


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


def _measures(row: Row) -> Callable[..., Iterator[Row]]:
    def measure(*ignored: object) -> Iterator[Row]:
        yield row

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
    ],
)
def test_bad_input(words: list[str], message: str, cli: CommandLine) -> None:
    assert message in cli.refuse("bench", *words)
