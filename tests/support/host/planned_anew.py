"""Evaluation that plans every expression anew, at its own addresses: nothing is stored."""

from collections.abc import Callable, Sequence

from bitlane.compiler import (
    Applied,
    Expression,
    Joined,
    Location,
    Plan,
    Stored,
    Widened,
    allocate,
    broadcast,
    compute_in_stages,
    compute_sums_below,
    fuse,
    plan_passes,
    write_into,
)
from bitlane.driver import Driver, Storage
from bitlane.lowering import View, insert_fences


def evaluate_anew(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Do what ``evaluate`` does."""
    wanted = [root for root in dict.fromkeys(roots) if not isinstance(root, Stored)]
    results = compute_in_stages(driver, wanted, _evaluate)
    return [root if isinstance(root, Stored) else results[root] for root in roots]


def _evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    plan = plan_passes(fuse(roots, driver.geometry), driver.geometry)
    find = _run(driver, plan)
    results = []
    for root, location in zip(roots, plan.results, strict=True):
        results.append(Stored(*find(location), root.shape))
        if isinstance(root, Applied | Widened | Joined):
            root.cache(results[-1])
    return results


def assign_anew(driver: Driver, target: Stored, value: Expression) -> None:
    """Do what ``assign`` does."""
    sums = compute_sums_below(driver, value, _evaluate)
    roots = fuse([broadcast(value, target.shape)], driver.geometry)
    plan = plan_passes(roots, driver.geometry)
    _run(driver, write_into(plan, [Location(None, target.view)], [target.shape]))
    for total in sums:
        total.storage.close()


def _run(driver: Driver, plan: Plan) -> Callable[[Location], tuple[Storage, View]]:
    """Execute ``plan``; return a function that finds results."""
    memory = allocate(plan)
    sizes = (*memory.bound, memory.temporary) if memory.temporary else memory.bound
    taken = [Storage(driver, size) for size in sizes]
    starts = [storage.address for storage in taken]
    if plan.constants.size:
        driver.write(starts[-1], plan.constants.content)
    driver.run(
        insert_fences(memory.groups(starts, driver.geometry.abilities, driver.geometry.memory))
    )

    def find(location: Location) -> tuple[Storage, View]:
        assert location.buffer is not None
        area, _ = memory.places[location.buffer]
        return taken[area], memory.view(location, starts)

    return find
