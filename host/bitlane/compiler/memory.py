"""Memory of a plan: where results are written, and which values share addresses.

Bookkeeping on sizes; never touches the device.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import Final, TypeVar

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..driver import Abilities, Allocation, Allocator, round_up
from ..errors import OutOfDeviceMemory
from ..lowering import CommandGroup, View, broadcast_strides, overlap, packed_strides
from .nodes import VirtualBuffer
from .passes import Location, Pass, Plan

_ENDLESS: Final = 1 << 62
"""More bytes than any memory has."""

_BEHIND: Final = 1 << 32
"""An address above every device's memory, so that no stored tensor overlaps it."""

_Taken = TypeVar("_Taken")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The passes in the order in which they are executed, and the memory that they need.

    It consists of areas: one for each result, one for each argument, and a temporary one.
    """

    passes: tuple[Pass, ...]
    bound: tuple[int, ...]
    """Bytes of each area that the caller binds."""
    temporary: int
    """Bytes of the temporary area, the last one."""
    places: dict[VirtualBuffer, tuple[int, int]]
    """Number of each buffer's area, -1 for the temporary one, and its offset there."""

    plan: Plan

    def fit(self, take: Callable[["MemoryPlan"], _Taken]) -> _Taken:
        """Return ``take(self)``, or if memory is short that of the plan that needs least.

        Raises ``OutOfDeviceMemory`` as ``take`` does.
        """
        try:
            return take(self)
        except OutOfDeviceMemory:
            pass  # and its traceback no longer holds what the attempt has taken
        return take(allocate(self.plan, sparing=True))

    def view(self, location: Location, starts: Sequence[int]) -> View:
        """Return where a location is if the areas are at ``starts``."""
        if location.buffer is None:
            return location.view
        area, offset = self.places[location.buffer]
        return location.view.moved(starts[area] + offset)

    def groups(
        self, starts: Sequence[int], abilities: Abilities, memory: range | None
    ) -> list[CommandGroup]:
        """Return the commands of each pass. Raises as `lower`."""
        return [
            step.lower(lambda x: self.view(x, starts), abilities, memory) for step in self.passes
        ]

    @property
    def dry_starts(self) -> list[int]:
        """Starts of all areas, one behind the other above every device's memory."""
        return list(accumulate(map(round_up, self.bound), initial=_BEHIND))

    def dry_groups(self, abilities: Abilities) -> list[CommandGroup]:
        """Return commands that only show the work, with the areas at ``dry_starts``."""
        return self.groups(self.dry_starts, abilities, None)


def allocate(plan: Plan, *, sparing: bool = False) -> MemoryPlan:
    """Allocate the buffers of ``plan``.

    A value that is read for the last time is replaced by the result at the same addresses, if both
    have the same layout. ``sparing``: its memory is used again by others, too, which then have to
    wait; the passes stay in the plan's order, which needs least memory.
    """
    passes = plan.passes if sparing else _by_level(plan.passes)
    results = dict.fromkeys(x.buffer for x in plan.results if x.buffer is not None)
    bound = tuple(dict.fromkeys((*results, *plan.arguments)))
    last = {buffer: number for number, step in enumerate(passes) for buffer in _buffers(step)}
    aliases = _aliases(passes, last, plan)
    places = {aliases.get(buffer, buffer): (area, 0) for area, buffer in enumerate(bound)}

    temporary = Allocator(0, _ENDLESS)
    places[plan.constants] = (-1, temporary.allocate(plan.constants.size).address)
    end = plan.constants.size
    ends = {aliases[buffer]: number for buffer, number in last.items() if buffer in aliases}
    taken: dict[int, list[Allocation]] = defaultdict(list)
    for number, step in enumerate(passes):
        owner = None if step.y.buffer is None else aliases[step.y.buffer]
        if owner is not None and owner not in places:
            allocation = temporary.allocate(owner.size)
            places[owner] = (-1, allocation.address)
            end = max(end, allocation.address + allocation.size)
            taken[ends[owner]].append(allocation)
        for allocation in taken[number] if sparing else ():
            temporary.free(allocation)
    places |= {buffer: places[owner] for buffer, owner in aliases.items()}
    sizes = tuple([buffer.size for buffer in bound])
    return MemoryPlan(tuple(passes), sizes, end, places, plan)


def _by_level(passes: Sequence[Pass]) -> list[Pass]:
    """Return the passes in a level schedule, so that few wait: first all that depend on none."""
    written: dict[VirtualBuffer | None, int] = {}
    levels: dict[int, int] = {}
    for step in passes:
        level = 1 + max(written.get(x.buffer, 0) for x in (*step.operands, step.y))
        levels[id(step)] = written[step.y.buffer] = level
    return sorted(passes, key=lambda step: levels[id(step)])


def _buffers(step: Pass) -> list[VirtualBuffer]:
    return [x.buffer for x in (*step.operands, step.y) if x.buffer is not None]


