"""What lowering finds out about views wherever they are, and its commands once they are somewhere.

Works on addresses and strides only: it never sees data, and never talks to a device.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

from bitlane_rtl.abi import Lane, Mode, Op

from ..driver.commands import Command, Walk
from ..driver.geometry import Geometry
from ..errors import LayoutError, UnsupportedError
from .loopnest import Axis, Block, Stream, blocks

LANES: Final = {lane.bytes: lane for lane in Lane}

ALIGNMENT: Final = 8
"""The widest element in bytes: what addresses are compared modulo."""

Relative: TypeAlias = tuple[int, tuple[int, ...], int]
"""A view wherever it is: its address modulo `ALIGNMENT`, its strides, its element's bytes."""


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
class Lowered:
    """What is found out about views whose first elements stand at 0, 0 and 0."""

    blocks: tuple[Block, ...]
    templates: tuple[Command, ...]
    extents: tuple[tuple[int, int] | None, ...]
    """First and last byte of A, B and Y."""


@dataclass(frozen=True, slots=True)
class Route:
    """One way to walk: an innermost axis and how each stream walks it."""

    run: Axis
    others: tuple[Axis, ...]
    size_in: int
    """Bytes of an element of A and B."""
    size_out: int
    mode_a: Mode = Mode.DENSE
    mode_b: Mode = Mode.DENSE
    mode_y: Mode = Mode.DENSE


def relative(view: View) -> Relative:
    """What a plan has to know of a view."""
    return view.address % ALIGNMENT, view.strides, view.itemsize


def axes_of(shape: Sequence[int], streams: Sequence[Relative | None]) -> list[Axis]:
    """The axes of several elements, as A, B and Y walk them."""
    still = (0,) * len(shape)
    steps = [still if stream is None else stream[1] for stream in streams]
    return [Axis(*numbers) for numbers in zip(shape, *steps, strict=True) if numbers[0] > 1]


def extents_of(
    axes: Sequence[Axis], streams: Sequence[Relative | None]
) -> tuple[tuple[int, int] | None, ...]:
    """The first and the last byte of A, B and Y whose first elements are at 0."""
    sizes = [None if stream is None else stream[2] for stream in streams]
    names: tuple[Stream, ...] = ("a", "b", "y")
    return tuple(
        [
            None if size is None else _extent(axes, name, size)
            for name, size in zip(names, sizes, strict=True)
        ]
    )


def _extent(axes: Sequence[Axis], stream: Stream, size: int) -> tuple[int, int]:
    spans = [axis.step(stream) * (axis.count - 1) for axis in axes]
    return sum(min(0, span) for span in spans), sum(max(0, span) for span in spans) + size - 1


def flipped_where(
    axes: Sequence[Axis], backwards: Callable[[Axis], bool]
) -> tuple[list[Axis], tuple[int, int, int]]:
    """The axes, some of them the other way round, and where A, B and Y start then."""
    start = [0, 0, 0]
    result = []
    for axis in axes:
        if backwards(axis):
            last = axis.count - 1
            start = [
                start[0] + axis.a * last,
                start[1] + axis.b * last,
                start[2] + axis.y * last,
            ]
            axis = axis.flipped()
        result.append(axis)
    return result, (start[0], start[1], start[2])


def mode_of(step: int, size: int) -> Mode:
    """How a stream walks a run whose elements of ``size`` bytes are ``step`` bytes apart."""
    if step == size:
        return Mode.DENSE
    return Mode.STRIDED if step else Mode.REPEAT


def aligned(place: int, steps: Sequence[int], size: int) -> bool:
    """Whether ``place`` and all ``steps`` are multiples of an element."""
    return place % size == 0 and all(step % size == 0 for step in steps)


def longest_run(size: int, geometry: Geometry) -> int:
    """The most elements of a run whose wider elements have ``size`` bytes."""
    return ((1 << geometry.length_bits) - 1) // size


