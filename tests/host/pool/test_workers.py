"""Calls reach every worker of a group, and end when one fails or the workers are lost.

The workers are objects of this process, each used by its own thread.
"""

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Barrier, Event

import pytest

from bitlane.errors import DataTypeError, LinkError, WorkerLostError
from bitlane.pool import workers
from bitlane.pool.workers import Call, WorkerGroup

DEVICES = 3
SECONDS = 30.0

pytestmark = pytest.mark.timeout(60)


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

    monkeypatch.setattr(workers, "Worker", make)
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
