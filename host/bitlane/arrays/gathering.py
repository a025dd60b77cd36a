"""Elements picked by arrays of indices: gathered into new memory, or written where they lie.

Each is one job of COPY commands; the indices are on the host. Never computes.
"""

import numpy as np

from ..jobs.moves import MovedBlock, Moves, Offsets, lower_moves
from .operations import copied
from .picking import Picked, offsets_of
from .transfers import empty
from .usage import using
from .value import Value, changing

__all__ = ["gather", "scatter"]


def gather(source: Value, picked: Picked) -> Value:
    """The elements ``picked`` of ``source``, whose description they come from, in new memory.

    Raises ``OutOfDeviceMemory`` and what `compute` does.
    """
    stored = source.stored
    result = empty(source.home, picked.shape, source.dtype)
    if result.strided.size:
        inner, outer = picked.split(result.strided)
        block = MovedBlock(outer.shape, picked.rest.strides, outer.strides, outer.itemsize)
        sources = stored.view.address + picked.rest.offset + picked.offsets
        targets = result.stored.view.address + offsets_of(inner)
        with using((stored.storage,)):
            _move(source, Moves(block, sources, targets))
    return result


def scatter(target: Value, picked: Picked, source: Value) -> None:
    """Write ``source``, of the same type, over the elements ``picked`` of ``target``.

    The source broadcasts, and is read before anything is written. Of elements that are picked
    several times, the last value stays. Raises ``ShapeError`` where elements repeat, and what
    `compute` does.
    """
    target.expect_writable()
    target.home.expect_open()
    shape = picked.shape
    given = source.strided.broadcast(shape)
    if not given.size:
        return
    if source.pending or source.stored.storage is target.stored.storage:
        source = copied(source)
        given = source.strided.broadcast(shape)
    inner, outer = picked.split(given)
    places, last = _last_of_each(picked.offsets)
    block = MovedBlock(outer.shape, outer.strides, picked.rest.strides, outer.itemsize)
    sources = source.stored.view.address + offsets_of(inner)[last]
    with changing(target, source) as node:
        targets = node.view.address + picked.rest.offset + places
        _move(target, Moves(block, sources, targets))


def _move(value: Value, moves: Moves) -> None:
    driver = value.home.driver
    with driver.lock:
        driver.run(lower_moves(moves, driver.geometry))


def _last_of_each(offsets: Offsets) -> tuple[Offsets, Offsets]:
    """Each offset once, in the order of their last places, and these places."""
    _, from_end = np.unique(offsets[::-1], return_index=True)
    last = np.sort(len(offsets) - 1 - from_end)
    return offsets[last], last
