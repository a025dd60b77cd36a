"""Random lives of an index, step by step beside FAISS and beside a model in NumPy.

A step changes or searches all three. Whole results are compared, ties included: FAISS returns
equal distances in the order in which rows were added, whatever their ids.
"""

import gc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import faiss
import numpy as np
from numpy.typing import NDArray

import bitlane
from bitlane import BinaryIndex, Device
from bitlane.search import subsets
from bitlane_rtl.abi import Op
from support.host.arrays import model, same
from support.host.indexes import ARRAY, answer, expect_equal, taken

Rows = NDArray[np.uint8]
Ids = NDArray[np.int64]

# Its threads wait for each other longer than they work on few rows.
faiss.omp_set_num_threads(1)

steps: Counter[str] = Counter()
"""Steps of all lives by their name, and the accesses of searches in a selection."""


class Reference:
    """Rows and ids in NumPy, and FAISS's index of the same."""

    def __init__(self, row_bytes: int, *, own: bool) -> None:
        self.own = own
        self.rows: Rows = np.empty((0, row_bytes), np.uint8)
        self.own_ids: Ids = np.empty(0, np.int64)
        self.faiss = faiss.IndexBinaryFlat(8 * row_bytes)
        if own:
            self.faiss = faiss.IndexBinaryIDMap2(self.faiss)

    @property
    def ids(self) -> Ids:
        return self.own_ids if self.own else np.arange(len(self.rows))

    def add(self, rows: Rows, ids: Ids) -> None:
        self.rows = np.concatenate([self.rows, rows])
        self.own_ids = np.concatenate([self.own_ids, ids])
        if self.own:
            self.faiss.add_with_ids(rows, ids)
        else:
            self.faiss.add(rows)

    def remove(self, gone: NDArray[np.bool_], selector: Any) -> None:
        assert self.faiss.remove_ids(selector) == gone.sum()
        self.rows, self.own_ids = self.rows[~gone], self.own_ids[~gone]
        assert self.faiss.ntotal == len(self.rows)


class Selected:
    """A random selection: as bitlane takes it, as FAISS does, and a truth value for each row."""

    def __init__(self, choose: Random, ids: Ids, depth: int = 0) -> None:
        count = len(ids)
        kind = choose.choice(["range", "batch", "array", "bitmap", "mask", "all", "ids"])
        if depth < 3 and choose.random() < 0.3:
            kind = choose.choice(["not", "and", "or", "xor"])
        some = _some_ids(choose, ids)
        self.own: Any
        if kind == "range":
            low = int(choose.choice(ids.tolist())) if count else 3
            high = low + choose.choice([0, 1, 7, 50, 1000])
            self.own = bitlane.IDSelectorRange(low, high)
            self.faiss = faiss.IDSelectorRange(low, high)
            self.mask = (ids >= low) & (ids < high)
        elif kind in ("batch", "array"):
            name = f"IDSelector{kind.title()}"
            self.own, self.faiss = getattr(bitlane, name)(some), getattr(faiss, name)(some)
            self.mask = np.isin(ids, some)
        elif kind == "ids":
            self.own, self.faiss = some, faiss.IDSelectorBatch(some)
            self.mask = np.isin(ids, some)
        elif kind == "bitmap":
            bits = np.array([choose.random() < 0.5 for _ in range(choose.choice([0, 8, 99, 400]))])
            bitmap = np.packbits(bits.astype(bool), bitorder="little")
            self.own, self.faiss = bitlane.IDSelectorBitmap(bitmap), faiss.IDSelectorBitmap(bitmap)
            self.mask = np.array([0 <= i < len(bits) and bool(bits[i]) for i in ids.tolist()], bool)
        elif kind == "all":
            self.own, self.faiss = bitlane.IDSelectorAll(), faiss.IDSelectorAll()
            self.mask = np.ones(count, bool)
        elif kind == "mask":
            self.mask = _runs(choose, count)
            self.own = self.mask.tolist() if choose.random() < 0.2 and count else self.mask.copy()
            self.faiss = faiss.IDSelectorBatch(ids[self.mask])
        else:
            self._combine(kind, choose, ids, depth)

    def _combine(self, kind: str, choose: Random, ids: Ids, depth: int) -> None:
        one = Selected(choose, ids, depth + 1)
        if kind == "not":
            self.own, self.faiss = bitlane.IDSelectorNot(one.own), faiss.IDSelectorNot(one.faiss)
            if isinstance(one.own, bitlane.IDSelector) and choose.random() < 0.5:
                self.own = ~one.own
            self.mask = ~one.mask
            return
        two = Selected(choose, ids, depth + 1)
        name = {"and": "IDSelectorAnd", "or": "IDSelectorOr", "xor": "IDSelectorXOr"}[kind]
        self.own = getattr(bitlane, name)(one.own, two.own)
        self.faiss = getattr(faiss, name)(one.faiss, two.faiss)
        combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[kind]
        self.mask = combine(one.mask, two.mask)


