"""`bitlane bench` measures in cycles what the circuit does, and says which rows are met."""

import json
from pathlib import Path

import pytest

from bitlane.cli import main
from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from bitlane_sim.bench.contract import Row
from bitlane_sim.bench.job import execute, move
from bitlane_sim.evaluator import SimulationError
from bitlane_sim.simulator import Simulator


def test_traffic_counts_from_the_doorbell() -> None:
    simulator = Simulator(Configuration(data_width=64, memory_bytes=1 << 16), "pysim")
    traffic = execute(simulator, [move(Op.XOR, 256, 0, 1024, 4096)])
    simulator.close()
    assert traffic.beats == {"r": 32, "r_b": 32, "w": 32}
    assert (traffic.first, traffic.last, traffic.done) == (12, 43, 44)
    assert (traffic.written, traffic.bound, traffic.writing) == (32, 32, 32)


def test_command_that_is_refused_is_an_error() -> None:
    simulator = Simulator(Configuration(data_width=64, memory_bytes=1 << 16), "pysim")
    with pytest.raises(SimulationError, match="FAULT 0x307"):
        execute(simulator, [move(Op.NOT, 64, 1 << 16, None, 0)])
    simulator.close()


def test_goals_bound_from_below_or_above() -> None:
    assert not Row("w", 64, "beat/cycle", 1.0, 0.98, "-", 0.97).met
    assert Row("w", 64, "beat/cycle", 1.0, 0.98, "-", 0.98).met
    assert Row("w", 64, "cycles", 11, 20, "-", 20, less=True).met
    assert not Row("w", 64, "cycles", 11, 20, "-", 21, less=True).met
    assert Row("w", 64, "cycles", 0, 0, "-", 0, less=True).ratio is None


def test_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    assert main(["bench", "--width", "64", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    rows = json.loads(file.read_text())
    assert len(rows) == 16
    missed = [row["work"] for row in rows if not row["met"]]
    assert f"{16 - len(missed)} of 16 rows met" in printed
    assert missed == ["256 rows of 64 B at odd addresses"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--width", "48"], "invalid choice: 48"),
        (["--evaluator", "verilator"], "invalid choice: 'verilator'"),
        (["--json", "nowhere/at/all.json"], "is no folder"),
    ],
)
def test_bad_input(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["bench", *words])
    except SystemExit as stop:
        code = stop.code  # type: ignore[assignment]
    assert code == 2
    assert message in capsys.readouterr().err
