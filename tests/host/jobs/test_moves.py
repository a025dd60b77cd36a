"""Moves become COPY commands, one for moves at equal distances, that copy each block."""

import numpy as np
import pytest

from bitlane.jobs.moves import MovedBlock, Moves, lower_moves
from support.host.arrays import model, random

ROW = MovedBlock((4,), (2,), (2,), 2)


@pytest.mark.parametrize(
    ("sources", "targets", "commands"),
    [
        ([], [], 0),
        ([5], [5], 1),
        ([5, 7], [0, 1], 2),
        ([0, 1, 2], [0, 1, 2], 1),
        ([3, 2, 1, 0], [0, 1, 2, 3], 1),
        ([0, 0, 0], [2, 4, 6], 1),
        ([0, 1, 2, 3], [0, 1, 3, 4], 4),
        ([7, 1, 2, 3, 4, 0], [0, 1, 2, 3, 4, 5], 3),
        ([1, 2, 3, 5, 7], [0, 1, 2, 3, 4], 3),
    ],
)
def test_moves(sources: list[int], targets: list[int], commands: int) -> None:
    with model() as device:
        a = random((8, 4), "u2")
        base = device.driver.geometry.memory_base
        there = base + 4096
        device.driver.write(base, a.view(np.uint8).reshape(-1))
        device.driver.write(there, np.zeros(a.nbytes, np.uint8))
        whole = [np.array(places, np.int64) * 8 for places in (sources, targets)]
        moves = Moves(ROW, base + whole[0], there + whole[1])
        lowered = list(lower_moves(moves, device.driver.geometry))
        assert len(lowered) == commands
        assert [command.fence for command in lowered] == [True, *[False] * commands][:commands]
        device.driver.run(lowered)
        wanted = np.zeros_like(a)
        if sources:
            wanted[targets] = a[sources]
        got = device.driver.read(there, a.nbytes)
        assert got.tobytes() == wanted.tobytes()
