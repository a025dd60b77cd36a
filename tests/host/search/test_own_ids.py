"""Rows with ids that the user gave them, added, removed, merged and fetched by them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane import ArrayIndexError, BinaryIndex, BitlaneError, DataTypeError, SearchError
from bitlane.errors import ShapeError
from support.host.arrays import link_of, model, random, same
from support.host.neighbours import nearest, within

ROWS = random((40, 3), "u1")
IDS = np.arange(40)[::-1] * 10 - 5


def filled(rows: Any = ROWS, ids: Any = IDS, **options: Any) -> BinaryIndex:
    index = BinaryIndex(model(), 24, **options)
    index.add_with_ids(rows, ids)
    return index


def test_results_have_the_ids() -> None:
    index, asked = filled(), ROWS[[3, 17]]
    distances, found = nearest(asked, ROWS, 5)
    got = index.search(asked, 5)
    assert same(got[0], distances)
    assert same(got[1], IDS[found])
    limits, distances, found = within(asked, ROWS, 9)
    for one, other in zip(
        index.range_search(asked, 9), (limits, distances, IDS[found]), strict=True
    ):
        assert same(one, other)


def test_equal_distances_come_in_the_order_of_the_rows() -> None:
    index = filled(np.repeat(ROWS[:1], 4, axis=0), [9, 3, -8, 5])
    assert index.search(ROWS[:1], 4)[1].tolist() == [[9, 3, -8, 5]]


@pytest.mark.parametrize("dtype", ["i8", "u8", ">i4", "u1", "O"])
def test_ids_are_of_any_type_of_integers(dtype: str) -> None:
    ids = np.array([3, 0, 250], dtype) if dtype != "O" else [3, 0, 250]
    assert filled(ROWS[:3], ids).ids.tolist() == [3, 0, 250]


def test_rows_come_back_by_their_ids() -> None:
    index = filled()
    assert same(index.reconstruct(-5), ROWS[39])
    assert same(index.reconstruct(np.int64(375)), ROWS[1])
    asked = [5, -5, 5, 385]
    expected = np.stack([ROWS[IDS.tolist().index(each)] for each in asked])
    assert same(index.reconstruct_batch(asked), expected)
    assert index.reconstruct_batch([]).shape == (0, 3)
    index = filled(ROWS[:3], [4, 6, 5])
    assert same(index.reconstruct_n(4, 3), ROWS[[0, 2, 1]])
    with pytest.raises(ArrayIndexError, match="n0: 0; no row has this id"):
        index.reconstruct_n()


def test_rows_without_own_ids_come_back_by_their_numbers() -> None:
    index = BinaryIndex(model(), 24)
    assert index.reconstruct_n().shape == (0, 3)
    index.add(ROWS)
    assert same(index.reconstruct_n(), ROWS)
    assert same(index.reconstruct_n(5), ROWS[5:])
    assert same(index.reconstruct_n(5, 7), ROWS[5:12])
    assert same(index.reconstruct_batch(np.array([39, 0, 39])), ROWS[[39, 0, 39]])


def test_without_own_ids_later_rows_are_numbered_anew() -> None:
    index = BinaryIndex(model(), 24)
    index.add(ROWS)
    assert index.remove_ids([0, 2, 39, 40]) == 3
    left = np.delete(ROWS, [0, 2, 39], axis=0)
    assert same(index.ids, np.arange(37))
    assert same(index.search(ROWS[:4], 3)[1], nearest(ROWS[:4], left, 3)[1])
    assert same(index.reconstruct(1), ROWS[3])


def test_an_id_that_was_removed_is_free() -> None:
    index = filled()
    assert index.remove_ids(IDS[:2]) == 2
    index.add_with_ids(ROWS[:1], IDS[1:2])
    assert index.search(ROWS[:1], 1)[1].tolist() == [[IDS[1]]]
    with pytest.raises(ArrayIndexError, match=f"i: {IDS[0]}; no row has this id"):
        index.reconstruct(IDS[0])


def test_an_id_twice_is_found_among_many() -> None:
    """Ids are sorted when a quarter has been added since: all of them, and each of the last."""
    index = BinaryIndex(model(memory_bytes=1 << 14), 8)
    ids = np.random.default_rng(1).permutation(6000) - 3000
    ids[ids == -1] = 6000
    rows = random((6000, 1), "u1")
    for start in range(0, 6000, 700):
        some = ids[start : start + 700]
        index.add_with_ids(rows[start : start + 700], some)
        asked = np.random.default_rng(start).permutation(index.ntotal)[:500]
        assert same(index.reconstruct_batch(ids[asked]), rows[asked])
        for twice in (some[0], some[-1], ids[start // 2], ids[0]):
            with pytest.raises(SearchError, match=f"ids: {twice} twice; expected each id once"):
                index.add_with_ids(ROWS[:2, :1], [9999, twice])
    assert same(index.ids, ids)


def test_an_index_is_what_faiss_has() -> None:
    index = filled()
    assert (index.d, index.code_size, index.ntotal, index.is_trained) == (24, 3, 40, True)
    index.ids[:] = 0
    assert same(index.ids, IDS)


def test_a_merge_empties_the_other_index() -> None:
    index, other = filled(), filled(ROWS[:7], IDS[:7])
    with pytest.raises(SearchError, match=f"ids: {IDS[0]} twice"):
        index.merge_from(other)
    index.merge_from(other, 1000)
    assert same(index.ids, np.concatenate([IDS, IDS[:7] + 1000]))
    assert other.ntotal == 0
    assert same(index.reconstruct(IDS[6] + 1000), ROWS[6])
    other.add(ROWS)
    assert same(other.reconstruct_n(), ROWS)


def test_indexes_on_one_device_are_merged_without_moving_a_row() -> None:
    device = model()
    index, other = BinaryIndex(device, 24), BinaryIndex(device, 24)
    index.add(ROWS[:9])
    other.add(ROWS[9:])
    link_of(device).traffic.clear()
    index.merge_from(other)
    assert link_of(device).traffic == []
    assert same(index.reconstruct_n(), ROWS)


def test_device_search_returns_ids() -> None:
    asked = ROWS[:2]
    found = nearest(asked, ROWS, 3)[1]
    assert same(model().search(asked, ROWS, 3, ids=IDS)[1], IDS[found])
    assert same(model().search(asked, ROWS[:0], 1, ids=[])[1], np.full((2, 1), -1))
    found = within(asked, ROWS, 9)[2]
    assert same(model().search(asked, ROWS, radius=9, ids=IDS)[2], IDS[found])


OTHER = BinaryIndex(model(), 24, metric="jaccard")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda i: i.add_with_ids(ROWS, IDS[:3]), ShapeError, "ids: 3; expected 40, one for each"),
        (lambda i: i.add_with_ids(ROWS[:1], [[1]]), ShapeError, r"ids: shape \(1, 1\)"),
        (lambda i: i.add_with_ids(ROWS[:2], [1, 1]), SearchError, "ids: 1 twice; expected each id"),
        (lambda i: i.add_with_ids(ROWS[:2], [1, -1]), SearchError, "ids: -1; expected others"),
        (lambda i: i.add_with_ids(ROWS[:2], [1, IDS[3]]), SearchError, f"ids: {IDS[3]} twice"),
        (lambda i: i.add_with_ids(ROWS[:1], [0.5]), DataTypeError, "ids: data type float64"),
        (lambda i: i.add_with_ids(ROWS[:1], [True]), DataTypeError, "ids: data type bool"),
        (lambda i: i.add_with_ids(ROWS[:1], [2**63]), SearchError, "as int64 holds"),
        (lambda i: i.add_with_ids(ROWS[:, :2], IDS), ShapeError, r"rows: shape \(40, 2\)"),
        (lambda i: i.add(ROWS), SearchError, "rows: without ids; expected add_with_ids"),
        (lambda i: plain().add_with_ids(ROWS, IDS), SearchError, "ids: of 40 rows; expected add"),
        (lambda i: i.merge_from(plain()), SearchError, "rows: without ids; expected add_with_ids"),
        (lambda i: plain().merge_from(i), SearchError, "ids: of 40 rows; expected add"),
        (lambda i: plain().merge_from(plain(), 3), SearchError, "add_id: 3; expected 0"),
        (lambda i: i.merge_from(filled(), 2**63), SearchError, "add_id: 9223372036854775808; exp"),
        (lambda i: i.merge_from(filled(), 4), SearchError, "add_id . ids: -1; expected others"),
        (lambda i: i.merge_from(i), SearchError, "other: <.*expected another BinaryIndex"),
        (lambda i: i.merge_from(3), SearchError, "other: 3; expected another BinaryIndex"),
        (lambda i: i.merge_from(OTHER), SearchError, "an index of 24 bits, jaccard; .* hamming"),
        (lambda i: i.merge_from(filled(), 0.5), SearchError, "add_id: 0.5; expected a whole"),
        (lambda i: i.reconstruct(6), ArrayIndexError, "i: 6; no row has this id"),
        (lambda i: i.reconstruct(-1), ArrayIndexError, "i: -1; no row has this id"),
        (lambda i: i.reconstruct(2**70), ArrayIndexError, "i: 1180591620717411303424; no row"),
        (lambda i: i.reconstruct_n(2**63 - 1, 9), ArrayIndexError, "n0: 9223372036854775807; no"),
        (lambda i: i.reconstruct_n(0, 41), SearchError, "ni: 41; expected 0 to 40 rows"),
        (lambda i: i.reconstruct_n(0, -2), SearchError, "ni: -2; expected 0 to 40 rows"),
        (lambda i: i.reconstruct_batch([5, 6]), ArrayIndexError, "ids: 6; no row has this id"),
        (lambda i: i.reconstruct_batch(5), ShapeError, r"ids: shape \(\)"),
        (lambda i: plain().reconstruct_batch([40]), ArrayIndexError, "ids: 40; expected 0 to 39"),
        (lambda i: i.device.search(ROWS, ROWS, ids=[1]), ShapeError, "ids: 1; expected 40"),
        (lambda i: i.device.search(ROWS, ROWS, ids=IDS * 0), SearchError, "ids: 0 twice"),
    ],
)
def test_what_is_refused_changes_nothing(
    call: Callable[[BinaryIndex], Any], error: type[BitlaneError], message: str
) -> None:
    index = filled()
    link_of(index.device).traffic.clear()
    with pytest.raises(error, match=message) as caught:
        call(index)
    assert "\n" not in str(caught.value)
    assert link_of(index.device).traffic == []
    assert same(index.ids, IDS)


def plain() -> BinaryIndex:
    index = BinaryIndex(model(), 24)
    index.add(ROWS)
    return index


def test_no_rows_decide_nothing() -> None:
    index = BinaryIndex(model(), 24)
    index.add_with_ids(ROWS[:0], [])
    index.add(ROWS[:2])
    index.add_with_ids(ROWS[:0], np.empty(0))
    index.reset()
    index.add(ROWS[:0])
    index.add_with_ids(ROWS[:2], [5, 6])
    index.add(ROWS[:0])
    assert index.ids.tolist() == [5, 6]
    assert index.remove_ids([5, 6, 7]) == 2
    index.add(ROWS[:1])
    assert index.ids.tolist() == [0]


def test_ids_are_saved(tmp_path: Path) -> None:
    index = filled()
    index.remove_ids(IDS[::3])
    index.save(tmp_path / "index.npz")
    again = BinaryIndex.load(model(), tmp_path / "index.npz")
    assert same(again.ids, index.ids)
    for one, other in zip(again.search(ROWS, 4), index.search(ROWS, 4), strict=True):
        assert same(one, other)
    with np.load(tmp_path / "index.npz") as archive:
        assert same(archive["ids"], index.ids)
        assert str(archive["format"]) == "bitlane.BinaryIndex 2"


def test_the_last_id_of_int64_has_a_row() -> None:
    last = 2**63 - 1
    index = filled(ROWS[:2], [last, 7])
    assert same(index.reconstruct(last), ROWS[0])
    assert same(index.reconstruct_n(last, 1), ROWS[:1])


def test_no_damage_of_a_file_hides_ids(tmp_path: Path) -> None:
    file = tmp_path / "index.npz"
    index = filled(ROWS[:3], [5, 6, 9])
    index.save(file)
    content = file.read_bytes()
    for place in range(content.index(b"PK\x01\x02"), len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            ids = BinaryIndex.load(index.device, file).ids
        except SearchError:
            continue
        assert ids.tolist() == [5, 6, 9], place
