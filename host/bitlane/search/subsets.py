"""The rule by cost that decides how the rows of a search are accessed.

Rows in adjacent slots are compared where they are. Others are gathered once, copied to be
adjacent, or compared with the rows between them, whose distances are dropped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..driver import ArraySizes, Driver
from .blocks import Block, Blocks, Numbers, Rows, split_rows

_RECORD_BYTES: Final = 32
"""Bytes on the line for a command, about."""

_SUM_BYTES: Final = 4
"""Bytes on the line for a distance."""

_ENTRY_BYTES: Final = 8
"""Bytes on the line for an entry of a search array's results."""

_CLOCK: Final = 50e6
"""Cycles a second, about."""


@dataclass(frozen=True, slots=True)
class HostCosts:
    """The host's work in a search, in cycles of the device."""

    command: int = 2048
    """Cycles of a command that copies rows."""
    range: int = 8192
    """Cycles of each range of rows that is compared, with the way to the device."""
    result: int = 4
    """Cycles in which the host takes a distance, where each is read."""


HOST_COSTS = HostCosts()
"""The costs by which the access to rows is chosen; results do not depend on them."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """``count`` adjacent slots: at ``address`` on the device, or of the host's ``content``.

    ``first`` counts the rows of the search before it. ``wanted``: the slots whose rows count, from
    0 on; None: all. Only ranges on the device have others.
    """

    first: int
    count: int
    address: int = 0
    content: Rows | None = None
    wanted: Numbers | None = None

    @property
    def rows(self) -> int:
        """Rows that count."""
        return self.count if self.wanted is None else len(self.wanted)

    def within(self, start: int, count: int) -> tuple[int, Numbers | None]:
        """Return the first row of ``count`` slots from ``start`` on, and which of them count."""
        if self.wanted is None:
            return self.first + start, None
        low, high = np.searchsorted(self.wanted, [start, start + count])
        return self.first + int(low), self.wanted[low:high] - start


@dataclass(frozen=True, slots=True)
class HostRows:
    """Rows of the host, in ``slots`` of ``content``; ``first`` as of `RowRange`."""

    first: int
    content: Rows
    slots: Numbers | None

    @property
    def rows(self) -> int:
        """Rows."""
        return len(self.content) if self.slots is None else len(self.slots)

    def tiles(self, most: int) -> Iterator[RowRange]:
        """Iterate over the rows in order, at most ``most`` at a time."""
        for start in range(0, self.rows, most):
            chosen: slice | Numbers = slice(start, start + most)
            if self.slots is not None:
                chosen = self.slots[chosen]
            content = self.content[chosen]
            yield RowRange(self.first + start, len(content), content=content)


@dataclass(frozen=True, slots=True)
class GatheredRows:
    """Rows at ``addresses`` on the device, to be copied together; ``first`` as of `RowRange`."""

    first: int
    addresses: Numbers

    @property
    def rows(self) -> int:
        """Rows."""
        return len(self.addresses)


Access = RowRange | HostRows | GatheredRows


@dataclass(frozen=True, slots=True)
class AccessCosts:
    """Estimated cycles of a search, by the way in which it accesses rows."""

    row: int
    """Cycles to compare one row with all queries."""
    drops: bool
    """Whether rows outside the subset may be compared, too, and their results dropped."""
    copied: int | None
    """Cycles to copy one row; None if the device cannot copy."""
    command: int
    """Cycles of a command that copies rows, besides those of its rows."""
    range: int
    """Cycles of a range of rows, besides those of its rows."""

    @classmethod
    def of_sums(cls, driver: Driver, stride: int, sums: int, *, copies: bool) -> "AccessCosts":
        """Return the costs where ``sums`` of each row are read to the host."""
        beats, byte = _beats(driver, stride), driver.link.byte_seconds * _CLOCK
        row = sums * (beats + HOST_COSTS.result + round(_SUM_BYTES * byte))
        copied = 2 * beats if copies else None
        command = HOST_COSTS.command + round(_RECORD_BYTES * byte)
        return cls(row, True, copied, command, HOST_COSTS.range)

    @classmethod
    def of_array(
        cls, driver: Driver, stride: int, queries: int, array: ArraySizes, *, copies: bool
    ) -> "AccessCosts":
        """Return the costs where a search array returns the nearest rows of each range."""
        beats, byte = _beats(driver, stride), driver.link.byte_seconds * _CLOCK
        batches = -(-queries // array.queries)
        results = round(queries * array.nearest * _ENTRY_BYTES * byte)
        copied = 2 * beats if copies else None
        command = HOST_COSTS.command + round(_RECORD_BYTES * byte)
        ranges = batches * HOST_COSTS.range + results
        return cls(batches * beats, False, copied, command, ranges)


def _beats(driver: Driver, stride: int) -> int:
    """Return the cycles in which a row is read."""
    return -(-stride // driver.geometry.data_bytes)


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """The accesses to the rows of a search, in their order, and the estimated cycles."""

    accesses: list[Access]
    cycles: int

    @property
    def gathers(self) -> bool:
        """Whether rows are copied."""
        return any(isinstance(each, GatheredRows) for each in self.accesses)


def plan_access(
    blocks: Blocks, rows: Numbers | None, costs: AccessCosts, stride: int
) -> AccessPlan:
    """Return the cheapest access to ``rows`` (None: all) of ``blocks``."""
    found: list[Access] = []
    first = cycles = 0
    for block, some in _chosen(blocks, rows):
        slots = None if some is None and block.kept is None else block.slots(some)
        count = block.count if some is None else len(some)
        if block.on_device and slots is not None:
            ranges = _cheapest(slots, costs)
            found += ranges.accesses(block.address, slots, stride, first)
            cycles += ranges.cycles
        else:
            content = None if block.on_device else block.content
            if content is None:
                found.append(RowRange(first, block.used, block.address))
            else:
                found.append(HostRows(first, content, _unless_all(slots, len(content))))
            cycles += costs.range + count * costs.row
        first += count
    return AccessPlan(found, cycles)


def _chosen(blocks: Blocks, rows: Numbers | None) -> Iterator[tuple[Block, Numbers | None]]:
    if rows is None:
        yield from ((block, None) for block in blocks)
    else:
        yield from ((block, some) for block, _, some in split_rows(blocks, rows))


def _unless_all(slots: Numbers | None, count: int) -> Numbers | None:
    return None if slots is None or len(slots) == count else slots


def _cheapest(slots: Numbers, costs: AccessCosts) -> "_Ranges":
    """Return the cheapest division of ``slots`` into ranges."""
    longest = int(np.diff(slots).max(initial=1)) - 1
    # No rows between others; those between runs near each other; or all in one range.
    bridged = {0}
    if costs.drops or costs.copied is not None:
        bridged.add(longest)
    if costs.drops:
        bridged.add(min(longest, costs.command // max(1, costs.row)))
    return min((_Ranges.of(slots, each, costs) for each in sorted(bridged)), key=lambda x: x.cycles)


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Ranges of slots, by the indices ``starts`` and ``ends``, each streamed or gathered."""

    starts: NDArray[np.intp]
    ends: NDArray[np.intp]
    streamed: NDArray[np.bool_]
    cycles: int

    @classmethod
    def of(cls, slots: Numbers, longest: int, costs: AccessCosts) -> "_Ranges":
        """Divide ``slots`` at gaps of more than ``longest`` slots; access each range by cost."""
        steps = np.diff(slots)
        cuts = np.flatnonzero(steps > longest + 1) + 1
        starts = np.concatenate([[0], cuts])
        ends = np.concatenate([cuts, [len(slots)]])
        rows = ends - starts
        every = slots[ends - 1] - slots[starts] + 1
        streaming = costs.range + every * costs.row
        if costs.copied is None:
            return cls(starts, ends, np.ones(len(rows), bool), int(streaming.sum()))
        # Rows at one distance are one command, adjacent ones among them.
        runs = _sums(steps > 1, starts, ends - 1) + 1
        turns = _sums(np.diff(steps) != 0, starts, np.maximum(starts, ends - 2)) + 1
        gathering = costs.command * np.minimum(runs, turns) + rows * (costs.copied + costs.row)
        streamed = streaming <= gathering
        if not costs.drops:
            streamed &= every == rows
        return cls(starts, ends, streamed, int(np.where(streamed, streaming, gathering).sum()))

    def accesses(self, address: int, slots: Numbers, stride: int, first: int) -> list[Access]:
        """Return the access to ``slots`` of memory at ``address``."""
        found: list[Access] = []
        gathered = 0
        for index in [*np.flatnonzero(self.streamed).tolist(), len(self.starts)]:
            if gathered < index:
                some = slots[self.starts[gathered] : self.ends[index - 1]]
                at = first + int(self.starts[gathered])
                found.append(GatheredRows(at, address + some * stride))
            if index < len(self.starts):
                start, end = int(self.starts[index]), int(self.ends[index])
                base = int(slots[start])
                count = int(slots[end - 1]) - base + 1
                wanted = _unless_all(slots[start:end] - base, count)
                at = address + base * stride
                found.append(RowRange(first + start, count, at, wanted=wanted))
            gathered = index + 1
        return found


