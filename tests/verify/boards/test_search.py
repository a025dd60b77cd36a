"""Search over a pseudo-terminal, in a database that lies in the SDRAM of a board at its pins."""

from dataclasses import replace

import numpy as np
import pytest

import bitlane
from bitlane_boards import boards
from bitlane_boards.pins import PinSimulation, PtyServer
from bitlane_boards.readback import rtl_model
from support.sim.answerer import serving

pytestmark = pytest.mark.slow

BOARD = replace(boards()["ulx3s-sdram"], baud=12_500_000)
"""With a line of 8 clocks a bit, which the board's bridge would not take: a quarter of the time."""


@pytest.mark.parametrize("rows", [1 << 10, pytest.param(1 << 13, marks=pytest.mark.deep)])
def test_the_nearest_rows_are_found(rows: int) -> None:
    random = np.random.default_rng(1)
    database = random.integers(0, 256, (rows, 64), np.uint8)
    queries = np.concatenate([random.integers(0, 256, (1, 64), np.uint8), database[-1:]])
    distances = np.bitwise_count(queries[:, None] ^ database).sum(-1, dtype=np.int32)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]

    simulation = PinSimulation(rtl_model(BOARD), BOARD.clock_hz / BOARD.baud)
    server = PtyServer(simulation, BOARD.clock_hz)
    server.warm_up()
    with serving(server), bitlane.open(f"serial:{server.name}?baud={BOARD.baud}") as device:
        index = bitlane.BinaryIndex(device, 512)
        index.add(database)
        found = index.search(queries, 10)
    server.close()
    simulation.close()
    assert (found[1] == nearest).all()
    assert (found[0] == np.take_along_axis(distances, nearest, 1)).all()
