"""Lowering: strided tensors become the fewest commands, all tensors of an operation at once.

Works on addresses and strides only: it never sees data, and never talks to a device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

from bitlane_rtl.abi import LOGIC_OPS, Mode, Op

from ..driver import Abilities, Command
from ..errors import LayoutError, UnsupportedError
from .cost import beats
from .loopnest import Axis, LoopTile, Offsets, flip
from .routes import LANES, Nest, Options, element_routes, lanes_text, sum_route, sum_test_route
from .strided import WIDTHS, Streams, View, span

_COMMAND_COST: Final = 32
"""Cycles that a command costs beside its data, roughly, the host's work included."""


def lower(
    op: Op,
    shape: tuple[int, ...],
    streams: Streams,
    abilities: Abilities,
    memory: range | None,
    options: Options = Options.NONE,
) -> Iterator[Command]:
    """Return commands that set every element of Y to ``op`` of the same elements of A and B.

    Views have one stride for each axis of ``shape``. B is ignored if the operation has no second
    operand. If ``op`` counts bits, counts are added up along axes of several elements in which Y,
    of 4-byte elements, has stride 0, and along last axes for which Y has no stride; sums are
    modulo 2**32, and with TEST they are sums of the elements' tests. Y may be the very same view as
    A or B; any other overlap with them gives undefined values. The first command has FENCE set; the
    others are independent of each other. A shape that holds a zero needs none.

    ``memory``: addresses that commands may touch; None if the caller checks the views, or only
    looks at the commands.

    Raises
    ------
    LayoutError
        A view lies outside ``memory``; Y has several elements at one address; or shifts, counts
        or sums write to addresses that are not multiples of the element.
    NoRunError
        The elements of a sum do not form one run: dense, or at equal distances.
    RowTooLongError
        They have more bytes than a run may have: see ``Abilities.longest_run``.
    UnsupportedError
        The device was built without the operation, the lane or sums; or TEST is an option of an
        operation that does not count, or NEGATE without TEST.
    """
    if 0 in shape:
        return iter(())
    a, b, y = streams
    if not op.reads_b:
        b = None
    options = _effective(op, options)
    relative = Streams(a.relative(), None if b is None else b.relative(), y.relative())
    lowered = _lower(op, shape, relative, abilities, options)
    addresses = Offsets(a.address, 0 if b is None else b.address, y.address)
    if memory is not None:
        _expect_inside(lowered, addresses, memory)
    return lowered.commands(addresses)


def _effective(op: Op, options: Options) -> Options:
    """Return the options that have an effect on ``op``."""
    tests = options & (Options.TEST | Options.NEGATE)
    if tests == Options.NEGATE or (tests and not op.counts):
        raise UnsupportedError(f"options: {tests!r} of {op.name}; expected TEST, of a count")
    if op is Op.SHIFT_RIGHT:
        return options & (Options.SATURATE | Options.ARITHMETIC)
    return options & Options.SATURATE if op is Op.SHIFT_LEFT else tests


@dataclass(frozen=True, slots=True)
class _Lowered:
    """Commands for views whose first elements are at 0, 0 and 0."""

    tiles: tuple[LoopTile, ...]
    templates: tuple[Command, ...]
    """The first command of each tile."""
    spans: tuple[range | None, ...]
    """Bytes of A, B and Y."""

    def commands(self, addresses: Offsets) -> Iterator[Command]:
        """Yield the commands for views at ``addresses``, the first one with a fence."""
        fence = True
        for tile, command in zip(self.tiles, self.templates, strict=True):
            for index in product(*(range(axis.count) for axis in tile.host)):
                at = addresses
                for step, axis in zip(index, tile.host, strict=True):
                    at = at.along(axis, step)
                yield command.moved(*at, fence=fence)
                fence = False


@lru_cache(maxsize=512)
def _lower(
    op: Op, shape: tuple[int, ...], streams: Streams, abilities: Abilities, options: Options
) -> _Lowered:
    """Choose the cheapest route and cut it. ``streams``: at the lowest addresses aligned alike."""
    sums = op.counts and (
        len(streams.y.strides) < len(shape)
        or _repeats(shape, streams.y)
        or (not options and _counts_by_bytes(streams, abilities))
    )
    if sums:
        lacking = len(shape) - len(streams.y.strides)
        y = streams.y._replace(strides=streams.y.strides + (0,) * lacking)
        streams = streams._replace(y=y)
    _expect_views(op, shape, streams, abilities, sums)
    a, b, y = streams
    still = (0,) * len(shape)
    steps = zip(shape, a.strides, still if b is None else b.strides, y.strides, strict=True)
    axes = [Axis(*numbers) for numbers in steps if numbers[0] > 1]
    # Reversed so that Y ascends, and with it all streams of the same layout: their runs are dense.
    # Sums do not depend on the order, so rows that descend are reversed, too.
    axes, start = flip(axes, lambda axis: (axis.y or axis.a or axis.b) < 0)
    first = Offsets(a.address, 0 if b is None else b.address, y.address)
    origin = Offsets(first.a + start.a, first.b + start.b, first.y + start.y)
    nest = Nest(axes, origin, a.itemsize, y.itemsize, b is not None)
    if sums:
        routes = [sum_test_route(nest, abilities) if options else sum_route(nest, abilities)]
    else:
        routes = element_routes(op, nest, abilities)
    candidates = []
    for route in routes:
        tiles = route.cut(abilities)
        templates = [route.command(op, tile, b is not None, options) for tile in tiles]
        candidates.append((_cost(tiles, templates, origin, abilities), tiles, templates))
    _, tiles, templates = min(candidates, key=lambda candidate: candidate[0])
    spans = [None if x is None else span(shape, x.strides, x.itemsize) for x in streams]
    return _Lowered(
        tuple(tiles), tuple([each.moved(*start, fence=False) for each in templates]), tuple(spans)
    )


