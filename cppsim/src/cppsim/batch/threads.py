"""The backend of processor cores: a thread pool calls the compiled source."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiling import bind, provide
from ..model import Encoded, Opcode, Words, counted
from .description import Source, around

_WIDEST = (
    ({"avx512f", "avx512bw"}, 512, ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")),
    ({"avx2"}, 256, ("-mavx2",)),
)
"""Features of x86 processors, the bits of a word for them, and the compiler's flags."""

_SHORT = 1 << 14
"""Most turns of a program that runs on the caller's thread, which does not see Ctrl-C meanwhile."""

_ALIGNED = 64
"""Alignment of words in bytes, a cache line."""


class Threads:
    """Run tiles of instances; the memories of an instance are one row of (instances, bytes).

    Raises ``SimulationError`` if the source cannot be compiled.
    """

    name = "threads"
    together = 1

    def __init__(self, source: Source, threads: int | None = None) -> None:
        self.description = source.description
        self._lanes, flags = _words()
        text = threads_source(source.text, self._lanes, ternary=self._lanes == 512)
        self._run = _entry(text, flags)
        wanted = os.cpu_count() or 1 if threads is None else threads
        self.threads = counted(wanted, "threads", 1)
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0

    @staticmethod
    def free_bytes() -> int:
        with suppress(OSError), Path("/proc/meminfo").open(encoding="ascii") as lines:
            sizes = dict(line.split(":", 1) for line in lines)
            return int(sizes["MemAvailable"].split()[0]) << 10
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def allocate(self, rows: NDArray[np.uint8]) -> tuple[Any, Any]:
        tiles = -(-len(rows) // self._lanes)
        size = tiles * self.description.core_words * self._lanes // 8
        words = np.zeros(size + _ALIGNED, np.uint8)
        first = -words.ctypes.data % _ALIGNED
        # Unused lanes of the last tile read rows, too.
        whole = np.zeros((tiles * self._lanes, self.description.row_bytes), np.uint8)
        whole[: len(rows)] = rows
        return words[first : first + size], whole[: len(rows)]

    def run(self, instances: tuple[Any, Any], program: Encoded, output: Words) -> None:
        words, rows = instances
        count = len(rows)
        taken = np.ascontiguousarray(program.input)
        instructions = np.ascontiguousarray(program.instructions)
        stop = ctypes.c_uint32()

        def tile(number: int) -> None:
            self._run(
                *(words.ctypes.data, rows.ctypes.data),
                *(instructions.ctypes.data, len(instructions)),
                *(taken.ctypes.data, taken.itemsize, output.ctypes.data),
                *(count, number, ctypes.addressof(stop)),
            )

        tiles = -(-count // self._lanes)
        if min(tiles, self.threads) == 1 and _most_turns(program) <= _SHORT:
            for number in range(tiles):
                tile(number)
        else:
            self._for_each(tile, tiles, stop)

    def _for_each(
        self, work: Callable[[int], None], count: int, stop: ctypes.c_uint32 | None = None
    ) -> None:
        """Call ``work`` with each number below ``count``; return when all calls have returned.

        ``stop`` becomes 1 after an interrupt. The pool lives as long as the backend: to start one
        takes longer than a short program.
        """
        if self._pool is None or self._pool_process != os.getpid():
            # A forked process has none of its parent's threads.
            self._pool = ThreadPoolExecutor(self.threads, "cppsim batch")
            self._pool_process = os.getpid()
        calls = [self._pool.submit(work, number) for number in range(count)]
        try:
            for call in calls:
                call.result()
        except BaseException:
            if stop is not None:
                stop.value = 1
            raise
        finally:
            # After an interrupt, no thread may write to an instance that the caller reads, and a
            # second one comes too late: each thread stops after its cycle.
            for call in calls:
                call.cancel()
            while not all(call.done() for call in calls):
                with suppress(KeyboardInterrupt):
                    wait(calls)

    def rows(self, instances: tuple[Any, Any]) -> NDArray[np.uint8]:
        return np.asarray(instances[1])

    def put_rows(self, instances: tuple[Any, Any], rows: NDArray[np.uint8]) -> None:
        instances[1][...] = rows


def _most_turns(program: Encoded) -> int:
    """Return how many instructions and cycles an instance executes at most."""
    turns, times, around = 0, 1, list[int]()
    for code, _, amount, _ in program.instructions.tolist():
        if code == Opcode.REPEAT:
            around.append(times)
            times *= amount
        elif code == Opcode.AGAIN:
            times = around.pop()
        turns += times * (1 + amount * (code in (Opcode.STEP, Opcode.UNTIL)))
    return turns


def threads_source(text: str, lanes: int, *, ternary: bool = False) -> str:
    """Return the C++ of the written source ``text``, with words of ``lanes`` bits.

    ``ternary`` uses the instruction of AVX-512 for functions of three bits.
    """
    defines = "#define TERNARY\n" if ternary else ""
    headers = "".join(f"#include <{x}.h>\n" for x in ("stddef", "stdint", "string"))
    parts = (defines, headers, f"constexpr uint32_t LANES = {lanes};\n")
    return "".join((*parts, around("threads.cc", text)))


@cache
def _words() -> tuple[int, tuple[str, ...]]:
    """Return the bits of this processor's widest words, and the compiler's flags for them."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="ascii") as lines:
        flags = {flag for line in lines if line.startswith("flags") for flag in line.split()}
        for needed, lanes, wide in _WIDEST:
            if needed <= flags:
                return lanes, wide
    return 128, ()


@cache
def _entry(source: str, flags: tuple[str, ...]) -> Any:
    address, number = ctypes.c_void_p, ctypes.c_uint64
    arguments = (
        *(address, address, address, number, address, ctypes.c_uint32, address),
        *(number, number, address),
    )
    library = ctypes.CDLL(str(provide(source, flags)))
    return bind(library, {"batch_run": (None, arguments)}).batch_run
