"""The backend of processor cores: the compiled source, called by a thread on each of them."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiling.library import provide
from .description import Description
from .program import Encoded, Words

__all__ = ["Threads"]

_PRELUDE = "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
_SHARES = 8
"""Parts that each core gets: some take longer than others."""


class Threads:
    """Runs instances whose state lies in one piece each, as arrays (instances, ...).

    Raises ``SimulationError`` if the source cannot be compiled.
    """

    name = "threads"
    parts = False

    def __init__(self, description: Description, text: str, threads: int | None = None) -> None:
        self._description = description
        entry = (files("cppsim") / "batch" / "threads.cc").read_text(encoding="utf-8")
        self._run = _entry(_PRELUDE + text + entry)
        self.threads = threads or os.cpu_count() or 1

    @staticmethod
    def free_bytes() -> int:
        """Memory that is free for instances."""
        with suppress(OSError), Path("/proc/meminfo").open(encoding="ascii") as lines:
            sizes = dict(line.split(":", 1) for line in lines)
            return int(sizes["MemAvailable"].split()[0]) << 10
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def allocate(self, rows: NDArray[np.uint8]) -> tuple[Any, Any]:
        """State and memories of as many instances as ``rows`` has, at power-on."""
        return np.zeros((len(rows), self._description.state_words), np.uint32), rows.copy()

    def run(self, instances: tuple[Any, Any], program: Encoded, *, fresh: bool) -> Words:
        """What ``program`` results in, as (instances, columns)."""
        state, rows = instances
        count = len(state)
        taken = np.ascontiguousarray(program.input)
        output = np.zeros((count, program.columns), np.uint64)
        instructions = np.ascontiguousarray(program.instructions)
        share = max(1, -(-count // (self.threads * _SHARES)))

        def part(first: int) -> None:
            self._run(
                *(state.ctypes.data, rows.ctypes.data),
                *(instructions.ctypes.data, len(instructions)),
                *(taken.ctypes.data, taken.shape[1]),
                *(output.ctypes.data, program.columns),
                *(first, min(first + share, count), fresh),
            )

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(part, range(0, count, share)))
        return output

    def rows(self, instances: tuple[Any, Any]) -> NDArray[np.uint8]:
        """The memories' bytes, as (instances, bytes)."""
        return np.asarray(instances[1])

    def put_rows(self, instances: tuple[Any, Any], rows: NDArray[np.uint8]) -> None:
        """Replace the memories' bytes."""
        instances[1][...] = rows

    def parked(self, instances: tuple[Any, Any]) -> tuple[Any, Any]:
        """Nothing has to wait elsewhere."""
        return instances

    def resumed(self, instances: tuple[Any, Any]) -> tuple[Any, Any]:
        """Nothing has to wait elsewhere."""
        return instances


@cache
def _entry(source: str) -> Any:
    function = ctypes.CDLL(str(provide(source))).batch_run
    address, number = ctypes.c_void_p, ctypes.c_uint64
    function.argtypes = (
        *(address, address, address, number, address, number, address, number),
        *(number, number, ctypes.c_uint32),
    )
    function.restype = None
    return function
