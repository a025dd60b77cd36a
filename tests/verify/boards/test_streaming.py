"""A tensor larger than the board's memory takes the time of the line, at the board's own pins."""

from collections.abc import Callable

import numpy as np
import pytest

from bitlane import Device
from bitlane.driver import Driver
from bitlane_boards import boards
from bitlane_boards.readback import rtl_model
from support.boards.session import SILENCE, connect, opened
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS]

BOARD = boards()["icebreaker"]
SIZE = 1 << 19


def test_a_unary_operator_takes_the_time_of_the_line(
    record_property: Callable[[str, object], None],
) -> None:
    assert 4 * BOARD.configuration.memory_bytes <= SIZE
    x = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    port = opened(rtl_model(BOARD), BOARD)
    link = connect(port, BOARD.name)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        started = port.seconds
        y = device.bit_not(x)
        took = port.seconds - started
    port.close()
    assert (y == ~x).all()
    line = SIZE * 10 / BOARD.baud
    record_property("report", f"{SIZE} bytes NOT: {took / line:.3f} of the line's time")
    assert took <= 1.1 * line
