"""Arrays on a device beside NumPy itself, in one run: printed, and bounded by ratios only.

Not part of `make test`, because a test that runs at the same time makes every figure worse.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from benchmarks.timing import fastest

pytestmark = pytest.mark.slow

A, B = np.random.default_rng(1).integers(0, 256, (2, 1024, 1024), np.uint8)
LARGE_A, LARGE_B = np.random.default_rng(1).integers(0, 256, (2, 4096, 4096), np.uint8)
ROWS = np.random.default_rng(2).integers(0, 256, (20_000, 32), np.uint8)


@pytest.fixture(scope="module")
def device() -> Iterator[bitlane.Device]:
    with bitlane.open("numpy") as device:
        yield device


def expect(name: str, ratio: float, least: float) -> None:
    print(f"\n{name}: {ratio:.3f} of NumPy's speed; goal {least}")
    assert ratio >= least, name


def test_two_arrays_of_the_host(device: bitlane.Device) -> None:
    assert np.array_equal(device.bit_xor(A, B), A ^ B)
    ratio = fastest(lambda: A ^ B) / fastest(lambda: device.bit_xor(A, B))
    expect("1 MiB XOR, operands and result in the host's memory", ratio, 0.12)


RESIDENT: dict[str, tuple[float, Callable[[Any, Any], Any]]] = {
    "whole": (0.5, lambda a, b: a ^ b),
    "transposed": (0.3, lambda a, b: a.T ^ b),
    "a row for all rows": (0.3, lambda a, b: a ^ b[:1]),
    "a column for all columns": (0.3, lambda a, b: a ^ b[:, :1]),
    "every other element": (0.3, lambda a, b: a[:, ::2] ^ b[:, ::2]),
    "backwards": (0.3, lambda a, b: a[::-1, ::-1] ^ b),
}


@pytest.mark.parametrize("name", RESIDENT)
def test_arrays_that_stay_on_the_device(device: bitlane.Device, name: str) -> None:
    least, compute = RESIDENT[name]
    a, b = device.asarray(LARGE_A), device.asarray(LARGE_B)
    assert np.array_equal(np.asarray(compute(a, b)), compute(LARGE_A, LARGE_B))
    ratio = fastest(lambda: compute(LARGE_A, LARGE_B), 20) / fastest(
        lambda: bitlane.compute(compute(a, b)), 20
    )
    expect(f"16 MiB XOR on the device, {name}", ratio, least)


LEAST_RESIDENT = {64: 0.015, 1024: 0.2, 2048: 0.3, 4096: 0.5}
"""Least ratio to NumPy's speed, by KiB of an array. The host spends 60 us on each call."""


@pytest.mark.parametrize("kib", LEAST_RESIDENT)
def test_smaller_arrays_that_stay_on_the_device(device: bitlane.Device, kib: int) -> None:
    size = kib << 10
    a, b = LARGE_A.reshape(-1)[:size], LARGE_B.reshape(-1)[:size]
    x, y = device.asarray(a), device.asarray(b)
    assert np.array_equal(np.asarray(x ^ y), a ^ b)
    ratio = fastest(lambda: a ^ b) / fastest(lambda: bitlane.compute(x ^ y))
    expect(f"{kib} KiB XOR on the device", ratio, LEAST_RESIDENT[kib])


def test_a_small_call_and_opening() -> None:
    """Assert that both times are few times that of a loop of 300 steps, which takes about 7 us."""
    a, b = A[0, :64], B[0, :64]
    unit = fastest(lambda: sum(number for number in range(300)), 300)
    with bitlane.open("numpy") as device:
        assert np.array_equal(device.bit_xor(a, b), a ^ b)
        call = fastest(lambda: device.bit_xor(a, b), 300)
    opening = fastest(lambda: bitlane.open("numpy").close(), 30)
    print(f"\n64 B XOR: {1e6 * call:.0f} us, {call / unit:.1f} units; goal 100 us")
    print(f"opening: {1e3 * opening:.1f} ms, {opening / unit:.0f} units; goal 10 ms")
    assert call <= 14 * unit
    assert opening <= 1400 * unit


