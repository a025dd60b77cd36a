"""Selections of rows by their ids: which they select, what they refuse, what they combine with."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane import (
    BinaryIndex,
    BitlaneError,
    DataTypeError,
    IDSelector,
    IDSelectorBatch,
    SearchError,
    ShapeError,
)
from bitlane_rtl.abi import CONTROL_BASE
from support.host.arrays import link_of, model, random, same
from support.host.neighbours import nearest, within

IDS = np.array([7, -3, 0, 2**62, 5, 64, 8, -(2**63), 1], np.int64)


def selected(selection: Any) -> list[int]:
    """Return the ids that a selection of `IDS` removes from an index."""
    index = BinaryIndex(model(), 8)
    index.add_with_ids(random((len(IDS), 1), "u1"), IDS)
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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda i: i.remove_ids([0.5]), DataTypeError, "ids: data type float64; expected integers"),
        (lambda i: i.remove_ids(3), ShapeError, r"ids: shape \(\); expected \(n,\)"),
        (lambda i: i.remove_ids([[3]]), ShapeError, r"ids: shape \(1, 1\)"),
        (lambda i: i.remove_ids(None), DataTypeError, "ids: data type object"),
        (lambda i: i.remove_ids([True]), ShapeError, "ids: 1 truth values; expected 20, one for"),
        (lambda i: i.remove_ids([[True]]), ShapeError, r"ids: shape \(1, 1\); .* truth value for"),
        (lambda i: bitlane.IDSelectorBatch([True]), DataTypeError, "ids: data type bool"),
        (lambda i: bitlane.IDSelectorBatch([2**63]), SearchError, "9223372036854775808; expected"),
        (lambda i: bitlane.IDSelectorRange(0.5, 3), DataTypeError, "imin, imax: data type float64"),
        (lambda i: bitlane.IDSelectorBitmap([1]), DataTypeError, "bitmap: data type int64"),
        (lambda i: bitlane.IDSelectorBitmap(np.uint8(1)), ShapeError, r"bitmap: shape \(\)"),
        (lambda i: i.search(R, 3, select=[True] * 3), ShapeError, "select: 3 truth values"),
        (lambda i: i.search(R, 3, select="all"), DataTypeError, "select: data type <U3"),
        (lambda i: i.range_search(R, 3, select=[0.5]), DataTypeError, "select: data type float64"),
        (lambda i: i.search(R, 3, select=~_not([True] * 3)), ShapeError, "lhs: 3 truth values"),
        (lambda i: i.explain(R, 3, select=[True]), ShapeError, "select: 1 truth values"),
    ],
)
def test_what_selects_no_rows_is_refused(
    call: Callable[[BinaryIndex], Any], error: type[BitlaneError], message: str
) -> None:
    index = BinaryIndex(model(), 8)
    index.add(random((20, 1), "u1"))
    with pytest.raises(error, match=message) as caught:
        call(index)
    assert "\n" not in str(caught.value)
    assert index.ntotal == 20


R = random((2, 1), "u1")


def test_a_search_in_a_selection_finds_its_rows_alone() -> None:
    index = BinaryIndex(model(), 64)
    rows = random((300, 8), "u1")
    index.add_with_ids(rows, np.arange(300) * 3)
    for select, expected in (([21, 6, 600], [21, 6, 600]), (np.arange(300) % 150 == 7, [21, 471])):
        distances, ids = index.search(rows[[7]], 4, select=select)
        assert set(ids[0].tolist()) == {*expected, -1}
        assert ids[0, 0] == 21
        assert (distances[0, len(expected) :] == 2**31 - 1).all()
    assert index.search(rows[:1], 2, select=[])[1].tolist() == [[-1, -1]]
    limits, _, ids = index.range_search(rows[:2], 1, select=[0])
    assert (limits.tolist(), ids.tolist()) == ([0, 1, 1], [0])
    assert same(index.assign(rows[:2]), np.array([[0], [3]]))


# --- of a search without an index ---------------------------------------------------------------


def expected_of(
    rows: Any, ids: Any, mask: Any, limits: dict[str, Any], metric: str
) -> tuple[NDArray[Any], ...]:
    """Return what a search for `ASKED` finds among ``rows`` where ``mask`` is true."""
    find = within if "k" not in limits else nearest
    *found, places = find(ASKED, rows[mask], *limits.values(), metric)
    named = np.append(ids[mask], -1)[places]
    return *found, named


ASKED = random((5, 24), "u1", 5)


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
@pytest.mark.parametrize("share", [0, 0.02, 0.5, 1])
@pytest.mark.parametrize("layout", ["dense", "turned", "columns", "file"])
def test_a_search_sends_the_rows_that_count_alone(
    metric: str, share: float, layout: str, tmp_path: Path
) -> None:
    rows = random((4000, 24), "u1", 1)
    rows[2000:] = rows[:2000]
    if layout == "file":
        rows.tofile(tmp_path / "rows")
        rows = np.memmap(tmp_path / "rows", np.uint8, "r", shape=rows.shape)
    else:
        rows = {"dense": rows, "turned": rows[::-1, ::-1], "columns": rows.copy("F")}[layout]
    generator = np.random.default_rng(3)
    mask = generator.random(4000) < share
    own = generator.permutation(4000) * 2**40 + 2**62
    device = model(memory_bytes=1 << 16)
    choices: list[dict[str, Any]] = [{"k": 7}, {"radius": 85 if metric == "hamming" else 0.6}]
    for limits, ids in itertools.product(choices, (np.arange(4000), own)):
        given = {} if ids is not own else {"ids": own}
        for select in (mask, ids[mask], ~IDSelectorBatch(ids[~mask])):
            link_of(device).traffic.clear()
            got = device.search(ASKED, rows, **limits, **given, metric=metric, select=select)
            for one, other in zip(got, expected_of(rows, ids, mask, limits, metric), strict=True):
                assert same(one, other)
            sent = sum(
                size
                for kind, at, size in link_of(device).traffic
                if kind == "write" and at < CONTROL_BASE
            )
            assert sent <= (mask.sum() + len(ASKED)) * 24
    assert device.driver.allocator.pieces == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"select": [True] * 3}, ShapeError, "select: 3 truth values; expected 20"),
        ({"select": "all"}, DataTypeError, "select: data type <U3"),
        ({"select": [0.5]}, DataTypeError, "select: data type float64"),
        ({"select": [2**63]}, SearchError, "select: 9223372036854775808; expected at most"),
        ({"select": [3], "k": 2**31 - 1}, SearchError, "expected at most 1, as there are rows"),
        ({"select": [3], "ids": [3]}, ShapeError, "ids: 1; expected 20"),
    ],
)
def test_a_search_refuses_what_selects_no_rows(
    options: Any, error: type[BitlaneError], message: str
) -> None:
    device, rows = model(), random((20, 1), "u1")
    link_of(device).traffic.clear()
    with pytest.raises(error, match=message) as caught:
        device.search(rows, rows, **options)
    assert "\n" not in str(caught.value)
    assert not [each for each in link_of(device).traffic if each[0] == "write"]
