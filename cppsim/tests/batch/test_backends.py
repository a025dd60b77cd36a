"""The backends: a pool of threads in each process, and a GPU that shares a batch in launches."""

import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.lib.fifo import SyncFIFO
from numpy.typing import NDArray

from cppsim import Batch, BatchError, BatchWarning, BrokenOff, Program
from cppsim.batch import cuda, threads
from support.host_gpu import host_gpu
from support.processes import succeed
from support.small import interrupts
from support.zoo import Counter

INSTANCES = 1200
"""Three tiles of the widest words."""


@pytest.fixture
def batch() -> Batch:
    return Batch(SyncFIFO(width=8, depth=4), INSTANCES, "threads:2")


def workers() -> set[threading.Thread]:
    """Return the threads of all backends."""
    return {x for x in threading.enumerate() if x.name.startswith("cppsim batch")}


def test_all_runs_of_a_backend_share_its_threads_which_end_with_it() -> None:
    others, batch = workers(), Batch(SyncFIFO(width=8, depth=4), INSTANCES, "threads:2")
    batch.set("w_en", np.arange(INSTANCES) % 2)
    batch.step()
    own = workers() - others
    assert len(own) == 2
    for _ in range(5):
        batch.step()
    assert workers() - others == own
    assert batch.get("level").tolist() == [4 * (k % 2) for k in range(INSTANCES)]
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
            lambda: batch.set_memory("storage", [0] * 4),
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
    batch = Batch(SyncFIFO(width=8, depth=4), instances, f"threads:{count}")
    batch.step()
    assert workers() <= others
    assert batch.cycles.tolist() == [1] * instances


