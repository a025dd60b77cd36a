"""Every board as it is built: validated at its pins, and cycle by cycle the RTL.

iCE40 from the bitstream file, ECP5 from the routed netlist, Gowin from the synthesised one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane_boards import boards
from bitlane_boards.readback.netlist import rtl_model
from bitlane_sim.pins import PinModel, PinSimulation
from support.boards.board_builds import readback
from support.boards.session import SILENCE, connect, opened, validated

BOARDS = sorted(set(boards()) - {"icebreaker-bram"})


@pytest.mark.parametrize("name", BOARDS)
def test_board_passes_validation(name: str, record_property: Callable[[str, object], None]) -> None:
    model = readback(name)
    assert validated(model, boards()[name]) == ""
    record_property("report", f"{model.description}: validated")


def traffic(model: PinModel, name: str) -> list[bytes]:
    """What a host writes for a job of every part of the board, beginning with its greeting."""
    board = boards()[name]
    port = opened(model, board)
    random = np.random.default_rng(2)
    a, b = (random.integers(0, 1 << 32, 100, np.uint32) for _ in range(2))
    link = connect(port, name)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        assert (device.bit_xor(a, b) == a ^ b).all()
        assert (device.bit_count(a) == np.bitwise_count(a)).all()
        assert (device.bit_and(a[1:], b[:-1]) == a[1:] & b[:-1]).all()
        return list(port.writes)


def replay(model: PinModel, name: str, writes: list[bytes]) -> list[tuple[bytes, Any]]:
    """Answers to each write, and the cycles in which their bytes came, counted from the write."""
    board = boards()[name]
    simulation = PinSimulation(model, board.clock_hz / board.baud)
    simulation.run(round(100e-6 * board.clock_hz))
    simulation.receive()
    answers = []
    for data in writes:
        began = simulation.cycle
        simulation.send(data)
        assert simulation.settle(quiet=100 * board.divider, limit=board.clock_hz)
        got, cycles = simulation.receive_timed()
        answers.append((got.tobytes(), (cycles - np.uint64(began)).tolist()))
    simulation.close()
    return answers


@pytest.mark.parametrize("name", BOARDS)
def test_board_answers_like_its_rtl_in_every_cycle(name: str) -> None:
    writes = traffic(readback(name), name)
    built = replay(readback(name), name, writes)
    written = replay(rtl_model(boards()[name]), name, writes)
    assert sum(len(answer) for answer, _ in built) > 1000
    for number, (one, other) in enumerate(zip(built, written, strict=True)):
        assert one == other, f"write {number}: {writes[number].hex()}"


@pytest.mark.parametrize("name", sorted(boards()))
def test_board_passes_validation_before_it_is_built(name: str) -> None:
    assert validated(rtl_model(boards()[name]), boards()[name]) == ""
