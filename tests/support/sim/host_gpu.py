"""Stands in for CuPy: compiles a kernel for this computer, and launches it thread after thread."""

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from cppsim.compiling.library import provide

__all__ = ["host_gpu"]

_SHIMS = """\
#define __global__
#define __device__
#define __noinline__ __attribute__((noinline))
#define __ffs __builtin_ffs
#define __constant__
#define __shared__ static
#define SHARED_WORDS static W shared_words[1 << 16]
#define BARRIER
extern "C" void *memset(void *, int, unsigned long);
static struct { unsigned x; } blockIdx, blockDim, threadIdx;
"""

_LAUNCH = """
extern "C" __attribute__((visibility("default"))) void
launch(unsigned grid, unsigned block, W *words, uint8_t *rows,
       const Instruction *program, uint64_t count, const uint64_t *input, uint64_t *output,
       uint64_t instances, uint32_t fresh, uint32_t fast) {
  blockDim.x = 1; // one thread does the work of a block
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
      batch_run(words, rows, program, count, input, output, instances, fresh, fast);
}
"""


class _Module:
    def __init__(self, code: str, options: Sequence[str]) -> None:
        self._launch: Any = ctypes.CDLL(str(provide(_SHIMS + code + _LAUNCH))).launch

    def get_function(self, name: str) -> "_Module":
        assert name == "batch_run"
        return self

    shared_size_bytes = 0
    max_dynamic_shared_size_bytes = 0

    def __call__(
        self, grid: tuple[int], block: tuple[int], arguments: Sequence[Any], shared_mem: int
    ) -> None:
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        self._launch(
            *(ctypes.c_uint32(x[0]) for x in (grid, block)),
            *(
                ctypes.c_void_p(x.ctypes.data)
                if isinstance(x, np.ndarray)
                else (ctypes.c_uint32 if x.dtype == np.uint32 else ctypes.c_uint64)(int(x))
                for x in arguments
            ),
        )


def host_gpu(free: int = 1 << 34) -> Any:
    """What `cppsim.batch.cuda` asks of CuPy, with so many bytes free."""
    runtime = SimpleNamespace(
        memGetInfo=lambda: (free, free),
        getDeviceCount=lambda: 1,
        getDevice=lambda: 0,
        getDeviceProperties=lambda number: {"name": b"Stand-in"},
        runtimeGetVersion=lambda: 13010,
    )
    device = SimpleNamespace(attributes={"MaxSharedMemoryPerBlockOptin": 4 << 16})
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    return SimpleNamespace(
        __version__="0",
        RawModule=_Module,
        asarray=np.array,
        asnumpy=np.array,
        zeros=np.zeros,
        cuda=SimpleNamespace(runtime=runtime, Device=lambda: device),
        get_default_memory_pool=lambda: pool,
    )
