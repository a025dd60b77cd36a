"""Expressions become tensors: memory for them, and one job that computes them.

Moves no data but constants, and never computes.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from ..driver.driver import Driver
from ..driver.storage import Storage
from ..jobs.lowering import View, lower
from ..jobs.order import Job, in_order
from .form import Expression, Stored
from .passes import Pass, Region, Room, passes

__all__ = ["evaluate"]


def evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Compute ``roots`` in one job, and say where in the device's memory each one is.

    What is stored already is given as it is. Each node is computed once, also if several roots
    need it; roots that are windows of one node share its memory. Threads may call it at the same
    time.

    Raises ``OutOfDeviceMemory``, ``LayoutError`` or ``UnsupportedError`` before anything is
    executed; and what ``Driver.run`` raises.
    """
    steps, regions = passes(roots)
    results = {region.room for region in regions}
    with ExitStack() as temporaries:
        storages: dict[Room | None, Storage] = {}
        for step in steps:
            for region in (*step.operands, step.y):
                room = region.room
                if room is not None and room not in storages:
                    storages[room] = Storage(driver, room.size)
                    if room not in results:
                        temporaries.enter_context(storages[room])
        for room, storage in storages.items():
            if room is not None and room.content is not None:
                driver.write(storage.address, room.content)
        driver.run(in_order([_job(driver, step, storages) for step in steps]))
        return [
            root
            if isinstance(root, Stored)
            else Stored(storages[region.room], _placed(region, storages), root.shape)
            for root, region in zip(roots, regions, strict=True)
        ]


def _job(driver: Driver, step: Pass, storages: dict[Room | None, Storage]) -> Job:
    a, y = _placed(step.a, storages), _placed(step.y, storages)
    b = None if step.b is None else _placed(step.b, storages)
    saturate, arithmetic = step.flags
    commands = lower(
        step.op,
        step.shape,
        a,
        b,
        y,
        geometry=driver.geometry,
        saturate=saturate,
        arithmetic=arithmetic,
    )
    operands = (a,) if b is None else (a, b)
    reads = tuple(_touched(view, step.shape) for view in operands)
    return Job(commands, reads, _touched(y, step.shape))


def _placed(region: Region, storages: dict[Room | None, Storage]) -> View:
    view = region.view
    if region.room is None:
        return view
    return View(storages[region.room].address + view.address, view.strides, view.itemsize)


def _touched(view: View, shape: tuple[int, ...]) -> range:
    """The addresses from the first byte of a view to its last."""
    spans = [step * (count - 1) for count, step in zip(shape, view.strides, strict=True)]
    first = view.address + sum(min(0, span) for span in spans)
    last = view.address + sum(max(0, span) for span in spans) + view.itemsize
    return range(first, last)
