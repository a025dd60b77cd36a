"""Components of the search array: the intake, the counting tree and a unit."""

import random
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.search.intake import Intake
from bitlane_rtl.search.layouts import Sizes
from bitlane_rtl.search.tree import CountTree
from bitlane_rtl.search.unit import Unit
from support.rtl.searching import beats, configured
from support.rtl.streams import STALLS, Source, Stalls, simulate
from support.seeds import slow


@pytest.mark.parametrize("row_bits", [64, 128])
@pytest.mark.parametrize("stalls", STALLS[:2], ids=str)
def test_every_beat_is_written_to_its_own_word(row_bits: int, stalls: Stalls) -> None:
    sizes = Sizes(configured(2, row_bits=row_bits, data_width=32, queries=4))
    dut = Intake(sizes)
    generator = np.random.default_rng(row_bits)
    queries = generator.integers(0, 256, (3, row_bits // 8), np.uint8)
    rows = generator.integers(0, 256, (5, row_bits // 8), np.uint8)
    written: dict[tuple[int, int], int] = {}

    async def store(ctx: Any) -> None:
        while True:
            seen = dut.write.enable, dut.write.address, dut.write.word, dut.write.data
            _, _, write, address, word, data = await ctx.tick().sample(*seen)
            if write:
                assert (address, word) not in written
                written[address, word] = data

    async def rest(ctx: Any) -> None:
        await Source(dut.rows, beats(rows, 32), stalls).run(ctx)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.ended)
        assert (ctx.get(dut.count), ctx.get(dut.stored)) == (5, 5)
        assert not ctx.get(dut.failed)

    simulate(dut, Source(dut.queries, beats(queries, 32), stalls), rest, background=[store])
    upper = sizes.store_depth // 2
    expected = {
        (first + number, word): int(data)
        for first, run in ((0, queries), (upper, rows))
        for number, row in enumerate(run)
        for word, data in enumerate(row.view("<u4"))
    }
    assert written == expected


# --- the counting tree ----------------------------------------------------------------------------


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


# --- a unit ---------------------------------------------------------------------------------------


def distances(unit: Unit, script: list[tuple[int, bool]]) -> list[int]:
    """Apply each ``bits`` and ``load`` of ``script`` for a cycle; return ``distance`` for each."""
    seen: list[int] = []

    async def drive(ctx: Any) -> None:
        for bits, load in [*script, *[(0, False)] * unit.latency]:
            ctx.set(unit.bits, bits)
            ctx.set(unit.load, load)
            _, _, distance = await ctx.tick().sample(unit.distance)
            seen.append(distance)

    simulate(unit, drive)
    return seen[unit.latency :]


@pytest.mark.parametrize("row_bits", [64, slow(128), slow(256), 512, slow(1024)])
def test_every_query_is_compared_with_the_last_row(row_bits: int) -> None:
    generator = random.Random(row_bits)
    script, row = [(0, True)], 0
    expected: list[int | None] = [None]
    extremes = [0, 1, 1 << row_bits - 1, (1 << row_bits) - 1]
    for _ in range(200):
        bits = generator.choice([*extremes, generator.getrandbits(row_bits), row])
        load = generator.random() < 0.1
        script.append((bits, load))
        expected.append(None if load else (bits ^ row).bit_count())
        row = bits if load else row
    got = distances(Unit(row_bits), script)
    wrong = [place for place, want in enumerate(expected) if want not in (None, got[place])]
    assert not wrong, f"seed {row_bits}: cycles {wrong} of {len(script)}"
