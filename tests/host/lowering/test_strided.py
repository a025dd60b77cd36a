"""Arithmetic of strided tensors, against NumPy's, and self-overlap, against enumeration."""

import itertools
import random
from typing import Any

import numpy as np
import pytest

from bitlane.errors import ShapeError
from bitlane.lowering import self_overlap
from bitlane.lowering.self_overlap import overlaps_itself
from bitlane.lowering.strided import (
    View,
    broadcast_shapes,
    overlap,
    packed_strides,
    span,
)
from support.seeds import seeds


def test_packed_strides_are_those_of_c_order_unless_told() -> None:
    assert packed_strides([2, 3, 4]) == (12, 4, 1)
    assert packed_strides([7]) == (1,)
    assert packed_strides((2, 3, 4), (2, 0, 1), 8) == (24, 8, 48)
    assert packed_strides(()) == ()


@pytest.mark.parametrize("key", [(slice(None),), (slice(3, None, -2), slice(1, 4)), (2, ..., None)])
def test_spans_are_the_bounds_of_numpys_views(key: tuple[slice, ...]) -> None:
    array = np.zeros((5, 6), "u4")
    part = array[key]
    low, high = np.lib.array_utils.byte_bounds(part)
    assert span(part.shape, part.strides, 4, part.ctypes.data) == range(low, high)


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
    generator = random.Random(seed)
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


def test_gives_up_rather_than_search_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    # Eight nearly equal strides: a subset-sum problem, and too sparse to be decided by counting.
    strides = [10**9 + delta for delta in (7, 9, 21, 33, 87, 93, 97, 103)]
    reaches, steps = self_overlap._Search._reaches, 0

    def counted(search: Any, count: int, target: int) -> bool:
        nonlocal steps
        steps += 1
        return reaches(search, count, target)

    monkeypatch.setattr(self_overlap._Search, "_reaches", counted)
    assert overlaps_itself([14] * 8, strides) is None
    assert steps == self_overlap.WORK_LIMIT + 1
