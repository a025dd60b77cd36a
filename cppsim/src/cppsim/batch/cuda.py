"""The backend of a GPU: CuPy compiles the source and launches it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BatchError
from ..model import Encoded, Words
from .description import MemoryLayout, Source, around

OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--device-int128")
"""Options of NVRTC: all functions are device functions, and integers of 128 bits exist."""

_LANES = (128, 64, 32)
"""Instances of a tile, which one block of threads runs: the first size that fits is used."""

_THREADS = 1024
"""Threads that a multiprocessor runs, of 64 registers each: of one block, or of several."""

_FEWEST = 128
"""Threads of the smallest block: the warp that follows the program, and three warps of workers."""

_WORDS = 1 << 25
"""Maximal words of a tile: tables store a word's number in 25 bits."""

_MOVED = 1 << 28
"""Maximal bytes of one transfer to or from a GPU."""

_OWN = 1 << 13
"""Bytes of shared memory that a block needs beside its words and tables."""

_AS_BACKEND = ("backend 'cuda'", "backend='threads'")
"""The arguments of `find_cupy` for a batch: the user of CuPy, and another backend."""

_NONE = ("cudaErrorNoDevice", "cudaErrorInsufficientDriver", "libcuda")
"""Parts of CuPy's messages on a machine without a GPU or without a driver."""


class NoGpu(BatchError):
    """There is no GPU that CuPy can use, or no CuPy."""


