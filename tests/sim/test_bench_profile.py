"""Every cycle of a job has one cause, and the picture shows them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bitlane.driver.commands import Command
from bitlane_rtl.abi import Lane, Op
from bitlane_sim.bench.contract import full_engine
from bitlane_sim.bench.job import execute
from bitlane_sim.bench.plot import draw
from bitlane_sim.bench.profile import Point, Profile, Spent, Waits, bursts, spend
from bitlane_sim.campaigns import commands
from bitlane_sim.device.simulator import Simulator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    simulator = Simulator(full_engine(64, 2), "pysim")
    yield simulator
    simulator.close()


def test_bursts_end_where_blocks_do() -> None:
    assert bursts([(0, 64 * 4)], 4) == [16, 16, 16, 16]
    assert bursts([(56, 16)], 4) == [2, 2]
    assert bursts([(3, 1)], 4) == [1]
    assert bursts([(3, 2)], 4) == [2]
    assert bursts([(127, 2), (0, 4)], 8) == [1, 1, 1]


@pytest.mark.parametrize(
    ("command", "latency", "expected"),
    [
        (commands.logic(Op.NOT, 64), 0, Waits(busy=8, read_a=1, read_b=0, write=1, command=12)),
        (commands.logic(Op.XOR, 512), 0, Waits(busy=64, read_a=1, read_b=0, write=1, command=12)),
        # The memory is late twice: with the first beat, and with the response.
        (
            commands.logic(Op.XOR, 512),
            30,
            Waits(busy=64, read_a=31, read_b=0, write=31, command=12),
        ),
        # Four elements a beat, one element a cycle.
        (commands.gather(64), 0, Waits(busy=16, read_a=40, read_b=0, write=1, command=22)),
        (commands.scatter(64), 0, Waits(busy=64, read_a=1, read_b=0, write=1, command=13)),
    ],
)
def test_cycles_by_cause(
    simulator: Simulator, command: Command, latency: int, expected: Waits
) -> None:
    assert spend(simulator, command, latency=latency) == expected


def test_causes_sum_to_the_time_it_took(simulator: Simulator) -> None:
    for command in (commands.rows(4), commands.count(Lane.BITS_64, Lane.BITS_8, 512)):
        whole = execute(simulator, [command], latency=3, stall=0.5).done
        assert spend(simulator, command, latency=3, stall=0.5).total == whole


def test_slow_second_operand_is_blamed(simulator: Simulator) -> None:
    """Stalls of the write port are its own; those of R delay whichever operand they hit."""
    waits = spend(simulator, commands.logic(Op.XOR, 2048), stall=0.8)
    assert waits.busy == 256
    assert min(waits.read_a, waits.read_b, waits.write) > 0


def test_picture_is_drawn_and_reproducible(tmp_path: Path) -> None:
    points = tuple(
        Point(op, 32, ports, size, bound * size / (size + 64), bound)
        for op, ports, bound in (("NOT", 2, 1.0), ("XOR", 1, 0.5))
        for size in (64, 4096, 65536)
    )
    spent = (
        Spent("64 B NOT", 32, Waits(8, 1, 0, 1, 10)),
        Spent("gather", 32, Waits(1, 7, 0, 0, 0)),
    )
    files = [tmp_path / name for name in ("one.png", "two.png", "one.svg", "two.svg")]
    for file in files:
        draw(Profile(points, spent), file)
    pictures = [file.read_bytes() for file in files]
    assert pictures[0].startswith(b"\x89PNG")
    assert b"<svg" in pictures[2]
    assert pictures[0] == pictures[1]
    assert pictures[2] == pictures[3]
