"""The backend of a GPU: CuPy compiles the same source there and launches it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .description import BatchError, Description
from .program import Encoded, Words

__all__ = ["OPTIONS", "Cuda", "NoGpu", "gpu_versions", "kernel_source"]

OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--device-int128")
"""Of NVRTC: every function is the device's, and there are integers of 128 bits."""

_LANES = 32
"""Instances of a tile, which is a block of threads."""

_BLOCK = 512
"""Threads of a block."""

_WORDS = 1 << 18
"""Of a tile at most: tables have 18 bits for a word's number."""


_NONE = ("cudaErrorNoDevice", "cudaErrorInsufficientDriver", "libcuda")
"""What CuPy says of a machine without a GPU, or without a driver."""


class NoGpu(BatchError):
    """There is no GPU that CuPy could run anything on, or no CuPy."""


class Cuda:
    """Runs tiles of 32 instances, a block of threads each, as words (tiles, words).

    Where they fit, the words of a tile are in the block's shared memory while it runs.

    Raises ``BatchError`` where the source cannot be compiled, of which ``NoGpu`` where there is no
    CuPy or no GPU.
    """

    name = "cuda"
    parts = True

    def __init__(self, description: Description, text: str, threads: int | None = None) -> None:
        self._description = description
        self._cupy = _cupy()
        if description.block_words > _WORDS:
            raise BatchError(
                f"the design takes {description.block_words:,} words a tile, and a GPU's tables"
                f" count {_WORDS:,}: take backend='threads'"
            )
        try:
            module = self._cupy.RawModule(code=kernel_source(text), options=OPTIONS)
            self._kernel = module.get_function("batch_run")
            self._shared = 4 * description.shared_words
            if self._shared > self._most_shared() - self._kernel.shared_size_bytes:
                self._shared = 0
            else:
                self._kernel.max_dynamic_shared_size_bytes = self._shared
        except Exception as error:
            raise BatchError(f"the GPU's compiler refused the source: {_line(error)}") from error

    def _most_shared(self) -> int:
        """Bytes of shared memory that a block may have."""
        return int(self._cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])

    def free_bytes(self) -> int:
        """Memory of the GPU that is free for instances."""
        self._cupy.get_default_memory_pool().free_all_blocks()
        return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def allocate(self, rows: NDArray[np.uint8]) -> tuple[Any, Any, int]:
        """State and memories of as many instances as ``rows`` has, at power-on."""
        cupy = self._cupy
        tiles = -(-len(rows) // _LANES)
        with _told():
            words = cupy.zeros((tiles, self._description.block_words), np.uint32)
            instances = (words, cupy.zeros(rows.size, np.uint8), len(rows))
            self.put_rows(instances, rows)
            return instances

    def run(self, instances: tuple[Any, Any, int], program: Encoded, *, fresh: bool) -> Words:
        """What ``program`` results in, as (instances, columns)."""
        cupy = self._cupy
        words, rows, count = instances
        with _told():
            instructions = cupy.asarray(program.instructions)
            taken = cupy.asarray(np.ascontiguousarray(program.input.T))
            output = cupy.zeros((program.columns, count), np.uint64)
            told = instructions, np.uint64(len(program.instructions)), taken, output
            numbers = np.uint64(count), np.uint32(fresh), np.uint32(self._shared > 0)
            grid, arguments = (-(-count // _LANES),), (words, rows, *told, *numbers)
            self._kernel(grid, (_BLOCK,), arguments, shared_mem=self._shared)
            return np.ascontiguousarray(cupy.asnumpy(output).T)

    def rows(self, instances: tuple[Any, Any, int]) -> NDArray[np.uint8]:
        """The memories' bytes, as (instances, bytes)."""
        _, rows, count = instances
        with _told():
            there = self._cupy.asnumpy(rows)
        return self._turned(there, count, back=True)

    def put_rows(self, instances: tuple[Any, Any, int], rows: NDArray[np.uint8]) -> None:
        """Replace the memories' bytes."""
        turned = self._turned(rows, len(rows), back=False)
        with _told():
            instances[1][...] = self._cupy.asarray(turned)

    def parked(self, instances: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
        """``instances`` in this computer's memory."""
        words, rows, count = instances
        with _told():
            return self._cupy.asnumpy(words), self._cupy.asnumpy(rows), count

    def resumed(self, instances: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
        """What was `parked`, on the GPU."""
        words, rows, count = instances
        with _told():
            return self._cupy.asarray(words), self._cupy.asarray(rows), count

    def _turned(self, rows: NDArray[np.uint8], count: int, *, back: bool) -> NDArray[np.uint8]:
        """From bytes of one instance after the other to elements side by side, or ``back``."""
        result = np.zeros((count, self._description.row_bytes) if back else rows.size, np.uint8)
        for memory in self._description.memories.values():
            size, end = memory.element // 8, memory.offset + memory.bytes
            beside = (memory.bytes // size, count, size)
            there = slice(memory.offset * count, end * count)
            if back:
                turned = rows[there].reshape(beside).transpose(1, 0, 2)
                result[:, memory.offset : end] = turned.reshape(count, memory.bytes)
            else:
                own = rows[:, memory.offset : end].reshape(count, memory.bytes // size, size)
                result[there] = own.transpose(1, 0, 2).reshape(-1)
        return result


@contextmanager
def _told() -> Iterator[None]:
    """Raise ``BatchError`` for whatever CuPy raises meanwhile."""
    try:
        yield
    except BatchError:
        raise
    except Exception as error:
        full = "OutOfMemory" in type(error).__name__
        hint = "run fewer instances at a time" if full else "make a new batch"
        raise BatchError(f"the GPU gave up: {_line(error)}; {hint}") from error


def kernel_source(text: str) -> str:
    """What the GPU's compiler gets for the written source ``text``."""
    prelude, entry = (
        (files("cppsim") / "batch" / name).read_text(encoding="utf-8")
        for name in ("device.h", "cuda.cu")
    )
    return "\n".join((prelude, text, entry))


def gpu_versions() -> dict[str, str]:
    """The GPU, its driver and what compiles for it, with their versions. Raises ``BatchError``."""
    cupy = _cupy()
    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(runtime.getDevice())["name"]
    found = {"GPU": name.decode() if isinstance(name, bytes) else str(name)}
    with suppress(OSError, StopIteration):
        driver = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
        words = driver.splitlines()[0].split()
        found["driver"] = next(word for word in words if word[:1].isdigit() and "." in word)
    version = int(runtime.runtimeGetVersion())
    found["CUDA"] = f"{version // 1000}.{version % 1000 // 10}"
    return found | {"CuPy": str(cupy.__version__)}


@cache
def _cupy() -> Any:
    try:
        cupy = import_module("cupy")
    except ModuleNotFoundError:
        hint = "pip install cupy-cuda13x, or take backend='threads'"
        raise NoGpu(f"backend 'cuda' needs CuPy: {hint}") from None
    except Exception as error:
        raise _none(error)(f"CuPy fails: {_line(error)}; take backend='threads'") from error
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise _none(error)(f"CuPy finds no GPU: {_line(error)}; take backend='threads'") from error
    if not count:
        raise NoGpu("CuPy finds no GPU; take backend='threads'")
    return cupy


def _none(error: Exception) -> type[BatchError]:
    """What an error of CuPy's means: no GPU, or one that fails."""
    return NoGpu if any(word in str(error) for word in _NONE) else BatchError


def _line(error: Exception) -> str:
    """The first line of a message that says something of an error, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower()]
    return (told or lines or [type(error).__name__])[0]
