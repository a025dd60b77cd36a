"""Every operation on every width of elements and kind of layout; row sums and searches."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import BIT_OPS, SHIFT_OPS, Lane, Mode, Op

from .. import reference
from ..api import Device
from ..errors import CheckFailed
from ..lowering import Options
from .arena import Arena, PlacedTensor, Tensor
from .session import Session, plural

_SIZES: Final = tuple(lane.bytes for lane in Lane)

_Layout = tuple[str, tuple[Tensor, ...]]
"""Name of a layout, and the tensors A, B (if the operation reads B) and Y."""

_KINDS: Final = {
    "gathered": "strided",
    "scattered": "strided",
    "turned": "strided",
    "broadcast": "repeated",
    "rows with gaps": "dense",
    "4 dimensions": "strided",
}
"""Kinds of layouts in the summary, where the kind is not the name."""


def check_operation(session: Session, op: Op) -> str:
    """Compare random tensors with the NumPy model, all bytes around them included."""
    lanes = {lane.bytes for lane in session.geometry.lanes}
    sizes = [size for size in _SIZES if not op.splits_lanes or size in lanes]
    kinds: dict[str, None] = {}
    arena = Arena(session)
    for number, size in enumerate(sizes):
        for out in (1, 4) if op.counts else (size,):
            for name, tensors in layouts(session, op, size, out, quick=session.quick):
                if (placed := arena.reserve(tensors)) is not None:
                    add_operation(session, arena, op, name, placed)
                    kinds[_KINDS.get(name, name)] = None
        session.progress((number + 1) / len(sizes))
    arena.run()
    widths = ", ".join(str(8 * size) for size in sizes)
    return f"{plural(arena.done, 'tensor')} of {widths} bits: {', '.join(kinds)}"


def add_operation(
    session: Session, arena: Arena, op: Op, name: str, placed: list[PlacedTensor]
) -> None:
    """Add ``op`` on ``placed``, the tensors of the layout ``name``, to ``arena``."""
    a, b, y = placed[0], placed[1] if op.reads_b else None, placed[-1]
    if name == "in place":
        y = a
    for x in placed[:-1]:
        _set_edges(session, x, arena)
    text = f"{op.name} of {8 * a.itemsize} bits, {name}, shape {list(a.shape)}"
    if op in SHIFT_OPS and b is not None:
        _set_counts(session, b, arena)
    options = _options(session, op)
    text += "".join(f", {name}" for name, is_set in options.flags.items() if is_set)
    arena.add(op, a, b, y, text, options)


def _options(session: Session, op: Op) -> Options:
    """Return random options that have an effect on ``op``."""
    first, second = (bool(x) for x in session.random.integers(0, 2, 2))
    if op.counts:
        return Options.of(test=first, negate=first and second)
    return Options.of(
        saturate=op in SHIFT_OPS and first, arithmetic=op is Op.SHIFT_RIGHT and second
    )


def _set_edges(session: Session, x: PlacedTensor, arena: Arena) -> None:
    """Set some elements to all bits, none, the lowest and the highest, which noise has seldom."""
    ones = (1 << 8 * x.itemsize) - 1
    edges = (ones, 0, 1, ones // 2 + 1)
    elements = x.of(arena.memory)
    for index in np.ndindex(elements.shape):
        if session.random.random() < 0.2:
            elements[index] = edges[session.random.integers(0, len(edges))]


def _set_counts(session: Session, b: PlacedTensor, arena: Arena) -> None:
    """Set most counts to 0 to twice the width; a few stay of any size."""
    counts = b.of(arena.memory)
    for index in np.ndindex(counts.shape):
        if session.random.random() < 0.9:
            counts[index] = session.random.integers(0, 16 * b.itemsize + 1)


def _packed(
    session: Session, shape: tuple[int, ...], item: int, *, fixed: int = 1, off: int = -1
) -> Tensor:
    """Return a tensor without gaps, which begins ``off`` bytes after the start of a beat.

    ``off`` -1: a random multiple of ``fixed`` less than a beat.
    """
    strides = [item]
    for count in shape[:0:-1]:
        strides.insert(0, strides[0] * count)
    skip = int(session.random.integers(0, session.geometry.data_bytes)) if off < 0 else off
    return Tensor(shape, tuple(strides), item, 64, skip - skip % fixed)


def _stepped(shape: tuple[int, ...], steps: tuple[int, ...], item: int) -> Tensor:
    """Return an aligned tensor with ``steps`` in elements, so that runs can be strided."""
    return Tensor(shape, tuple(step * item for step in steps), item, 64, 0)


def layouts(
    session: Session, op: Op, size: int, out: int, *, quick: bool = False
) -> Iterator[_Layout]:
    """Yield the layouts of A, B and Y that the circuit has modes for."""
    random, modes = session.random, session.geometry.modes
    # Results of shifts and counts are aligned to their elements; all else is not.
    align = out if op.splits_lanes else 1
    inputs = 2 if op.reads_b else 1

    def all_of(a: Tensor, b: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (a, b, y) if inputs == 2 else (a, y)

    packed, stepped = partial(_packed, session), _stepped
    line = (int(random.integers(1, 24 if quick else 60)),)
    yield "dense", all_of(packed(line, size), packed(line, size), packed(line, out, fixed=align))
    if not quick:
        line = (int(random.integers(8, 32)),)
        aligned = packed(line, size, off=0)
        yield "dense", all_of(aligned, aligned, packed(line, out, off=0))
    if Mode.STRIDED in modes:
        line = (int(random.integers(2, 20)),)
        gather = stepped(line, (int(random.integers(2, 5)),), size)
        back = stepped(line, (-int(random.integers(1, 4)),), size)
        scatter = stepped(line, (int(random.integers(2, 5)),), out)
        if not quick:
            yield "gathered", all_of(back, gather, packed(line, out, off=0))
        yield "scattered", all_of(gather, back, scatter)
    if Mode.REPEAT in modes:
        shape = (int(random.integers(2, 5)), int(random.integers(2, 12)))
        one = stepped(shape, (1, 0), size)
        row = stepped(shape, (0, 1), size)
        whole = packed(shape, size, off=0)
        if not quick:
            yield "repeated", all_of(one, whole, packed(shape, out, off=0))
        first = one if inputs == 1 else whole
        yield "broadcast", all_of(first, row if quick else one, packed(shape, out, off=0))
    if quick:
        return
    shape = (int(random.integers(2, 5)), int(random.integers(2, 9)))
    a, b, y = (
        Tensor(shape, (sign * (shape[1] * item + gap - gap % fixed), item), item, fixed, 0)
        for item, fixed in ((size, 1), (size, 1), (out, align))
        for gap, sign in [(int(random.integers(0, 7)), int(random.choice((-1, 1))))]
    )
    yield "rows with gaps", all_of(a, b, y)
    turned = stepped(shape, (1, shape[0]), size)
    yield "turned", all_of(turned, packed(shape, size), packed(shape, out, off=0))
    box = tuple(int(x) for x in random.integers(1, 4, 4))
    steps, step = [0] * len(box), 1
    for axis in random.permutation(len(box)):
        steps[axis] = step
        step *= box[axis]
    mixed = stepped(box, tuple(steps), size)
    yield "4 dimensions", all_of(mixed, packed(box, size), stepped(box, tuple(steps), out))
    if size == out and not op.counts:
        line = (int(random.integers(1, 40)),)
        here = packed(line, size, fixed=align)
        yield "in place", all_of(here, packed(line, size), here)


_BY_SIMPLICITY: Final = (Op.COPY, Op.NOT, Op.XOR, Op.OR, Op.AND, Op.XNOR, Op.NOR, Op.NAND)


def check_dma(session: Session) -> str:
    """Check runs of up to five beats, from every byte of a beat to every byte of a beat."""
    has = session.geometry
    op = next((op for op in (*_BY_SIMPLICITY, *sorted(BIT_OPS)) if op in has.ops), Op.COPY)
    lanes = sorted(lane.bytes for lane in has.lanes)
    item = lanes[0] if op.splits_lanes else 1
    out = 1 if op.counts else item
    beat = has.data_bytes
    step = 3 if session.quick else 1
    offsets = [(a, y) for a in range(0, beat, step) for y in range(0, beat, step)]
    if beat > 16 and not session.quick:
        # As many as 16 x 16, spread over the beat.
        chosen = session.random.choice(len(offsets), 256, replace=False)
        offsets = [offsets[index] for index in sorted(chosen.tolist())]
    arena, lengths = Arena(session), set()
    for number, (from_a, to_y) in enumerate(offsets):
        count = int(session.random.integers(1, 5 * beat // item + 1))
        tensors = [
            Tensor((count,), (item,), item, 64, from_a - from_a % item),
            *[Tensor((count,), (item,), item, 64, beat - 1 - from_a)] * op.reads_b,
            Tensor((count,), (out,), out, 64, to_y - to_y % out),
        ]
        if (placed := arena.reserve(tensors)) is None:
            continue
        lengths.add(count)
        b = placed[1] if op.reads_b else None
        name = f"{op.name} of {count} elements from byte {from_a} to byte {to_y} of a beat"
        arena.add(op, placed[0], b, placed[-1], name)
        session.progress((number + 1) / len(offsets))
    arena.run()
    return (
        f"{plural(arena.done, 'run')} of {min(lengths)} to {max(lengths)} elements at all offsets,"
        f" by {op.name}; guard bytes intact"
    )


ROUNDS, QUICK_ROUNDS = 32, 16
"""Submissions of random tensors, each of as many as fit, and those of a quick validation."""


def check_overlap(session: Session) -> str:
    """Check random tensors of all operations, as many as fit, in one submission without FENCE."""
    random, has = session.random, session.geometry
    arena = Arena(session)
    rounds = QUICK_ROUNDS if session.quick else ROUNDS
    for number in range(rounds):
        while True:
            op = Op(random.choice(sorted(BIT_OPS & has.ops)))
            sizes = [lane.bytes for lane in Lane if not op.splits_lanes or lane in has.lanes]
            size = int(random.choice(sizes))
            out = int(random.choice((1, 4))) if op.counts else size
            choices = list(layouts(session, op, size, out))
            name, tensors = choices[random.integers(0, len(choices))]
            placed = arena.try_reserve(tensors)
            if placed is None:
                break
            add_operation(session, arena, op, name, placed)
        arena.run(together=True)
        session.progress((number + 1) / rounds)
    return f"{plural(arena.done, 'tensor')} by commands that do not wait for each other"


_ROWS: Final = 5

_Rows = NDArray[np.unsignedinteger]
_Sums = Callable[[_Rows, _Rows], NDArray[np.generic]]


def check_sums(session: Session) -> str:
    """Compare sums of rows of many lengths, at all offsets, with the NumPy model."""
    device, item = Device(session.driver), min(session.geometry.lanes).bytes
    size = session.geometry.data_bytes // item or 1
    lengths = (1, size + 1, size + 2, 3 * size - 1)
    done = 0
    for number, length in enumerate(lengths):
        a, b = (_rows(session, length, item) for _ in range(2))
        for name, measure, expected in _sums(session, device, a, b):
            got = measure(a, b)
            if not np.array_equal(got, expected):
                raise CheckFailed(
                    f"{name} of {_ROWS} rows of {length * item} bytes: {got.tolist()};"
                    f" expected {expected.tolist()}"
                )
            done += _ROWS
        session.progress((number + 1) / len(lengths))
    return f"{done} sums of rows of {min(lengths) * item} to {max(lengths) * item} bytes"


def check_search(session: Session) -> str:
    """Compare a search of more rows than the array holds, many of them equal, with NumPy."""
    array = session.geometry.search
    assert array is not None
    device, random = Device(session.driver), session.random
    rows = random.integers(0, 2, (3 * array.units + 1, array.row_bytes), np.uint8)
    queries = random.integers(0, 2, (min(array.queries, 9), array.row_bytes), np.uint8)
    distances = reference.cardinality(queries[:, None] ^ rows)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : array.nearest]
    _, found = device.search(queries, rows, nearest.shape[1])
    if not np.array_equal(found, nearest):
        query = int((found != nearest).any(axis=1).argmax())
        raise CheckFailed(
            f"rows nearest to query {query}: {found[query].tolist()};"
            f" expected {nearest[query].tolist()}"
        )
    where = f"{len(rows)} rows of {8 * array.row_bytes} bits"
    return f"the {nearest.shape[1]} nearest to each of {len(queries)} queries in {where}"


def _rows(session: Session, length: int, item: int) -> _Rows:
    """Return rows of noise: ``length`` elements of ``item`` bytes, out of longer rows."""
    skip = int(session.random.integers(0, 8))
    noise = session.random.integers(0, 256, (_ROWS, (length + 9) * item), np.uint8)
    return noise.view(f"<u{item}")[:, skip : skip + length]


def _sums(
    session: Session, device: Device, a: _Rows, b: _Rows
) -> Iterator[tuple[str, _Sums, NDArray[np.generic]]]:
    """Yield the sums of ``a`` and ``b`` that the device has operations for, and their results."""
    has, count = session.geometry.ops, reference.cardinality
    if Op.COUNT in has:
        yield "cardinality", lambda a, _: device.cardinality(a), count(a)
    if Op.COUNT_XOR in has:
        yield "hamming", device.hamming, count(a ^ b)
    if {Op.COUNT_AND, Op.COUNT_OR} <= has:
        either = count(a | b)
        yield "jaccard", device.jaccard, count(a & b) / np.where(either == 0, 1, either)
