"""From strided tensors to the fewest commands, for all tensors of an operation at once.

Works on addresses and strides only: it never sees data, and never talks to a device.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Lane, Mode, Op

from ..driver.commands import Command, Walk
from ..driver.geometry import Geometry
from ..errors import BitlaneError, DeviceError
from .axes import Axis, Block, Stream, blocks, merge
from .cost import beats

__all__ = ["LayoutError", "UnsupportedError", "View", "lower"]

_LANES: Final = {lane.bytes: lane for lane in Lane}

_COMMAND_COST: Final = 32
"""Cycles that a command costs beside its data, roughly, the host's work included."""

_ALIGNMENT: Final = 8
"""The widest element in bytes: what addresses are compared modulo."""


class LayoutError(BitlaneError, ValueError):
    """A view that no command can describe: misplaced, or outside the device's memory."""


class UnsupportedError(DeviceError, NotImplementedError):
    """An operation or lane that this device was built without."""


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in the device's memory.

    ``address`` of element 0 in bytes; ``strides`` in bytes, one an axis, of any sign, 0 for an
    axis that repeats; ``itemsize`` 1, 2, 4 or 8 bytes.
    """

    address: int
    strides: tuple[int, ...]
    itemsize: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """What ``lower`` finds out about views whose first elements stand at 0, 0 and 0."""

    blocks: tuple[Block, ...]
    templates: tuple[Command, ...]
    extents: tuple[tuple[int, int] | None, ...]
    """First and last byte of A, B and Y."""


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
        (a.address % _ALIGNMENT, a.strides, a.itemsize),
        None if b is None else (b.address % _ALIGNMENT, b.strides, b.itemsize),
        (y.address % _ALIGNMENT, y.strides, y.itemsize),
        geometry,
        saturate and op in SHIFT_OPS,
        arithmetic and op is Op.SHIFT_RIGHT,
    )
    for name, view, extent in zip("ABY", (a, b, y), plan.extents, strict=True):
        if view is None or extent is None:
            continue
        first, last = view.address + extent[0], view.address + extent[1]
        if first < geometry.memory_base or last > geometry.memory_last:
            raise LayoutError(
                f"{name}: bytes {first:#x} to {last:#x} are outside the device's memory,"
                f" {geometry.memory_base:#x} to {geometry.memory_last:#x}"
            )
    return _placed(plan, a.address, 0 if b is None else b.address, y.address)


def _placed(plan: _Plan, a: int, b: int, y: int) -> Iterator[Command]:
    fence = True
    for block, template in zip(plan.blocks, plan.templates, strict=True):
        for index in product(*(range(axis.count) for axis in block.host)):
            move_a, move_b, move_y = a, b, y
            for i, axis in zip(index, block.host, strict=True):
                move_a += i * axis.a
                move_b += i * axis.b
                move_y += i * axis.y
            yield template.moved(move_a, move_b, move_y, fence=fence)
            fence = False


_Stream = tuple[int, tuple[int, ...], int]
"""Address modulo ``_ALIGNMENT``, strides, element's bytes."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One way to walk: an innermost axis and how each stream walks it."""

    run: Axis
    others: tuple[Axis, ...]
    size_in: int
    """Bytes of an element of A and B."""
    size_out: int
    mode_a: Mode = Mode.DENSE
    mode_b: Mode = Mode.DENSE
    mode_y: Mode = Mode.DENSE


