"""FAISS's own tests of its binary indexes, on bitlane's.

They are fetched for the run, and no part of this project:
``git clone --depth 1 https://github.com/facebookresearch/faiss``, and FAISS_TESTS names the folder
``tests`` in it. They get a module `faiss` with other indexes; all other names are FAISS's own.
"""

import os
import sys
import tempfile
import unittest
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import faiss
import numpy as np
import pytest

import bitlane
from bitlane import BinaryIndex, BitlaneError, Device

FOLDER = os.environ.get("FAISS_TESTS", "")

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not FOLDER, reason="FAISS_TESTS names no folder of FAISS's tests"),
]


class SearchParameters:
    def __init__(self, sel: Any = None) -> None:
        self.sel = sel


class _Index:
    """The methods of FAISS's `IndexBinary`. Errors are RuntimeErrors, as FAISS's are."""

    is_trained = True

    def __init__(self, index: BinaryIndex) -> None:
        self.index = index

    d = property(lambda self: self.index.d)
    code_size = property(lambda self: self.index.code_size)
    ntotal = property(lambda self: self.index.ntotal)

    def add(self, x: Any) -> None:
        self.index.add(x)

    def reset(self) -> None:
        self.index.reset()

    def search(self, x: Any, k: int, *, params: Any = None) -> Any:
        return self.index.search(x, k, select=None if params is None else params.sel)

    def range_search(self, x: Any, thresh: int, *, params: Any = None) -> Any:
        return self.index.range_search(x, thresh, select=None if params is None else params.sel)

    def assign(self, x: Any, k: int, labels: None = None) -> Any:
        assert labels is None
        return self.index.assign(x, k)

    def reconstruct(self, key: int) -> Any:
        try:
            return self.index.reconstruct(key)
        except BitlaneError as error:
            raise RuntimeError(str(error)) from None

    def reconstruct_n(self, n0: int = 0, ni: int = -1) -> Any:
        return self.index.reconstruct_n(n0, ni)

    def remove_ids(self, x: Any) -> int:
        return self.index.remove_ids(x)


def faiss_on(device: Device) -> Any:
    """Return a module `faiss` whose binary indexes have their rows on ``device``."""

    class IndexBinaryFlat(_Index):
        use_heap = True

        def __init__(self, d: int) -> None:
            super().__init__(BinaryIndex(device, d))

    class IndexBinaryIDMap2(_Index):
        def __init__(self, sub_index: _Index) -> None:
            super().__init__(sub_index.index)

        def add_with_ids(self, x: Any, ids: Any) -> None:
            self.index.add_with_ids(x, ids)

    def serialize_index_binary(index: _Index) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "index")
            index.index.save(file)
            return np.frombuffer(file.read_bytes(), np.uint8)

    def deserialize_index_binary(data: Any) -> _Index:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "index")
            file.write_bytes(data.tobytes())
            return _Index(BinaryIndex.load(device, file))

    class Shim(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(faiss, name)

    shim: Any = Shim("faiss")
    for each in (
        *(IndexBinaryFlat, IndexBinaryIDMap2, SearchParameters),
        *(serialize_index_binary, deserialize_index_binary),
    ):
        setattr(shim, each.__name__, each)
    shim.IndexBinaryIDMap = IndexBinaryIDMap2
    for name in dir(bitlane):
        if name.startswith("IDSelector"):
            setattr(shim, name, getattr(bitlane, name))
    shim.IDSelectorRange = lambda imin, imax, assume_sorted=False: bitlane.IDSelectorRange(
        imin, imax
    )
    return shim


KINDS = ["batch", "range", "range_sorted", "array", "bitmap", "not", "and", "or", "xor"]
"""Selections that FAISS's test of selectors knows; it tries some with its binary index."""

OWN = {
    "test_index_binary": ["TestBinaryFlat"],
    "test_binary_io": ["TestBinaryFlat"],
    "test_search_params": ["TestSelector.test_BinaryFlat"],
    "test_index_composite": ["TestRemove.test_remove_id_map_binary"],
}
"""FAISS's tests of `IndexBinaryFlat` and `IndexBinaryIDMap2`, by the start of their names."""


@pytest.fixture(scope="module")
def device() -> Iterator[bitlane.Device]:
    with bitlane.open("numpy?memory=1MiB") as device:
        yield device


def load(name: str, device: bitlane.Device) -> Any:
    """Return FAISS's module of tests ``name``, with bitlane's indexes in FAISS's place."""
    spec = util.spec_from_file_location(name, Path(FOLDER, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.path.insert(0, FOLDER)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(FOLDER)
    module.faiss = faiss_on(device)  # type: ignore[attr-defined]
    return module


def flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flat(each)
        else:
            yield each


def short(test: unittest.TestCase) -> str:
    """Return the name of a test without the level of SIMD, which FAISS appends to the class."""
    name = type(test).__name__
    for level in ("NONE", "AVX2", "AVX512", "AVX512_SPR", "NEON", "SVE"):
        name = name.removesuffix(f"_{level}")
    return f"{name}.{test.id().rpartition('.')[2]}"


@pytest.mark.parametrize("name", OWN)
def test_the_tests_of_faiss_pass(name: str, device: bitlane.Device, record_property: Any) -> None:
    module = load(name, device)
    # One class of those that differ in the level of SIMD alone.
    tests = {
        short(each): each for each in flat(unittest.defaultTestLoader.loadTestsFromModule(module))
    }
    chosen = [test for name_, test in tests.items() if name_.startswith(tuple(OWN[name]))]
    assert chosen
    result = unittest.TestResult()
    for test in chosen:
        test.run(result)
    assert result.testsRun == len(chosen)
    assert [text for _, text in (*result.errors, *result.failures, *result.skipped)] == []
    record_property("report", f"{name}: {len(chosen)} tests of FAISS pass")


@pytest.mark.parametrize("heap", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_selector_of_faiss(kind: str, heap: bool, device: bitlane.Device) -> None:
    """The body of FAISS's test, also for the selections that FAISS tries with other indexes."""
    module = load("test_search_params", device)
    test = next(
        each
        for each in flat(unittest.defaultTestLoader.loadTestsFromModule(module))
        if short(each).startswith("TestSelector.")
    )
    test.do_test_id_selector("BinaryFlat", id_selector_type=kind, use_heap=heap)  # type: ignore[attr-defined]
