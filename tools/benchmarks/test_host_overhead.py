"""Host time of each call, without the device, and speed of two simulated devices against one.

Of a call it is printed, and bounded by ratios only. Of devices the results alone are asserted, and
the overhead of each fragment and chunk is printed, too. Not part of `make test`, because a test
that runs at the same time makes every figure worse: two devices need two idle cores.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

import bitlane
import bitlane.dask
from benchmarks.timing import fastest
from bitlane import Device, dml
from bitlane.driver import Driver
from bitlane.links import Link
from support.host.line import LeanLink
from support.system.clusters import cluster_of
from support.system.devices import DEFAULT

pytestmark = pytest.mark.slow

MIB = 1 << 20
LARGE = 64 * MIB
YARDSTICKS = 12
"""Upper bound of a call on small arrays, in units of ``yardstick``: 80 us on a computer of 2024,
which needs 7 us for the yardstick."""


class Stopwatch:
    """A clock that stops inside the calls of the links that it is attached to."""

    def __init__(self) -> None:
        self.inside = 0.0
        self._depth = 0

    def put_on(self, link: Link) -> None:
        for name in ("read", "write", "wait", "exchange"):
            setattr(link, name, self._timed(getattr(link, name)))

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            self._depth += 1
            started = perf_counter()
            try:
                return call(*arguments)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.inside += perf_counter() - started

        return timed

    def __call__(self) -> float:
        return perf_counter() - self.inside


watch = Stopwatch()


@pytest.fixture(scope="module")
def device() -> Iterator[bitlane.Device]:
    with bitlane.open("sim") as device:
        watch.put_on(device.driver.link)
        yield device


def yardstick() -> int:
    """Do a fixed amount of work in the interpreter, as the unit of time."""
    total = 0
    for number in range(300):
        total += number
    return total


def expect_little(benchmark: BenchmarkFixture, name: str, call: Callable[[], object]) -> None:
    """Measure the host time of ``call``, and fail if it exceeds `YARDSTICKS`."""
    benchmark.name = name
    benchmark.pedantic(call, rounds=300, warmup_rounds=100)
    unit = fastest(yardstick, 300)
    taken = fastest(call, 300, watch)
    benchmark.extra_info["microseconds"] = round(1e6 * taken, 1)
    benchmark.extra_info["yardsticks"] = round(taken / unit, 2)
    print(f"\n{name}: {1e6 * taken:.1f} us of host time, {taken / unit:.1f} yardsticks")
    assert taken <= YARDSTICKS * unit


OUT = np.zeros(64, np.uint8)

SMALL: dict[str, Callable[[bitlane.Device, Any, Any], object]] = {
    "bit_xor": lambda device, a, b: device.bit_xor(a, b),
    "bit_not": lambda device, a, b: device.bit_not(a),
    "bit_count": lambda device, a, b: device.bit_count(a),
    "bit_xor into out": lambda device, a, b: device.bit_xor(a, b, out=OUT),
    "bit_and with a number": lambda device, a, b: device.bit_and(a, 15),
    "bit_or of every other": lambda device, a, b: device.bit_or(a[::2], b[1::2]),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.benchmark(timer=watch)
def test_small_arrays(device: bitlane.Device, benchmark: BenchmarkFixture, name: str) -> None:
    a, b = np.arange(64, dtype=np.uint8), np.arange(64, dtype=np.uint8)[::-1].copy()
    call = partial(SMALL[name], device, a, b)
    expect_little(benchmark, f"{name}, 64 bytes", call)


@pytest.mark.benchmark(timer=watch)
def test_directml_dispatch(device: bitlane.Device, benchmark: BenchmarkFixture) -> None:
    tensor = dml.BufferTensorDesc(dml.DataType.UINT8, [64])
    with dml.Device(device) as dml_device:
        desc = dml.ElementWiseBitNotOperatorDesc(tensor, tensor)
        operator = dml_device.compile_operator(dml_device.create_operator(desc))
        recorder, commands = dml_device.create_command_recorder(), dml_device.create_command_list()
        initializer = dml_device.create_operator_initializer([operator])
        table = dml_device.create_binding_table(initializer)
        recorder.record_dispatch(commands, initializer, table)
        dml_device.execute(commands)
        commands.reset()
        table = dml_device.create_binding_table(operator)
        table.bind_inputs([dml.BufferBinding(dml_device.create_buffer(64))])
        table.bind_outputs([dml.BufferBinding(dml_device.create_buffer(64))])
        recorder.record_dispatch(commands, operator, table)
        expect_little(
            benchmark, "DirectML dispatch, 64 bytes", lambda: dml_device.execute(commands)
        )


@pytest.fixture(scope="module")
def memory() -> Device:
    """Return a device that computes as fast as NumPy, with memory for all large arrays."""
    return Device(Driver(LeanLink(memory_bytes=4 * LARGE, length_bits=32, remote=False)))


def test_large_arrays_are_copied_up_and_down(memory: Device, benchmark: BenchmarkFixture) -> None:
    a = np.random.default_rng(1).integers(0, 256, LARGE, np.uint8)
    b = a[::-1].copy()
    link = memory.driver.link
    assert isinstance(link, LeanLink)
    store = link.memory

    def least() -> np.ndarray[Any, Any]:
        """Copy both operands to the device, compute, and copy the result back."""
        first, second, third = (store[k * LARGE : (k + 1) * LARGE] for k in range(3))
        first[:] = a
        second[:] = b
        np.bitwise_xor(first, second, out=third)
        return third.copy()

    benchmark.name = "bit_xor, 64 MiB"
    result = benchmark.pedantic(memory.bit_xor, (a, b), rounds=3, warmup_rounds=1)
    assert np.array_equal(result, a ^ b)
    del result
    tracemalloc.start()
    try:
        memory.bit_xor(a, b)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # In turn, so that other work on the machine is in the way of both.
    calls = (least, lambda: memory.bit_xor(a, b))
    rounds = [[fastest(call, 1) for call in calls] for _ in range(9)]
    bare, taken = map(min, zip(*rounds, strict=True))
    benchmark.extra_info["times the bare copies"] = round(taken / bare, 2)
    benchmark.extra_info["peak of new memory in MiB"] = round(peak / MIB, 1)
    print(f"\n64 MiB: {taken / bare:.2f} times the bare copies, peak {peak / MIB:.1f} MiB")
    # Memory for the result only; a second copy would double the peak.
    assert peak < 1.05 * LARGE
    # One more copy would add at least a seventh: it reads and writes as each of the 7 passes does.
    assert taken < 1.5 * bare


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
