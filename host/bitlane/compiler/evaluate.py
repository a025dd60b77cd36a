"""Expressions become tensors: memory for them, and one job that computes them.

Moves no data but constants, and never computes.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from ..driver.driver import Driver, Storage
from ..errors import LayoutError, OutOfDeviceMemory
from ..lowering.fences import insert_fences
from .fusion import fused
from .memory import Arrangement, arranged, side_by_side
from .nodes import Applied, Expression, Stored, Widened, broadcast
from .passes import Plan, Spot, planned, redirected


def evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Compute ``roots`` in one job, and say where in the device's memory each one is.

    What is stored already is given as it is. Each node is computed once, also if several roots
    need it, and not again while its value is kept as the result of an earlier call: whoever
    writes over a result must have evaluated all that needs it. Results share no memory, unless
    they are of the same node. Threads may call it at the same time.

    Raises ``OutOfDeviceMemory``, ``LayoutError`` or ``UnsupportedError`` before anything is
    executed; and what ``Driver.run`` raises.
    """
    plan = planned(fused(roots, driver.geometry), driver.geometry)
    memory = _run(driver, plan)
    results: dict[Expression, Stored] = {}
    for root, spot in zip(roots, plan.results, strict=True):
        if root not in results:
            results[root] = _result(root, spot, memory)
    return [results[root] for root in roots]


def assign(driver: Driver, target: Stored, value: Expression) -> None:
    """Write ``value``, which broadcasts, over ``target``, as if it had been computed before.

    No two elements of ``target`` may share a byte. The last operation writes there itself where
    it can. Whatever else needs what ``target`` holds must have been evaluated. Raises what
    ``evaluate`` does, and ``ShapeError``.
    """
    if value.itemsize != target.itemsize:
        raise LayoutError(f"value: {value.itemsize} bytes; expected {target.itemsize}")
    plan = planned(fused([broadcast(value, target.shape)], driver.geometry), driver.geometry)
    _run(driver, redirected(plan, target.view, target.shape))


def _run(driver: Driver, plan: Plan) -> "_Memory":
    memory = _Memory(driver, plan)
    with ExitStack() as given_back:
        for storage in (*memory.temporary, *memory.results):
            # Not left to Python: an error's traceback refers to everything here.
            given_back.callback(storage.close)
        groups = memory.arrangement.groups(memory.starts, driver.geometry)
        if plan.constants.size:
            driver.write(memory.starts[-1], plan.constants.content)
        driver.run(insert_fences(groups))
        given_back.pop_all()
    return memory


def _result(root: Expression, spot: Spot, memory: "_Memory") -> Stored:
    if isinstance(root, Stored):
        return root
    stored = memory.stored(spot, root.shape)
    if isinstance(root, Applied | Widened):
        root.keep(stored)
    return stored


class _Memory:
    """The device's memory for a plan: for what is temporary, and for results."""

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
        # What an attempt before has got is to be had again.
        self.results = self.temporary = list[Storage]()
        self.results = [Storage(driver, size) for size in arrangement.results]
        self.temporary = [Storage(driver, arrangement.temporary)] if arrangement.temporary else []
        self.starts = [storage.address for storage in (*self.results, *self.temporary)]

    def stored(self, spot: Spot, shape: tuple[int, ...]) -> Stored:
        """A spot that stays."""
        assert spot.room is not None
        piece, _ = self.arrangement.places[spot.room]
        view = self.arrangement.view(spot, self.starts)
        return Stored(self.results[piece], view, shape)


def _too_large(least: Arrangement, error: OutOfDeviceMemory) -> OutOfDeviceMemory:
    results = sum(least.results)
    return OutOfDeviceMemory(
        f"expression: {results} bytes of device memory for {len(least.results)} results and"
        f" {least.temporary} for what is in between do not fit; evaluate parts of it one after"
        f" another, or drop arrays that are no longer needed ({error})"
    )
