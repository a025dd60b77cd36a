"""`numpy?board=NAME`: a board's circuit, and the seconds that its circuit and line would take."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

import bitlane
from bitlane.command_line.cli import DONE, main
from bitlane.errors import LinkError
from bitlane.links.link import Link
from bitlane.links.predicted import Predicted, duration
from bitlane_boards import boards
from bitlane_boards.predicted import predicted_boards
from bitlane_rtl.abi import RECORD_BYTES
from bitlane_sim.numpy_device.counters import PredictedCounters
from bitlane_sim.numpy_device.link import NumpyLink, open_link
from support.commands import RandomCommands
from support.rtl.records import pack

EXAMPLES = Path(__file__).parents[3] / "examples"


def opened(board: str) -> NumpyLink:
    return open_link(f"numpy?board={board}")


def prediction_of(link: Link) -> Predicted:
    assert link.prediction is not None
    return link.prediction


@pytest.mark.parametrize("name", boards())
def test_it_has_the_circuit_of_the_board(name: str) -> None:
    board = boards()[name]
    with bitlane.open(f"numpy?board={name}") as device:
        geometry, circuit = device.driver.geometry, board.configuration
        assert device.driver.link.description == (
            f"numpy model of {name}, {circuit.data_width} bits, no circuit"
        )
        assert geometry.data_bytes * 8 == circuit.data_width
        assert geometry.memory_bytes == circuit.memory_bytes
        assert (geometry.search is None) == (circuit.search is None)
        predicted = device.driver.link.prediction
    assert predicted is not None
    assert (predicted.board, predicted.clock_hz) == (name, board.clock_hz)
    assert predicted.line == (
        "gigabit Ethernet" if board.ethernet else f"serial line of {board.baud:,} baud"
    )


@pytest.mark.parametrize("name", boards())
def test_each_command_of_a_board_has_cycles(name: str) -> None:
    """As many as its busiest port carries beats, or more."""
    board = predicted_boards()[name]
    circuit, chance = board.configuration, random.Random(1)
    counters = PredictedCounters(circuit, board.memory)
    base = circuit.memory_base
    draws = RandomCommands(configuration=circuit, size=1024, a=base, b=base + 1024, long=0.2)
    before = counters.counts()
    for number in range(40):
        task = draws.draw(chance, base + 2048)
        words = np.array(pack(task), "<u4").tobytes()
        counters.wrote(len(words) // 4, ring=True)
        counters.submitted((words.ljust(RECORD_BYTES, b"\0"),))
        after = counters.counts()
        spent = [late - early for late, early in zip(after, before, strict=True)]
        busy, a, _, b, _, y, _ = spent
        assert min(a, y) > 0, f"{number}: {task}"
        assert busy > max(a, b, y), f"{number}: {task}"
        before = after


@pytest.mark.parametrize(("name", "counted"), [("icebreaker", False), ("ulx3s", True)])
def test_registers_count_only_where_the_circuit_does(name: str, counted: bool) -> None:
    with bitlane.open(f"numpy?board={name}") as device:
        assert device.bit_not(np.arange(100, dtype=np.uint8))[3] == 252
        assert any(device.driver.counters().values()) == counted
        assert device.driver.geometry.counters == counted
        predicted = device.driver.link.prediction
    assert predicted is not None
    assert predicted.cycles > 25


def test_without_a_board_nothing_is_predicted_in_seconds() -> None:
    with open_link("numpy") as link:
        assert link.prediction is None


@pytest.mark.parametrize("name", ["hx8k", "colorlight-i5"])
def test_each_call_takes_its_time_on_the_line(name: str) -> None:
    line = predicted_boards()[name].line
    with opened(name) as link:
        before = prediction_of(link)
        link.write(0, bytes(4000))
        written = prediction_of(link)
        assert (written - before).line_seconds == pytest.approx(line.write(4000))
        link.read(0, 1000)
        read = prediction_of(link)
        assert (read - written).line_seconds == pytest.approx(line.read(1000))
        link.wait(0)
        waited = prediction_of(link)
        assert (waited - read).line_seconds == pytest.approx(line.read(0))
        # Both directions at once: the slower one counts.
        link.exchange([(0, bytes(3000))], [(4096, 2000)])
        moved = (prediction_of(link) - waited).line_seconds
        assert moved == pytest.approx(max(line.write(3000), line.read(2000)))
        assert link.byte_seconds == pytest.approx(line.read(200_000) / 200_000, rel=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("board=hx9k", "option board: 'hx9k'; choose icebreaker, icebreaker-bram, hx8k, ulx3s,"),
        ("board=", "option board: ''; choose icebreaker,"),
        ("board=hx8k&width=64", "option width: beside board=hx8k, which has a circuit; expected"),
        ("memory=1MiB&board=hx8k", "option memory: beside board=hx8k, which has a circuit;"),
    ],
)
def test_other_options_are_refused_in_one_line(options: str, message: str) -> None:
    with pytest.raises(LinkError) as error:
        bitlane.open(f"numpy?{options}")
    assert str(error.value).startswith(f"device 'numpy?{options}': {message}")
    assert "\n" not in str(error.value)


def test_a_run_ends_with_what_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    model, device = str(EXAMPLES / "bit_xor.json"), "numpy?board=hx8k"
    assert main(["run", model, "--device", device]) == DONE
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Predicted, not measured: ")
    assert last.endswith("of serial line of 8,000,000 baud")
    assert "cycles at 72 MHz of hx8k)" in last
    assert main(["run", model, "--device", device, "--json"]) == DONE
    found = json.loads(capsys.readouterr().out)["predicted"]
    assert found["board"] == "hx8k"
    assert found["circuit_seconds"] == found["cycles"] / 72e6 > 0
    assert found["line_seconds"] > 0
    assert main(["run", model, "--device", "numpy"]) == DONE
    assert "Predicted" not in capsys.readouterr().out


@pytest.mark.parametrize("url", ["numpy", "numpy?board=ulx3s", "numpy?board=ulx3s-sdram"])
def test_explain_has_the_cycles_that_the_device_predicts(url: str) -> None:
    with bitlane.open(url) as device:
        x = device.asarray(np.arange(6250, dtype=np.uint64))
        y = ~(x >> 3)
        lines = str(bitlane.explain(y)).splitlines()
        device.driver.clear_counters()
        bitlane.compute(y)
        predicted = device.driver.link.prediction
        busy = device.driver.counters()["BUSY_CYCLES"]
    end = -2 if predicted is None else -3
    passes = [int(line.split()[-1].replace(",", "")) for line in lines[1:end]]
    cycles = int(lines[end].split()[-1].replace(",", ""))
    assert sum(passes) == cycles
    # The host writes the records of a job one by one, while the first command is executed; and the
    # operands of a dry run lie in other banks and rows.
    assert cycles == pytest.approx(busy, abs=8 if predicted is None else 0.005 * busy)
    if predicted is not None:
        assert lines[-1] == (
            f"predicted  {duration(cycles / predicted.clock_hz)} at {predicted.clock}"
        )