@lru_cache(maxsize=512)
def _plan(
    op: Op,
    shape: tuple[int, ...],
    a: _Stream,
    b: _Stream | None,
    y: _Stream,
    geometry: Geometry,
    saturate: bool,
    arithmetic: bool,
) -> _Plan:
    _check(op, shape, a, b, y, geometry)
    strides_b = (0,) * len(shape) if b is None else b[1]
    axes = [
        Axis(*numbers)
        for numbers in zip(shape, a[1], strides_b, y[1], strict=True)
        if numbers[0] > 1
    ]
    extents = (
        _extent(axes, "a", a[2]),
        None if b is None else _extent(axes, "b", b[2]),
        _extent(axes, "y", y[2]),
    )
    # Flipped so that Y ascends: with it descend whatever has the same layout, and runs are dense.
    start_a = sum(axis.a * (axis.count - 1) for axis in axes if axis.y < 0)
    start_b = sum(axis.b * (axis.count - 1) for axis in axes if axis.y < 0)
    start_y = sum(axis.y * (axis.count - 1) for axis in axes if axis.y < 0)
    axes = [axis.flipped() if axis.y < 0 else axis for axis in axes]
    if any(axis.y == 0 for axis in axes):
        raise LayoutError("Y: an axis of several elements has stride 0; they must not overlap")

    places = (a[0] + start_a, (b[0] if b else 0) + start_b, y[0] + start_y)
    candidates = _candidates(op, axes, a[2], y[2], places, b is not None, geometry)
    options = []
    for candidate in candidates:
        cut = _blocks(candidate, geometry)
        templates = [
            _template(op, candidate, block, b is not None, saturate, arithmetic) for block in cut
        ]
        options.append((_cost(cut, templates, places, geometry), cut, templates))
    _, cut, templates = min(options, key=lambda option: option[0])
    placed = [template.moved(start_a, start_b, start_y, fence=False) for template in templates]
    return _Plan(tuple(cut), tuple(placed), extents)


def _check(
    op: Op,
    shape: tuple[int, ...],
    a: _Stream,
    b: _Stream | None,
    y: _Stream,
    geometry: Geometry,
) -> None:
    if op not in geometry.ops:
        has = ", ".join(sorted(x.name for x in geometry.ops))
        raise UnsupportedError(f"op: this device was built without {op.name}; it has {has}")
    if op.reads_b and b is None:
        raise LayoutError(f"B: {op.name} has two operands; expected a view")
    for name, stream in (("A", a), ("B", b), ("Y", y)):
        if stream is None:
            continue
        if len(stream[1]) != len(shape):
            raise LayoutError(f"{name}: strides {stream[1]} do not fit the shape {shape}")
        wanted = (1, 4) if op.counts and name == "Y" else (a[2],)
        if stream[2] not in _LANES or stream[2] not in wanted:
            raise LayoutError(
                f"{name}: itemsize {stream[2]}; expected {wanted} bytes for {op.name}"
            )
    if op in LOGIC_OPS:
        return
    if _LANES[a[2]] not in geometry.lanes:
        has = ", ".join(str(lane.bits) for lane in sorted(geometry.lanes))
        raise UnsupportedError(
            f"op: this device has no {8 * a[2]}-bit lanes for {op.name}; it has {has}"
        )
    misplaced = [x for n, x in zip(shape, y[1], strict=True) if n > 1 and x % y[2]]
    if y[0] % y[2] or misplaced:
        raise LayoutError(
            f"Y: {op.name} writes {y[2]}-byte elements; expected an address and strides that are"
            f" multiples of it, not strides {y[1]} at an address of {y[0]} modulo {_ALIGNMENT}"
        )


def _extent(axes: list[Axis], stream: Stream, itemsize: int) -> tuple[int, int]:
    spans = [axis.step(stream) * (axis.count - 1) for axis in axes]
    return sum(min(0, span) for span in spans), sum(max(0, span) for span in spans) + itemsize - 1


def _candidates(
    op: Op,
    axes: list[Axis],
    size_in: int,
    size_out: int,
    places: tuple[int, int, int],
    has_b: bool,
    geometry: Geometry,
) -> list[_Candidate]:
    """Every innermost loop that the circuit can walk. Dense runs come first; one always can."""
    if op in LOGIC_OPS:
        # Logic acts on bytes: an element is one more axis, which merges like any other.
        one = (1, int(has_b), 1)
        merged = merge([*axes, Axis(size_in, *one)])
        bytewise = next(axis for axis in merged if (axis.a, axis.b, axis.y) == one)
        axes = [axis for axis in merged if axis is not bytewise]
        size_in = size_out = bytewise.count
        result = [_Candidate(bytewise, tuple(axes), 1, 1)]
    else:
        axes = merge(axes)
        single = Axis(1, size_in, size_in if has_b else 0, size_out)
        result = [_Candidate(single, tuple(axes), size_in, size_out)]
    elements_allowed = size_in in _LANES and size_out in _LANES
    for axis in axes:
        modes = (
            _mode(axis.a, size_in),
            _mode(axis.b, size_in) if has_b else Mode.DENSE,
            _mode(axis.y, size_out),
        )
        candidate = _Candidate(
            axis, tuple(x for x in axes if x is not axis), size_in, size_out, *modes
        )
        dense = set(modes) == {Mode.DENSE}
        if dense or (elements_allowed and _walkable(candidate, places, geometry)):
            result.append(candidate)
    return result