def _some_ids(choose: Random, ids: Ids) -> Ids:
    """Return some of ``ids`` in any order, and others that no row has."""
    some = choose.sample(ids.tolist(), choose.randint(0, len(ids)))
    if choose.random() < 0.3:
        some = some[:3]
    others = [choose.choice([-7, 10**9, 2**62, 1])] * choose.randint(0, 2)
    return np.array(some + others, np.int64)


def _runs(choose: Random, count: int) -> NDArray[np.bool_]:
    """Return truth values in runs of a random usual length."""
    usual = choose.choice([1, 2, 30, 400])
    values: list[bool] = []
    while len(values) < count:
        values += [choose.random() < 0.5] * choose.randint(1, usual)
    return np.array(values[:count], bool)


class Life:
    """A life of an index that ``seed`` chooses. ``live`` runs it; raises ``AssertionError``."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.choose = Random(seed)
        self.random = np.random.default_rng(seed)
        self.folder = folder
        self.device = self._device()
        self.row_bytes = self.choose.choice([1, 3, 8, 16, 17])
        self.stride = self.row_bytes
        array = self.device.driver.geometry.search
        if array is not None and self.row_bytes <= array.row_bytes:
            self.stride = array.row_bytes
        self.own = self.choose.random() < 0.6
        self.index = BinaryIndex(self.device, 8 * self.row_bytes)
        self.known = Reference(self.row_bytes, own=self.own)

    def _device(self) -> Device:
        memory = self.choose.choice([1 << 12, 1 << 13, 1 << 14, 1 << 15])
        options: dict[str, Any] = {"memory_bytes": memory, "eager": self.choose.random() < 0.5}
        kind = self.choose.choice(["sums", "array", "sums", "array", "no sums", "no copies"])
        if kind == "array":
            return model(search=ARRAY, **options)
        if kind == "no copies":
            options["ops"] = frozenset(set(Op) - {Op.COPY, Op.SEARCH})
        return model(**options)

    def live(self) -> None:
        actions: dict[str, tuple[int, Callable[[], None]]] = {
            "add": (5, self.add),
            "remove": (5, self.remove),
            "search": (4, self.search),
            "search some": (6, self.search_some),
            "within": (2, self.search_within),
            "reconstruct": (2, self.reconstruct),
            "save and load": (1, self.save_and_load),
            "merge": (1, self.merge),
            "reset": (1, self.reset),
        }
        # Costs of all proportions, so that few rows are accessed in every way.
        costs = {"range": [1, 100, 8192], "command": [1, 100, 1024], "result": [0, 4]}
        chosen = {name: self.choose.choice(each) for name, each in costs.items()}
        with patch.object(subsets, "HOST_COSTS", subsets.HostCosts(**chosen)):
            self._live(actions)

    def _live(self, actions: dict[str, tuple[int, Callable[[], None]]]) -> None:
        names = list(actions)
        weights = [weight for weight, _ in actions.values()]
        self.add()
        for name in self.choose.choices(names, weights, k=self.choose.randint(4, 14)):
            actions[name][1]()
            steps[name] += 1
            assert self.index.ntotal == len(self.index) == len(self.known.rows), name
        self.search()
        assert same(self.index.ids, self.known.ids)
        self._expect_little_memory()
        del self.index
        gc.collect()
        assert self.device.driver.allocator.pieces == 0

    def _expect_little_memory(self) -> None:
        """Assert that the index takes at most twice what its rows need."""
        assert taken(self.device) <= 2 * self.stride * len(self.known.rows)
        assert self.device.driver.allocator.pieces < 12

    def _rows(self, most: int) -> Rows:
        count = self.choose.choice([0, 1, self.choose.randint(1, most), most])
        return self.random.integers(0, 256, (count, self.row_bytes), np.uint8) & 3

    def _new_ids(self, count: int, taken: Ids) -> Ids:
        span = self.choose.choice([(0, 2000), (-(2**62), 2**62), (-1000, 1000)])
        found = set(taken.tolist()) | {-1}
        result: list[int] = []
        while len(result) < count:
            each = self.choose.randrange(*span)
            if each not in found:
                found.add(each)
                result.append(each)
        return np.array(result, np.int64)

    def _queries(self) -> Rows:
        asked = self.choose.choice([0, 1, 2, 11])
        return self.random.integers(0, 256, (asked, self.row_bytes), np.uint8) & 3

    def _add_to(self, index: BinaryIndex, known: Reference, taken: Ids, most: int) -> None:
        rows = self._rows(most)
        ids = self._new_ids(len(rows), taken)
        if self.own:
            index.add_with_ids(rows, ids)
        else:
            index.add(rows)
        known.add(rows, ids)

    def add(self) -> None:
        most = self.choose.choice([3, 60, 300])
        self._add_to(self.index, self.known, self.known.ids, most)

    def remove(self) -> None:
        selected = Selected(self.choose, self.known.ids)
        assert self.index.remove_ids(selected.own) == selected.mask.sum()
        self.known.remove(selected.mask, selected.faiss)

    def search(self) -> None:
        queries, k = self._queries(), self.choose.choice([1, 3, 4, 5, 40])
        expected = answer(queries, self.known.rows, ids=self.known.ids, k=k)
        expect_equal(self.index.search(queries, k), expected)
        expect_equal(self.known.faiss.search(queries, k), expected)
        assert same(self.index.assign(queries, k), expected[1])

    def search_some(self) -> None:
        queries, k = self._queries(), self.choose.choice([1, 3, 4, 5, 40])
        selected = Selected(self.choose, self.known.ids)
        expected = answer(queries, self.known.rows, ids=self.known.ids, mask=selected.mask, k=k)
        expect_equal(self.index.search(queries, k, select=selected.own), expected)
        params = faiss.SearchParameters(sel=selected.faiss)
        expect_equal(self.known.faiss.search(queries, k, params=params), expected)
        for line in str(self.index.explain(queries, k, select=selected.own)).splitlines()[1:-1]:
            access, _, others, *_ = line.replace("in place", "in_place").split()
            steps[access] += 1
            steps["dropped"] += others != "0"

    def search_within(self) -> None:
        queries, radius = self._queries(), self.choose.choice([0, 1, 3, 7, 1000])
        selected = Selected(self.choose, self.known.ids)
        options = {"ids": self.known.ids, "radius": radius}
        expected = answer(queries, self.known.rows, **options)
        expect_equal(self.index.range_search(queries, radius), expected)
        expected = answer(queries, self.known.rows, mask=selected.mask, **options)
        got = self.index.range_search(queries, radius, select=selected.own)
        expect_equal(got, expected)
        params = faiss.SearchParameters(sel=selected.faiss)
        limits, distances, found = self.known.faiss.range_search(queries, radius, params=params)
        expect_equal((limits, distances.astype(np.int32), found), expected)

    def reconstruct(self) -> None:
        ids = self.known.ids
        if not len(ids):
            return
        chosen = [self.choose.randrange(len(ids)) for _ in range(self.choose.choice([0, 1, 9]))]
        assert same(self.index.reconstruct_batch(ids[chosen]), self.known.rows[chosen])
        if not self.own:
            first = self.choose.randrange(len(ids))
            count = self.choose.randint(0, len(ids) - first)
            expected = self.known.faiss.reconstruct_n(first, count)
            assert same(self.index.reconstruct_n(first, count), expected)
            assert same(self.index.reconstruct_n(), self.known.rows)
        for each in chosen[:1]:
            one = self.index.reconstruct(ids[each])
            assert same(one, self.known.faiss.reconstruct(int(ids[each])))

    def save_and_load(self) -> None:
        file = self.folder / "index.npz"
        self.index.save(file)
        if self.choose.random() < 0.5:
            self.device = self._same_device()
        self.index = BinaryIndex.load(self.device, file)

    def _same_device(self) -> Device:
        """Return another device with rows of the same stride."""
        while True:
            device = self._device()
            array = device.driver.geometry.search
            if (array is not None) is (self.device.driver.geometry.search is not None):
                return device

    def merge(self) -> None:
        device = self.device if self.choose.random() < 0.5 else self._device()
        other = BinaryIndex(device, 8 * self.row_bytes)
        known = Reference(self.row_bytes, own=self.own)
        shift = self.choose.choice([0, 5, -3000]) if self.own else 0
        for _ in range(2):
            taken = np.concatenate([self.known.ids - shift, known.ids, [-1 - shift]])
            self._add_to(other, known, taken, 50)
        if known.rows.shape[0] and self.choose.random() < 0.5:
            selected = Selected(self.choose, known.ids)
            other.remove_ids(selected.own)
            known.remove(selected.mask, selected.faiss)
        self.index.merge_from(other, shift)
        self.known.add(known.rows, known.ids + shift)
        assert (other.ntotal, len(other.ids)) == (0, 0)

    def reset(self) -> None:
        self.index.reset()
        self.known = Reference(self.row_bytes, own=self.own)
