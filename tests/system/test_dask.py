"""bitlane on a real Dask cluster gives NumPy's answers, even if a worker fails."""

import math
import os
import signal
import sys
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import bitlane.dask
from bitlane.errors import (
    DataTypeError,
    LinkError,
    NotOfferedError,
    OtherDeviceError,
    OutOfRangeError,
    SearchError,
    SettingError,
    ShapeError,
)
from support.host.arrays import model, random, same
from support.host.indexes import nearest
from support.processes import succeed
from support.system.clusters import SECONDS, cluster_of

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with cluster_of(2) as client:
        bitlane.dask.equip(client)
        yield client


def get(lazy: Any, client: Client) -> list[Any]:
    return [future.result(SECONDS) for future in client.compute(list(lazy))]


def processes(client: Client) -> dict[str, int]:
    """Return the process ID of each worker by its address."""
    found: dict[str, int] = client.run(os.getpid)
    return found


def test_each_worker_has_a_device_of_its_own(cluster: Client) -> None:
    def opened() -> tuple[int, str]:
        import bitlane

        return id(bitlane.default_device()), bitlane.default_device().description

    first, again = cluster.run(opened), cluster.run(opened)
    assert len(first) == 2
    assert first == again, "opened once, and kept"
    assert {description for _, description in first.values()} == {"simulator compiled, 64 bits"}


def test_elements_are_chosen_on_the_devices(cluster: Client) -> None:
    a, b, mask = random((300, 40), "u2", 1), random(40, "u2", 2), random((300, 1), "u1", 3) > 99
    x, y = da.from_array(a, chunks=(70, 40)), da.from_array(b, chunks=20)
    chosen = bitlane.dask.where(da.from_array(mask, chunks=(100, 1)), x, y)
    bits = bitlane.dask.cardinality(bitlane.dask.where(mask, bitlane.dask.bit_xor(x, y), 0), axis=1)
    got, ones = get([chosen, bits], cluster)
    assert same(got, np.where(mask, a, b))
    assert same(ones, np.bitwise_count(np.where(mask, a ^ b, 0)).sum(1, dtype="u4"))
    with pytest.raises(ShapeError):
        bitlane.dask.where(mask[:7], x, y)
    with pytest.raises(DataTypeError):
        bitlane.dask.where(mask, x, 1.5)


@pytest.mark.parametrize("axis", [-1, (0, 2), None])
@pytest.mark.parametrize("dtype", ["u1", ">i4", "f8", "?"])
def test_counts_of_chosen_elements(cluster: Client, axis: Any, dtype: str) -> None:
    wide = np.dtype(dtype).itemsize
    a, b = (random(shape, "u1", 1).view(dtype) for shape in ((4, 6, 5 * wide), (6, wide)))
    if dtype == "?":
        a, b = a.view("u1") > 99, b.view("u1") > 99
    x, y = da.from_array(a, chunks=(3, 4, 2)), da.from_array(b, chunks=4)
    for mask in (random((4, 6, 5), "u1", 2) > 99, random((6, 1), "u1", 3) & 2, np.array(False)):
        lazy = [
            bitlane.dask.cardinality(x, axis, where=mask),
            bitlane.dask.hamming(x, y, axis, where=da.from_array(mask, chunks=3)),
            bitlane.dask.jaccard(x, y, axis, where=mask),
        ]
        own, other = (
            np.where(mask[..., None], np.broadcast_to(each, a.shape)[..., None].view("u1"), 0)
            for each in (a, b)
        )
        axes = axis if axis != -1 else 2
        found = [
            np.bitwise_count(each).sum(-1).sum(axes)
            for each in (own, own ^ other, own & other, own | other)
        ]
        expected = [found[0].astype("u4"), found[1].astype("u4")]
        expected.append(found[2] / np.maximum(found[3], 1))
        for one, wanted, told in zip(get(lazy, cluster), expected, lazy, strict=True):
            assert same(np.asarray(one), np.asarray(wanted))
            assert (told.shape, told.dtype) == (np.shape(wanted), wanted.dtype)


def test_a_chunk_without_a_row_that_counts_is_not_computed(cluster: Client) -> None:
    def fail() -> Any:
        raise AssertionError("it was computed")

    rows = random((40, 16), "u1", 1)
    bad = da.from_delayed(dask.delayed(fail)(), (60, 16), np.uint8)
    lazy = bitlane.dask.search(
        rows[:3], da.concatenate([bad, da.asarray(rows)]), 4, select=np.arange(100) >= 60
    )
    distances, found = get(lazy, cluster)
    for one, other in zip((distances, found - 60), nearest(rows[:3], rows, 4), strict=True):
        assert same(one, other)


