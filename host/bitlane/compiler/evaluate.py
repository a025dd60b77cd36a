"""Evaluation of expressions: memory for them, and one run of commands that computes them.

Moves no data but constants, and never computes.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from ..driver.driver import Driver, Storage
from ..errors import LayoutError, OutOfDeviceMemory
from ..lowering.fences import insert_fences
from .fusion import fuse
from .memory import MemoryPlan, allocate, write_into
from .nodes import Applied, Expression, Stored, Widened, broadcast
from .passes import Location, Plan, plan_passes


def evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Compute ``roots`` in one run, and return where in the device's memory each one is.

    Stored roots are returned as they are. Each node is computed once, also if several roots need
    it, and not again while its value is cached as the result of an earlier call: before a result is
    overwritten, everything that needs it must have been evaluated. Results share no memory, unless
    they are of the same node. Threads may call it at the same time.

    Raises ``OutOfDeviceMemory``, ``LayoutError`` or ``UnsupportedError`` before anything is
    executed; and what ``Driver.run`` raises.
    """
    plan = plan_passes(fuse(roots, driver.geometry), driver.geometry)
    memory = _run(driver, plan)
    results: dict[Expression, Stored] = {}
    for root, location in zip(roots, plan.results, strict=True):
        if root not in results:
            results[root] = _result(root, location, memory)
    return [results[root] for root in roots]


def assign(driver: Driver, target: Stored, value: Expression) -> None:
    """Write ``value``, which broadcasts, over ``target``, as if it had been computed before.

    No two elements of ``target`` may share a byte. The last operation writes there itself where
    it can. Everything else that needs the old elements must have been evaluated. Raises as
    ``evaluate`` does, and ``ShapeError``.
    """
    if value.itemsize != target.itemsize:
        raise LayoutError(f"value: {value.itemsize} bytes; expected {target.itemsize}")
    roots = fuse([broadcast(value, target.shape)], driver.geometry)
    plan = plan_passes(roots, driver.geometry)
    _run(driver, write_into(plan, [Location(None, target.view)], [target.shape]))


def _run(driver: Driver, plan: Plan) -> "_Memory":
    try:
        memory = allocate(plan).fit(partial(_Memory, driver))
    except OutOfDeviceMemory as error:
        raise _too_large(allocate(plan, sparing=True), error) from None
    with ExitStack() as given_back:
        for storage in memory.areas:
            # Not left to Python: an error's traceback refers to everything here.
            given_back.callback(storage.close)
        groups = memory.plan.groups(memory.starts, driver.geometry)
        if plan.constants.size:
            driver.write(memory.starts[-1], plan.constants.content)
        driver.run(insert_fences(groups))
        given_back.pop_all()
    return memory


def _result(root: Expression, location: Location, memory: "_Memory") -> Stored:
    if isinstance(root, Stored):
        return root
    stored = memory.stored(location, root.shape)
    if isinstance(root, Applied | Widened):
        root.cache(stored)
    return stored


class _Memory:
    """The device's memory for ``plan``. Raises ``OutOfDeviceMemory``."""

    def __init__(self, driver: Driver, plan: MemoryPlan) -> None:
        self.plan = plan
        sizes = (*plan.bound, plan.temporary) if plan.temporary else plan.bound
        self.areas: list[Storage] = []
        try:
            for size in sizes:
                self.areas.append(Storage(driver, size))
        except OutOfDeviceMemory:
            for storage in self.areas:
                storage.close()
            raise
        self.starts = [storage.address for storage in self.areas]

    def stored(self, location: Location, shape: tuple[int, ...]) -> Stored:
        """Return a result."""
        assert location.buffer is not None
        area, _ = self.plan.places[location.buffer]
        return Stored(self.areas[area], self.plan.view(location, self.starts), shape)


def _too_large(least: MemoryPlan, error: OutOfDeviceMemory) -> OutOfDeviceMemory:
    return OutOfDeviceMemory(
        f"expression: {sum(least.bound)} bytes of device memory for {len(least.bound)} results and"
        f" {least.temporary} for intermediate values do not fit; evaluate parts of it one after"
        f" another, or drop arrays that are no longer needed ({error})"
    )