def expect_views(
    op: Op, shape: Sequence[int], streams: Sequence[Relative | None], geometry: Geometry
) -> None:
    """Raises ``UnsupportedError`` without ``op``, ``LayoutError`` for views that it cannot have."""
    if op not in geometry.ops:
        has = ", ".join(sorted(x.name for x in geometry.ops))
        raise UnsupportedError(f"op: this device was built without {op.name}; it has {has}")
    a, b, _ = streams
    if a is None or (op.reads_b and b is None):
        raise LayoutError(f"B: {op.name} has two operands; expected a view")
    for name, stream in zip("ABY", streams, strict=True):
        if stream is None:
            continue
        if len(stream[1]) != len(shape):
            raise LayoutError(f"{name}: strides {stream[1]} do not fit the shape {shape}")
        wanted = (1, 4) if op.counts and name == "Y" else (a[2],)
        if stream[2] not in LANES or stream[2] not in wanted:
            raise LayoutError(
                f"{name}: itemsize {stream[2]}; expected {wanted} bytes for {op.name}"
            )


def expect_lane(op: Op, size: int, geometry: Geometry) -> None:
    """Raises ``UnsupportedError`` if the circuit does not split beats into such elements."""
    if LANES[size] not in geometry.lanes:
        has = ", ".join(str(lane.bits) for lane in sorted(geometry.lanes))
        raise UnsupportedError(
            f"op: this device has no {8 * size}-bit lanes for {op.name}; it has {has}"
        )


def expect_aligned(op: Op, shape: Sequence[int], y: Relative) -> None:
    """Raises ``LayoutError`` unless every element of Y is at a multiple of its size."""
    place, strides, size = y
    misplaced = [x for n, x in zip(shape, strides, strict=True) if n > 1 and x % size]
    if place % size or misplaced:
        raise LayoutError(
            f"Y: {op.name} writes {size}-byte elements; expected an address and strides that are"
            f" multiples of it, not strides {strides} at an address of {place} modulo {ALIGNMENT}"
        )


def cut(candidate: Route, geometry: Geometry) -> list[Block]:
    """The fewest boxes of elements that commands can walk."""
    sums = candidate.mode_y is Mode.SUM
    size = candidate.size_in if sums else max(candidate.size_in, candidate.size_out)
    return blocks(
        candidate.run,
        candidate.others,
        longest_run=longest_run(size, geometry),
        most_iterations=(1 << geometry.count_bits) - 1,
        loops=geometry.loops,
    )


def template(
    op: Op,
    candidate: Route,
    block: Block,
    has_b: bool,
    flags: tuple[bool, bool] = (False, False),
) -> Command:
    """The command for ``block``. ``flags``: whether shifts saturate, and are arithmetic."""
    size = candidate.size_in
    return Command(
        op=op,
        lane=LANES[size],
        out_lane=LANES[candidate.size_out],
        run=block.run,
        a=_walk(candidate, block, "a", candidate.mode_a, size),
        b=_walk(candidate, block, "b", candidate.mode_b, size) if has_b else None,
        y=_walk(candidate, block, "y", candidate.mode_y, candidate.size_out),
        counts=tuple(axis.count for axis in block.loops),
        saturate=flags[0],
        arithmetic=flags[1],
    )


def _walk(candidate: Route, block: Block, stream: Stream, mode: Mode, size: int) -> Walk:
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


def expect_inside(plan: Lowered, views: Sequence[View | None], geometry: Geometry) -> None:
    """Raises ``LayoutError`` if one of A, B and Y leaves the device's memory."""
    for name, view, bounds in zip("ABY", views, plan.extents, strict=True):
        if view is None or bounds is None:
            continue
        first, last = view.address + bounds[0], view.address + bounds[1]
        if first < geometry.memory_base or last > geometry.memory_last:
            raise LayoutError(
                f"{name}: bytes {first:#x} to {last:#x} are outside the device's memory,"
                f" {geometry.memory_base:#x} to {geometry.memory_last:#x}"
            )


def placed(plan: Lowered, a: int, b: int, y: int) -> Iterator[Command]:
    """The commands of ``plan`` for views at these addresses, the first one with a fence."""
    fence = True
    for block, command in zip(plan.blocks, plan.templates, strict=True):
        for index in product(*(range(axis.count) for axis in block.host)):
            move_a, move_b, move_y = a, b, y
            for i, axis in zip(index, block.host, strict=True):
                move_a += i * axis.a
                move_b += i * axis.b
                move_y += i * axis.y
            yield command.moved(move_a, move_b, move_y, fence=fence)
            fence = False
