"""Refusals of an index and of `Device.search`: in one line, before anything is sent."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bitlane import (
    ArrayIndexError,
    BinaryIndex,
    DataTypeError,
    Device,
    IDSelectorAll,
    IDSelectorAnd,
    IDSelectorBatch,
    IDSelectorBitmap,
    IDSelectorNot,
    IDSelectorRange,
    SearchError,
    ShapeError,
)
from support.host.arrays import link_of, model, random, same
from support.host.indexes import index_of
from support.host.refusals import refusals_of, takes_or_refuses

ROWS = random((20, 8), "u1")
IDS = np.arange(20)[::-1] * 10 - 5
OTHER = BinaryIndex(model(), 64, metric="jaccard")


def own(rows: Any) -> Any:
    return index_of(rows, IDS)


def unchanged(ids: Any) -> Callable[[Device], Iterator[tuple[Any, ...]]]:
    """Return a generator function of an index with ``ids``, and its rows.

    It asserts that nothing was sent to the device, and that the index has not changed.
    """

    def made(device: Device) -> Iterator[tuple[Any, ...]]:
        index = index_of(ROWS, ids, device)
        link_of(device).traffic.clear()
        yield index, ROWS
        assert link_of(device).traffic == []
        assert same(index.ids, np.arange(20) if ids is None else ids)
        index.reset()

    return made


test_searches_and_rows_that_are_none = refusals_of(
    unchanged(None),
    [
        (lambda i, r: i.search(r, 0), SearchError, "k: 0; expected 1 to 2147483647 rows"),
        (lambda i, r: i.search(r, -3), SearchError, "k: -3"),
        (lambda i, r: i.search(np.repeat(r, 500, 0), 2**31 - 1), SearchError, "k: 2147483647 rows"),
        (lambda i, r: i.search(r, 1.5), SearchError, "k: 1.5; expected a whole number"),
        (lambda i, r: i.search(r, 2**63), SearchError, "k: 9223372036854775808; expected 1 to"),
        (lambda i, r: i.search(r[:, :7]), ShapeError, r"queries: shape \(20, 7\); .* of 64 bits"),
        (lambda i, r: i.search(r[0]), ShapeError, r"queries: shape \(8,\)"),
        (lambda i, r: i.search(r.view("u8")), DataTypeError, "queries: data type uint64; .*uint8"),
        (lambda i, r: i.search(r > 9), DataTypeError, "np.packbits packs truth values"),
        (lambda i, r: i.search(None), DataTypeError, "queries: data type object"),
        (lambda i, r: i.add(r[:, :4]), ShapeError, r"rows: shape \(20, 4\)"),
        (lambda i, r: i.add(r.astype(int)), DataTypeError, "rows: data type int64"),
        (lambda i, r: i.range_search(r, "near"), SearchError, "radius: 'near'; expected a number"),
        (lambda i, r: i.range_search(r, None), SearchError, "radius: None"),
        (lambda i, r: i.range_search(r, np.nan), SearchError, "radius: nan; expected a number$"),
        (
            lambda i, r: OTHER.search(r, radius=np.nan),
            SearchError,
            "radius: nan; expected a number$",
        ),
        (lambda i, r: i.range_search(r, np.complex64(1)), SearchError, "radius: .*1.*0j"),
        (lambda i, r: i.range_search(r, -1), SearchError, "radius: -1; expected a number of bits"),
        (lambda i, r: i.range_search(r, 6.5), SearchError, "radius: 6.5; .* 0 or more, whole"),
        (lambda i, r: i.search(r, radius=-np.inf), SearchError, "radius: -inf; expected a number"),
        (lambda i, r: i.search(r, 3, radius=np.float32(0.5)), SearchError, "0 or more, whole"),
        (lambda i, r: i.device.search(r, r, radius=-1), SearchError, "radius: -1; expected"),
        (lambda i, r: i.device.search(r, r, 2, radius=0.5), SearchError, "radius: 0.5; expected"),
        (lambda i, r: i.search(r[:1], 2**31 - 1), SearchError, "expected at most 20, as there are"),
        (lambda i, r: i.device.search(r, r, 2**31 - 1), SearchError, "expected at most 20"),
        (lambda i, r: i.device.search(r, r[:, :4]), ShapeError, "rows of 32 bits"),
        (lambda i, r: i.device.search(r, r[0]), ShapeError, r"database: shape \(8,\)"),
        (lambda i, r: i.device.search(r, r, 1, metric="no"), SearchError, "'hamming' or 'jaccard'"),
        (lambda i, r: BinaryIndex(i.device, 12), SearchError, "dimension: 12 bits; .* multiple of"),
        (lambda i, r: BinaryIndex(i.device, 0), SearchError, "dimension: 0 bits"),
        (lambda i, r: BinaryIndex(i.device, "8"), SearchError, "dimension: '8'; .* whole number"),
        (lambda i, r: BinaryIndex("sim", 8), DataTypeError, "device: 'sim'"),
    ],
)

test_ids_that_no_row_has_or_can_have = refusals_of(
    unchanged(IDS),
    [
        (lambda n, r: n.add_with_ids(r, IDS[:3]), ShapeError, "ids: 3; expected 20, one for each"),
        (lambda n, r: n.add_with_ids(r[:1], [[1]]), ShapeError, r"ids: shape \(1, 1\)"),
        (lambda n, r: n.add_with_ids(r[:2], [1, 1]), SearchError, "ids: 1 twice; expected each id"),
        (lambda n, r: n.add_with_ids(r[:2], [1, -1]), SearchError, "ids: -1; expected others"),
        (lambda n, r: n.add_with_ids(r[:2], [1, IDS[3]]), SearchError, f"ids: {IDS[3]} twice"),
        (lambda n, r: n.add_with_ids(r[:1], [0.5]), DataTypeError, "ids: data type float64"),
        (lambda n, r: n.add_with_ids(r[:1], [True]), DataTypeError, "ids: data type bool"),
        (lambda n, r: n.add_with_ids(r[:1], [2**63]), SearchError, "as int64 holds"),
        (lambda n, r: n.add_with_ids(r[:, :2], IDS), ShapeError, r"rows: shape \(20, 2\)"),
        (lambda n, r: n.add(r), SearchError, "rows: without ids; expected add_with_ids"),
        (
            lambda n, r: index_of(r).add_with_ids(r, IDS),
            SearchError,
            "ids: of 20 rows; expected add",
        ),
        (
            lambda n, r: n.merge_from(index_of(r)),
            SearchError,
            "rows: without ids; expected add_with_ids",
        ),
        (lambda n, r: index_of(r).merge_from(n), SearchError, "ids: of 20 rows; expected add"),
        (lambda n, r: index_of(r).merge_from(index_of(r), 3), SearchError, "add_id: 3; expected 0"),
        (lambda n, r: n.merge_from(own(r), 2**63), SearchError, "add_id: 9223372036854775808; exp"),
        (lambda n, r: n.merge_from(own(r), 4), SearchError, "add_id . ids: -1; expected others"),
        (lambda n, r: n.merge_from(n), SearchError, "other: <.*expected another BinaryIndex"),
        (lambda n, r: n.merge_from(3), SearchError, "other: 3; expected another BinaryIndex"),
        (lambda n, r: n.merge_from(OTHER), SearchError, "an index of 64 bits, jaccard; .* hamming"),
        (lambda n, r: n.merge_from(own(r), 0.5), SearchError, "add_id: 0.5; expected a whole"),
        (lambda n, r: n.reconstruct(6), ArrayIndexError, "i: 6; no row has this id"),
        (lambda n, r: n.reconstruct(-1), ArrayIndexError, "i: -1; no row has this id"),
        (lambda n, r: n.reconstruct(2**70), ArrayIndexError, "i: 1180591620717411303424; no row"),
        (
            lambda n, r: n.reconstruct_n(2**63 - 1, 9),
            ArrayIndexError,
            "n0: 9223372036854775807; no",
        ),
        (lambda n, r: n.reconstruct_n(0, 21), SearchError, "ni: 21; expected 0 to 20 rows"),
        (lambda n, r: n.reconstruct_n(0, -2), SearchError, "ni: -2; expected 0 to 20 rows"),
        (lambda n, r: n.reconstruct_batch([5, 6]), ArrayIndexError, "ids: 6; no row has this id"),
        (lambda n, r: n.reconstruct_batch(5), ShapeError, r"ids: shape \(\)"),
        (
            lambda n, r: index_of(r).reconstruct_batch([20]),
            ArrayIndexError,
            "ids: 20; expected 0 to 19",
        ),
        (lambda n, r: n.device.search(r, r, ids=[1]), ShapeError, "ids: 1; expected 20"),
        (lambda n, r: n.device.search(r, r, ids=IDS * 0), SearchError, "ids: 0 twice"),
    ],
)

test_selections_that_select_no_rows = refusals_of(
    unchanged(None),
    [
        (lambda i, r: i.remove_ids([0.5]), DataTypeError, "ids: data type float64; expected integ"),
        (lambda i, r: i.remove_ids(3), ShapeError, r"ids: shape \(\); expected \(n,\)"),
        (lambda i, r: i.remove_ids([[3]]), ShapeError, r"ids: shape \(1, 1\)"),
        (lambda i, r: i.remove_ids(None), DataTypeError, "ids: data type object"),
        (lambda i, r: i.remove_ids([True]), ShapeError, "ids: 1 truth values; expected 20, one"),
        (lambda i, r: i.remove_ids([[True]]), ShapeError, r"ids: shape \(1, 1\); .* truth value"),
        (lambda i, r: IDSelectorBatch([True]), DataTypeError, "ids: data type bool"),
        (lambda i, r: IDSelectorBatch([2**63]), SearchError, "9223372036854775808; expected"),
        (lambda i, r: IDSelectorRange(0.5, 3), DataTypeError, "imin, imax: data type float64"),
        (lambda i, r: IDSelectorBitmap([1]), DataTypeError, "bitmap: data type int64"),
        (lambda i, r: IDSelectorBitmap(np.uint8(1)), ShapeError, r"bitmap: shape \(\)"),
        (lambda i, r: i.search(r[:2], 3, select=[True] * 3), ShapeError, "select: 3 truth values"),
        (lambda i, r: i.search(r[:2], 3, select="all"), DataTypeError, "select: data type <U3"),
        (
            lambda i, r: i.range_search(r[:2], 3, select=[0.5]),
            DataTypeError,
            "select: data type float64",
        ),
        (
            lambda i, r: i.search(r[:2], 3, select=~IDSelectorAnd([True] * 3, IDSelectorAll())),
            ShapeError,
            "lhs: 3 truth values",
        ),
        (lambda i, r: i.explain(r[:2], 3, select=[True]), ShapeError, "select: 1 truth values"),
        (
            lambda i, r: i.device.search(r, r, select=[True] * 3),
            ShapeError,
            "select: 3 truth values; expected 20",
        ),
        (lambda i, r: i.device.search(r, r, select="all"), DataTypeError, "select: data type <U3"),
        (
            lambda i, r: i.device.search(r, r, select=[0.5]),
            DataTypeError,
            "select: data type float64",
        ),
        (
            lambda i, r: i.device.search(r, r, select=[2**63]),
            SearchError,
            "select: 9223372036854775808; ex",
        ),
        (
            lambda i, r: i.device.search(r, r, 2**31 - 1, select=[3]),
            SearchError,
            "expected at most 1, as",
        ),
        (
            lambda i, r: i.device.search(r, r, select=[3], ids=[3]),
            ShapeError,
            "ids: 1; expected 20",
        ),
        (lambda i, r: i.device.search(r, r, 0, radius=2), SearchError, "k: 0"),
        (lambda i, r: i.device.search(r, r, 1.5, radius=2), SearchError, "k: 1.5"),
        (lambda i, r: i.reconstruct(1.5), SearchError, r"i: 1\.5; expected a whole number"),
    ],
)


@pytest.mark.parametrize(
    "call",
    [
        lambda i, x: i.search(x),
        lambda i, x: i.search(ROWS, x),
        lambda i, x: i.search(ROWS, radius=x),
        lambda i, x: i.search(ROWS, select=x),
        lambda i, x: i.range_search(ROWS, x),
        lambda i, x: i.assign(ROWS, x),
        lambda i, x: i.explain(x),
        lambda i, x: i.add(x),
        lambda i, x: i.add_with_ids(x, IDS),
        lambda i, x: i.add_with_ids(ROWS, x),
        lambda i, x: i.remove_ids(x),
        lambda i, x: i.merge_from(x),
        lambda i, x: i.merge_from(index_of(ROWS, IDS), x),
        lambda i, x: i.reconstruct(x),
        lambda i, x: i.reconstruct_n(x),
        lambda i, x: i.reconstruct_n(5, x),
        lambda i, x: i.reconstruct_batch(x),
        lambda i, x: i.save(x) if not isinstance(x, str | bytes) else None,
        lambda i, x: BinaryIndex.load(i.device, x),
        lambda i, x: BinaryIndex.load(x, "file"),
        lambda i, x: BinaryIndex(x, 8),
        lambda i, x: BinaryIndex(i.device, x),
        lambda i, x: BinaryIndex(i.device, 8, metric=x),
        lambda i, x: i.device.search(x, ROWS),
        lambda i, x: i.device.search(ROWS, x),
        lambda i, x: i.device.search(ROWS, ROWS, ids=x),
        lambda i, x: i.device.search(ROWS, ROWS, select=x),
        lambda i, x: i.device.search(ROWS, ROWS, metric=x),
        lambda i, x: IDSelectorBatch(x),
        lambda i, x: IDSelectorRange(0, x),
        lambda i, x: IDSelectorBitmap(x),
        lambda i, x: i.search(ROWS, select=IDSelectorNot(x)),
        lambda i, x: i.search(ROWS, select=IDSelectorAll() & x),
    ],
)
def test_an_argument_of_any_kind_is_taken_or_refused_in_one_line(
    call: Callable[[Any, Any], Any],
) -> None:
    index = index_of(ROWS, IDS)
    takes_or_refuses(lambda value: call(index, value))
