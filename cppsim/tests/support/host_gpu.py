"""A stand-in for CuPy: compiles a kernel for this computer, and runs a block's threads in turns."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from cppsim.compiling import provide

_THREADS = (Path(__file__).parent / "fibers.h").read_text(encoding="utf-8")

_LAUNCH = """
extern "C" __attribute__((visibility("default"))) void
launch(unsigned grid, W *words, uint8_t *rows, const Instruction *program, uint64_t count,
       const uint8_t *input, uint32_t bytes, uint64_t *output, uint64_t instances) {
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
    fibers::run([&] { batch_run(words, rows, program, count, input, bytes, output, instances); });
}
"""


class _Module:
    def __init__(self, code: str, options: Sequence[str]) -> None:
        self._launch: Any = ctypes.CDLL(str(provide(_THREADS + code + _LAUNCH))).launch

    def get_function(self, name: str) -> "_Module":
        assert name == "batch_run"
        return self

    max_dynamic_shared_size_bytes = 0

    def __call__(
        self, grid: tuple[int], block: tuple[int], arguments: Sequence[Any], shared_mem: int
    ) -> None:
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        launch = partial(
            self._launch,
            ctypes.c_uint32(grid[0]),
            *(
                ctypes.c_void_p(x.ctypes.data)
                if isinstance(x, np.ndarray)
                else (ctypes.c_uint32 if x.dtype == np.uint32 else ctypes.c_uint64)(int(x))
                for x in arguments
            ),
        )
        assert _Stream.current is not None
        _Stream.current.launches.append((launch, arguments))


class _Stream:
    """A stream that launches when it is waited for."""

    current: "_Stream | None" = None

    def __init__(self, *, non_blocking: bool) -> None:
        self.launches: list[tuple[Callable[[], object], Sequence[Any]]] = []

    def __enter__(self) -> None:
        _Stream.current = self

    def __exit__(self, *error: object) -> None:
        _Stream.current = None

    def synchronize(self) -> None:
        while self.launches:
            launch, _ = self.launches.pop(0)
            launch()


def host_gpu(free: int = 1 << 34, shared: int = 4 << 16) -> Any:
    """Return the parts of CuPy that `cppsim.batch.cuda` uses, to stand in for the module.

    The GPU has ``free`` bytes of memory, and ``shared`` bytes for each block of threads.
    """
    runtime = SimpleNamespace(
        memGetInfo=lambda: (free, free),
        getDeviceCount=lambda: 1,
        getDevice=lambda: 0,
        getDeviceProperties=lambda number: {"name": b"Stand-in"},
        runtimeGetVersion=lambda: 13010,
    )
    attributes = {"MaxSharedMemoryPerBlockOptin": shared, "MultiProcessorCount": 1}
    device = SimpleNamespace(attributes=attributes)
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    return SimpleNamespace(
        __version__="0",
        RawModule=_Module,
        asarray=partial(np.array, order="C"),
        asnumpy=np.array,
        zeros=np.zeros,
        cuda=SimpleNamespace(
            runtime=runtime,
            Device=lambda: device,
            Stream=_Stream,
            get_current_stream=partial(_Stream, non_blocking=False),
        ),
        get_default_memory_pool=lambda: pool,
    )
