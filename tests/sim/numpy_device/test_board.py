"""`numpy?board=NAME`: a board's circuit, and the seconds that its circuit and line would take."""

import json
import random

import numpy as np
import pytest

import bitlane
from bitlane.command_line.cli import DONE, main
from bitlane.links.link import Link
from bitlane.links.predicted import Predicted, duration
from bitlane_boards import boards
from bitlane_boards.predicted import predicted_boards
from bitlane_rtl.abi.frames import FRAME_DATA_BYTES
from bitlane_sim.numpy_device.counters import PredictedCounters
from bitlane_sim.numpy_device.line_time import gigabit_line, serial_line
from bitlane_sim.numpy_device.link import NumpyLink, open_link
from support.commands import RandomCommands
from support.docs.pages import ROOT
from support.rtl.records import pack
from support.serial.frames import frame, write
from support.sim.beside import submit

EXAMPLES = ROOT / "examples"


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
    for number in range(40):
        task = draws.draw(chance, base + 2048)
        words = pack(task)
        spent = submit(counters, [words], [(len(words), True)])
        a, b, y = spent.a_beats, spent.b_beats, spent.y_beats
        assert min(a, y) > 0, f"{number}: {task}"
        assert spent.busy > max(a, b, y), f"{number}: {task}"


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


# --- the seconds of a line, against its frames and those at a board's simulated pins --------------

BAUD = 3_000_000

FIGURES = ROOT / "docs/measurements/network.json"


@pytest.mark.parametrize("frames", [1, 7, 100])
def test_a_write_on_a_serial_line_takes_the_bits_of_its_frames(frames: int) -> None:
    data = bytes(range(256)) * (FRAME_DATA_BYTES // 256)
    sent = frame(write(1, 0x1000, data))
    assert serial_line(BAUD).write(frames * len(data)) == pytest.approx(
        frames * len(sent) * 10 / BAUD + serial_line(BAUD).request, rel=2e-3
    )


def test_the_network_takes_what_was_simulated_at_the_pins_of_a_board() -> None:
    line, simulated = gigabit_line(), json.loads(FIGURES.read_text("utf-8"))["rows"]
    # Between parts of a long write, the line is idle for a moment.
    assert 1e-6 / line.up == pytest.approx(simulated["MB/s"]["up"], rel=5e-3)
    assert 1e-6 / line.down == pytest.approx(simulated["MB/s"]["down"], rel=2e-3)
    # A byte has ten bits on a serial line.
    assert [round(1e-6 / x, 1) for x in (serial_line(BAUD).up, serial_line(BAUD).down)] == [0.3] * 2
    for size in (4, 64):
        seconds = simulated["us"][f"a READ of {size} bytes"]
        assert line.read(size) * 1e6 == pytest.approx(seconds, rel=0.05)
    seconds = simulated["us"]["a WRITE of 64 bytes"]
    assert line.write(64) * 1e6 == pytest.approx(seconds, rel=0.15)
