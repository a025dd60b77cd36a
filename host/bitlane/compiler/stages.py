"""Stages of an evaluation: the device computes parts of sums, then the host adds these up.

The host multiplies the few sums of the device by weights, and adds them: it has no bit operation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..driver import Driver, Storage
from ..errors import OutOfDeviceMemory
from ..lowering import View
from .nodes import (
    Applied,
    Expression,
    HostSum,
    Joined,
    Stored,
    Viewed,
    Widened,
    operands_first,
    reach,
    window,
)

Compute: TypeAlias = Callable[[Driver, Sequence[Expression]], list[Stored]]
"""Computes expressions without sums of the host in one run."""


@dataclass(frozen=True, slots=True)
class SumStage:
    """The work of one run, and the sums that the host adds up behind it."""

    roots: list[Expression]
    """Those that wait for no sum of the host."""
    sums: list[HostSum]

    @property
    def wanted(self) -> list[Expression]:
        """The expressions that the device computes."""
        return [*self.roots, *(part for total in self.sums for part in total.parts)]


def next_stage(roots: Sequence[Expression]) -> SumStage:
    """Return the first stage of the evaluation of ``roots``; that of all without a `HostSum`."""
    needed, cached = reach(roots)
    if not any(isinstance(node, HostSum) and node not in cached for node in needed):
        return SumStage(list(roots), [])
    late: set[Expression] = set()
    sums: list[HostSum] = []
    for node in operands_first(roots, cached):
        if node in cached:
            continue
        waits = any(each in late for each in node.operands)
        if isinstance(node, HostSum) and not waits:
            sums.append(node)
        if waits or isinstance(node, HostSum):
            late.add(node)
    return SumStage([root for root in roots if root not in late], sums)


def compute_in_stages(
    driver: Driver, roots: Sequence[Expression], compute: Compute
) -> dict[Expression, Stored]:
    """Compute ``roots``, none of them stored, by ``compute``; return where they are.

    Also returns the sums of the host that they needed. If memory is short, the parts of sums are
    computed one after another. Raises what ``compute`` does.
    """
    stage = next_stage(roots)
    if not stage.sums:
        return dict(zip(roots, compute(driver, roots), strict=True)) if roots else {}
    results: dict[Expression, Stored] = {}
    waiting = list(roots)
    with ExitStack() as given_back:
        while waiting:
            for root, stored in _compute_stage(driver, stage, compute):
                # Not left to Python: an error's traceback refers to everything here.
                given_back.callback(stored.storage.close)
                results[root] = stored
                if isinstance(root, HostSum):
                    root.cache(stored)
            waiting = [root for root in waiting if root not in results]
            stage = next_stage(waiting)
        given_back.pop_all()
    return results


def _compute_stage(
    driver: Driver, stage: SumStage, compute: Compute
) -> Iterator[tuple[Expression, Stored]]:
    """Yield the roots and the sums of ``stage``, and where they are."""
    try:
        stored = compute(driver, stage.wanted)
    except OutOfDeviceMemory:
        if not stage.sums:
            raise
    else:
        yield from zip(stage.roots, stored, strict=False)
        parts = iter(stored[len(stage.roots) :])
        for total in stage.sums:
            own = list(islice(parts, len(total.parts)))
            yield total, _store(driver, total, _add(driver, total, own))
        return
    if stage.roots:
        yield from zip(stage.roots, compute(driver, stage.roots), strict=True)
    for total in stage.sums:
        yield total, _store(driver, total, _add_batches(driver, total, compute))


def _add_batches(driver: Driver, total: HostSum, compute: Compute) -> NDArray[np.uint64]:
    """Return ``total``, of which as many parts are computed at a time as fit in the memory."""
    try:
        return _add(driver, total, compute(driver, total.parts))
    except OutOfDeviceMemory:
        if len(total.parts) == 1:
            raise
    half = len(total.parts) // 2
    batches = [
        replace(total, parts=total.parts[part], weights=total.weights[part])
        for part in (slice(half), slice(half, None))
    ]
    return sum((_add_batches(driver, x, compute) for x in batches), _zeros(total))


def _zeros(total: HostSum) -> NDArray[np.uint64]:
    return np.zeros(prod(total.shape), np.uint64)


def compute_sums_below(driver: Driver, root: Expression, compute: Compute) -> list[Stored]:
    """Compute all sums of the host that ``root`` needs; they are cached while the result is held.

    Raises what ``compute`` does.
    """
    needed, cached = reach([root])
    sums = [node for node in needed if isinstance(node, HostSum) and node not in cached]
    return list(compute_in_stages(driver, sums, compute).values())


def _add(driver: Driver, total: HostSum, parts: Sequence[Stored]) -> NDArray[np.uint64]:
    """Add up the computed ``parts`` of ``total``, and free their memory."""
    sums = _zeros(total)
    reads = [(part.view.address, prod(part.shape) * part.view.itemsize) for part in parts]
    for part, weight, data in zip(parts, total.weights, driver.exchange((), reads), strict=True):
        each: NDArray[np.uint32] = np.ndarray(part.shape, "<u4", data, 0, part.view.strides)
        rows = each.reshape(sums.size, -1).sum(axis=1, dtype=np.uint64)
        sums += rows * np.uint64(weight % 2**64)
        part.storage.close()
    return sums


def _store(driver: Driver, total: HostSum, sums: NDArray[np.uint64]) -> Stored:
    """Send ``sums`` to the device."""
    storage = Storage(driver, sums.size * total.itemsize)
    driver.write(storage.address, sums.astype(f"<u{total.itemsize}").view(np.uint8))
    return Stored(storage, View(storage.address, total.strides, total.itemsize), total.shape)


def replace_nodes(
    roots: Sequence[Expression], known: Mapping[Expression, Expression]
) -> list[Expression]:
    """Return ``roots`` with the nodes in ``known`` in place of others."""
    made: dict[Expression, Expression] = dict(known)
    for node in operands_first(roots, made):
        if node not in made:
            made[node] = _rebuild(node, [made[each] for each in node.operands])
    return [made[root] for root in roots]


def _rebuild(node: Expression, given: Sequence[Expression]) -> Expression:
    """Return ``node`` with the operands ``given``."""
    if all(one is other for one, other in zip(node.operands, given, strict=True)):
        return node
    if isinstance(node, Applied):
        a, *rest = given
        return replace(node, a=a, b=rest[0] if rest else None)
    if isinstance(node, HostSum):
        parts = tuple([part for part in given if isinstance(part, Applied)])
        return replace(node, parts=parts)
    if isinstance(node, Joined):
        return replace(node, parts=tuple(given))
    (source,) = given
    if isinstance(node, Widened):
        return replace(node, source=source)
    assert isinstance(node, Viewed)
    return window(source, node.offset, node.shape, node.strides, node.itemsize)
