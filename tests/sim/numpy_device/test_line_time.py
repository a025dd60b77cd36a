"""The seconds of a line, against the bytes of its frames and those at a board's simulated pins."""

import json

import pytest

from bitlane_rtl.abi.frames import FRAME_DATA_BYTES
from bitlane_sim.numpy_device.line_time import gigabit_line, serial_line
from support.docs.pages import ROOT
from support.serial.frames import frame, write

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
