"""Speed of two simulated devices against one, and the overhead of each fragment and chunk.

It needs a machine with two idle cores. It prints times, and asserts results only.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from numpy.typing import NDArray

import bitlane.dask
from benchmarks.timing import fastest
from support.system.clusters import cluster_of
from support.system.devices import DEFAULT

pytestmark = pytest.mark.slow

ROUNDS = 3
ROWS, WIDTH = 256, 1 << 16
"""Shape of the compared rows in bytes: 16 MiB in all; 16 rows are a chunk of 1 MiB."""

Record = Callable[[str, object], None]


def computed(client: Client, lazy: da.Array) -> Any:
    return client.compute(lazy).result(120)


@pytest.fixture(scope="module")
def rows() -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (ROWS, WIDTH), np.uint8)


def test_a_pool(rows: NDArray[np.uint8], record_property: Record) -> None:
    expected = np.bitwise_count(rows ^ rows[0]).sum(axis=1, dtype=np.uint32)
    seconds: dict[int, float] = {}
    least: dict[int, float] = {}
    small = np.zeros(16 * 1024, np.uint8)
    for devices in (1, 2):
        with bitlane.Pool([DEFAULT] * devices) as pool:
            assert np.array_equal(pool.hamming(rows, rows[0]), expected)
            seconds[devices] = fastest(partial(pool.hamming, rows, rows[0]), ROUNDS)
            least[devices] = fastest(partial(pool.bit_not, small), ROUNDS)
    with bitlane.open(DEFAULT) as device:
        alone = fastest(partial(device.bit_not, small), ROUNDS)
    ratio = seconds[1] / seconds[2]
    record_property("report", f"pool: two devices are {ratio:.2f} x one: {seconds}")
    record_property("report", f"pool: {1000 * (least[1] - alone):.2f} ms a piece beside its work")


def test_a_cluster(rows: NDArray[np.uint8], record_property: Record) -> None:
    seconds: dict[int, float] = {}
    overhead: dict[int, float] = {}
    with bitlane.open(DEFAULT) as device:
        alone = fastest(partial(device.bit_not, np.zeros(64, np.uint8)), ROUNDS)
    for workers in (1, 2):
        with cluster_of(workers) as client:
            bitlane.dask.equip(client)
            data = client.persist(da.full((ROWS, WIDTH), 0xA5, dtype=np.uint8, chunks=(16, -1)))
            lazy = bitlane.dask.hamming(data, rows[0])
            expected = np.bitwise_count(rows[0] ^ np.uint8(0xA5)).sum()
            assert set(computed(client, lazy).tolist()) == {expected}
            seconds[workers] = fastest(partial(computed, client, lazy), ROUNDS)
            tiny = client.persist(da.zeros(64 * 200, dtype=np.uint8, chunks=64))
            took = fastest(partial(computed, client, bitlane.dask.bit_not(tiny)), ROUNDS)
            overhead[workers] = took / 200 - alone
    ratio = seconds[1] / seconds[2]
    each = {workers: f"{1000 * value:.2f} ms" for workers, value in overhead.items()}
    record_property("report", f"cluster: two workers are {ratio:.2f} x one: {seconds}")
    record_property("report", f"cluster: a chunk beside its work, by workers: {each}")
