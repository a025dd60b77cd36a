"""Evaluation of expressions: memory for them, and one run of commands that computes them.

Moves no data but constants, the sums that the host adds up, and elements that it selects.
"""

from collections.abc import Sequence
from typing import Final

from ..driver import Driver, Storage
from ..errors import LayoutError, OutOfDeviceMemory
from .compiled import CompiledForm, PlacedPlan, compile_form
from .forms import describe
from .nodes import Applied, Expression, Joined, Stored, Widened, broadcast
from .selections import compute_selections
from .stages import compute_in_stages, compute_sums_below

_COMPUTED: Final = (Applied, Widened, Joined)


def evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Compute ``roots``, and return where in the device's memory each one is.

    It is one run of the device, one before it for each selection, and another one after each sum
    that the host adds up. Stored roots
    are returned as they are. Each node is computed once, also if several roots need it, and not
    again while its value is cached as the result of an earlier call: before a result is
    overwritten, everything that needs it must have been evaluated. Results share no memory, unless
    they are of the same node. Threads may call it at the same time.

    Raises ``OutOfDeviceMemory``, ``LayoutError`` or ``UnsupportedError`` before anything is
    executed; and what ``Driver.run`` raises.
    """
    wanted = [root for root in dict.fromkeys(roots) if not isinstance(root, Stored)]
    selected = compute_selections(driver, wanted)
    try:
        others = [root for root in wanted if root not in selected]
        results = selected | compute_in_stages(driver, others, _evaluate)
    except BaseException:
        _give_back([stored.storage for stored in selected.values()])
        raise
    return [root if isinstance(root, Stored) else results[root] for root in roots]


def _evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Compute ``roots``, none of which is stored or waits for a sum of the host, in one run."""
    placed, areas = _run(driver, roots)
    results = []
    for root, (area, view) in zip(roots, placed.results, strict=True):
        storage = areas[area]
        results.append(Stored(storage, view.moved(storage.address), root.shape))
        if isinstance(root, _COMPUTED):
            root.cache(results[-1])
    return results


def assign(driver: Driver, target: Stored, value: Expression) -> None:
    """Write ``value``, which broadcasts, over ``target``, as if ``value`` had been computed before.

    No two elements of ``target`` may share a byte. The last operation writes there itself where
    it can. Everything else that needs the old elements must have been evaluated. Raises as
    ``evaluate`` does, and ``ShapeError``.
    """
    if value.itemsize != target.itemsize:
        raise LayoutError(f"value: {value.itemsize} bytes; expected {target.itemsize}")
    # The nodes of what the host selects and adds up refer weakly to its values.
    held: list[Stored] = []
    try:
        held += compute_selections(driver, [value]).values()
        held += compute_sums_below(driver, value, _evaluate)
        _run(driver, [broadcast(value, target.shape)], target)
    finally:
        _give_back([stored.storage for stored in held])


def _run(
    driver: Driver, roots: Sequence[Expression], target: Stored | None = None
) -> tuple[PlacedPlan, list[Storage]]:
    """Compute ``roots``. Return the plan, and the memory of its areas."""
    form, leaves = describe(roots, target)
    compiled = compile_form(form, driver.geometry.abilities)
    placed, taken = _take(driver, compiled)
    areas = placed.in_order(taken, leaves)
    try:
        starts = tuple([storage.address for storage in areas])
        content = placed.memory.plan.constants.content
        driver.run(placed.commands(starts), before=[(starts[-1], content)] if content else ())
    except BaseException:
        _give_back(taken)
        raise
    return placed, areas


def _take(driver: Driver, compiled: CompiledForm) -> tuple[PlacedPlan, list[Storage]]:
    """Take memory for the results and intermediate values. Return the plan that it is for."""
    try:
        return compiled.usual, _take_all(driver, compiled.usual)
    except OutOfDeviceMemory:
        pass  # and its traceback no longer holds what the attempt has taken
    try:
        return compiled.sparing, _take_all(driver, compiled.sparing)
    except OutOfDeviceMemory as error:
        raise _too_large(compiled.sparing, error) from None


def _take_all(driver: Driver, placed: PlacedPlan) -> list[Storage]:
    taken: list[Storage] = []
    try:
        for size in placed.sizes:
            storage = Storage(driver, size)
            taken.append(storage)
    except OutOfDeviceMemory:
        _give_back(taken)
        raise
    return taken


def _give_back(taken: Sequence[Storage]) -> None:
    """Close storages. Not left to Python: an error's traceback refers to them."""
    for storage in taken:
        storage.close()


def _too_large(least: PlacedPlan, error: OutOfDeviceMemory) -> OutOfDeviceMemory:
    memory, results = least.memory, len(least.own)
    size = sum(memory.bound[area] for area in least.own)
    return OutOfDeviceMemory(
        f"expression: {size} bytes of device memory for {results} results and"
        f" {memory.temporary} for intermediate values do not fit; evaluate parts of it one after"
        f" another, or drop arrays that are no longer needed ({error})"
    )
