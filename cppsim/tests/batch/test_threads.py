"""The backend of processor cores keeps one pool of threads, and each process has its own."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from amaranth.lib.fifo import SyncFIFO

from cppsim import Batch
from cppsim.batch import threads
from cppsim.errors import BatchError
from support.processes import succeed

INSTANCES = 300
"""Three tiles of the narrowest words."""


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Batch:
    monkeypatch.setattr(threads, "_words", lambda: (128, ()))
    return Batch(SyncFIFO(width=8, depth=8), INSTANCES, "threads:2")


def workers() -> set[threading.Thread]:
    """Return the threads of all backends."""
    return {x for x in threading.enumerate() if x.name.startswith("cppsim batch")}


def test_all_runs_of_a_backend_share_its_threads_which_end_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_words", lambda: (128, ()))
    others, batch = workers(), Batch(SyncFIFO(width=8, depth=8), INSTANCES, "threads:2")
    batch.set("w_en", np.arange(INSTANCES) % 2)
    batch.step()
    own = workers() - others
    assert len(own) == 2
    for _ in range(5):
        batch.step()
    assert workers() - others == own
    assert batch.get("level").tolist() == [6 * (k % 2) for k in range(INSTANCES)]
    del batch
    for worker in own:
        worker.join(10)
    assert not workers() & own


def test_one_call_at_a_time(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end, run = threading.Event(), threading.Event(), batch.compiled.run

    def wait(*arguments: Any, **named: Any) -> Any:
        begun.set()
        assert end.wait(60)
        return run(*arguments, **named)

    monkeypatch.setattr(batch.compiled, "run", wait)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(batch.step, 3)
        assert begun.wait(60)
        calls: list[Callable[[], object]] = [
            batch.step,
            lambda: batch.memory("storage"),
            lambda: batch.set_memory("storage", [0] * 8),
        ]
        try:
            for call in calls:
                with pytest.raises(BatchError, match="is running in another call: wait until that"):
                    call()
        finally:
            end.set()
        running.result()
    batch.step()
    assert batch.cycles.tolist() == [4] * INSTANCES


@pytest.mark.parametrize(("instances", "count"), [(3, 2), (INSTANCES, 1)])
def test_one_tile_or_one_core_needs_no_threads(instances: int, count: int) -> None:
    others = workers()
    batch = Batch(SyncFIFO(width=8, depth=8), instances, f"threads:{count}")
    batch.step()
    assert workers() <= others
    assert batch.cycles.tolist() == [1] * instances


_FORKED = f"""
import os
from amaranth.lib.fifo import SyncFIFO
from cppsim import Batch
from cppsim.batch import threads

threads._words = lambda: (128, ())
batch = Batch(SyncFIFO(width=8, depth=8), {INSTANCES}, "threads:2")
batch.step()
child = os.fork()
batch.step(2)
assert set(batch.cycles.tolist()) == {{3}}
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both")
"""


def test_a_forked_process_starts_its_own_threads() -> None:
    assert succeed(sys.executable, "-c", _FORKED) == "both\n"


_INTERRUPTED = """
import os, signal, threading
from cppsim import Batch, Model
from support.zoo import Registers

few = Batch(Registers(8), 3, "threads")
many = Batch(Registers(8), 1200, "threads:2")
model = Model(Registers(8))
for each in few, many, model:
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        each.step(1 << 60)
    except KeyboardInterrupt:
        print("step")
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    model.until("data", 1 << 60)
except KeyboardInterrupt:
    print("until")
"""


def test_an_interrupt_ends_a_long_wait() -> None:
    printed = succeed(sys.executable, "-W", "ignore", "-c", _INTERRUPTED)
    assert printed.split() == ["step"] * 3 + ["until"]


_CONTINUED = """
import os, signal, threading
import numpy as np
from amaranth.hdl import Module
from amaranth.lib.wiring import Component, In, Out
from cppsim import Batch

class Sum(Component):
    data: In(32)
    total: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.total.eq(self.total + self.data)
        return m

fed = np.arange(1200, dtype=np.uint64) * 0x9E3779B1 % (1 << 32)
batch = Batch(Sum(), 1200, "threads:1")
batch.set("data", fed)
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    batch.step(1 << 60)
except KeyboardInterrupt:
    batch.step(3)
cycles = batch.cycles
assert (batch.get("total") == fed * cycles % (1 << 32)).all()
print(min(cycles) >= 3, max(cycles) > 100)
"""


def test_a_batch_goes_on_after_an_interrupt() -> None:
    command = sys.executable, "-c", _CONTINUED
    assert succeed(*command) == "True True\n"


def test_an_error_in_one_tile_waits_for_the_others(batch: Batch) -> None:
    backend = batch.compiled
    assert isinstance(backend, threads.Threads)
    started, finished = threading.Event(), list[int]()

    def work(number: int) -> None:
        if number == 0:
            assert started.wait(10)
            raise KeyboardInterrupt
        started.set()
        threading.Event().wait(0.2)
        finished.append(number)

    with pytest.raises(KeyboardInterrupt):
        backend._for_each(work, 2)
    assert finished == [1]
