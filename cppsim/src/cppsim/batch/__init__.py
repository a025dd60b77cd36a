"""Many instances of one design at once: on all cores, or on a GPU.

batch                  `Batch`, the class for users; a program on one instance alone
description            ports, memories and sizes of a written design, as plain data
runner, threads, cuda  execute programs; with folder and without Amaranth, an exported batch
circuit                a lowered Amaranth design, and the names of its ports
bitslice/              the design as gates on words; each word holds one bit of many instances
source, emit           C++ of the gates, for each backend
record                 a testbench of one instance as a program for all
folder, __main__       an exported batch, and ``python -m cppsim.batch FOLDER``

Only what an exported batch takes along is imported here.
"""

from .cuda import NoGpu, find_cupy, gpu_versions
from .description import BrokenOff, Source
from .folder import StoredDesign, open_folder, read_folder, write_folder
from .runner import Backend, BatchWarning, Runner

__all__ = [
    "Backend",
    "BatchWarning",
    "BrokenOff",
    "NoGpu",
    "Runner",
    "Source",
    "StoredDesign",
    "find_cupy",
    "gpu_versions",
    "open_folder",
    "read_folder",
    "write_folder",
]
