"""Where the values of a plan lie while it runs: what is written over what is no longer read.

Bookkeeping on sizes; never touches the device.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..driver.allocator import Allocation, Allocator
from ..driver.geometry import Abilities
from ..lowering.fences import CommandGroup
from ..lowering.strided import View
from .passes import Pass, Plan, Room, Spot

_ANY: Final = 1 << 62
"""Bytes: more than any memory has."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The passes in the order in which they run, and the memory that they need."""

    passes: tuple[Pass, ...]
    results: tuple[int, ...]
    """Bytes of each piece of memory that is kept."""
    temporary: int
    """Bytes of the one that is given back."""
    places: dict[Room, tuple[int, int]]
    """Each room's piece, which is a number of ``results`` or -1, and its first byte there."""

    def view(self, spot: Spot, starts: Sequence[int]) -> View:
        """Where a spot is if the pieces, the temporary one last, are at ``starts``."""
        if spot.room is None:
            return spot.view
        piece, offset = self.places[spot.room]
        return spot.view.moved(starts[piece] + offset)

    def groups(self, starts: Sequence[int], geometry: Abilities) -> list[CommandGroup]:
        """What executes each pass. Raises as ``lower`` does."""
        return [step.lower(lambda spot: self.view(spot, starts), geometry) for step in self.passes]


def side_by_side(passes: Sequence[Pass]) -> list[Pass]:
    """The passes in an order in which few have to wait: all that can be first, and so on."""
    written: dict[Room | None, int] = {}
    levels: dict[int, int] = {}
    for step in passes:
        level = 1 + max(written.get(x.room, 0) for x in (*step.operands, step.y))
        levels[id(step)] = written[step.y.room] = level
    return sorted(passes, key=lambda step: levels[id(step)])


def arranged(plan: Plan, passes: Sequence[Pass], *, sparing: bool) -> Arrangement:
    """Memory for ``passes``, those of ``plan`` in some order.

    A value that is read for the last time is replaced by the result in the same place, if it has
    the very same layout. ``sparing``: its memory serves others too, which then have to wait.
    """
    kept = list(dict.fromkeys(x.room for x in plan.results if x.room is not None))
    last = {room: number for number, step in enumerate(passes) for room in _rooms(step)}
    homes = _homes(passes, last, set(kept))
    places = {homes[room]: (piece, 0) for piece, room in enumerate(kept)}

    temporary = Allocator(0, _ANY)
    places[plan.constants] = (-1, temporary.allocate(plan.constants.size).address)
    end = plan.constants.size
    ends = {homes[room]: number for room, number in last.items() if room in homes}
    taken: dict[int, list[Allocation]] = defaultdict(list)
    for number, step in enumerate(passes):
        home = None if step.y.room is None else homes[step.y.room]
        if home is not None and home not in places:
            piece = temporary.allocate(home.size)
            places[home] = (-1, piece.address)
            end = max(end, piece.address + piece.size)
            taken[ends[home]].append(piece)
        for piece in taken[number] if sparing else ():
            temporary.free(piece)
    places |= {room: places[home] for room, home in homes.items()}
    return Arrangement(tuple(passes), tuple(room.size for room in kept), end, places)


def _rooms(step: Pass) -> list[Room]:
    return [x.room for x in (*step.operands, step.y) if x.room is not None]


def _homes(passes: Sequence[Pass], last: dict[Room, int], kept: set[Room]) -> dict[Room, Room]:
    """For each room that is written the first of those that lie in its place one after another."""
    homes: dict[Room, Room] = {}
    for number, step in enumerate(passes):
        target = step.y.room
        if target is None or target in homes:
            continue
        homes[target] = target
        for room in _rooms(step):
            views = [x.view for x in step.operands if x.room is room]
            if (
                room in homes
                and room is not target
                and room not in kept
                and last[room] == number
                and room.size == target.size
                and set(views) == {step.y.view}
            ):
                homes[target] = homes[room]
                break
    return homes