def _sums(
    values: NDArray[np.bool_], starts: NDArray[np.intp], ends: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Return how many of ``values`` are true from each of ``starts`` to before ``ends``."""
    before = np.concatenate([[0], np.cumsum(values)])
    last = len(values)
    return np.asarray(before[np.minimum(ends, last)] - before[np.minimum(starts, last)])


def cut_gathered(accesses: Sequence[Access], most: int) -> Iterator[list[Access]]:
    """Yield ``accesses`` in order, in lists with at most ``most`` gathered rows each."""
    some: list[Access] = []
    room = most
    for access in accesses:
        rest = access
        while isinstance(rest, GatheredRows) and rest.rows > room:
            if room:
                some.append(replace(rest, addresses=rest.addresses[:room]))
            yield some
            rest = GatheredRows(rest.first + room, rest.addresses[room:])
            some, room = [], most
        some.append(rest)
        room -= rest.rows if isinstance(rest, GatheredRows) else 0
    if some:
        yield some


def in_place(accesses: Sequence[Access], address: int, stride: int) -> list[RowRange | HostRows]:
    """Return ``accesses`` with gathered rows at ``address``, one behind the other."""
    result: list[RowRange | HostRows] = []
    for each in accesses:
        if isinstance(each, GatheredRows):
            result.append(RowRange(each.first, each.rows, address))
            address += each.rows * stride
        else:
            result.append(each)
    return result
