"""Compare designs and batches from the cache with the same ones written anew. No tests here.

``RECOMPUTE=SALT`` selects another share of the designs; ``RECOMPUTE=all`` compares all of them.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from cppsim import designs, engine
from cppsim.batch import Source
from cppsim.batch.cached import CachedBatch
from cppsim.batch.source import write_batch
from cppsim.coverage import Measured
from cppsim.designs import Compiled
from cppsim.netlist.fingerprint import fingerprint

SALT = "RECOMPUTE"
"""The environment variable."""

_SHARE = 16
"""One of this number of designs is compared; the fingerprint decides which."""


def recompute(replace: Callable[[Any, str, Any], None]) -> None:
    """Let engines and batches compare; ``replace`` is called like ``setattr``."""
    replace(engine, "built", _compared(engine.built))
    replace(CachedBatch, "source", _compared_batch(CachedBatch.source))


def expect_same(design: Any, ready: Compiled, measured: Measured = Measured.NOTHING) -> None:
    """Expect that ``ready``, from the cache, is what ``design`` becomes without one."""
    _, source = ready
    assert source.library is not None
    objects = fingerprint(design).objects
    kept = (source.library.parent / designs._LAYOUT).read_bytes()
    anew = designs.layout(*designs.written(design, measured), objects)
    same = _contents(kept, objects) == _contents(anew, objects)
    assert same, f"{source.library.parent} is not the entry of this design"


def expect_same_batch(batch: CachedBatch, backend: str | None, source: Source) -> None:
    """Expect that ``source`` and rows of ``batch`` are what its design becomes without a cache."""
    anew = write_batch(batch.design.lowered())
    same = (source, batch.rows) == (anew.source(backend), anew.rows)
    assert same, f"the cached source for {backend} is not that of this design"


def _contents(layout: bytes, objects: Sequence[Any]) -> tuple[Any, ...]:
    lowered, source, logic = designs._loaded(layout, objects)
    memories = lowered.design.memories
    steps, *logic = designs._loaded(logic, range(len(memories)))
    return lowered, source, logic, list(map(repr, steps))


def _compared(find: Callable[..., Compiled | None]) -> Callable[..., Compiled | None]:
    @wraps(find)
    def found(design: Any, measured: Measured = Measured.NOTHING) -> Compiled | None:
        ready = find(design, measured)
        if (
            ready is not None
            and ready[1].library is not None
            and _is_chosen(fingerprint(design).digest)
        ):
            expect_same(design, ready, measured)
        return ready

    return found


def _compared_batch(
    find: Callable[[CachedBatch, str | None], Source],
) -> Callable[[CachedBatch, str | None], Source]:
    @wraps(find)
    def found(batch: CachedBatch, backend: str | None = None) -> Source:
        source = find(batch, backend)
        if _is_chosen(batch.design.key()):
            expect_same_batch(batch, backend, source)
        return source

    return found


def _is_chosen(digest: str) -> bool:
    salt = os.environ.get(SALT, "")
    return salt == "all" or hashlib.sha256((salt + digest).encode()).digest()[0] % _SHARE == 0