def _repeats(shape: Sequence[int], view: View) -> bool:
    return any(count > 1 and not step for count, step in zip(shape, view.strides, strict=False))


def _counts_by_bytes(streams: Streams, abilities: Abilities) -> bool:
    """Return whether counts of wide elements need to be sums of counts of narrower lanes."""
    sizes = {lane.bytes for lane in abilities.lanes}
    size = streams.a.itemsize
    return (
        streams.y.itemsize == 4
        and Mode.SUM in abilities.modes
        and size not in sizes
        and min(sizes, default=size) < size
    )


def _cost(
    tiles: Sequence[LoopTile], templates: Sequence[Command], origin: Offsets, abilities: Abilities
) -> tuple[int, int, bool]:
    """Estimated cycles; then loops; then whether Y is scattered, which is the dearest walk."""
    total = 0
    for tile, command in zip(tiles, templates, strict=True):
        busy = beats(command.moved(*origin, fence=False), abilities)
        total += tile.commands * (_COMMAND_COST + busy)
    loops = max(len(tile.loops) for tile in tiles)
    return total, loops, templates[0].y.mode is not Mode.DENSE


def _expect_views(
    op: Op, shape: Sequence[int], streams: Streams, abilities: Abilities, sums: bool
) -> None:
    """Raise ``UnsupportedError`` or ``LayoutError`` for views that no command supports."""
    if sums and (Mode.SUM not in abilities.modes or not abilities.lanes):
        raise UnsupportedError(
            f"op: this device was built without sums of {op.name}; device.bit_count gives what"
            " there is to add up"
        )
    if op not in abilities.ops:
        has = ", ".join(sorted(x.name for x in abilities.ops))
        raise UnsupportedError(f"op: this device was built without {op.name}; it has {has}")
    a, b, y = streams
    if op.reads_b and b is None:
        raise LayoutError(f"B: {op.name} has two operands; expected a view")
    for name, view in zip("ABY", streams, strict=True):
        if view is None:
            continue
        if len(view.strides) != len(shape):
            raise LayoutError(f"{name}: strides {view.strides} do not fit the shape {shape}")
        sizes = (1, 4) if op.counts and name == "Y" else (a.itemsize,)
        if view.itemsize not in WIDTHS or view.itemsize not in sizes:
            raise LayoutError(
                f"{name}: itemsize {view.itemsize}; expected {sizes} bytes for {op.name}"
            )
    if sums and y.itemsize != LANES[4].bytes:
        raise LayoutError(f"Y: sums of {op.name} in elements of {y.itemsize} bytes; expected 4")
    if not sums and op not in LOGIC_OPS and LANES[a.itemsize] not in abilities.lanes:
        raise UnsupportedError(
            f"op: this device has no {8 * a.itemsize}-bit lanes for {op.name}; it has"
            f" {lanes_text(abilities)}"
        )
    if op not in LOGIC_OPS:
        _expect_aligned(op, shape, y)
    if not sums and _repeats(shape, y):
        raise LayoutError("Y: an axis of several elements has stride 0; they must not overlap")


def _expect_aligned(op: Op, shape: Sequence[int], y: View) -> None:
    """Raise ``LayoutError`` unless every element of Y is at a multiple of its size."""
    size = y.itemsize
    misplaced = [x for n, x in zip(shape, y.strides, strict=True) if n > 1 and x % size]
    if y.address % size or misplaced:
        raise LayoutError(
            f"Y: {op.name} writes {size}-byte elements; expected an address and strides that are"
            f" multiples of it, not strides {y.strides} at an address of {y.address} modulo"
            f" {WIDTHS[-1]}"
        )


def _expect_inside(lowered: _Lowered, addresses: Offsets, memory: range) -> None:
    """Raise ``LayoutError`` if one of A, B and Y leaves the device's memory."""
    for name, address, bytes_ in zip("ABY", addresses, lowered.spans, strict=True):
        if bytes_ is None:
            continue
        first, end = address + bytes_.start, address + bytes_.stop
        if first < memory.start or end > memory.stop:
            raise LayoutError(
                f"{name}: bytes {first:#x} to {end - 1:#x} are outside the device's memory,"
                f" {memory.start:#x} to {memory.stop - 1:#x}"
            )
