"""The seconds of a line, against the bytes of its frames and the figures of the network's page."""

import re

import pytest

from bitlane_rtl.abi.frames import FRAME_DATA_BYTES
from bitlane_sim.numpy_device.line_time import gigabit_line, serial_line
from support.docs.pages import ROOT
from support.serial.frames import frame, write

BAUD = 3_000_000


@pytest.mark.parametrize("frames", [1, 7, 100])
def test_a_write_on_a_serial_line_takes_the_bits_of_its_frames(frames: int) -> None:
    data = bytes(range(256)) * (FRAME_DATA_BYTES // 256)
    sent = frame(write(1, 0x1000, data))
    assert serial_line(BAUD).write(frames * len(data)) == pytest.approx(
        frames * len(sent) * 10 / BAUD + serial_line(BAUD).request, rel=2e-3
    )


def figures(row: str) -> list[float]:
    """Return the numbers of a row of the page's table of rates."""
    text = (ROOT / "docs/network.md").read_text("utf-8")
    (line,) = re.findall(rf"^\| {re.escape(row)} \|(.*)$", text, re.M)
    return [float(each) for each in re.findall(r"\d+\.\d+", line)]


def test_the_network_takes_what_was_simulated_at_the_pins_of_a_board() -> None:
    line = gigabit_line()
    up, _, serial_up = figures("to the board")
    down, _, serial_down = figures("from the board")
    # Between parts of a long write, the line is idle for a moment.
    assert 1e-6 / line.up == pytest.approx(up, rel=4e-3)
    assert 1e-6 / line.down == pytest.approx(down, rel=2e-3)
    assert [round(1e-6 / x, 1) for x in (serial_line(BAUD).up, serial_line(BAUD).down)] == [
        serial_up,
        serial_down,
    ]
    few, more = figures("a READ of 4 bytes, of 64")
    assert line.read(4) * 1e6 == pytest.approx(few, rel=0.05)
    assert line.read(64) * 1e6 == pytest.approx(more, rel=0.05)
    (written,) = figures("a WRITE of 64 bytes")
    assert line.write(64) * 1e6 == pytest.approx(written, rel=0.15)
