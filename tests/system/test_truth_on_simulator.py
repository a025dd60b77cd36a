"""Comparisons and tests on simulated circuits: NumPy's truth values, and how fast two are equal."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import bitlane
from support.host.arrays import KINDS, random, same
from support.system.devices import DEFAULT, DEVICES, noise, opened

SIZE = 1 << 16
"""Bytes of each of the arrays that are compared."""

LEAST = 0.998
"""Beats a cycle on each of the two read ports, with start-up."""

RETIRED = 4
"""Cycles from the last response of the memory until the engine is idle."""


@pytest.fixture(scope="module", params=DEVICES)
def circuit(request: pytest.FixtureRequest) -> Iterator[bitlane.Device]:
    with opened(request.param) as device:
        yield device
        gc.collect()


@pytest.mark.parametrize("kind", [*KINDS, "f2", "f4", "f8"])
def test_the_circuit_gives_numpys_truth_values(circuit: bitlane.Device, kind: str) -> None:
    wide = random((7, 33), "u1", 1) % 4
    a, b = (x.astype(kind) for x in (wide, wide[:, ::-1]))
    if np.dtype(kind).kind == "f":
        a[a == 3], b[b == 3], b[0] = np.nan, np.inf, -0.0
    x, y = circuit.asarray(a), circuit.asarray(b)
    for function in (np.equal, np.not_equal, np.logical_or, np.logical_xor):
        assert same(function(x, y).get(), function(a, b))
        assert same(function(x[:, 1:], y[:, :-1]).get(), function(a[:, 1:], b[:, :-1]))
    for function in (np.isnan, np.isfinite, np.isinf, np.signbit, np.logical_not):
        assert same(function(x).get(), function(a))
    for axis in (None, 0, 1):
        sums = () if np.dtype(kind).kind == "f" else (np.sum,)
        for reduced in (np.any, np.all, np.count_nonzero, *sums):
            expected = np.asarray(reduced(a == b, axis=axis))
            assert np.array_equal(reduced(x == y, axis=axis).get(), expected)
            assert np.array_equal(reduced(x, axis=axis).get(), np.asarray(reduced(a, axis=axis)))
    assert np.array_equal(x, a) is np.array_equal(a, a)
    assert not np.array_equal(x, y)


def test_arrays_are_compared_as_fast_as_they_are_read() -> None:
    with opened(DEFAULT) as device:
        a = noise(SIZE, 1)
        x, y = device.asarray(a), device.asarray(a)
        driver = device.driver
        driver.clear_counters()
        bitlane.compute(x ^ y)
        logic = driver.counters()["BUSY_CYCLES"]
        driver.clear_counters()
        assert np.array_equal(x, y)
        counters = driver.counters()
        del x, y
    beats = SIZE // driver.geometry.data_bytes
    assert counters["A_BEATS"] == counters["B_BEATS"] == beats
    assert counters["BUSY_CYCLES"] <= logic
    assert beats / (counters["BUSY_CYCLES"] - RETIRED) >= LEAST
