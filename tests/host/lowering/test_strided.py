"""Strided tensors, self-overlap, cost, fences and moves, against NumPy and enumeration."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from bitlane.driver import Command, Walk
from bitlane.errors import ShapeError
from bitlane.lowering import (
    CommandGroup,
    MovedBlock,
    Moves,
    Streams,
    View,
    beats,
    broadcast_shapes,
    cycles,
    group_moves,
    insert_fences,
    lower_group,
    lower_moves,
    overlap,
    overlaps_itself,
    packed_strides,
    self_overlap,
)
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.arrays import model, random
from support.seeds import seeds


def test_packed_strides_are_those_of_c_order_unless_told() -> None:
    assert packed_strides([2, 3, 4]) == (12, 4, 1)
    assert packed_strides([7]) == (1,)
    assert packed_strides((2, 3, 4), (2, 0, 1), 8) == (24, 8, 48)
    assert packed_strides(()) == ()


def test_views_broadcast_as_numpys_do() -> None:
    array = np.zeros((3, 1, 4), "u2")
    for wanted in ((3, 1, 4), (3, 5, 4), (2, 3, 5, 4)):
        view = View(8, array.strides, 2).broadcast(array.shape, wanted)
        expected = np.broadcast_to(array, wanted)
        assert view.address == 8
        pairs = zip(wanted, view.strides, expected.strides, strict=True)
        assert all(n == 1 or own == other for n, own, other in pairs)
        assert broadcast_shapes(array.shape, wanted) == wanted
    with pytest.raises(ShapeError, match="do not broadcast"):
        broadcast_shapes((3, 2), (3, 4))


@pytest.mark.parametrize(
    ("start", "stop", "shared"),
    [(0, 10, False), (0, 11, True), (19, 20, True), (20, 30, False), (12, 13, True), (0, 99, True)],
)
def test_ranges_overlap_where_they_share_a_byte(start: int, stop: int, shared: bool) -> None:
    assert overlap(range(10, 20), range(start, stop)) is shared
    assert overlap(range(start, stop), range(10, 20)) is shared


# --- self-overlap ---------------------------------------------------------------------------------


def by_enumeration(sizes: list[int], strides: list[int]) -> bool:
    places = [
        sum(index * stride for index, stride in zip(indices, strides, strict=True))
        for indices in itertools.product(*map(range, sizes))
    ]
    return len(set(places)) < len(places)


@pytest.mark.parametrize("seed", seeds(10, 40))
def test_agrees_with_enumeration(seed: int) -> None:
    generator = Random(seed)
    for _ in range(50):
        rank = generator.randint(1, 5)
        sizes = [generator.randint(1, 5) for _ in range(rank)]
        strides = [generator.randint(0 if seed % 4 == 0 else 1, 40) for _ in range(rank)]
        got = overlaps_itself(sizes, strides)
        assert got is by_enumeration(sizes, strides), f"seed {seed}: {sizes} {strides}"


@pytest.mark.parametrize(
    ("sizes", "strides", "overlaps"),
    [
        ([1], [0], False),
        ([2], [0], True),
        ([4, 4], [4, 1], False),
        ([4, 4], [1, 4], False),
        ([4, 4], [3, 1], True),
        ([2, 3], [3, 2], False),  # 0 2 4, 3 5 7: interleaved, though no stride clears the other
        ([3, 4], [4, 3], False),  # multiples of 4 and of 3 that do not meet before 12
        ([4, 5], [4, 3], True),  # ... but here they do
        ([2**31, 2], [2, 1], False),
        ([2**31, 3], [2, 1], True),
        ([65537, 65536], [65536, 65537], False),  # coprime: they first meet at their product
        ([65538, 65537], [65536, 65537], True),
    ],
)
def test_known_layouts(sizes: list[int], strides: list[int], overlaps: bool) -> None:
    assert overlaps_itself(sizes, strides) is overlaps


def test_gives_up_rather_than_search_for_ever() -> None:
    # Eight nearly equal strides: a subset-sum problem, and too sparse to be decided by counting.
    strides = [10**9 + delta for delta in (7, 9, 21, 33, 87, 93, 97, 103)]
    assert overlaps_itself([14] * 8, strides) is None


@pytest.mark.parametrize(("limit", "overlaps"), [(3, None), (4, True)])
def test_each_step_of_a_search_counts(
    limit: int, overlaps: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step each excludes 4 and 8, which are not multiples of 3; two steps find 12."""
    monkeypatch.setattr(self_overlap, "WORK_LIMIT", limit)
    assert overlaps_itself([4, 5], [4, 3]) is overlaps


# --- cost -------------------------------------------------------------------------------------


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


# --- fences -----------------------------------------------------------------------------------

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


NOTHING = CommandGroup([], (range(16),), range(16, 32))
STRANGERS = [group(32 * number, 32 * number + 16) for number in range(600)]
TOUCHING = [(16, 64), (31, 64), (64, 16), (64, 31), (64, 0), (64, 15)]
"""Groups that read or write bytes, some of them one alone, that the group from 0 to 16 touches."""


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        # Strangers do not wait, nor do readers of the same bytes and neighbours.
        ([group(0, 16), group(32, 48), group(64, 80)], [0]),
        ([group(0, 16), group(0, 32), group(0, 48)], [0]),
        ([group(0, 16), group(32, 64)], [0]),
        ([group(0, 16), group(64, 32)], [0]),
        # A group waits for a group of the same bytes, and that fence settles all groups before it.
        *(([group(0, 16), group(*second)], [0, 1]) for second in TOUCHING),
        *(([group(0, 16), group(100, 116), group(*second)], [0, 2]) for second in TOUCHING),
        ([group(0, 16), group(16, 32), group(0, 64), group(16, 80)], [0, 1]),
        ([group(0, 16), group(16, 32), group(32, 48)], [0, 1, 2]),
        # Long lists are compared in parts.
        (STRANGERS, [*range(0, 600, 16)]),
        # A group may have nothing to do.
        ([NOTHING], []),
        ([NOTHING, group(0, 16)], [0]),
        ([group(0, 16), NOTHING, group(16, 32)], [0, 1]),
    ],
)
def test_a_fence_is_where_a_group_waits(groups: list[CommandGroup], wanted: list[int]) -> None:
    """``wanted`` are the numbers of the groups with commands that begin with a fence."""
    assert [number for number, fence in enumerate(fences(*groups)) if fence] == wanted


def test_jobs_are_lowered_when_they_are_needed() -> None:
    def lazily() -> Iterator[Command]:
        yield command(0, 16)
        raise AssertionError("asked for a command too early")

    assert next(insert_fences([CommandGroup(lazily(), (range(16),), range(16, 32))])) == command(
        0, 16
    )


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
    assert View(100, strides, itemsize).span(shape) == bytes_touched
    elsewhere = range(bytes_touched.start + 400, bytes_touched.stop + 400)
    assert View(500, strides, itemsize).span(shape) == elsewhere


def test_a_group_touches_its_operands_and_its_result() -> None:
    geometry = model(memory_bytes=10_000).driver.geometry
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
