"""The counting tree counts every bit once, and never before its counts are there."""

import random

import pytest

from bitlane_rtl.search.tree import CountTree

TREES = [CountTree(bits, per_stage) for bits in (4, 8, 64, 512) for per_stage in (1, 2, 3, 20)]


@pytest.mark.parametrize("tops", [1, 3, 100])
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_every_bit_is_counted_once_in_an_order_that_can_be_built(
    tree: CountTree, tops: int
) -> None:
    ones = random.Random(tree.bits).getrandbits(tree.bits)
    bits = {node: ones >> node - 1 & 1 for node in range(1, tree.bits + 1)}
    counts = {node: bits.pop(node) for node in tree.nodes(0)}
    for stage in tree.stages:
        known = dict(counts)
        for chain in tree.chains(stage, tops):
            for adder in chain:
                below = [known[node] for node in adder.below]
                known[adder.node] = bits.pop(adder.node) + sum(below)
                assert known[adder.node] < 2 ** (adder.level + 1), adder
        counts = {node: known[node] for node in tree.nodes(stage[-1])}
        assert bits.keys() == set(tree.above(stage[-1]))
    assert counts == {tree.bits: ones.bit_count()}, f"{ones:#x}"


def test_stages_have_as_many_levels_as_they_may() -> None:
    assert [*map(list, CountTree(512, 2).stages)] == [[1, 2], [3, 4], [5, 6], [7, 8], [9]]
    assert [*map(list, CountTree(64, 4).stages)] == [[1, 2, 3, 4], [5, 6]]


@pytest.mark.parametrize(("bits", "per_stage"), [(2, 1), (48, 1), (0, 1), (64, 0)])
def test_what_is_no_tree_is_refused(bits: int, per_stage: int) -> None:
    with pytest.raises(ValueError, match=r"^(bits|per_stage): "):
        CountTree(bits, per_stage)
