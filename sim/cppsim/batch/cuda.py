"""The backend of a GPU: CuPy compiles the same source there and launches it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BatchError
from ..model.encoding import Encoded, Words
from .description import MemoryPlace, Source

__all__ = ["OPTIONS", "Cuda", "NoGpu", "gpu_versions", "kernel_source"]

OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--device-int128")
"""Of NVRTC: every function is the device's, and there are integers of 128 bits."""

_LANES = (128, 64, 32)
"""Instances that a tile, which is a block of threads, may have: as many as there is room for."""

_BLOCK = 1024
"""Threads of a block."""

_WORDS = 1 << 25
"""Of a tile at most: a bit of a port has 25 bits for its word."""

_MOVED = 1 << 28
"""Bytes that are moved to or from a GPU at a time."""

_OWN = 1 << 13
"""Bytes of shared memory that a block needs beside its words and tables."""


_NONE = ("cudaErrorNoDevice", "cudaErrorInsufficientDriver", "libcuda")
"""What CuPy says of a machine without a GPU, or without a driver."""


class NoGpu(BatchError):
    """There is no GPU that CuPy could run anything on, or no CuPy."""


class Cuda:
    """Runs tiles of up to 128 instances, a block of threads each, as words (tiles, words, parts).

    While it runs, the words of a tile are in the block's shared memory, if those of a narrow one
    fit there: a tile is as wide as that allows.

    Raises ``BatchError`` where the source cannot be compiled, of which ``NoGpu`` where there is no
    CuPy or no GPU.
    """

    name = "cuda"

    def __init__(self, write: Callable[[], Source]) -> None:
        # Writing takes seconds for a large design: look for a GPU first.
        self._cupy = _cupy()
        written = write()
        self.description = description = written.description
        if description.block_words > _WORDS:
            raise BatchError(
                f"the design takes {description.block_words:,} words a tile, and a GPU's tables"
                f" count {_WORDS:,}: take backend='threads'"
            )
        self._lanes, self._shared = self._sizes()
        self.together = self._lanes
        source = kernel_source(written.text, self._lanes, shared=self._shared > 0)
        try:
            module = self._cupy.RawModule(code=source, options=OPTIONS)
            self._kernel = module.get_function("batch_run")
            if self._shared:
                self._kernel.max_dynamic_shared_size_bytes = self._shared
        except Exception as error:
            raise BatchError(f"the GPU's compiler refused the source: {_line(error)}") from error

    def _sizes(self) -> tuple[int, int]:
        """Instances of a tile, and bytes of shared memory for its words and tables, or 0."""
        attributes = self._cupy.cuda.Device().attributes
        most = int(attributes["MaxSharedMemoryPerBlockOptin"]) - _OWN
        words, tables = self.description.shared_words, self.description.shared_bytes
        free = self.free_bytes() // (2 * self.description.instance_bytes)
        fitting = [lanes for lanes in _LANES if lanes <= free] or [_LANES[-1]]
        for lanes in fitting:
            if (size := lanes // 8 * words + tables) <= most:
                return lanes, size
        return fitting[0], 0

    def free_bytes(self) -> int:
        """Memory of the GPU that is free for instances."""
        self._cupy.get_default_memory_pool().free_all_blocks()
        return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def allocate(self, rows: NDArray[np.uint8]) -> tuple[Any, Any, int]:
        """State and memories of as many instances as ``rows`` has, at power-on."""
        cupy, description = self._cupy, self.description
        tiles = -(-len(rows) // self._lanes)
        with _told():
            words = cupy.zeros((tiles, description.block_words, self._lanes // 32), np.uint32)
            there = cupy.zeros((tiles, self._lanes * description.row_bytes), np.uint8)
            self.put_rows((words, there, len(rows)), rows)
            return words, there, len(rows)

    def run(self, instances: tuple[Any, Any, int], program: Encoded, *, fresh: bool) -> Words:
        """What ``program`` results in, as (instances, columns)."""
        cupy = self._cupy
        words, rows, count = instances
        with _told():
            instructions = cupy.asarray(program.instructions)
            taken = cupy.asarray(np.ascontiguousarray(program.input.T))
            output = cupy.zeros((program.columns, count), np.uint64)
            told = instructions, np.uint64(len(program.instructions)), taken, output
            numbers = np.uint64(count), np.uint32(fresh)
            grid, arguments = (-(-count // self._lanes),), (words, rows, *told, *numbers)
            self._kernel(grid, (_BLOCK,), arguments, shared_mem=self._shared)
            return np.ascontiguousarray(cupy.asnumpy(output).T)

    def rows(self, instances: tuple[Any, Any, int]) -> NDArray[np.uint8]:
        """The memories' bytes, as (instances, bytes)."""
        _, there, count = instances
        result = np.zeros((count, self.description.row_bytes), np.uint8)
        with _told():
            for own, memory, tiles in self._pieces(count):
                lanes, end = self._lanes, memory.offset + memory.bytes
                piece = there[tiles, lanes * memory.offset : lanes * end]
                turned = piece.reshape(len(piece), memory.depth, lanes, -1).transpose(0, 2, 1, 3)
                found = self._cupy.asnumpy(turned.reshape(-1, memory.bytes))
                result[own, memory.offset : end] = found[: own.stop - own.start]
        return result

    def put_rows(self, instances: tuple[Any, Any, int], rows: NDArray[np.uint8]) -> None:
        """Replace the memories' bytes."""
        _, there, count = instances
        with _told():
            for own, memory, tiles in self._pieces(count):
                lanes, end = self._lanes, memory.offset + memory.bytes
                piece = there[tiles, lanes * memory.offset : lanes * end]
                given = self._cupy.zeros((lanes * len(piece), memory.bytes), np.uint8)
                given[: own.stop - own.start] = self._cupy.asarray(rows[own, memory.offset : end])
                beside = given.reshape(len(piece), lanes, memory.depth, -1)
                piece[...] = beside.transpose(0, 2, 1, 3).reshape(piece.shape)

    def _pieces(self, count: int) -> Iterator[tuple[slice, MemoryPlace, slice]]:
        """Instances, a memory and tiles that are moved at a time, for which there is room twice.

        There the rows of a memory's lanes lie side by side, tile after tile.
        """
        tiles = -(-count // self._lanes)
        for memory in self.description.memories.values():
            step = max(1, _MOVED // (self._lanes * memory.bytes))
            for first in range(0, tiles, step):
                end = min(tiles, first + step)
                own = slice(first * self._lanes, min(count, end * self._lanes))
                yield own, memory, slice(first, end)

    def to_host(self, instances: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
        """Copy ``instances`` to the host's memory."""
        words, rows, count = instances
        with _told():
            return self._cupy.asnumpy(words), self._cupy.asnumpy(rows), count

    def to_device(self, instances: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
        """Copy instances from the host's memory to the GPU."""
        words, rows, count = instances
        with _told():
            return self._cupy.asarray(words), self._cupy.asarray(rows), count


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


def kernel_source(text: str, lanes: int, *, shared: bool) -> str:
    """What the GPU's compiler gets for the written source ``text``, with words of ``lanes`` bits.

    ``shared``: the words of a tile are in shared memory, and the tables that are read often.
    """
    prelude, entry = (
        (files("cppsim") / "batch" / name).read_text(encoding="utf-8")
        for name in ("device.h", "cuda.cu")
    )
    told = ["#define IN_SHARED"] if shared else []
    told += [f"#define LANES {lanes}u", f"#define OWN_BYTES {_OWN}"]
    return "\n".join((*told, prelude, text, entry))


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
