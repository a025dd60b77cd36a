"""Jobs and moves act one behind the other, and strangers do not wait for each other."""

from collections.abc import Iterator

import numpy as np
import pytest

from bitlane.driver.commands import Command, Walk
from bitlane.driver.geometry import Geometry
from bitlane.lowering.fences import CommandGroup, insert_fences, lower_group
from bitlane.lowering.moves import MovedBlock, Moves, group_moves, lower_moves
from bitlane.lowering.strided import Streams, View
from bitlane_rtl.abi import Lane, Op
from support.host.arrays import model, random

SIZE = 16


def command(a: int, y: int, *, fence: bool = True) -> Command:
    source, target = (Walk(base, base + SIZE - 1) for base in (a, y))
    return Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, SIZE, source, None, target, fence=fence)


def group(a: int, y: int) -> CommandGroup:
    """``SIZE`` bytes from address ``a`` to ``y``, in two commands."""
    commands = [command(a, y), command(a, y, fence=False)]
    return CommandGroup(commands, (range(a, a + SIZE),), range(y, y + SIZE))


def fences(*groups: CommandGroup) -> list[bool]:
    """Return whether each group begins with a fence; expect no fence on other commands."""
    commands = list(insert_fences(groups))
    assert [(each.a, each.y) for each in commands] == [
        (each.a, each.y) for group in groups for each in group.commands
    ]
    assert not any(each.fence for each in commands[1::2])
    return [each.fence for each in commands[::2]]


def test_only_the_first_of_strangers_has_a_fence() -> None:
    assert fences(group(0, 16), group(32, 48), group(64, 80)) == [True, False, False]


def test_readers_of_the_same_bytes_do_not_wait() -> None:
    assert fences(group(0, 16), group(0, 32), group(0, 48)) == [True, False, False]


@pytest.mark.parametrize(
    "second",
    [group(16, 64), group(31, 64), group(64, 16), group(64, 31), group(64, 0), group(64, 15)],
    ids=["reads", "reads a byte", "writes", "writes a byte", "writes operand", "a byte of it"],
)
def test_a_job_waits_for_what_it_touches(second: CommandGroup) -> None:
    assert fences(group(0, 16), second) == [True, True]
    assert fences(group(0, 16), group(100, 116), second) == [True, False, True]


@pytest.mark.parametrize("second", [group(32, 64), group(64, 32)], ids=["reads", "writes"])
def test_neighbours_do_not_wait(second: CommandGroup) -> None:
    assert fences(group(0, 16), second) == [True, False]


def test_a_fence_settles_all_before_it() -> None:
    assert fences(group(0, 16), group(16, 32), group(0, 64), group(16, 80)) == [
        True,
        True,
        False,
        False,
    ]
    assert fences(group(0, 16), group(16, 32), group(32, 48)) == [True, True, True]


def test_long_lists_are_compared_in_parts() -> None:
    strangers = [group(32 * number, 32 * number + 16) for number in range(600)]
    assert [number for number, fence in enumerate(fences(*strangers)) if fence] == [
        *range(0, 600, 16)
    ]


def test_jobs_are_lowered_when_they_are_needed() -> None:
    def lazily() -> Iterator[Command]:
        yield command(0, 16)
        raise AssertionError("asked for a command too early")

    assert next(insert_fences([CommandGroup(lazily(), (range(16),), range(16, 32))])) == command(
        0, 16
    )


def test_a_job_may_have_nothing_to_do() -> None:
    nothing = CommandGroup([], (range(16),), range(16, 32))
    assert list(insert_fences([nothing])) == []
    assert fences(nothing, group(0, 16)) == [True]
    assert fences(group(0, 16), nothing, group(16, 32)) == [True, True]


# --- What jobs touch ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides", "itemsize", "bytes_touched"),
    [
        ((), (), 4, range(100, 104)),
        ((3,), (1,), 1, range(100, 103)),
        ((2, 3), (8, 2), 2, range(100, 114)),  # with a gap
        ((2, 3), (0, 4), 4, range(100, 112)),
        ((2, 3), (-8, 2), 2, range(92, 106)),
        ((3,), (-8,), 8, range(84, 108)),
    ],
)
def test_a_view_is_touched_from_its_first_byte_to_its_last(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, bytes_touched: range
) -> None:
    view, other = View(100, strides, itemsize), View(500, strides, itemsize)
    assert view.span(shape) == bytes_touched
    elsewhere = range(bytes_touched.start + 400, bytes_touched.stop + 400)
    assert other.span(shape) == elsewhere


def test_a_group_touches_its_operands_and_its_result() -> None:
    geometry = Geometry(
        data_bytes=8,
        loops=4,
        slots=16,
        length_bits=24,
        count_bits=24,
        memory_base=0,
        memory_last=9999,
    )
    streams = Streams(View(100, (8,), 8), View(500, (4,), 8), View(900, (8,), 8))
    group = lower_group(Op.XOR, (3,), streams, geometry.abilities, geometry.memory)
    assert (group.reads, group.writes) == ((range(100, 124), range(500, 516)), range(900, 924))
    streams = streams._replace(b=None)
    group = lower_group(Op.NOT, (3,), streams, geometry.abilities, geometry.memory)
    assert group.reads == (range(100, 124),)


# --- moves ------------------------------------------------------------------------------------


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
        groups, geometry = group_moves(moves), device.driver.geometry
        assert groups is not None
        lowered = list(lower_moves(groups, ROW, geometry.abilities, geometry.memory))
        assert len(lowered) == commands
        assert [command.fence for command in lowered] == [True, *[False] * commands][:commands]
        device.driver.run(lowered)
        wanted = np.zeros_like(a)
        if sources:
            wanted[targets] = a[sources]
        got = device.driver.read(there, a.nbytes)
        assert got.tobytes() == wanted.tobytes()
