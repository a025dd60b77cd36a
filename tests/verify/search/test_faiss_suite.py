"""FAISS's own tests of its binary indexes, on bitlane's.

They are fetched for the run, and no part of this project:
``git clone --depth 1 https://github.com/facebookresearch/faiss``, and FAISS_TESTS names the folder
``tests`` in it.
"""

import os
import sys
import unittest
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest

import bitlane
from support.host import faiss_shim

FOLDER = os.environ.get("FAISS_TESTS", "")

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not FOLDER, reason="FAISS_TESTS names no folder of FAISS's tests"),
]

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
    module.faiss = faiss_shim.module(device)  # type: ignore[attr-defined]
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
