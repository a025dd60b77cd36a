"""Evaluation of expressions: memory for them, and one run of commands that computes them.

Moves no data but constants, and never computes.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from ..driver.driver import Driver, Storage
from ..errors import LayoutError, OutOfDeviceMemory
from .compiled import CompiledForm, PlacedPlan, compile_form
from .forms import describe
from .nodes import Applied, Expression, Stored, Widened, broadcast
from .passes import Location


def evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Compute ``roots`` in one run, and return where in the device's memory each one is.

    Stored roots are returned as they are. Each node is computed once, also if several roots need
    it, and not again while its value is cached as the result of an earlier call: before a result is
    overwritten, everything that needs it must have been evaluated. Results share no memory, unless
    they are of the same node. Threads may call it at the same time.

    Raises ``OutOfDeviceMemory``, ``LayoutError`` or ``UnsupportedError`` before anything is
    executed; and what ``Driver.run`` raises.
    """
    wanted = [root for root in dict.fromkeys(roots) if not isinstance(root, Stored)]
    results: dict[Expression, Stored] = {}
    if wanted:
        memory = _run(driver, wanted)
        for root, location in zip(wanted, memory.plan.plan.results, strict=True):
            results[root] = memory.stored(location, root.shape)
            if isinstance(root, Applied | Widened):
                root.cache(results[root])
    return [root if isinstance(root, Stored) else results[root] for root in roots]


def assign(driver: Driver, target: Stored, value: Expression) -> None:
    """Write ``value``, which broadcasts, over ``target``, as if it had been computed before.

    No two elements of ``target`` may share a byte. The last operation writes there itself where
    it can. Everything else that needs the old elements must have been evaluated. Raises as
    ``evaluate`` does, and ``ShapeError``.
    """
    if value.itemsize != target.itemsize:
        raise LayoutError(f"value: {value.itemsize} bytes; expected {target.itemsize}")
    _run(driver, [broadcast(value, target.shape)], target)


def _run(driver: Driver, roots: Sequence[Expression], target: Stored | None = None) -> "_Memory":
    form, leaves = describe(roots, target)
    memory = _allocate(driver, compile_form(form, driver.geometry.abilities), leaves)
    with ExitStack() as given_back:
        for storage in memory.taken:
            # Not left to Python: an error's traceback refers to everything here.
            given_back.callback(storage.close)
        content = memory.plan.plan.constants.content
        before = [(memory.starts[-1], content)] if content else []
        driver.run(memory.placed.commands(memory.starts), before=before)
        given_back.pop_all()
    return memory


def _allocate(driver: Driver, compiled: CompiledForm, leaves: Sequence[Storage]) -> "_Memory":
    try:
        return _Memory(driver, compiled.usual, leaves)
    except OutOfDeviceMemory:
        pass  # and its traceback no longer holds what the attempt has taken
    try:
        return _Memory(driver, compiled.sparing, leaves)
    except OutOfDeviceMemory as error:
        raise _too_large(compiled.sparing, error) from None


class _Memory:
    """The device's memory for a plan whose arguments are ``leaves``. ``OutOfDeviceMemory``."""

    def __init__(self, driver: Driver, placed: PlacedPlan, leaves: Sequence[Storage]) -> None:
        self.placed, self.plan = placed, placed.memory
        self.taken: list[Storage] = []
        self.areas = dict(zip(placed.arguments, leaves, strict=True))
        try:
            for area in placed.own:
                self.areas[area] = self._take(driver, self.plan.bound[area])
            starts = [self.areas[area].address for area in range(len(self.areas))]
            if self.plan.temporary:
                starts.append(self._take(driver, self.plan.temporary).address)
        except OutOfDeviceMemory:
            for storage in self.taken:
                storage.close()
            raise
        self.starts = tuple(starts)

    def _take(self, driver: Driver, size: int) -> Storage:
        self.taken.append(Storage(driver, size))
        return self.taken[-1]

    def stored(self, location: Location, shape: tuple[int, ...]) -> Stored:
        """Return a result."""
        assert location.buffer is not None
        area, _ = self.plan.places[location.buffer]
        return Stored(self.areas[area], self.plan.view(location, self.starts), shape)


def _too_large(least: PlacedPlan, error: OutOfDeviceMemory) -> OutOfDeviceMemory:
    memory, results = least.memory, len(least.own)
    size = sum(memory.bound[area] for area in least.own)
    return OutOfDeviceMemory(
        f"expression: {size} bytes of device memory for {results} results and"
        f" {memory.temporary} for intermediate values do not fit; evaluate parts of it one after"
        f" another, or drop arrays that are no longer needed ({error})"
    )
