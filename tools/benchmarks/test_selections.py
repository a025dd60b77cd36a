"""Selections on device arrays beside ``x.get()[mask]``: printed, in one run.

Not part of `make test`, because a test that runs at the same time makes every figure worse.
"""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import bitlane

pytestmark = pytest.mark.slow

COUNT = 200_000
A = np.random.default_rng(1).integers(0, 256, COUNT, np.uint8)
ROWS = np.random.default_rng(1).integers(0, 256, (COUNT // 32, 32), np.uint8)
RANDOM = np.random.default_rng(2).random(COUNT) < 0.5
NEAR = np.arange(COUNT) % 20_000 < 5_000
INDICES = np.random.default_rng(3).integers(0, COUNT, COUNT // 2)


@pytest.fixture(scope="module", params=["numpy", "sim"])
def device(request: pytest.FixtureRequest) -> Iterator[bitlane.Device]:
    with bitlane.open(request.param) as device:
        yield device


SELECTED: dict[str, tuple[Any, Any]] = {
    "half of all, random": (A, RANDOM),
    "10 runs of 5,000": (A, NEAR),
    "every other element": (A, np.arange(COUNT) % 2 == 0),
    "100,000 random indices": (A, INDICES),
    "one run of 60,000 indices": (A, np.arange(70_000, 130_000)),
    "3,000 random rows of 32": (ROWS, INDICES[:3000] % len(ROWS)),
    "1,000 random indices": (A, INDICES[:1000]),
}


@pytest.mark.parametrize("name", SELECTED)
def test_selections(device: bitlane.Device, name: str) -> None:
    a, key = SELECTED[name]
    x = device.asarray(a)
    assert np.array_equal(x[key].get(), a[key])
    report(device, name, lambda: bitlane.compute(x[key]), lambda: x.get()[key])


@pytest.mark.parametrize("name", SELECTED)
def test_assignments(device: bitlane.Device, name: str) -> None:
    a, key = SELECTED[name]
    a, x = a.copy(), device.asarray(a)
    x[key] = a[key] = 7
    assert np.array_equal(x.get(), a)

    def by_hand() -> None:
        here = x.get()
        here[key] = 7
        x[...] = here

    def on_device() -> None:
        x[key] = 7

    report(device, f"{name} = 7", on_device, by_hand)


def report(
    device: bitlane.Device, name: str, ours: Callable[[], object], theirs: Callable[[], object]
) -> None:
    mine, other = fastest(ours), fastest(theirs)
    beside = f"{mine / other:.2f} times {1e3 * other:.3f} ms by hand"
    print(f"\n{device}, {name}: {1e3 * mine:.3f} ms, {beside}; goal 1.5")


def fastest(call: Callable[[], object], rounds: int = 15) -> float:
    """Return the seconds of the fastest call, because noise only adds time."""
    best = float("inf")
    for _ in range(rounds):
        started = perf_counter()
        call()
        best = min(best, perf_counter() - started)
    return best
