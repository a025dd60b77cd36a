"""The cost of a command is the beats of the busiest port, counted here byte by byte."""

from dataclasses import replace

import pytest

from bitlane.driver.commands import Command, Walk
from bitlane.lowering.cost import beats, cycles
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.arrays import model

ABILITIES = model(data_bytes=8).driver.geometry.abilities


def dense(base: int, size: int, jumps: tuple[int, ...] = ()) -> Walk:
    return Walk(base, base + size - 1, jumps=jumps)


def touched(starts: list[int], size: int) -> int:
    """Return the beats of runs of ``size`` bytes that begin at ``starts``."""
    return sum((start + size - 1) // 8 - start // 8 + 1 for start in starts)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 40])
@pytest.mark.parametrize("base", [0, 1, 7, 8, 77])
def test_a_dense_run_takes_the_beats_that_it_touches(base: int, size: int) -> None:
    command = Command(
        Op.NOT, Lane.BITS_8, Lane.BITS_8, size, dense(base, size), None, dense(0, size)
    )
    assert beats(command, ABILITIES) == touched([base], size)
    turned = replace(command, a=command.y, y=command.a)
    assert beats(turned, ABILITIES) == touched([base], size)


@pytest.mark.parametrize("step", [8, 9, 12, 16])
@pytest.mark.parametrize("base", [0, 3])
def test_runs_take_the_beats_of_all_their_offsets(base: int, step: int) -> None:
    """Eight runs begin at each offset as often as at any other."""
    a = dense(base, 5 + 7 * step, (step,))
    y = replace(dense(0, 1), mode=Mode.REPEAT, jumps=(0,))
    command = Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, 5, a, None, y, counts=(8,))
    assert beats(command, ABILITIES) == touched([base + step * k for k in range(8)], 5)


def test_one_port_reads_both_operands() -> None:
    command = Command(
        Op.AND, Lane.BITS_8, Lane.BITS_8, 64, dense(0, 64), dense(64, 64), dense(128, 64)
    )
    assert beats(command, ABILITIES) == 8
    assert beats(command, replace(ABILITIES, read_ports=1)) == 16
    gathered = replace(command, b=Walk(64, 64, Mode.STRIDED, 2))
    assert beats(gathered, ABILITIES) == 64
    repeated = replace(command, a=Walk(0, 0, Mode.REPEAT), b=Walk(64, 64, Mode.REPEAT))
    assert beats(repeated, replace(ABILITIES, read_ports=1)) == 8


def test_a_command_with_a_fence_waits() -> None:
    command = Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, 512, dense(0, 512), None, dense(512, 512))
    plain = cycles([command] * 3, ABILITIES)
    assert cycles([command] * 2, ABILITIES) == plain - 64
    fenced = replace(command, fence=True)
    assert cycles([command, fenced, command], ABILITIES) > plain
    assert cycles([], ABILITIES) == 0
