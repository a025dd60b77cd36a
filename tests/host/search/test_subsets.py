"""The rule by cost: which rows are compared where they are, copied together, or dropped."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane import BinaryIndex
from bitlane.api.device import Device
from bitlane.driver.driver import Driver
from bitlane.driver.geometry import ArraySizes
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
from bitlane_rtl.configuration import Search
from support.host.arrays import link_of, model, random, same
from support.host.model_link import ModelLink
from support.host.neighbours import nearest

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


def rows_of(select: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.flatnonzero(select)


def kinds(select: NDArray[np.bool_], costs: AccessCosts) -> list[tuple[str, int, int]]:
    """Return the accesses of a plan: their kinds, the rows, and the others among them."""
    plan = plan_access((block(len(select)),), rows_of(select), costs, 64).accesses
    return [
        (
            type(each).__name__,
            each.rows,
            each.count - each.rows if isinstance(each, RowRange) else 0,
        )
        for each in plan
    ]


EVERY = np.arange(COUNT)


@pytest.mark.parametrize(
    ("select", "sums", "array"),
    [
        # All, and long runs: where they are.
        (EVERY >= 0, [("RowRange", 4000, 0)], [("RowRange", 4000, 0)]),
        (
            EVERY % 2000 < 1000,
            [("RowRange", 1000, 0), ("RowRange", 1000, 0)],
            [("RowRange", 1000, 0), ("RowRange", 1000, 0)],
        ),
        # Every second row: the others are dropped, where the circuit returns all distances.
        (EVERY % 2 == 0, [("RowRange", 2000, 1999)], [("GatheredRows", 2000, 0)]),
        # Few rows far apart: copied together.
        (EVERY % 500 == 0, [("GatheredRows", 8, 0)], [("GatheredRows", 8, 0)]),
        # A long run between single rows: each as it costs less.
        (
            (EVERY % 500 == 0) | ((EVERY > 1000) & (EVERY < 2500)),
            [("GatheredRows", 2, 0), ("RowRange", 1501, 0), ("GatheredRows", 2, 0)],
            [("GatheredRows", 2, 0), ("RowRange", 1501, 0), ("GatheredRows", 2, 0)],
        ),
    ],
)
def test_the_cheapest_access(select: Any, sums: Any, array: Any) -> None:
    assert kinds(select, SUMS) == sums
    assert kinds(select, ARRAY) == array


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
    search = Search(units=3, row_bits=512, queries=8, nearest=8)
    link = ModelLink(search=search, memory_bytes=1 << 17, eager=False)
    device = Device(Driver(link))
    index = BinaryIndex(device, 512)
    rows, queries = random((900, 64), "u1"), random((30, 64), "u1", 2)
    index.add(rows)
    link.log.clear()
    some = np.arange(0, 900, 9)
    got = index.search(queries, 5, select=some)
    distances, found = nearest(queries, rows[some], 5)
    assert same(got[0], distances)
    assert same(got[1], some[found])
    ops = [record.op for record in link.log]
    assert (len(ops), len(set(ops))) == (5, 2), "a copy, and a search for each batch of 8 queries"


def test_explain_shows_what_a_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsets, "_RANGE", 2000)
    monkeypatch.setattr(subsets, "_COMMAND", 300)
    device = model(memory_bytes=1 << 15)
    index = BinaryIndex(device, 512)
    rows = random((700, 64), "u1")
    index.add(rows)
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
