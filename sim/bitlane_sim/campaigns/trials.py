"""Random trials: an operation on strided elements in a few KiB of memory, and its result.

The model is ``bitlane.reference``, on NumPy's views of the same bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane import reference
from bitlane.driver import Command, Geometry
from bitlane.lowering import Options, Streams, View, lower
from bitlane_rtl.abi import BIT_OPS, LOGIC_OPS, SHIFT_OPS, Mode, Op

from .arrays import Bytes

_PART = 4096
"""Bytes that the elements of each operand lie in."""

SIZE = 3 * _PART
"""Bytes of memory that trials take."""

_ELEMENTS = 400


@dataclass(frozen=True, slots=True)
class Trial:
    """An operation on elements from address 0 on; ``summed``: along the last axis."""

    op: Op
    shape: tuple[int, ...]
    a: View
    b: View | None
    y: View
    saturate: bool = False
    arithmetic: bool = False
    test: bool = False
    negate: bool = False
    summed: bool = False

    def commands(self, geometry: Geometry, base: int) -> Iterator[Command]:
        """Return the trial's commands, for memory from ``base`` on. Raises ``LayoutError``."""
        b = None if self.b is None else self.b.moved(base)
        y = self.y.moved(base)
        if self.summed:
            y = y._replace(strides=y.strides[:-1])
        streams = Streams(self.a.moved(base), b, y)
        options = Options.of(
            saturate=self.saturate, arithmetic=self.arithmetic, test=self.test, negate=self.negate
        )
        return lower(self.op, self.shape, streams, geometry.abilities, geometry.memory, options)

    def apply(self, memory: Bytes) -> None:
        """Apply the operation to ``memory``."""
        operands = [_window(memory, x, self.shape) for x in (self.a, self.b) if x is not None]
        result = reference.compute(
            self.op,
            *operands,
            saturate=self.saturate,
            arithmetic=self.arithmetic,
            test=self.test,
            negate=self.negate,
            count_dtype=f"<u{self.y.itemsize}",
        )
        if self.summed:
            _window(memory, self.y, self.shape)[..., 0] = result.sum(axis=-1, dtype=np.uint32)
        else:
            _window(memory, self.y, self.shape)[...] = result

    def read(self) -> Bytes:
        """The bytes that are read, as a mask of memory."""
        return _mask([x for x in (self.a, self.b) if x is not None], self.shape)

    def written(self) -> Bytes:
        """The bytes that are written, as a mask of memory."""
        return _mask([self.y], self.shape)


def _mask(views: list[View], shape: tuple[int, ...]) -> Bytes:
    mask = np.zeros(SIZE, np.uint8)
    for view in views:
        _window(mask, view, shape)[...] = (1 << 8 * view.itemsize) - 1
    return mask


def _window(memory: Bytes, view: View, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.ndarray(shape, f"<u{view.itemsize}", memory.data, view.address, view.strides)


def random_trial(random: np.random.Generator, geometry: Geometry) -> Trial:
    """A trial that ``geometry`` can do, unless its lowering says otherwise."""
    op = Op(random.choice(sorted(geometry.ops & BIT_OPS)))
    splits = op not in LOGIC_OPS
    lanes = sorted(lane.bytes for lane in geometry.lanes) if splits else [1, 2, 4, 8]
    itemsize = int(random.choice(lanes))
    summed = op.counts and Mode.SUM in geometry.modes and random.random() < 0.5
    out_size = (4 if summed else int(random.choice([1, 4]))) if op.counts else itemsize
    shape = _shape(random)
    parts = _PART * random.permutation(3)
    y_shape = (*shape[:-1], 1) if summed else shape
    y = _view(random, y_shape, out_size, int(parts[2]), aligned=splits)
    if summed:
        y = View(y.address, (*y.strides[:-1], 0), y.itemsize)
    a = _view(random, shape, itemsize, int(parts[0]))
    b = _view(random, shape, itemsize, int(parts[random.integers(2)])) if op.reads_b else None
    if not op.counts and random.random() < 0.2:
        a = y
    flags = random.random(4) < 0.5
    test = op.counts and bool(flags[2])
    return Trial(
        op,
        shape,
        a,
        b,
        y,
        saturate=op in SHIFT_OPS and bool(flags[0]),
        arithmetic=op is Op.SHIFT_RIGHT and bool(flags[1]),
        test=test,
        negate=test and bool(flags[3]),
        summed=summed,
    )


def _shape(random: np.random.Generator) -> tuple[int, ...]:
    shape = []
    left = int(random.integers(1, _ELEMENTS + 1))
    for _ in range(random.integers(1, 6)):
        most = left if random.random() < 0.5 else min(left, 9)
        shape.append(int(random.integers(1, most + 1)))
        left //= shape[-1]
    return tuple(int(n) for n in random.permutation(shape))


def _view(
    random: np.random.Generator,
    shape: tuple[int, ...],
    itemsize: int,
    start: int,
    aligned: bool | None = None,
) -> View:
    """Elements from ``start`` on: axes in any order, backwards, apart; of an input repeated.

    ``aligned``: None for an input; for an output, whether its elements are aligned.
    """
    unit = itemsize if aligned or random.random() < 0.5 else 1
    step = itemsize * int(random.choice([1, 1, 1, 2, 3]))
    strides = [0] * len(shape)
    below = 0
    for axis in random.permutation(len(shape)).tolist():
        if aligned is None and random.random() < 0.15:
            continue
        strides[axis] = step
        if random.random() < 0.3:
            strides[axis] = -step
            below += step * (shape[axis] - 1)
        step = step * shape[axis] + unit * int(random.choice([0, 0, 0, 1, 5]))
    reach = sum(abs(stride) * (n - 1) for stride, n in zip(strides, shape, strict=True)) + itemsize
    if reach > _PART:
        packed = [itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]
        strides, below, reach = packed, 0, itemsize * prod(shape)
    first = int(random.integers(0, (_PART - reach) // unit + 1)) * unit
    if random.random() < 0.5:
        first = min(first, first % 64)
    return View(start + first + below, tuple(strides), itemsize)
