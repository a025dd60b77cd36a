"""Selections of rows by their ids: the rows that they select, and how these are searched."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitlane
from bitlane import BinaryIndex, IDSelector, IDSelectorBatch, SearchError
from bitlane.driver import ArraySizes
from bitlane.search import subsets
from bitlane.search.blocks import Block
from bitlane.search.subsets import (
    AccessCosts,
    GatheredRows,
    HostRows,
    RowRange,
    cut_gathered,
    plan_access,
)
from support.host.arrays import link_of, model, random, same, uploads
from support.host.indexes import METRICS, WIDE_ARRAY, expect_found, index_of
from support.seeds import stride

IDS = np.array([7, -3, 0, 2**62, 5, 64, 8, -(2**63), 1], np.int64)


def selected(selection: Any) -> list[int]:
    """Return the ids that a selection of `IDS` removes from an index."""
    index = index_of(random((len(IDS), 1), "u1"), IDS)
    assert index.remove_ids(selection) == len(IDS) - len(index)
    return [x for x in IDS.tolist() if x not in index.ids]


BITMAP = np.packbits(np.arange(16) % 8 == 0, bitorder="little")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (bitlane.IDSelectorAll(), IDS.tolist()),
        (bitlane.IDSelectorRange(0, 7), [0, 5, 1]),
        (bitlane.IDSelectorRange(7, 7), []),
        (bitlane.IDSelectorRange(-(2**63), 2**63 - 1), IDS.tolist()),
        (bitlane.IDSelectorBatch([5, 5, 99, -3]), [-3, 5]),
        (bitlane.IDSelectorArray(np.array([2**62], np.uint64)), [2**62]),
        (bitlane.IDSelectorBatch([]), []),
        (bitlane.IDSelectorBitmap(BITMAP), [0, 8]),
        (bitlane.IDSelectorBitmap(np.full(8, 255, np.uint8)), [7, 0, 5, 8, 1]),
        (bitlane.IDSelectorBitmap(np.empty(0, np.uint8)), []),
        (bitlane.IDSelectorNot([7, 0]), [-3, 2**62, 5, 64, 8, -(2**63), 1]),
        (bitlane.IDSelectorAnd([7, 0, 5], bitlane.IDSelectorRange(0, 6)), [0, 5]),
        (bitlane.IDSelectorOr([7], IDS == 1), [7, 1]),
        (bitlane.IDSelectorXOr(bitlane.IDSelectorRange(0, 8), [7, 64]), [0, 5, 64, 1]),
        (~bitlane.IDSelectorRange(0, 2**63 - 1), [-3, -(2**63)]),
        (bitlane.IDSelectorRange(0, 9) & [7, 64], [7]),
        (IDS[:1] | bitlane.IDSelectorBatch([1]), [7, 1]),
        ((IDS > 5) ^ bitlane.IDSelectorAll(), [-3, 0, 5, -(2**63), 1]),
        ([64, 12345], [64]),
        ((IDS % 2 == 1).tolist(), [7, -3, 5, 1]),
    ],
)
def test_the_rows_that_a_selection_selects(selection: Any, expected: list[int]) -> None:
    assert selected(selection) == expected


def test_a_truth_value_is_any_byte_but_0() -> None:
    mask = np.array([0, 2, 0, 0, 255, 0, 0, 0, 0], np.uint8).view(bool)
    assert selected(mask) == [-3, 5]
    assert selected(bitlane.IDSelectorNot(bitlane.IDSelectorNot(mask))) == [-3, 5]


def test_a_selector_of_ones_own() -> None:
    class Even(IDSelector):
        def members(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
            return ids % 2 == 0

    assert selected(Even() & bitlane.IDSelectorRange(0, 65)) == [0, 64, 8]


def test_a_selector_of_ones_own_returns_a_truth_value_for_each_row() -> None:
    class Wrong(IDSelector):
        def members(self, ids: NDArray[np.int64]) -> Any:
            return ids > 3 if len(ids) < 3 else [True]

    with pytest.raises(SearchError, match=r"Wrong.members: \[True\]; expected 9 truth values"):
        selected(Wrong())


def test_a_selector_keeps_what_it_was_given() -> None:
    ids, bitmap, mask = np.array([7]), np.full(1, 1, np.uint8), IDS == 7
    selectors = [bitlane.IDSelectorBatch(ids), bitlane.IDSelectorBitmap(bitmap), ~~_not(mask)]
    ids[:], bitmap[:], mask[:] = 5, 0, False
    assert [selected(each) for each in selectors] == [[7], [0], [7]]


def _not(mask: NDArray[np.bool_]) -> IDSelector:
    return bitlane.IDSelectorAnd(mask, bitlane.IDSelectorAll())


def test_a_search_in_a_selection_finds_its_rows_alone() -> None:
    rows = random((300, 8), "u1")
    index = index_of(rows, np.arange(300) * 3)
    for select, expected in (([21, 6, 600], [21, 6, 600]), (np.arange(300) % 150 == 7, [21, 471])):
        distances, ids = index.search(rows[[7]], 4, select=select)
        assert set(ids[0].tolist()) == {*expected, -1}
        assert ids[0, 0] == 21
        assert (distances[0, len(expected) :] == 2**31 - 1).all()
    assert index.search(rows[:1], 2, select=[])[1].tolist() == [[-1, -1]]
    limits, _, ids = index.range_search(rows[:2], 1, select=[0])
    assert (limits.tolist(), ids.tolist()) == ([0, 1, 1], [0])
    assert same(index.assign(rows[:2]), np.array([[0], [3]]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("share", [0, 0.02, 0.5, 1])
@pytest.mark.parametrize("layout", ["dense", "turned", "columns", "file"])
def test_a_search_sends_the_rows_that_count_alone(
    metric: str, share: float, layout: str, tmp_path: Path
) -> None:
    rows, asked = random((1000, 24), "u1", 1), random((5, 24), "u1", 5)
    rows[500:] = rows[:500]
    if layout == "file":
        rows.tofile(tmp_path / "rows")
        rows = np.memmap(tmp_path / "rows", np.uint8, "r", shape=rows.shape)
    else:
        rows = {"dense": rows, "turned": rows[::-1, ::-1], "columns": rows.copy("F")}[layout]
    generator = np.random.default_rng(3)
    mask = generator.random(1000) < share
    own = {"ids": generator.permutation(1000) * 2**40 + 2**62}
    device = model(memory_bytes=1 << 14)
    choices: list[dict[str, Any]] = [{"k": 7}, {"radius": 85 if metric == "hamming" else 0.6}]
    for limits, given_ids, way in [*product(choices, ({}, own), range(3))][:: stride(2)]:
        ids = given_ids.get("ids", np.arange(1000))
        select = [mask, ids[mask], ~IDSelectorBatch(ids[~mask])][way]
        uploads(device)
        options = limits | given_ids | {"metric": metric, "mask": mask}
        expect_found(device, asked, rows, select=select, **options)
        assert sum(uploads(device)) <= (mask.sum() + len(asked)) * 24
    assert device.driver.allocator.pieces == 0


# --- the rule by cost: compared where they are, copied together, or dropped ---------------------


COUNT = 4000
"""Rows of 64 bytes, 256 KB."""

SIZES = ArraySizes(units=3, row_bytes=64, queries=8, nearest=8)
SUMS = AccessCosts.of_sums(model().driver, 64, 1, copies=True)
ARRAY = AccessCosts.of_array(model().driver, 64, 1, SIZES, copies=True)


def block(count: int, kept: Any = None) -> Any:
    """Return a block of ``count`` slots that looks as if it were on a device."""

    class OnDevice(Block):
        on_device = True  # type: ignore[assignment]
        address = 4096  # type: ignore[assignment]

    return OnDevice(None, count, count, kept)  # type: ignore[arg-type]


def kinds(select: NDArray[np.bool_], costs: AccessCosts) -> list[tuple[str, int, int]]:
    """Return the accesses of a plan: their kinds, the rows, and the others among them."""
    plan = plan_access((block(len(select)),), np.flatnonzero(select), costs, 64).accesses
    others = [each.count - each.rows if isinstance(each, RowRange) else 0 for each in plan]
    return [(type(x).__name__, x.rows, more) for x, more in zip(plan, others, strict=True)]


EVERY = np.arange(COUNT)


@pytest.mark.parametrize(
    ("select", "sums", "array"),
    [
        # All, and long runs: where they are.
        (EVERY >= 0, [("RowRange", 4000, 0)], None),
        (EVERY % 2000 < 1000, [("RowRange", 1000, 0)] * 2, None),
        # Every second row: the others are dropped, where the circuit returns all distances.
        (EVERY % 2 == 0, [("RowRange", 2000, 1999)], [("GatheredRows", 2000, 0)]),
        # Few rows far apart: copied together.
        (EVERY % 500 == 0, [("GatheredRows", 8, 0)], None),
        # A long run between single rows: each as it costs less.
        (
            (EVERY % 500 == 0) | ((EVERY > 1000) & (EVERY < 2500)),
            [("GatheredRows", 2, 0), ("RowRange", 1501, 0), ("GatheredRows", 2, 0)],
            None,
        ),
    ],
)
def test_the_cheapest_access(select: Any, sums: Any, array: Any) -> None:
    assert kinds(select, SUMS) == sums
    assert kinds(select, ARRAY) == (array or sums)


def test_more_queries_make_other_rows_dearer() -> None:
    select = EVERY % 2 == 0
    many = AccessCosts.of_sums(model().driver, 64, 1000, copies=True)
    assert [kind for kind, *_ in kinds(select, many)] == ["GatheredRows"]


def test_a_slow_line_makes_distances_dear_that_are_dropped() -> None:
    select = np.random.default_rng(1).random(COUNT) < 0.1
    assert [kind for kind, *_ in kinds(select, SUMS)] == ["RowRange"]
    driver = model().driver
    driver.link.byte_seconds = 10 / 3e6
    slow = AccessCosts.of_sums(driver, 64, 1, copies=True)
    found = kinds(select, slow)
    assert "GatheredRows" in {kind for kind, *_ in found}
    assert sum(others for *_, others in found) < COUNT // 5


def test_a_device_that_cannot_copy_gathers_nothing() -> None:
    select = EVERY % 500 == 0
    costs = AccessCosts.of_array(model().driver, 64, 1, SIZES, copies=False)
    assert kinds(select, costs) == [("RowRange", 1, 0)] * 8


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=12),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=12),
    st.tuples(st.integers(0, 90), st.booleans(), st.none() | st.integers(0, 90)),
    st.tuples(st.integers(0, 900), st.integers(0, 900)),
    st.integers(1, 50),
)
def test_a_plan_has_each_row_once_in_order(
    kept: Any, chosen: Any, rows_cost: Any, others_cost: Any, most: int
) -> None:
    live = np.flatnonzero(np.repeat(*_columns(kept)))
    selected = np.repeat(*_columns(chosen))[: len(live)]
    rows = np.flatnonzero(selected)
    content = random((50, 64), "u1")
    blocks = (block(750, live), Block.of_host(content)) if len(live) else (Block.of_host(content),)
    every = np.concatenate([rows, len(live) + np.arange(0, 50, 3)])
    costs = AccessCosts(*rows_cost, *others_cost)
    found: list[int] = []
    for some in cut_gathered(plan_access(blocks, every, costs, 64).accesses, most):
        assert sum(each.rows for each in some if isinstance(each, GatheredRows)) <= most
        for each in some:
            assert each.first == len(found)
            found += _rows_of(each)
    assert found == [*live[rows].tolist(), *range(1000, 1050, 3)]


def _columns(runs: Any) -> tuple[Any, Any]:
    return [value for value, _ in runs] or [False], [count for _, count in runs] or [0]


def _rows_of(access: Any) -> list[int]:
    """Return the slots of an access; those of the host from 1000 on."""
    if isinstance(access, GatheredRows):
        return ((access.addresses - 4096) // 64).tolist()  # type: ignore[no-any-return]
    if isinstance(access, HostRows):
        slots = np.arange(50) if access.slots is None else access.slots
        return (1000 + slots).tolist()  # type: ignore[no-any-return]
    wanted = np.arange(access.count) if access.wanted is None else access.wanted
    return ((access.address - 4096) // 64 + wanted).tolist()  # type: ignore[no-any-return]


def test_scattered_rows_are_copied_once_for_all_queries() -> None:
    rows, queries = random((900, 64), "u1"), random((30, 64), "u1", 2)
    index = index_of(rows, search=WIDE_ARRAY, memory_bytes=1 << 17, eager=False)
    log = link_of(index.device).log
    log.clear()
    mask = np.arange(900) % 9 == 0
    expect_found(index, queries, rows, k=5, mask=mask, select=np.flatnonzero(mask))
    ops = [record.op for record in log]
    assert (len(ops), len(set(ops))) == (5, 2), "a copy, and a search for each batch of 8 queries"


def test_explain_shows_what_a_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = subsets.HostCosts(range=2000, command=300)
    monkeypatch.setattr(subsets, "HOST_COSTS", costs)
    rows = random((700, 64), "u1")
    index = index_of(rows, memory_bytes=1 << 15)
    device = index.device
    link_of(device).traffic.clear()
    link_of(device).log.clear()
    select = (np.arange(700) < 200) | (np.arange(700) % 90 == 0)
    table = index.explain(rows[:2], 3, select=select)
    assert link_of(device).traffic == []
    lines = [line.replace("in place", "in-place").split() for line in str(table).splitlines()]
    assert lines[0][0] == "access"
    assert [line[0] for line in lines[1:]] == ["in-place", "gathered", "sent", "search"]
    numbers = {line[0]: [int(cell.replace(",", "")) for cell in line[1:]] for line in lines[1:]}
    assert sum(numbers[kind][0] for kind in ("in-place", "gathered", "sent")) == select.sum()
    assert numbers["search"] == [
        sum(each) for each in zip(*list(numbers.values())[:-1], strict=True)
    ]
    index.search(rows[:2], 3, select=select)
    assert len(link_of(device).log) == numbers["search"][2]
    assert "table" in table._repr_html_()


def test_explain_of_no_rows_and_no_queries() -> None:
    index = BinaryIndex(model(), 64)
    assert str(index.explain(random((2, 8), "u1"))).splitlines()[-1].split()[:3] == [
        *("search", "0", "0")
    ]
    index.add(random((20, 8), "u1"))
    assert len(str(index.explain(random((0, 8), "u1"))).splitlines()) == 2
