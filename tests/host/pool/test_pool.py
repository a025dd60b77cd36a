"""Calls on a pool of devices in this process: cut, computed in chunks and joined, bit for bit.

Calls reach every worker of a group, and end when one fails or the workers are lost. Workers are
objects of this process here, each used by its own thread.
"""

from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Barrier, Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bitlane import BitlaneError, Device
from bitlane.errors import DataTypeError, LinkError, WorkerLostError
from bitlane.pool import Pool, chunk_of, split, split_axis
from bitlane.pool.workers import Call, WorkerGroup
from support.host.arrays import model, random, same

pytestmark = pytest.mark.timeout(60)

DEVICES = 3
LARGE = (5, 30_000)
"""A shape that is cut along its last axis: it has too few rows for each device."""


class InProcess:
    """The devices of a pool without their processes. ``sizes`` lists the operands of each call."""

    def __init__(self, device: Device) -> None:
        self.alive = [SimpleNamespace(url="sim", pid=0)] * DEVICES
        self.sizes: list[int] = []
        self._device = device

    def run(self, calls: Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> list[Any]:
        self.sizes += [operands[0].size for _, operands, _ in calls]
        return [getattr(self._device, name)(*given, **words) for name, given, words in calls]


@pytest.fixture(scope="module")
def workers() -> InProcess:
    return InProcess(model())


@pytest.fixture(scope="module")
def pool(workers: InProcess) -> Pool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitlane.pool.workers.WorkerGroup", lambda *_: workers)
        return Pool(["sim"] * DEVICES)


@pytest.fixture
def sizes(workers: InProcess) -> list[int]:
    """Return the numbers of elements of the first operand of each call of this test."""
    workers.sizes = []
    return workers.sizes


@pytest.mark.parametrize("shape", [(), (7,), LARGE, LARGE[::-1]])
def test_operators_return_what_numpy_returns(
    pool: Pool, sizes: list[int], shape: tuple[int, ...]
) -> None:
    a, b = random(shape, "u2", 1), random(shape, ">u2", 2)
    for result, expected in (
        (pool.bit_not(b), ~b.astype("u2")),
        (pool.bit_xor(a, b), a ^ b.astype("u2")),
        (pool.bit_and(a, 0x0FF0), a & np.uint16(0x0FF0)),
        (pool.bit_shift_left(3, a % 16), np.uint16(3) << a % 16),
        (pool.bit_count(a, np.uint32), np.bitwise_count(a).astype(np.uint32)),
    ):
        assert same(np.asarray(result), np.asarray(expected))
    assert len(sizes) == (5 * DEVICES if a.size == 150_000 else 5)


def test_outputs_are_written_and_returned(pool: Pool) -> None:
    a, b = random(LARGE, "u4", 1), random(LARGE[1], "u4", 2)
    out = np.empty_like(a)
    assert pool.bit_not(a, out=out) is out
    assert same(out, ~a)
    counts = np.empty(LARGE, np.uint8)
    assert pool.bit_count(a, out=counts) is counts
    assert same(counts, np.bitwise_count(a))
    expected = a | b
    assert pool.bit_or(a, b, out=a) is a
    assert same(a, expected)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2), None])
def test_sums_along_axes(pool: Pool, sizes: list[int], axis: Any, keepdims: bool) -> None:
    a, b = random((40, 50, 60), "u2", 1), random((50, 1), "u2", 2)
    words = {"axis": axis, "keepdims": keepdims}
    assert same(
        np.asarray(pool.hamming(a, b, **words)),
        np.asarray(np.bitwise_count(a ^ b).sum(dtype=np.uint32, **words)),
    )
    assert sum(sizes) == a.size
    assert same(
        np.asarray(pool.cardinality(a, dtype="u8", **words)),
        np.asarray(np.bitwise_count(a).sum(dtype=np.uint64, **words)),
    )
    shared, either = (np.bitwise_count(x).sum(**words) for x in (a & b, a | b))
    assert same(np.asarray(pool.jaccard(a, b, **words)), np.asarray(shared / either))