def test_mistakes_are_refused_before_anything_is_sent() -> None:
    x = da.zeros((30, 8), dtype=np.uint8, chunks=9)
    for wrong, error in [
        (lambda: bitlane.dask.bit_xor(x, x[:7]), ShapeError),
        (lambda: bitlane.dask.bit_xor(x, 256), OutOfRangeError),
        (lambda: bitlane.dask.hamming(x, 256), OutOfRangeError),
        (lambda: bitlane.dask.bit_xor(x, x, out=x), NotOfferedError),
        (lambda: bitlane.dask.bit_xor(x, x + 0.5), DataTypeError),
        (lambda: bitlane.dask.bit_not(x.astype("c8")), DataTypeError),
        (lambda: bitlane.dask.bit_count(x, "i8"), DataTypeError),
        (lambda: bitlane.dask.hamming(x, x, dtype="f4"), DataTypeError),
        (lambda: bitlane.dask.hamming(x, x[:, :3]), ShapeError),
        (lambda: bitlane.dask.cardinality(x, where=np.ones(7)), ShapeError),
        (lambda: bitlane.dask.hamming(x, x, where=np.ones((2, 30, 8))), ShapeError),
        (lambda: bitlane.dask.jaccard(x, x, where=np.ones(8, "c8")), DataTypeError),
        (lambda: bitlane.dask.cardinality(x, where=x[x.sum(axis=1) > 1]), ShapeError),
        (lambda: bitlane.dask.bit_xor(model().asarray([1]), x), OtherDeviceError),
        (lambda: bitlane.dask.search(x[:, :3], x), ShapeError),
        (lambda: bitlane.dask.search(x, x, 0), SearchError),
        (lambda: bitlane.dask.search(x, x, radius=-1), SearchError),
        (lambda: bitlane.dask.search(x, x, ids=[1]), ShapeError),
        (lambda: bitlane.dask.search(x, x, ids=np.zeros(30, int)), SearchError),
        (lambda: bitlane.dask.search(x, x, select=[True]), ShapeError),
        (lambda: bitlane.dask.search(x, x, 2, radius=6.5), SearchError),
        (lambda: bitlane.dask.search(x, x, 2**31 - 1), SearchError),
        (lambda: bitlane.dask.search(x, x[x.sum(axis=1) > 1]), ShapeError),
        (lambda: bitlane.dask.hamming(x[x.sum(axis=1) > 1], x[3]), ShapeError),
        (lambda: bitlane.dask.cardinality(x[x.sum(axis=1) > 1], axis=0), ShapeError),
    ]:
        with pytest.raises(error):
            wrong()


def test_a_worker_that_is_killed_costs_no_byte() -> None:
    a = np.arange(3 << 20, dtype=np.uint32)
    rows = random((20_000, 32), "u1", 10)
    with cluster_of(2) as client:
        bitlane.dask.equip(client)
        before = processes(client)
        lazy = [
            bitlane.dask.bit_xor(da.arange(a.size, dtype=a.dtype, chunks=1 << 18), 0x5A5A5A5A),
            bitlane.dask.hamming(da.from_array(rows, chunks=(500, -1)), rows[3]),
            *bitlane.dask.search(rows[:4], da.from_array(rows, chunks=(1000, -1)), 5),
        ]
        futures = client.compute(lazy)
        sleep(0.3)
        os.kill(next(iter(before.values())), signal.SIGKILL)
        result, distances, near, indices = (each.result(SECONDS) for each in futures)
        assert same(result, a ^ 0x5A5A5A5A)
        assert same(distances, np.bitwise_count(rows ^ rows[3]).sum(axis=1, dtype=np.uint32))
        for one, other in zip((near, indices), nearest(rows[:4], rows, 5), strict=True):
            assert same(one, other)
        deadline = monotonic() + SECONDS
        while set(processes(client).values()) == set(before.values()):
            assert monotonic() < deadline, "no worker was lost"
            sleep(0.05)


def test_it_is_imported_by_those_who_use_it_alone() -> None:
    code = (
        "import sys, bitlane; bitlane.Pool;"
        "print(*{'dask', 'multiprocessing'} & sys.modules.keys());"
        "print(bitlane.dask.__name__, 'dask' in sys.modules)"
    )
    assert succeed(sys.executable, "-c", code).splitlines() == ["", "bitlane.dask True"]


def test_a_scheduler_that_is_not_there_is_said_in_time() -> None:
    started = monotonic()
    with pytest.raises(LinkError, match="no scheduler there") as caught:
        bitlane.dask.connect("tcp://127.0.0.1:9", timeout=1)
    assert monotonic() - started < SECONDS
    assert "\n" not in str(caught.value)
    assert "tcp://127.0.0.1:9" in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, "x", math.nan])
def test_what_is_no_time_to_wait_is_refused(timeout: Any) -> None:
    with pytest.raises(SettingError, match="expected seconds"):
        bitlane.dask.connect("tcp://127.0.0.1:9", timeout=timeout)


def test_a_worker_that_does_not_answer_is_said_in_time() -> None:
    with cluster_of(1) as client:
        (process,) = client.run(os.getpid).values()
        os.kill(process, signal.SIGSTOP)
        try:
            # The scheduler has as long to answer, on a busy computer too.
            with pytest.raises(LinkError, match="a worker has not answered within 4 s"):
                bitlane.dask.connect(client.scheduler.address, timeout=4)
        finally:
            os.kill(process, signal.SIGCONT)


def test_what_is_no_address_is_refused_and_changes_nothing() -> None:
    with dask.config.set(scheduler=None):
        with pytest.raises(LinkError, match="magic"):
            bitlane.dask.connect("magic://nowhere", timeout=1)
        assert dask.config.get("scheduler") is None


def test_another_version_is_refused(cluster: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.dask.workers.__version__", "9.9")
    with pytest.raises(LinkError, match=r"has bitlane \d.*; expected 9\.9"):
        bitlane.dask.equip(cluster)
    # The plugin checks workers that join later.
    with pytest.raises(LinkError, match=r"has bitlane \d.*; expected 9\.9"):
        cluster.register_plugin(bitlane.dask.DevicePlugin())
    cluster.unregister_worker_plugin("bitlane-device")


def test_a_worker_without_the_package_is_named(cluster: Client) -> None:
    def hide() -> None:
        import sys

        class Hidden:
            def find_spec(self, name: str, *_: object) -> None:
                if name.partition(".")[0] == "bitlane":
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        for name in [each for each in sys.modules if each.partition(".")[0] == "bitlane"]:
            del sys.modules[name]
        sys.meta_path.insert(0, Hidden())  # type: ignore[arg-type]

    worker = next(iter(processes(cluster)))
    cluster.run(hide, workers=[worker])
    with pytest.raises(LinkError, match=f"worker {worker}: has no bitlane; expected"):
        bitlane.dask.equip(cluster)
