"""Groups of nodes: connected, without cycles, and few; against all ways to cut small graphs."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest

from bitlane.onnx.partition import Members, group_nodes, schedule
from support.seeds import seeds

Reads = list[set[int]]


def made_up(seed: int, most: int = 8) -> tuple[Reads, list[bool]]:
    """Return a random graph, and which nodes are ours."""
    choose = np.random.default_rng(seed)
    count = int(choose.integers(1, most + 1))
    density, share = choose.random() * 0.6, choose.random()
    reads = [{a for a in range(b) if choose.random() < density} for b in range(count)]
    return reads, [bool(choose.random() < share) for _ in range(count)]


def has_cycle(reads: Reads, groups: Sequence[Sequence[int]]) -> bool:
    """Return whether groups, and all other nodes by themselves, read each other in a circle."""
    owner = list(range(len(reads)))
    for group in groups:
        for node in group:
            owner[node] = group[0]
    sources: dict[int, set[int]] = {x: set() for x in owner}
    for node, read in enumerate(reads):
        sources[owner[node]] |= {owner[x] for x in read} - {owner[node]}
    while free := [x for x, read in sources.items() if not read]:
        for x in free:
            del sources[x]
        for read in sources.values():
            read.difference_update(free)
    return bool(sources)


def is_connected(reads: Reads, group: Sequence[int]) -> bool:
    found, waiting = {group[0]}, [group[0]]
    while waiting:
        node = waiting.pop()
        near = {x for x in group if x in reads[node] or node in reads[x]} - found
        found |= near
        waiting += near
    return len(found) == len(group)


def set_partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, *rest = items
    for parts in set_partitions(rest):
        yield [[first], *parts]
        for number, part in enumerate(parts):
            yield [*parts[:number], [first, *part], *parts[number + 1 :]]


def fewest(reads: Reads, ours: list[bool]) -> int:
    """Return the fewest connected groups without a cycle, by trying all."""
    own = [node for node, mine in enumerate(ours) if mine]
    return min(
        len(parts)
        for parts in set_partitions(own)
        if all(is_connected(reads, sorted(part)) for part in parts)
        and not has_cycle(reads, [sorted(part) for part in parts])
    )


def expect_valid(reads: Reads, ours: list[bool], groups: list[Members]) -> None:
    assert sorted(x for group in groups for x in group) == [n for n, x in enumerate(ours) if x]
    assert all(is_connected(reads, group) for group in groups)
    assert not has_cycle(reads, groups)
    for one, other in combinations(groups, 2):
        both = sorted((*one, *other))
        others = [group for group in groups if group not in (one, other)]
        assert not is_connected(reads, both) or has_cycle(reads, [both, *others]), (one, other)


@pytest.mark.parametrize("seed", seeds(40, 3000))
def test_groups_are_connected_and_no_two_can_be_one(seed: int) -> None:
    reads, ours = made_up(seed, 14)
    expect_valid(reads, ours, group_nodes(reads, ours))


@pytest.mark.parametrize("seed", seeds(40, 2000))
def test_small_graphs_have_the_fewest_groups(seed: int) -> None:
    reads, ours = made_up(seed)
    assert len(group_nodes(reads, ours)) == fewest(reads, ours)


@pytest.mark.parametrize("seed", [6814, 7163])
def test_a_search_finds_fewer_groups_than_an_order_of_merging(seed: int) -> None:
    reads, ours = made_up(seed, 10)
    assert len(group_nodes(reads, ours)) == fewest(reads, ours)
    groups = group_nodes(reads, ours, effort=0)
    expect_valid(reads, ours, groups)
    assert len(groups) == fewest(reads, ours) + 1


def test_a_graph_without_nodes_has_no_groups() -> None:
    assert group_nodes([], []) == []


def test_a_search_ends_in_large_graphs() -> None:
    reads, ours = made_up(2, 100)
    expect_valid(reads, ours, group_nodes(reads, ours))


@pytest.mark.parametrize(
    ("reads", "ours", "wanted"),
    [
        # A chain with a foreign node inside: nothing joins its ends.
        ([set(), {0}, {1}], [True, False, True], [(0,), (2,)]),
        # The same, and an edge beside it: joined, the two would be a cycle.
        ([set(), {0}, {0, 1}], [True, False, True], [(0,), (2,)]),
        # Two nodes around a foreign one that reads neither.
        ([set(), set(), {0, 1}], [True, False, True], [(0, 2)]),
        # A node that could join either side of a foreign one joins one.
        ([set(), {0}, {0}, {1, 2}], [True, False, True, True], [(0, 2), (3,)]),
    ],
)
def test_a_group_ends_where_a_cycle_would_begin(
    reads: Reads, ours: list[bool], wanted: list[Members]
) -> None:
    groups = group_nodes(reads, ours)
    expect_valid(reads, ours, groups)
    assert len(groups) == len(wanted)


@pytest.mark.parametrize("seed", seeds(40, 1000))
def test_each_step_reads_earlier_ones_alone(seed: int) -> None:
    reads, ours = made_up(seed, 14)
    groups = group_nodes(reads, ours)
    steps = schedule(reads, groups)
    done: set[int] = set()
    for on_device, members in steps:
        assert on_device == (members in groups)
        assert {x for node in members for x in reads[node]} <= done | set(members)
        done |= set(members)
    assert done == set(range(len(reads)))
    # Two parts of the rest are two only because a group lies between them.
    kinds = [on_device for on_device, _ in steps]
    assert (False, False) not in pairwise(kinds)
