"""Expressions become tensors: memory for them, and one job that computes them.

Moves no data but constants, and never computes.
"""

from collections.abc import Sequence

from ..closing import Closing
from ..driver.allocator import OutOfDeviceMemory
from ..driver.driver import Driver
from ..driver.storage import Storage
from ..jobs.lowering import View, lower
from ..jobs.order import Job, in_order
from .form import Expression, Stored
from .fusion import fused
from .memory import Arrangement, arranged, side_by_side
from .passes import Pass, Plan, Region, Room, planned

__all__ = ["evaluate"]


def evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Compute ``roots`` in one job, and say where in the device's memory each one is.

    What is stored already is given as it is. Each node is computed once, also if several roots
    need it; roots that are windows of one node share its memory. Threads may call it at the same
    time.

    Raises ``OutOfDeviceMemory``, ``LayoutError`` or ``UnsupportedError`` before anything is
    executed; and what ``Driver.run`` raises.
    """
    plan = planned(fused(roots, driver.geometry))
    with _Memory(driver, plan) as memory:
        jobs = [_job(driver, step, memory) for step in memory.passes]
        if plan.constants.size:
            driver.write(memory.storage(plan.constants).address, plan.constants.content)
        driver.run(in_order(jobs))
    return [
        root if isinstance(root, Stored) else memory.stored(region, root.shape)
        for root, region in zip(roots, plan.results, strict=True)
    ]


class _Memory(Closing):
    """The device's memory for a plan. At the end of the ``with`` statement only results stay."""

    def __init__(self, driver: Driver, plan: Plan) -> None:
        try:
            self._allocate(driver, arranged(plan, side_by_side(plan.passes), sparing=False))
        except OutOfDeviceMemory as error:
            least = arranged(plan, plan.passes, sparing=True)
            try:
                self._allocate(driver, least)
            except OutOfDeviceMemory:
                raise _too_large(least, error) from None

    def _allocate(self, driver: Driver, arrangement: Arrangement) -> None:
        self.passes = arrangement.passes
        self._places = arrangement.places
        self._pieces = [Storage(driver, size) for size in arrangement.results]
        self._temporary = [Storage(driver, arrangement.temporary)] if arrangement.temporary else []

    def storage(self, room: Room) -> Storage:
        """What holds ``room``."""
        return [*self._pieces, *self._temporary][self._places[room][0]]

    def view(self, region: Region) -> View:
        """Where a region is."""
        view = region.view
        if region.room is None:
            return view
        start = self.storage(region.room).address + self._places[region.room][1]
        return View(start + view.address, view.strides, view.itemsize)

    def stored(self, region: Region, shape: tuple[int, ...]) -> Stored:
        """A region that stays."""
        assert region.room is not None
        return Stored(self.storage(region.room), self.view(region), shape)

    def close(self) -> None:
        for storage in self._temporary:
            storage.close()


def _too_large(least: Arrangement, error: OutOfDeviceMemory) -> OutOfDeviceMemory:
    results = sum(least.results)
    return OutOfDeviceMemory(
        f"expression: {results} bytes of device memory for {len(least.results)} results and"
        f" {least.temporary} for what is in between do not fit; evaluate parts of it one after"
        f" another, or drop arrays that are no longer needed ({error})"
    )


def _job(driver: Driver, step: Pass, memory: _Memory) -> Job:
    operands = [memory.view(x) for x in step.operands]
    y = memory.view(step.y)
    saturate, arithmetic = step.flags
    commands = lower(
        step.op,
        step.shape,
        operands[0],
        operands[1] if len(operands) > 1 else None,
        y,
        geometry=driver.geometry,
        saturate=saturate,
        arithmetic=arithmetic,
    )
    reads = tuple([_touched(view, step.shape) for view in operands])
    return Job(commands, reads, _touched(y, step.shape))


def _touched(view: View, shape: tuple[int, ...]) -> range:
    """The addresses from the first byte of a view to its last."""
    spans = [step * (count - 1) for count, step in zip(shape, view.strides, strict=True)]
    first = view.address + sum(min(0, span) for span in spans)
    last = view.address + sum(max(0, span) for span in spans) + view.itemsize
    return range(first, last)
