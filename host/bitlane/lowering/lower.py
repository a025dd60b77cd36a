"""From strided tensors to the fewest commands, for all tensors of an operation at once.

Works on addresses and strides only: it never sees data, and never talks to a device.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Mode, Op

from ..driver.commands import Command
from ..driver.geometry import Geometry
from ..errors import LayoutError
from .cost import beats
from .loopnest import Axis, Block, merge
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
    expect_lane,
    expect_views,
    extents_of,
    flipped_where,
    mode_of,
    placed,
    relative,
    template,
)

_COMMAND_COST: Final = 32
"""Cycles that a command costs beside its data, roughly, the host's work included."""


def lower(
    op: Op,
    shape: tuple[int, ...],
    a: View,
    b: View | None,
    y: View,
    *,
    geometry: Geometry,
    saturate: bool = False,
    arithmetic: bool = False,
) -> Iterator[Command]:
    """Commands that set every element of ``y`` to ``op`` of the same elements of ``a`` and ``b``.

    Views have one stride for each axis of ``shape``. ``b`` is ignored if the operation has no
    second operand. ``y`` may be the very same view as ``a`` or ``b``; any other overlap with them
    gives undefined values. ``saturate`` and ``arithmetic`` act on shifts only. The first command
    has FENCE set; the others are independent of each other. A shape that holds a zero needs none.

    Raises
    ------
    LayoutError
        A view lies outside the memory, ``y`` has several elements in one place, or shifts or
        counts write to addresses that are no multiples of the element.
    UnsupportedError
        The device was built without the operation or the lane.
    """
    if 0 in shape:
        return iter(())
    if not op.reads_b:
        b = None
    plan = _plan(
        op,
        shape,
        relative(a),
        None if b is None else relative(b),
        relative(y),
        geometry,
        (saturate and op in SHIFT_OPS, arithmetic and op is Op.SHIFT_RIGHT),
    )
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
    flags: tuple[bool, bool],
) -> Lowered:
    expect_views(op, shape, (a, b, y), geometry)
    if op not in LOGIC_OPS:
        expect_lane(op, a[2], geometry)
        expect_aligned(op, shape, y)
    axes = axes_of(shape, (a, b, y))
    extents = extents_of(axes, (a, b, y))
    # Flipped so that Y ascends: with it descend whatever has the same layout, and runs are dense.
    axes, start = flipped_where(axes, lambda axis: axis.y < 0)
    if any(axis.y == 0 for axis in axes):
        raise LayoutError("Y: an axis of several elements has stride 0; they must not overlap")

    places = (a[0] + start[0], (b[0] if b else 0) + start[1], y[0] + start[2])
    candidates = _candidates(op, axes, a[2], y[2], places, b is not None, geometry)
    options = []
    for candidate in candidates:
        boxes = cut(candidate, geometry)
        templates = [template(op, candidate, block, b is not None, flags) for block in boxes]
        options.append((_cost(boxes, templates, places, geometry), boxes, templates))
    _, boxes, templates = min(options, key=lambda option: option[0])
    return Lowered(
        tuple(boxes), tuple([each.moved(*start, fence=False) for each in templates]), extents
    )


def _candidates(
    op: Op,
    axes: list[Axis],
    size_in: int,
    size_out: int,
    places: tuple[int, int, int],
    has_b: bool,
    geometry: Geometry,
) -> list[Route]:
    """Every innermost loop that the circuit can walk. Dense runs come first; one always can."""
    if op in LOGIC_OPS:
        # Logic acts on bytes: an element is one more axis, which merges like any other.
        one = (1, int(has_b), 1)
        merged = merge([*axes, Axis(size_in, *one)])
        bytewise = next(axis for axis in merged if (axis.a, axis.b, axis.y) == one)
        axes = [axis for axis in merged if axis is not bytewise]
        size_in = size_out = bytewise.count
        result = [Route(bytewise, tuple(axes), 1, 1)]
    else:
        axes = merge(axes)
        single = Axis(1, size_in, size_in if has_b else 0, size_out)
        result = [Route(single, tuple(axes), size_in, size_out)]
    elements_allowed = size_in in LANES and size_out in LANES
    for axis in axes:
        modes = (
            mode_of(axis.a, size_in),
            mode_of(axis.b, size_in) if has_b else Mode.DENSE,
            mode_of(axis.y, size_out),
        )
        candidate = Route(axis, tuple(x for x in axes if x is not axis), size_in, size_out, *modes)
        dense = set(modes) == {Mode.DENSE}
        if dense or (elements_allowed and _walkable(candidate, places, geometry)):
            result.append(candidate)
    return result


def _walkable(candidate: Route, places: tuple[int, int, int], geometry: Geometry) -> bool:
    """Whether the circuit can walk a run that is not dense on every stream."""
    size_in, size_out = candidate.size_in, candidate.size_out
    modes = (candidate.mode_a, candidate.mode_b, candidate.mode_y)
    if not (
        set(modes) <= geometry.modes
        and {LANES[size_in], LANES[size_out]} <= geometry.lanes
        and max(size_in, size_out) <= geometry.data_bytes
    ):
        return False
    axes = (candidate.run, *candidate.others)
    return (
        (candidate.mode_a is Mode.DENSE or aligned(places[0], [x.a for x in axes], size_in))
        and (candidate.mode_b is Mode.DENSE or aligned(places[1], [x.b for x in axes], size_in))
        and aligned(places[2], [x.y for x in axes], size_out)
    )


def _cost(
    boxes: Sequence[Block],
    templates: Sequence[Command],
    places: tuple[int, int, int],
    geometry: Geometry,
) -> tuple[int, int, bool]:
    """Estimated cycles; then loops; then whether Y is scattered, which is the dearest walk."""
    total = 0
    for block, command in zip(boxes, templates, strict=True):
        busy = beats(command.moved(*places, fence=False), geometry)
        total += block.commands * (_COMMAND_COST + busy)
    loops = max(len(block.loops) for block in boxes)
    return total, loops, templates[0].y.mode is not Mode.DENSE