class Cuda:
    """Run tiles of up to 128 instances, one block of threads each, as words (tiles, words, parts).

    A running tile has its words in the block's shared memory, if a tile of 32 instances fits there;
    a tile is as wide as fits.

    ``write`` returns the source for a GPU. Raises ``BatchError`` if that cannot be compiled, and
    ``NoGpu``, a ``BatchError``, if there is no CuPy or no GPU.
    """

    name = "cuda"

    def __init__(self, write: Callable[[], Source]) -> None:
        # Writing takes seconds for a large design: look for a GPU first.
        self._cupy = find_cupy(*_AS_BACKEND)
        written = write()
        self.description = description = written.description
        if description.block_words > _WORDS:
            raise BatchError(
                f"the design takes {description.block_words:,} words a tile, and a GPU's tables"
                f" count {_WORDS:,}: take backend='threads'"
            )
        self._lanes, self._shared = self._sizes()
        self._threads = self._block()
        self._streams = [self._cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
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
        """Return the instances of a tile, and the bytes of its words in shared memory, or 0."""
        attributes = self._cupy.cuda.Device().attributes
        most = int(attributes["MaxSharedMemoryPerBlockOptin"]) - _OWN
        words, tables = self.description.shared_words, self.description.shared_bytes
        free = self.free_bytes() // (2 * self.description.instance_bytes)
        fitting = [lanes for lanes in _LANES if lanes <= free] or [_LANES[-1]]
        for lanes in fitting:
            if (size := lanes // 8 * words + tables) <= most:
                return lanes, size
        return fitting[0], 0

    def _block(self) -> int:
        """Return the threads of a block: a small design's blocks share a multiprocessor.

        While the threads of one wait for each other, or for memory, those of the others run.
        """
        if not self._shared:
            return _THREADS
        most = int(self._cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
        return max(_FEWEST, _THREADS // (most // (self._shared + _OWN)) // 32 * 32)

    def free_bytes(self) -> int:
        self._cupy.get_default_memory_pool().free_all_blocks()
        return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def allocate(self, rows: NDArray[np.uint8]) -> tuple[Any, Any, int]:
        cupy, description = self._cupy, self.description
        tiles = -(-len(rows) // self._lanes)
        with _as_batch_errors():
            words = cupy.zeros((tiles, description.block_words, self._lanes // 32), np.uint32)
            there = cupy.zeros((tiles, self._lanes * description.row_bytes), np.uint8)
            self.put_rows((words, there, len(rows)), rows)
            return words, there, len(rows)

    def run(self, instances: tuple[Any, Any, int], program: Encoded, output: Words) -> None:
        """Run ``program``; write its results to ``output``, of shape (columns, instances).

        Two streams take turns, so the input of tiles is copied while others run.
        """
        cupy = self._cupy
        words, rows, count = instances
        with _as_batch_errors():
            instructions = cupy.asarray(program.instructions)
            cupy.cuda.get_current_stream().synchronize()  # other streams do not wait for it
            pieces: list[tuple[slice, Any]] = []
            with self._all_launches():
                for tiles, own in self._waves(count):
                    with self._streams[len(pieces) % 2]:
                        taken = cupy.asarray(program.input[:, own], order="C")
                        results = cupy.zeros((len(output), taken.shape[1]), np.uint64)
                        work = instructions, np.uint64(len(program.instructions)), taken
                        size, lanes = np.uint32(taken.itemsize), np.uint64(taken.shape[1])
                        arguments = words[tiles], rows[tiles], *work, size, results, lanes
                        grid = (-(-taken.shape[1] // self._lanes),)
                        self._kernel(grid, (self._threads,), arguments, shared_mem=self._shared)
                    pieces.append((own, results))
            for own, results in pieces:
                output[:, own] = cupy.asnumpy(results)

    @contextmanager
    def _all_launches(self) -> Iterator[None]:
        """Wait for all launches at the end of the block, also after an error or an interrupt.

        Until then, a launch writes to its instances. A second interrupt is ignored.
        """
        try:
            yield
            for stream in self._streams:
                stream.synchronize()
        except BaseException:
            left = list(self._streams)
            while left:
                with suppress(KeyboardInterrupt):
                    # An error of the launch is that which is raised already.
                    with suppress(Exception):
                        left[0].synchronize()
                    del left[0]
            raise

    def _waves(self, count: int) -> Iterator[tuple[slice, slice]]:
        """Yield tiles that half of the GPU runs at a time, if not more, and their instances."""
        blocks = max(2, _THREADS // self._threads // 2)
        step = blocks * int(self._cupy.cuda.Device().attributes["MultiProcessorCount"])
        for first in range(0, -(-count // self._lanes), step):
            end = first + step
            yield slice(first, end), slice(first * self._lanes, min(count, end * self._lanes))

    def rows(self, instances: tuple[Any, Any, int]) -> NDArray[np.uint8]:
        _, there, count = instances
        result = np.zeros((count, self.description.row_bytes), np.uint8)
        with _as_batch_errors():
            for own, memory, tiles in self._pieces(count):
                lanes, end = self._lanes, memory.offset + memory.bytes
                piece = there[tiles, lanes * memory.offset : lanes * end]
                turned = piece.reshape(len(piece), memory.depth, lanes, -1).transpose(0, 2, 1, 3)
                found = self._cupy.asnumpy(turned.reshape(-1, memory.bytes))
                result[own, memory.offset : end] = found[: own.stop - own.start]
        return result

    def put_rows(self, instances: tuple[Any, Any, int], rows: NDArray[np.uint8]) -> None:
        _, there, count = instances
        with _as_batch_errors():
            for own, memory, tiles in self._pieces(count):
                lanes, end = self._lanes, memory.offset + memory.bytes
                piece = there[tiles, lanes * memory.offset : lanes * end]
                given = self._cupy.zeros((lanes * len(piece), memory.bytes), np.uint8)
                given[: own.stop - own.start] = self._cupy.asarray(rows[own, memory.offset : end])
                beside = given.reshape(len(piece), lanes, memory.depth, -1)
                piece[...] = beside.transpose(0, 2, 1, 3).reshape(piece.shape)

    def _pieces(self, count: int) -> Iterator[tuple[slice, MemoryLayout, slice]]:
        """Yield instances, a memory and tiles for one transfer each, which needs twice its size.

        On the GPU, the rows of a tile's lanes are interleaved.
        """
        tiles = -(-count // self._lanes)
        for memory in self.description.memories.values():
            if not memory.bytes:
                continue
            step = max(1, _MOVED // (self._lanes * memory.bytes))
            for first in range(0, tiles, step):
                end = min(tiles, first + step)
                own = slice(first * self._lanes, min(count, end * self._lanes))
                yield own, memory, slice(first, end)

    def to_host(self, instances: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
        words, rows, count = instances
        with _as_batch_errors():
            return self._cupy.asnumpy(words), self._cupy.asnumpy(rows), count

    def to_device(self, instances: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
        words, rows, count = instances
        with _as_batch_errors():
            return self._cupy.asarray(words), self._cupy.asarray(rows), count


@contextmanager
def _as_batch_errors() -> Iterator[None]:
    """Raise ``BatchError`` for an error of CuPy."""
    try:
        yield
    except BatchError:
        raise
    except Exception as error:
        full = "OutOfMemory" in type(error).__name__
        hint = "run fewer instances at a time" if full else "make a new batch"
        raise BatchError(f"the GPU gave up: {_line(error)}; {hint}") from error


def kernel_source(text: str, lanes: int, *, shared: bool) -> str:
    """Return the CUDA source of the written source ``text``, with words of ``lanes`` bits.

    ``shared`` puts the words of a tile and the tables that every cycle reads into shared memory.
    """
    defines = ["#define IN_SHARED"] if shared else []
    defines += [f"#define LANES {lanes}u", f"#define OWN_BYTES {_OWN}"]
    return "\n".join((*defines, around("cuda.cu", text)))


def gpu_versions() -> dict[str, str]:
    """Return the GPU, and versions of its driver, CUDA and CuPy. Raises ``BatchError``."""
    cupy = find_cupy(*_AS_BACKEND)
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


def find_cupy(user: str, instead: str) -> Any:
    """Return CuPy. Raises ``BatchError``, with what to take ``instead``, without CuPy or a GPU."""
    try:
        cupy = import_module("cupy")
    except ModuleNotFoundError:
        hint = f"pip install cupy-cuda13x, or take {instead}"
        raise NoGpu(f"{user} needs CuPy: {hint}") from None
    except Exception as error:
        raise _none(error)(f"CuPy fails: {_line(error)}; take {instead}") from error
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise _none(error)(f"CuPy finds no GPU: {_line(error)}; take {instead}") from error
    if not count:
        raise NoGpu(f"CuPy finds no GPU; take {instead}")
    return cupy


def _none(error: Exception) -> type[BatchError]:
    """Return the class of the error: no GPU, or one that fails."""
    return NoGpu if any(word in str(error) for word in _NONE) else BatchError


def _line(error: Exception) -> str:
    """Return the first line of a message that has the word error, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [type(error).__name__])[0]
