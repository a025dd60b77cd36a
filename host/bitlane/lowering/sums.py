"""From strided tensors to commands that add up counts: one pass over memory, one sum a run.

Works on addresses and strides only: it never sees data, and never talks to a device.
"""

from collections.abc import Iterator
from functools import lru_cache

from bitlane_rtl.abi import Lane, Mode, Op

from ..driver.commands import Command
from ..driver.geometry import Geometry
from ..errors import LayoutError, NoRunError, RowTooLongError, UnsupportedError
from .loopnest import Axis, merge
from .routes import (
    LANES,
    Lowered,
    Relative,
    Route,
    View,
    aligned,
    axes_of,
    cut,
    expect_aligned,
    expect_inside,
    expect_views,
    extents_of,
    flipped_where,
    longest_run,
    mode_of,
    placed,
    relative,
    template,
)

_SUM_BYTES = Lane.BITS_32.bytes
"""Of an element of Y."""


def longest_row(geometry: Geometry) -> int:
    """The most bytes that one sum may be of."""
    return longest_run(1, geometry)


def lower_sum(
    op: Op, shape: tuple[int, ...], a: View, b: View | None, y: View, *, geometry: Geometry
) -> Iterator[Command]:
    """Commands that set every element of ``y`` to the sum of ``op`` along some axes.

    ``op`` counts bits. Views have one stride for each axis of ``shape``; the axes of several
    elements in which ``y``, of 4-byte elements, has stride 0 are those that are added up along.
    Sums are modulo 2**32. ``y`` may be the very same view as ``a`` or ``b``; any other overlap
    with them gives undefined values. The first command has FENCE set; the others are independent
    of each other. A shape that holds a zero needs none.

    Raises
    ------
    NoRunError
        The elements of a sum do not lie as one run: dense, or at equal distances.
    RowTooLongError
        They have more bytes than a run may have: see ``longest_row``.
    LayoutError
        A view lies outside the memory, or ``y`` at addresses that are no multiples of 4.
    UnsupportedError
        The device was built without sums, the operation, or any lane.
    """
    if 0 in shape:
        return iter(())
    if not op.reads_b:
        b = None
    plan = _plan(op, shape, relative(a), None if b is None else relative(b), relative(y), geometry)
    expect_inside(plan, (a, b, y), geometry)
    return placed(plan, a.address, 0 if b is None else b.address, y.address)


@lru_cache(maxsize=512)
def _plan(
    op: Op,
    shape: tuple[int, ...],
    a: Relative,
    b: Relative | None,
    y: Relative,
    geometry: Geometry,
) -> Lowered:
    _expect(op, shape, a, b, y, geometry)
    axes = axes_of(shape, (a, b, y))
    extents = extents_of(axes, (a, b, y))
    # Sums do not depend on the order of what is added: rows that descend are as good as dense.
    axes, start = flipped_where(
        axes, lambda axis: axis.y < 0 or (axis.y == 0 and (axis.a or axis.b) < 0)
    )
    places = (a[0] + start[0], (b[0] if b else 0) + start[1])
    candidate = _candidate(axes, a[2], places, b is not None, geometry)
    most = longest_run(candidate.size_in, geometry)
    if candidate.run.count > most:
        raise RowTooLongError(
            f"sum: {candidate.run.count * candidate.size_in} bytes a row; expected"
            f" {longest_row(geometry)} at most on this device (hamming and its like cut NumPy's"
            " arrays, and add up the parts)"
        )
    boxes = cut(candidate, geometry)
    templates = [template(op, candidate, block, b is not None) for block in boxes]
    return Lowered(
        tuple(boxes), tuple([each.moved(*start, fence=False) for each in templates]), extents
    )


def _expect(
    op: Op,
    shape: tuple[int, ...],
    a: Relative,
    b: Relative | None,
    y: Relative,
    geometry: Geometry,
) -> None:
    if Mode.SUM not in geometry.modes or not geometry.lanes:
        raise UnsupportedError(
            f"op: this device was built without sums of {op.name}; device.bit_count gives what"
            " there is to add up"
        )
    expect_views(op, shape, (a, b, y), geometry)
    if not op.counts or y[2] != _SUM_BYTES:
        raise LayoutError(
            f"Y: sums of {op.name} in elements of {y[2]} bytes; expected a count, and 4 bytes"
        )
    expect_aligned(op, shape, y)


def _candidate(
    axes: list[Axis],
    size: int,
    places: tuple[int, int],
    has_b: bool,
    geometry: Geometry,
) -> Route:
    """The run that has all elements of a sum. Raises ``NoRunError``."""
    # The ones of an element are those of its bytes: one more axis to add up along.
    bytewise = Axis(size, 1, int(has_b), 0)
    merged = merge([*axes, bytewise])
    kept = tuple(axis for axis in merged if axis.y)
    summed = [axis for axis in merged if not axis.y]
    dense = next(axis for axis in summed if (axis.a, axis.b) == (bytewise.a, bytewise.b))
    others = [axis for axis in summed if axis is not dense]
    if not others:
        return _dense(dense, kept, geometry)
    run, *more = others
    size = dense.count
    if not more and size in LANES:
        modes = (mode_of(run.a, size), mode_of(run.b, size) if has_b else Mode.DENSE)
        result = Route(run, kept, size, _SUM_BYTES, *modes, Mode.SUM)
        if _walkable(result, places, geometry):
            return result
    raise NoRunError(
        f"sum: {' x '.join(str(axis.count) for axis in summed)} bytes that are"
        f" {', '.join(str(axis.a) for axis in summed)} bytes apart; expected one run"
    )


def _dense(bytewise: Axis, kept: tuple[Axis, ...], geometry: Geometry) -> Route:
    """A run of the widest elements that there are. Raises ``UnsupportedError``."""
    sizes = [lane.bytes for lane in geometry.lanes if bytewise.count % lane.bytes == 0]
    if not sizes:
        has = ", ".join(str(lane.bits) for lane in sorted(geometry.lanes))
        raise UnsupportedError(
            f"op: this device has no lanes for sums of {bytewise.count} bytes; it has {has} bits"
        )
    size = max(sizes)
    run = Axis(bytewise.count // size, size, size * bytewise.b, 0)
    return Route(run, kept, size, _SUM_BYTES, mode_y=Mode.SUM)


def _walkable(candidate: Route, places: tuple[int, int], geometry: Geometry) -> bool:
    size, axes = candidate.size_in, (candidate.run, *candidate.others)
    return (
        {candidate.mode_a, candidate.mode_b} <= geometry.modes
        and LANES[size] in geometry.lanes
        and size <= geometry.data_bytes
        and (candidate.mode_a is Mode.DENSE or aligned(places[0], [x.a for x in axes], size))
        and (candidate.mode_b is Mode.DENSE or aligned(places[1], [x.b for x in axes], size))
    )
