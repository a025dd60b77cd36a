"""Refusals of an index and of `Device.search`: in one line, before anything is sent.

A row is a call; behind ``#`` are the error and words of its message.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import (
    BinaryIndex,
    Device,
    IDSelectorAll,
    IDSelectorBatch,
    IDSelectorBitmap,
    IDSelectorNot,
    IDSelectorRange,
)
from support.host.arrays import link_of, model, random, same
from support.host.indexes import index_of
from support.host.refusals import refused_row, takes_or_refuses

ROWS = random((20, 8), "u1")
IDS = np.arange(20)[::-1] * 10 - 5
OTHER = BinaryIndex(model(), 64, metric="jaccard")


def own(rows: Any) -> Any:
    return index_of(rows, IDS)


PLAIN = r"""
i.search(r, 0)  # SearchError: k: 0; expected 1 to 2147483647 rows
i.search(r, -3)  # SearchError: k: -3
i.search(np.repeat(r, 500, 0), 2**31 - 1)  # SearchError: k: 2147483647 rows
i.search(r, 1.5)  # SearchError: k: 1.5; expected a whole number
i.search(r, 2**63)  # SearchError: k: 9223372036854775808; expected 1 to
i.search(r[:, :7])  # ShapeError: queries: shape \(20, 7\); .* of 64 bits
i.search(r[0])  # ShapeError: queries: shape \(8,\)
i.search(r.view('u8'))  # DataTypeError: queries: data type uint64; .*uint8
i.search(r > 9)  # DataTypeError: np.packbits packs truth values
i.search(None)  # DataTypeError: queries: data type object
i.add(r[:, :4])  # ShapeError: rows: shape \(20, 4\)
i.add(r.astype(int))  # DataTypeError: rows: data type int64
i.range_search(r, 'near')  # SearchError: radius: 'near'; expected a number
i.range_search(r, None)  # SearchError: radius: None
i.range_search(r, np.nan)  # SearchError: radius: nan; expected a number$
OTHER.search(r, radius=np.nan)  # SearchError: radius: nan; expected a number$
i.range_search(r, np.complex64(1))  # SearchError: radius: .*1.*0j
i.range_search(r, -1)  # SearchError: radius: -1; expected a number of bits
i.range_search(r, 6.5)  # SearchError: radius: 6.5; .* 0 or more, whole
i.search(r, radius=-np.inf)  # SearchError: radius: -inf; expected a number
i.search(r, 3, radius=np.float32(0.5))  # SearchError: 0 or more, whole
i.device.search(r, r, radius=-1)  # SearchError: radius: -1; expected
i.device.search(r, r, 2, radius=0.5)  # SearchError: radius: 0.5; expected
i.search(r[:1], 2**31 - 1)  # SearchError: expected at most 20, as there are
i.device.search(r, r, 2**31 - 1)  # SearchError: expected at most 20
i.device.search(r, r[:, :4])  # ShapeError: rows of 32 bits
i.device.search(r, r[0])  # ShapeError: database: shape \(8,\)
i.device.search(r, r, 1, metric='no')  # SearchError: 'hamming' or 'jaccard'
BinaryIndex(i.device, 12)  # SearchError: dimension: 12 bits; .* multiple of
BinaryIndex(i.device, 0)  # SearchError: dimension: 0 bits
BinaryIndex(i.device, '8')  # SearchError: dimension: '8'; .* whole number
BinaryIndex('sim', 8)  # DataTypeError: device: 'sim'
i.remove_ids([0.5])  # DataTypeError: ids: data type float64; expected integ
i.remove_ids(3)  # ShapeError: ids: shape \(\); expected \(n,\)
i.remove_ids([[3]])  # ShapeError: ids: shape \(1, 1\)
i.remove_ids(None)  # DataTypeError: ids: data type object
i.remove_ids([True])  # ShapeError: ids: 1 truth values; expected 20, one
i.remove_ids([[True]])  # ShapeError: ids: shape \(1, 1\); .* truth value
IDSelectorBatch([True])  # DataTypeError: ids: data type bool
IDSelectorBatch([2**63])  # SearchError: 9223372036854775808; expected
IDSelectorRange(0.5, 3)  # DataTypeError: imin, imax: data type float64
IDSelectorBitmap([1])  # DataTypeError: bitmap: data type int64
IDSelectorBitmap(np.uint8(1))  # ShapeError: bitmap: shape \(\)
i.search(r[:2], 3, select=[True] * 3)  # ShapeError: select: 3 truth values
i.search(r[:2], 3, select='all')  # DataTypeError: select: data type <U3
i.range_search(r[:2], 3, select=[0.5])  # DataTypeError: select: data type float64
i.search(r[:2], 3, select=~IDSelectorAnd([True] * 3, IDSelectorAll()))  # ShapeError: lhs: 3 truth
i.explain(r[:2], 3, select=[True])  # ShapeError: select: 1 truth values
i.device.search(r, r, select=[True] * 3)  # ShapeError: select: 3 truth values; expected 20
i.device.search(r, r, select='all')  # DataTypeError: select: data type <U3
i.device.search(r, r, select=[0.5])  # DataTypeError: select: data type float64
i.device.search(r, r, select=[2**63])  # SearchError: select: 9223372036854775808; ex
i.device.search(r, r, 2**31 - 1, select=[3])  # SearchError: expected at most 1, as
i.device.search(r, r, select=[3], ids=[3])  # ShapeError: ids: 1; expected 20
i.device.search(r, r, 0, radius=2)  # SearchError: k: 0
i.device.search(r, r, 1.5, radius=2)  # SearchError: k: 1.5
i.reconstruct(1.5)  # SearchError: i: 1\.5; expected a whole number
"""
"""Calls on an index ``i`` of rows ``r`` that are numbered."""

OWN = r"""
i.add_with_ids(r, IDS[:3])  # ShapeError: ids: 3; expected 20, one for each
i.add_with_ids(r[:1], [[1]])  # ShapeError: ids: shape \(1, 1\)
i.add_with_ids(r[:2], [1, 1])  # SearchError: ids: 1 twice; expected each id
i.add_with_ids(r[:2], [1, -1])  # SearchError: ids: -1; expected others
i.add_with_ids(r[:2], [1, IDS[3]])  # SearchError: ids: 155 twice
i.add_with_ids(r[:1], [0.5])  # DataTypeError: ids: data type float64
i.add_with_ids(r[:1], [True])  # DataTypeError: ids: data type bool
i.add_with_ids(r[:1], [2**63])  # SearchError: as int64 holds
i.add_with_ids(r[:, :2], IDS)  # ShapeError: rows: shape \(20, 2\)
i.add(r)  # SearchError: rows: without ids; expected add_with_ids
index_of(r).add_with_ids(r, IDS)  # SearchError: ids: of 20 rows; expected add
i.merge_from(index_of(r))  # SearchError: rows: without ids; expected add_with_ids
index_of(r).merge_from(i)  # SearchError: ids: of 20 rows; expected add
index_of(r).merge_from(index_of(r), 3)  # SearchError: add_id: 3; expected 0
i.merge_from(own(r), 2**63)  # SearchError: add_id: 9223372036854775808; exp
i.merge_from(own(r), 4)  # SearchError: add_id . ids: -1; expected others
i.merge_from(i)  # SearchError: other: <.*expected another BinaryIndex
i.merge_from(3)  # SearchError: other: 3; expected another BinaryIndex
i.merge_from(OTHER)  # SearchError: an index of 64 bits, jaccard; .* hamming
i.merge_from(own(r), 0.5)  # SearchError: add_id: 0.5; expected a whole
i.reconstruct(6)  # ArrayIndexError: i: 6; no row has this id
i.reconstruct(-1)  # ArrayIndexError: i: -1; no row has this id
i.reconstruct(2**70)  # ArrayIndexError: i: 1180591620717411303424; no row
i.reconstruct_n(2**63 - 1, 9)  # ArrayIndexError: n0: 9223372036854775807; no
i.reconstruct_n(0, 21)  # SearchError: ni: 21; expected 0 to 20 rows
i.reconstruct_n(0, -2)  # SearchError: ni: -2; expected 0 to 20 rows
i.reconstruct_batch([5, 6])  # ArrayIndexError: ids: 6; no row has this id
i.reconstruct_batch(5)  # ShapeError: ids: shape \(\)
index_of(r).reconstruct_batch([20])  # ArrayIndexError: ids: 20; expected 0 to 19
i.device.search(r, r, ids=[1])  # ShapeError: ids: 1; expected 20
i.device.search(r, r, ids=IDS * 0)  # SearchError: ids: 0 twice
"""
"""Calls on an index of rows with the ids `IDS`."""

NAMES = vars(bitlane) | {"np": np, "index_of": index_of, "own": own, "OTHER": OTHER, "IDS": IDS}


CASES = [(False, row) for row in PLAIN.strip().splitlines()]
CASES += [(True, row) for row in OWN.strip().splitlines()]


@pytest.mark.parametrize(("named", "row"), CASES)
def test_a_bad_call_is_refused(device: Device, named: bool, row: str) -> None:
    """Nothing is sent to the device, and the index has not changed."""
    index = index_of(ROWS, IDS if named else None, device)
    link_of(device).traffic.clear()
    with refused_row(device, row) as call:
        exec(call, NAMES | {"i": index, "r": ROWS})
    assert link_of(device).traffic == []
    assert same(index.ids, IDS if named else np.arange(20))
    index.reset()


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