@pytest.mark.parametrize("options", [{"k": 3}, {"radius": 3.0}], ids=["nearest", "within"])
@pytest.mark.parametrize("count", [3, 300])
def test_chunks_of_a_database_are_searched_and_joined(
    pool: Pool, count: int, options: dict[str, Any]
) -> None:
    queries, rows = random((count, 2), "u1", 1), random((24_000 // count, 2), "u1", 2)
    expected = model().search(queries, rows, **options)
    for found, wanted in zip(pool.search(queries, rows, **options), expected, strict=True):
        assert same(found, wanted)
    ids = np.random.default_rng(3).permutation(len(rows)) - len(rows) - 1
    found = pool.search(queries, rows, **options, ids=ids)
    assert same(found[-1], ids[expected[-1]])
    for one, wanted in zip(found[:-1], expected[:-1], strict=True):
        assert same(one, wanted)


def test_ids_of_a_pool_are_checked_and_stand_for_rows_alone(pool: Pool) -> None:
    rows = random((3, 2), "u1")
    assert pool.search(rows[:1], rows, 5, ids=[7, 8, 9])[1][0, 3:].tolist() == [-1, -1]
    for ids, message in (([7, 8], "ids: 2; expected 3"), ([7, 8, 7], "ids: 7 twice")):
        with pytest.raises(BitlaneError, match=message):
            pool.search(rows[:1], rows, 5, ids=ids)


# --- how calls are cut ----------------------------------------------------------------------------


SHAPES = st.lists(st.integers(1, 9), max_size=4).map(tuple)


@given(st.integers(1, 10_000_000), st.integers(1, 8), st.integers(1, 9))
def test_pieces_cover_the_axis_in_order(length: int, itemsize: int, devices: int) -> None:
    cuts = split((length,), 0, itemsize, devices)
    assert [cut.start for cut in cuts] == [0, *(cut.stop for cut in cuts[:-1])]
    assert cuts[-1].stop == length
    assert all(cut.start < cut.stop for cut in cuts)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_every_device_gets_as_many_pieces(devices: int) -> None:
    for size in (5 << 20, 13 << 20):
        count = len(split((size,), 0, 1, devices))
        assert count % devices == 0
        assert size / count <= 1 << 20


def test_what_is_small_is_not_cut_small() -> None:
    assert len(split((1000, 16), 0, 1, 8)) == 1
    assert len(split((4000, 16), 0, 1, 8)) == 3


@pytest.mark.parametrize(
    ("shape", "axes", "axis"),
    [
        ((100, 5000), (0, 1), 0),
        ((2, 5000), (0, 1), 1),
        ((1, 1, 7), (0, 1, 2), 2),
        ((3, 2), (0, 1), 0),
        ((3, 900), (0,), 0),
        ((1, 900), (0,), None),
        ((), (), None),
        ((50, 0), (0, 1), None),
    ],
)
def test_the_axis_that_is_split(
    shape: tuple[int, ...], axes: tuple[int, ...], axis: int | None
) -> None:
    assert split_axis(shape, axes) == axis


@given(SHAPES, st.data())
def test_operands_are_cut_unless_repeated(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = split_axis(shape, range(len(shape)))
    assume(axis is not None)
    assert axis is not None
    kept = data.draw(st.integers(0, len(shape)))
    own = tuple(n if data.draw(st.booleans()) else 1 for n in shape[kept:])
    operand = np.arange(np.prod(own, dtype=int)).reshape(own)
    start = data.draw(st.integers(0, shape[axis] - 1))
    piece = slice(start, data.draw(st.integers(start + 1, shape[axis])))
    whole = np.broadcast_to(operand, shape)[(*[slice(None)] * axis, piece)]
    got = chunk_of(operand, len(shape), axis, piece)
    assert np.array_equal(np.broadcast_to(got, whole.shape), whole)


# --- workers --------------------------------------------------------------------------------------

SECONDS = 30.0


class Worker:
    """A worker without a process. Its device returns the name of the call and its own number."""

    compute: Callable[[int, Call], object]

    def __init__(self, number: int, url: str) -> None:
        self.number, self.url, self.pid = number, url, 0
        self.closed = False

    def wait_open(self, seconds: float) -> None:
        if self.url == "broken":
            raise LinkError("no device")

    def call(self, call: Call, seconds: float) -> object:
        assert seconds == SECONDS
        return Worker.compute(self.number, call)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """The workers that are made, in order."""
    made: list[Worker] = []

    def make(number: int, url: str) -> Worker:
        made.append(Worker(number, url))
        return made[-1]

    monkeypatch.setattr("bitlane.pool.workers.Worker", make)
    return made


@pytest.fixture
def group(made: list[Worker]) -> Iterator[WorkerGroup]:
    group = WorkerGroup(["sim"] * DEVICES, SECONDS, SimpleQueue())
    yield group
    group.close()
    assert all(worker.closed for worker in made)
    assert not group.alive


def calls(count: int) -> list[Call]:
    return [(str(number), (), {}) for number in range(count)]


def test_results_are_in_the_order_of_their_calls(group: WorkerGroup) -> None:
    together = Barrier(DEVICES)

    def compute(number: int, call: Call) -> object:
        together.wait(SECONDS)  # Every worker has a call.
        return call[0], number

    Worker.compute = compute
    results = group.run(calls(2 * DEVICES))
    assert [name for name, _ in results] == [name for name, _, _ in calls(2 * DEVICES)]
    assert {number for _, number in results} == {1, 2, 3}


def test_the_error_of_a_call_is_raised_and_no_further_call_begun(group: WorkerGroup) -> None:
    begun: list[str] = []

    def compute(number: int, call: Call) -> object:
        begun.append(call[0])
        if call[0] == "0":
            raise DataTypeError("wrong")
        return Event().wait(0.01)

    Worker.compute = compute
    with pytest.raises(DataTypeError, match="wrong"):
        group.run(calls(10_000))
    assert len(begun) < 10_000
    assert group.lost == ()
    Worker.compute = lambda number, call: call[0]
    assert group.run(calls(2)) == ["0", "1"]


def test_the_call_of_a_lost_device_is_computed_by_another(group: WorkerGroup) -> None:
    def compute(number: int, call: Call) -> object:
        if number == 2:
            raise WorkerLostError("device 2: gone")
        return call[0]

    Worker.compute = compute
    while not group.lost:
        assert group.run(calls(50)) == [str(number) for number in range(50)]
    assert group.lost == ("device 2: gone",)
    assert len(group.alive) == DEVICES - 1


def test_without_a_device_every_call_fails(group: WorkerGroup) -> None:
    def compute(number: int, call: Call) -> object:
        raise WorkerLostError(f"device {number}: gone")

    Worker.compute = compute
    for _ in range(2):
        with pytest.raises(LinkError, match=r"no device is left: device \d: gone; device \d"):
            group.run(calls(7))
    assert len(group.lost) == DEVICES


def test_a_closed_group_takes_no_call(group: WorkerGroup) -> None:
    group.close()
    assert group.closed
    with pytest.raises(LinkError, match="it is closed"):
        group.run(calls(1))


def test_a_device_that_does_not_open_closes_all(made: list[Worker]) -> None:
    with pytest.raises(LinkError, match="no device"):
        WorkerGroup(["sim", "broken", "sim"], SECONDS, SimpleQueue())
    assert [worker.closed for worker in made] == [True] * DEVICES
