"""Expressions become tensors: memory for them, and one job that computes them.

Moves no data but constants, and never computes.
"""

from collections.abc import Sequence

from ..closing import Closing
from ..driver.allocator import OutOfDeviceMemory
from ..driver.driver import Driver
from ..driver.storage import Storage
from ..jobs.order import in_order
from .form import Expression, Stored
from .fusion import fused
from .memory import Arrangement, arranged, side_by_side
from .passes import Plan, Region, planned

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
        jobs = memory.arrangement.jobs(memory.starts, driver.geometry)
        if plan.constants.size:
            driver.write(memory.starts[-1], plan.constants.content)
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
        self.arrangement = arrangement
        self._results = [Storage(driver, size) for size in arrangement.results]
        self._temporary = [Storage(driver, arrangement.temporary)] if arrangement.temporary else []
        self.starts = [storage.address for storage in (*self._results, *self._temporary)]

    def stored(self, region: Region, shape: tuple[int, ...]) -> Stored:
        """A region that stays."""
        assert region.room is not None
        piece, _ = self.arrangement.places[region.room]
        view = self.arrangement.view(region, self.starts)
        return Stored(self._results[piece], view, shape)

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
