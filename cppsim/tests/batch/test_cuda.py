"""A GPU runs a batch in launches that share it, and says in one line why it does not."""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth.lib.fifo import SyncFIFO
from numpy.typing import NDArray

from cppsim import Batch, BatchError, BatchWarning, BrokenOff, Program
from cppsim.batch import cuda
from support.host_gpu import host_gpu
from support.zoo import Counter


def _fails(line: str) -> Callable[..., Any]:
    def fail(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError(line)

    return fail


def provide_gpu(monkeypatch: pytest.MonkeyPatch, **options: int) -> Any:
    gpu = host_gpu(**options)
    monkeypatch.setattr(cuda, "_cupy", lambda: gpu)
    return gpu


@pytest.mark.usefixtures("gpu")
def test_tables_of_a_gpu_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_WORDS", 100)
    with pytest.raises(BatchError, match="words a tile, and a GPU's tables count 100: take ba"):
        Batch(Counter(), 1, "cuda")


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
    cuda._cupy.cache_clear()
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
    cuda._cupy.cache_clear()


def test_without_cupy_or_a_gpu_the_error_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    cuda._cupy.cache_clear()
    with pytest.raises(BatchError, match="needs CuPy: pip install cupy"):
        Batch(Counter(), 1, "cuda")
    none = host_gpu()
    none.cuda.runtime.getDeviceCount = lambda: 0
    monkeypatch.setitem(sys.modules, "cupy", none)
    with pytest.raises(BatchError, match="finds no GPU; take backend='threads'"):
        Batch(Counter(), 1, "cuda")
    assert Batch(Counter(), 1).backend == "threads"
    cuda._cupy.cache_clear()
