"""Batches of a stored design: one that is plain data, which runs without Amaranth.

`store` makes one of an Amaranth design, `write_folder` writes it, and `read_folder` reads it on
another computer. A `Runner` is many instances of it on a `Backend`.
"""

from typing import Any

from .batch import (
    Backend,
    NoGpu,
    Runner,
    StoredDesign,
    find_cupy,
    gpu_versions,
    read_folder,
    write_folder,
)
from .model import Encoded

__all__ = [
    "Backend",
    "Encoded",
    "NoGpu",
    "Runner",
    "StoredDesign",
    "find_cupy",
    "gpu_versions",
    "read_folder",
    "store",
    "write_folder",
]


def store(dut: Any) -> StoredDesign:
    """Return the design ``dut`` with the ports that `cppsim.Batch` gives it, for all backends.

    Raises ``BatchError`` for a design that cannot be written.
    """
    # Whoever runs a stored design does not need Amaranth.
    from .batch.cached import CachedBatch
    from .batch.circuit import PortChoice, PreparedBatch

    written = CachedBatch(PreparedBatch.of(PortChoice(dut)))
    return StoredDesign(written.source(), written.rows)