def direct(rows: NDArray[np.uint8], queries: NDArray[np.uint8]) -> list[NDArray[np.int64]]:
    """Return the ten nearest rows of each query, as a user of NumPy alone would."""
    words, found = rows.view(np.uint64), []
    for query in queries.view(np.uint64):
        distances = np.bitwise_count(words ^ query).sum(axis=1, dtype=np.uint16)
        near = np.argpartition(distances, 10)[:10]
        found.append(near[np.lexsort((near, distances[near]))])
    return found


@pytest.mark.parametrize("url", ["numpy", "numpy?search=24,256,128,16"])
def test_a_search_of_100_queries(url: str) -> None:
    queries = ROWS[:100] ^ 1
    with bitlane.open(url) as device:
        ratio = fastest(lambda: direct(ROWS, queries), 5) / fastest(
            lambda: device.search(queries, ROWS, 10), 5
        )
    expect(f"search of 100 queries in 20,000 rows, {url}", ratio, 1 / 2.5)


def test_a_command_of_many_short_runs(device: bitlane.Device) -> None:
    a = np.random.default_rng(3).integers(0, 256, (100_000, 3), np.uint8)
    resident = device.asarray(a)
    assert np.array_equal(np.asarray(resident[:, ::2] ^ resident[:, 1:]), a[:, ::2] ^ a[:, 1:])
    ratio = fastest(lambda: a[:, ::2] ^ a[:, 1:], 20) / fastest(
        lambda: bitlane.compute(resident[:, ::2] ^ resident[:, 1:]), 20
    )
    expect("100,000 runs of two elements", ratio, 0.3)


SIZE = 200_000
VALUES = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
TABLE = np.random.default_rng(1).integers(0, 256, (SIZE // 32, 32), np.uint8)
RANDOM = np.random.default_rng(2).random(SIZE) < 0.5
NEAR = np.arange(SIZE) % 20_000 < 5_000
INDICES = np.random.default_rng(3).integers(0, SIZE, SIZE // 2)


@pytest.fixture(scope="module", params=["numpy", "sim"])
def selecting(request: pytest.FixtureRequest) -> Iterator[bitlane.Device]:
    with bitlane.open(request.param) as device:
        yield device


SELECTED: dict[str, tuple[Any, Any]] = {
    "half of all, random": (VALUES, RANDOM),
    "10 runs of 5,000": (VALUES, NEAR),
    "every other element": (VALUES, np.arange(SIZE) % 2 == 0),
    "100,000 random indices": (VALUES, INDICES),
    "one run of 60,000 indices": (VALUES, np.arange(70_000, 130_000)),
    "3,000 random rows of 32": (TABLE, INDICES[:3000] % len(TABLE)),
    "1,000 random indices": (VALUES, INDICES[:1000]),
}


@pytest.mark.parametrize("name", SELECTED)
def test_selections(selecting: bitlane.Device, name: str) -> None:
    a, key = SELECTED[name]
    x = selecting.asarray(a)
    assert np.array_equal(x[key].get(), a[key])
    report(selecting, name, lambda: bitlane.compute(x[key]), lambda: x.get()[key])


@pytest.mark.parametrize("name", SELECTED)
def test_assignments(selecting: bitlane.Device, name: str) -> None:
    a, key = SELECTED[name]
    a, x = a.copy(), selecting.asarray(a)
    x[key] = a[key] = 7
    assert np.array_equal(x.get(), a)

    def by_hand() -> None:
        here = x.get()
        here[key] = 7
        x[...] = here

    def on_device() -> None:
        x[key] = 7

    report(selecting, f"{name} = 7", on_device, by_hand)


def report(
    device: bitlane.Device, name: str, ours: Callable[[], object], theirs: Callable[[], object]
) -> None:
    mine, other = fastest(ours, 15), fastest(theirs, 15)
    beside = f"{mine / other:.2f} times {1e3 * other:.3f} ms by hand"
    print(f"\n{device}, {name}: {1e3 * mine:.3f} ms, {beside}; goal 1.5")