def _mode(step: int, size: int) -> Mode:
    if step == size:
        return Mode.DENSE
    return Mode.STRIDED if step else Mode.REPEAT


def _walkable(candidate: _Candidate, places: tuple[int, int, int], geometry: Geometry) -> bool:
    """Whether the circuit can walk a run that is not dense on every stream."""
    size_in, size_out = candidate.size_in, candidate.size_out
    modes = (candidate.mode_a, candidate.mode_b, candidate.mode_y)
    if not (
        set(modes) <= geometry.modes
        and {_LANES[size_in], _LANES[size_out]} <= geometry.lanes
        and max(size_in, size_out) <= geometry.data_bytes
    ):
        return False
    axes = (candidate.run, *candidate.others)
    aligned = (
        candidate.mode_a is Mode.DENSE or _aligned(places[0], [x.a for x in axes], size_in),
        candidate.mode_b is Mode.DENSE or _aligned(places[1], [x.b for x in axes], size_in),
        _aligned(places[2], [x.y for x in axes], size_out),
    )
    return all(aligned)


def _aligned(place: int, steps: list[int], size: int) -> bool:
    return place % size == 0 and all(step % size == 0 for step in steps)


def _blocks(candidate: _Candidate, geometry: Geometry) -> list[Block]:
    longest = ((1 << geometry.length_bits) - 1) // max(candidate.size_in, candidate.size_out)
    return blocks(
        candidate.run,
        candidate.others,
        longest_run=longest,
        most_iterations=(1 << geometry.count_bits) - 1,
        loops=geometry.loops,
    )


def _cost(
    cut: list[Block], templates: list[Command], places: tuple[int, int, int], geometry: Geometry
) -> tuple[int, int, bool]:
    """Estimated cycles; then loops; then whether Y is scattered, which is the dearest walk."""
    total = 0
    for block, template in zip(cut, templates, strict=True):
        busy = beats(template.moved(*places, fence=False), geometry)
        total += block.commands * (_COMMAND_COST + busy)
    loops = max(len(block.loops) for block in cut)
    return total, loops, templates[0].y.mode is not Mode.DENSE


def _template(
    op: Op, candidate: _Candidate, block: Block, has_b: bool, saturate: bool, arithmetic: bool
) -> Command:
    size = candidate.size_in
    return Command(
        op=op,
        lane=_LANES[size],
        out_lane=_LANES[candidate.size_out],
        run=block.run,
        a=_walk(candidate, block, "a", candidate.mode_a, size),
        b=_walk(candidate, block, "b", candidate.mode_b, size) if has_b else None,
        y=_walk(candidate, block, "y", candidate.mode_y, candidate.size_out),
        counts=tuple(axis.count for axis in block.loops),
        saturate=saturate,
        arithmetic=arithmetic,
    )


def _walk(candidate: _Candidate, block: Block, stream: Stream, mode: Mode, size: int) -> Walk:
    stride = candidate.run.step(stream) if mode is Mode.STRIDED else 0
    # From the first address that the loops inside generate to the last.
    inside = stride * (block.run - 1)
    highest = max(0, inside) + (block.run if mode is Mode.DENSE else 1) * size - 1
    jumps = []
    for axis in block.loops:
        step = axis.step(stream)
        jumps.append(step - inside)
        inside += step * (axis.count - 1)
        highest += max(0, step * (axis.count - 1))
    base = block.offset(stream)
    return Walk(base, base + highest, mode, stride, tuple(jumps))