_FORKED = f"""
import os
from amaranth.lib.fifo import SyncFIFO
from cppsim import Batch

batch = Batch(SyncFIFO(width=8, depth=4), {INSTANCES}, "threads:2")
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


@pytest.mark.parametrize(
    ("instances", "backend"), [(3, "threads"), (1200, "threads:2"), (1200, "threads:1")]
)
def test_an_interrupt_ends_a_long_wait_after_which_a_batch_goes_on(
    instances: int, backend: str
) -> None:
    fed = np.arange(instances, dtype=np.uint64) * 0x9E3779B1 % 128
    batch = Batch(Counter(), instances, backend)
    batch.set("by", fed)
    with interrupts() as interrupt_after:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012, the signal may come at once
            interrupt_after(0.2)
            batch.step(1 << 60)
    batch.step(3)
    cycles = batch.cycles
    assert (batch.get("count") == fed * cycles % 128).all()
    assert min(cycles) >= 3
    assert max(cycles) > 100


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


# --- a GPU ----------------------------------------------------------------------------------------


def _fails(line: str) -> Callable[..., Any]:
    def fail(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError(line)

    return fail


def provide_gpu(monkeypatch: pytest.MonkeyPatch, **options: int) -> Any:
    gpu = host_gpu(**options)
    monkeypatch.setitem(sys.modules, "cupy", gpu)
    return gpu


@pytest.mark.usefixtures("gpu")
def test_tables_of_a_gpu_have_an_end() -> None:
    written = Batch(Counter(), 1, "cuda").written.source("cuda")
    larger = replace(written, description=replace(written.description, block_words=1 << 26))
    line = "takes 67,108,864 words a tile, and a GPU's tables count 33,554,432: take backend="
    with pytest.raises(BatchError, match=line):
        cuda.Cuda(lambda: larger)


def test_more_than_a_gpu_holds_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    provide_gpu(monkeypatch, free=1 << 13)
    moved, to_host = list[int](), cuda.Cuda.to_host

    def move(self: cuda.Cuda, instances: Any) -> Any:
        moved.append(instances[2])
        return to_host(self, instances)

    monkeypatch.setattr(cuda.Cuda, "to_host", move)
    with pytest.warns(BatchWarning, match=r"100 instances take .*: they run in \d+ parts"):
        batch = Batch(SyncFIFO(width=8, depth=4), 100, "cuda")
    batch.set("w_data", np.arange(100))
    batch.set("w_en", np.arange(100) % 2)
    batch.step(2)
    # Power-on, two sets and the steps each leave the GPU's memory free for the next part.
    assert sum(moved) == 4 * 100
    assert max(moved) < 100
    assert batch.get("level").tolist() == [2 * (k % 2) for k in range(100)]
    assert batch.memory("storage")[:, 1].tolist() == [k * (k % 2) for k in range(100)]


def test_a_tile_is_narrow_where_a_wide_one_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    provide_gpu(monkeypatch, free=1 << 20)
    # A memory of 8 KiB per instance: half of the free memory has room for 32 instances.
    with pytest.warns(BatchWarning, match=r"129 instances take .*: they run in \d parts"):
        batch = Batch(SyncFIFO(width=64, depth=1024), 129, "cuda")
    assert batch.compiled.together == 32
    with pytest.raises(BatchError, match=r"2 instances take .*: not even a tile has room"):
        Batch(SyncFIFO(width=64, depth=1 << 14), 2, "cuda")


@pytest.mark.parametrize("instances", [512, 513, 1300])
def test_several_launches_share_the_instances(
    instances: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide_gpu(monkeypatch)
    batch = Batch(SyncFIFO(width=8, depth=4), instances, "cuda")
    values = np.arange(3 * instances).reshape(instances, 3) % 251
    program = Program().set("w_en", 1)
    with program.repeat(3):
        program.set("w_data", values).step()
    program.set("w_en", 0).set("r_en", 1)
    with program.repeat(3):
        program.get("r_data").step()
    assert batch.run(program)["r_data"].tolist() == values.tolist()


def test_after_an_interrupt_a_launch_has_run_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = provide_gpu(monkeypatch)
    batch = Batch(SyncFIFO(width=8, depth=4), 600, "cuda")
    copy, inputs = gpu.asarray, []

    def asarray(values: NDArray[Any], **order: str) -> NDArray[Any]:
        if order:
            inputs.append(values)
        if len(inputs) == 2:
            raise KeyboardInterrupt
        return np.asarray(copy(values, **order))

    gpu.asarray = asarray
    with pytest.raises(KeyboardInterrupt):
        batch.run(Program().set("w_data", 7).set("w_en", 1).step(5))
    gpu.asarray = copy
    (memory,) = batch.description.memories
    assert batch.memory(memory).tolist() == [[7] * 4] * 512 + [[0] * 4] * 88
    assert batch.cycles.tolist() == [5] * 512 + [0] * 88
    batch.step()
    assert batch.cycles.tolist() == [6] * 512 + [1] * 88


def test_what_was_through_is_kept_when_a_launch_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = provide_gpu(monkeypatch, free=1 << 13)
    with pytest.warns(BatchWarning):
        batch = Batch(SyncFIFO(width=8, depth=4), 60, "cuda")
    taken, copy = [], gpu.asarray

    def asarray(values: NDArray[Any], **order: str) -> NDArray[Any]:
        taken.append(values.shape)
        if len(taken) > 5:
            raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED: unspecified\nlaunch failure")
        return np.asarray(copy(values, **order))

    gpu.asarray = asarray
    program = Program().set("w_data", np.arange(60)).set("w_en", 1).step().get("r_data")
    line = "the GPU gave up: CUDA_ERROR_LAUNCH_FAILED: unspecified; .* of .* of 60 instances"
    with pytest.raises(BrokenOff, match=line) as error:
        batch.run(program)
    done = error.value.done
    assert 0 < done.sum() < 60
    assert error.value.results["r_data"].tolist() == (np.arange(60) * done).tolist()
    with pytest.raises(BatchError, match="an earlier run broke off; call reset"):
        batch.step()
    gpu.asarray = copy
    batch.reset()
    batch.step()
    assert set(batch.cycles.tolist()) == {1}


@pytest.mark.parametrize(
    ("count", "compiled", "reason"),
    [
        (lambda: 1, "a.cu(1): error: no such thing", "the GPU's compiler refused the source: a.cu"),
        (_fails("cudaErrorSystemNotReady: no"), "", "CuPy finds no GPU: cudaErrorSystem"),
        (_fails("cudaErrorNoDevice: no CUDA-capable device"), "", ""),
        (_fails("cudaErrorInsufficientDriver: driver version"), "", ""),
        (lambda: 0, "", ""),
    ],
)
def test_auto_says_why_a_gpu_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, count: Callable[[], int], compiled: str, reason: str
) -> None:
    gpu = host_gpu()
    gpu.cuda.runtime.getDeviceCount = count
    gpu.RawModule = _fails(f"{compiled}\nand more")
    monkeypatch.setitem(sys.modules, "cupy", gpu)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        batch = Batch(Counter(), 2)
    batch.set("by", 1)
    batch.step()
    assert batch.backend == "threads"
    assert batch.get("count").tolist() == [1, 1]
    lines = [str(x.message) for x in warned if x.category is BatchWarning]
    assert [line.startswith(f"on threads, for {reason}") for line in lines] == [True] * bool(reason)
    assert all(x.filename == __file__ for x in warned)
    assert not any("\n" in line for line in lines)


def test_without_cupy_or_a_gpu_the_error_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BatchError, match="needs CuPy: pip install cupy"):
        Batch(Counter(), 1, "cuda")
    none = host_gpu()
    none.cuda.runtime.getDeviceCount = lambda: 0
    monkeypatch.setitem(sys.modules, "cupy", none)
    with pytest.raises(BatchError, match="finds no GPU; take backend='threads'"):
        Batch(Counter(), 1, "cuda")
    assert Batch(Counter(), 1).backend == "threads"