def _aliases(
    passes: Sequence[Pass], last: dict[VirtualBuffer, int], plan: Plan
) -> dict[VirtualBuffer, VirtualBuffer]:
    """Return for each buffer that is written the first of those at the same addresses.

    Nothing else takes the place of an argument that a result is written over.
    """
    aliases: dict[VirtualBuffer, VirtualBuffer] = {}
    bound = {*(x.buffer for x in plan.results), *plan.arguments}
    for number, step in enumerate(passes):
        target = step.y.buffer
        if target is None or target in aliases:
            continue
        aliases[target] = target
        for buffer in () if target in plan.arguments else _buffers(step):
            views = [x.view for x in step.operands if x.buffer is buffer]
            if (
                buffer in aliases
                and buffer is not target
                and buffer not in bound
                and last[buffer] == number
                and buffer.size == target.size
                and set(views) == {step.y.view}
            ):
                aliases[target] = aliases[buffer]
                break
    return aliases


def write_into(plan: Plan, targets: Sequence[Location], shapes: Sequence[tuple[int, ...]]) -> Plan:
    """Return a plan that writes its results, of ``shapes``, to ``targets``.

    A target acts as if it were written after all else. A result is computed in the target's buffer
    if it has the same layout there; else its last pass writes to the target if no operand that has
    yet to be read is lost so; else one more pass copies it.
    """
    steps = list(plan.passes)
    replaced: dict[VirtualBuffer, VirtualBuffer] = {}
    for result, target, shape in zip(plan.results, targets, shapes, strict=True):
        if result == target:
            continue
        computed = any(step.y.buffer is result.buffer for step in steps)
        free = result.buffer not in replaced and target.buffer not in plan.arguments
        if computed and free and _has_layout(result, target, shape):
            assert result.buffer is not None
            assert target.buffer is not None
            replaced[result.buffer] = target.buffer
        elif computed and (last := _last_writer(plan, steps, result, (target, shape))) is not None:
            number, y = last
            steps[number] = replace(steps[number], y=y)
        else:
            if _share(result, target, shape):
                strides = packed_strides(shape, itemsize=target.view.itemsize)
                size = prod(shape) * target.view.itemsize
                packed = Location(VirtualBuffer(size), View(0, strides, target.view.itemsize))
                steps.append(Pass(Op.COPY, shape, result, None, packed))
                result = packed
            steps.append(Pass(Op.COPY, shape, result, None, target))
    passes = tuple([_replace(step, replaced) for step in steps])
    return replace(plan, passes=passes, results=tuple(targets))


def _has_layout(result: Location, target: Location, shape: tuple[int, ...]) -> bool:
    """Return whether the buffer of ``target`` can take the place of that of ``result``."""
    if result.buffer is None or target.buffer is None or result.buffer.size > target.buffer.size:
        return False
    strides = broadcast_strides(shape, result.view.strides, shape)
    return result.view._replace(strides=strides) == target.view


def _last_writer(
    plan: Plan, steps: Sequence[Pass], result: Location, target: tuple[Location, tuple[int, ...]]
) -> tuple[int, Location] | None:
    """Return the number of the pass that may write ``result`` to ``target`` instead, and its Y.

    ``target``: its location and shape.
    """
    number = max(n for n, step in enumerate(steps) if result.buffer in _buffers(step))
    last, y = steps[number], _redirect(steps[number], *target)
    if y is None or last.y != result or [x.buffer for x in plan.results].count(result.buffer) > 1:
        return None
    size = y.view.itemsize
    misaligned = any(step % size for step in (y.view.address, *y.view.strides))
    if (
        (misaligned and last.op not in LOGIC_OPS)
        or any(x != y and _share(x, y, last.shape) for x in last.operands)
        or any(_share(x, y, last.shape) for step in steps[number + 1 :] for x in step.operands)
    ):
        return None
    return number, y


def _redirect(last: Pass, target: Location, shape: tuple[int, ...]) -> Location | None:
    """Return Y of ``last`` at ``target``, of ``shape``; None if ``shape`` is not that of its sums.

    Along an axis of a sum, ``target`` has one element, and the stride of Y stays 0: with any other
    stride the pass would write every count.
    """
    steps = last.y.view.strides
    summed = [last.op.counts and not step for step in steps]
    left = tuple([1 if gone else n for n, gone in zip(last.shape, summed, strict=True)])
    if left != shape:
        return None
    strides = [0 if gone else step for step, gone in zip(target.view.strides, summed, strict=True)]
    return Location(target.buffer, target.view._replace(strides=tuple(strides)))


def _share(one: Location, other: Location, shape: tuple[int, ...]) -> bool:
    """Return whether two locations of ``shape`` elements may share a byte."""
    return one.buffer is other.buffer and overlap(one.view.span(shape), other.view.span(shape))


def _replace(step: Pass, replaced: dict[VirtualBuffer, VirtualBuffer]) -> Pass:
    """Return ``step`` in other buffers."""
    if not replaced:
        return step

    def move(x: Location) -> Location:
        return x if x.buffer is None else Location(replaced.get(x.buffer, x.buffer), x.view)

    return replace(step, a=move(step.a), b=None if step.b is None else move(step.b), y=move(step.y))
