"""The order in which a command's streams visit memory, and a drawing of it."""

from collections.abc import Iterator
from itertools import islice, product

from bitlane_rtl.abi import Mode

from ..driver.commands import Command, Walk

__all__ = ["drawing", "streams", "visited"]

_DRAWN = 256
"""Elements in a drawing."""
_WIDTH, _HEIGHT, _MARGIN = 320, 96, 6


def streams(command: Command) -> list[tuple[str, Walk, int]]:
    """Name, walk and bytes of an element of each stream that the command has."""
    found = [("A", command.a, command.lane.bytes), ("Y", command.y, command.out_lane.bytes)]
    if command.b is not None:
        found.insert(1, ("B", command.b, command.lane.bytes))
    return found


def visited(walk: Walk, run: int, counts: tuple[int, ...], size: int) -> Iterator[int]:
    """Addresses of the elements of ``size`` bytes, in the order in which they are visited.

    A run that repeats one element, or is summed into one, visits it once for each of its elements.
    """
    step = {Mode.DENSE: size, Mode.STRIDED: walk.stride}.get(walk.mode, 0)
    # Where the next run starts, seen from where its jumps count from.
    behind = step * (run - 1) if walk.mode is Mode.STRIDED else 0
    start = walk.base
    for done in product(*(range(times) for times in reversed(counts))):
        yield from (start + step * element for element in range(run))
        loops = zip(walk.jumps, counts, reversed(done), strict=True)
        start += behind + next((jump for jump, times, now in loops if now < times - 1), 0)


def drawing(command: Command, name: str, walk: Walk, size: int) -> str:
    """An SVG: elements in their order from left to right, their addresses from the top down."""
    places = list(islice(visited(walk, command.run, command.counts, size), _DRAWN + 1))
    shown = places[:_DRAWN]
    low, span = min(shown), max(max(shown) - min(shown), 1)
    across = (_WIDTH - 2 * _MARGIN) / max(len(shown) - 1, 1)
    points = [
        (_MARGIN + k * across, _MARGIN + (x - low) / span * (_HEIGHT - 2 * _MARGIN))
        for k, x in enumerate(shown)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6"/>' for x, y in points)
    more = f"first {_DRAWN} elements" if len(places) > _DRAWN else f"{len(shown)} elements"
    label = f"{name}: {more}, {low:#x} to {low + span:#x}"
    return (
        f'<svg class="walk" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<polyline points="{line}"/>{dots}</svg>'
    )
