"""Sums of elements along axes, as expressions.

The circuit adds up how many bits are 1. A sum of numbers is one such pass for each bit that may be
1 in an element; the host multiplies the few sums by the weights of the bits, and adds them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final, TypeGuard

import numpy as np
from numpy.typing import DTypeLike

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..arguments.axes import Axes, chosen_axes, reduced_axes
from ..arguments.reductions import integer_type, sum_type
from ..compiler import (
    Applied,
    Constant,
    Expression,
    Widened,
    add_on_host,
    add_up,
    apply,
    broadcast,
    possible_bits,
    window,
)
from ..driver import Geometry
from ..errors import DataTypeError
from .elementwise import add_axes, cast, index_node
from .value import Value, known_bits

_UINT32: Final = np.dtype(np.uint32)

_MOST_SUMMED: Final = 1 << 28
"""Bytes whose ones a sum of 32 bits counts."""


# --- sums of numbers, and of ones -----------------------------------------------------------------


def sum_elements(value: Value, axes: Axes, dtype: DTypeLike | None, *, keep: bool) -> Value:
    """Sum the elements of ``value`` along ``axes``, all for None, modulo the range of ``dtype``.

    ``dtype``: an integer type; by default uint64 for unsigned elements, else int64. ``keep``: the
    axes stay, with one element. Raises ``DataTypeError`` for floats, and as `reduced_axes`.
    """
    if value.dtype.kind == "f":
        raise DataTypeError(
            f"sum: data type {value.dtype}; expected integers or truth values, as floats take"
            " arithmetic (x.get().sum() adds on the host)"
        )
    default = np.uint64 if value.dtype.kind == "u" else np.int64
    kind = integer_type(default if dtype is None else dtype)
    chosen = reduced_axes(axes, len(value.shape))
    if 0 not in value.shape and all(value.shape[axis] == 1 for axis in chosen):
        node = cast(value, kind).node
        if not keep:
            key = tuple([0 if axis in chosen else slice(None) for axis in range(len(value.shape))])
            node = index_node(node, key)
        return value.derived(apply(Op.COPY, node), kind)
    node, weight = without_repeats(value.node, chosen)
    return _Sum(value, chosen, kind, keep).of(_planes(value, node, weight))


def sum_ones(value: Value, axes: Axes, dtype: DTypeLike | None, *, keep: bool) -> Value:
    """Sum how many bits are 1 in elements of ``value`` along ``axes``, as `sum_type`.

    Raises as `chosen_axes` and `sum_type`.
    """
    chosen = chosen_axes(axes, len(value.shape))
    most = 1 if value.dtype.kind == "b" else 8 * value.dtype.itemsize
    kind = sum_type(dtype, most * prod(value.shape[axis] for axis in chosen))
    node, weight = without_repeats(value.node, chosen)
    return _Sum(value, chosen, kind, keep).of([(apply(Op.COUNT, node), weight)])


@dataclass(frozen=True, slots=True)
class _Sum:
    """The sum along ``axes`` of counts made from ``value``, as elements of type ``kind``."""

    value: Value
    axes: tuple[int, ...]
    kind: np.dtype[Any]
    keep: bool

    def of(self, counts: Sequence[tuple[Applied, int]]) -> Value:
        """Return the sum of ``counts``, each times its weight."""
        value, axes = self.value, self.axes
        left = tuple([n for axis, n in enumerate(value.shape) if axis not in axes])
        shape = left
        if self.keep:
            shape = tuple([1 if axis in axes else n for axis, n in enumerate(value.shape)])
        if 0 in value.shape or not counts:
            zeros = broadcast(Constant(bytes(self.kind.itemsize)), shape)
            return value.derived(apply(Op.COPY, zeros), self.kind)
        parts, weights = [], []
        for count, weight in counts:
            made = sum_rows(count, axes, value.device.driver.geometry)
            parts += made
            weights += [weight] * len(made)
        if weights == [1] and parts[0].shape == left:
            sums = value.derived(parts[0], _UINT32)
            return cast(add_axes(sums, axes) if self.keep else sums, self.kind)
        total = add_on_host(parts, weights, shape, self.kind.itemsize)
        return value.derived(total, self.kind)


def without_repeats(node: Expression, axes: Sequence[int]) -> tuple[Expression, int]:
    """Return ``node`` with one of the elements that repeat along ``axes``, and their number."""
    repeated = [axis for axis in axes if node.shape[axis] > 1 and not node.strides[axis]]
    if not repeated or 0 in node.shape:
        return node, 1
    key = [slice(1) if axis in repeated else slice(None) for axis in range(len(node.shape))]
    return index_node(node, tuple(key)), prod(node.shape[axis] for axis in repeated)


def _planes(value: Value, node: Expression, weight: int) -> list[tuple[Applied, int]]:
    """Return what to count in ``node``, elements of the type of ``value``, and its weights."""
    if value.dtype.kind == "b":
        return [(apply(Op.COUNT, node), weight)]
    node, signed = _peel(node, signed=value.dtype.kind == "i")
    if isinstance(node, Applied) and node.op.counts and not (node.summed or node.cached):
        return [(node, weight)]
    bits = possible_bits(node, known_bits)
    if bits == 1:
        return [(apply(Op.COUNT, node), weight)]
    size, sign = node.itemsize, 8 * node.itemsize - 1
    node = _without_mask(node)
    width = widest_lane(size, value.device.driver.geometry)
    windows = [
        node if width == size else window(node, first, node.shape, node.strides, width)
        for first in range(0, size, width)
    ]
    planes = []
    for bit in range(8 * size):
        if bits >> bit & 1:
            place, inside = divmod(bit, 8 * width)
            mask = Constant((1 << inside).to_bytes(width, "little"))
            ones = apply(Op.COUNT, apply(Op.AND, windows[place], mask))
            negative = signed and bit == sign
            planes.append((ones, weight * (-(1 << bit) if negative else 1 << bit)))
    return planes


def _peel(node: Expression, *, signed: bool) -> tuple[Expression, bool]:
    """Return the node whose numbers ``node`` copies or widens, and whether they are signed.

    A view is copied first, as its elements may lie apart.
    """
    while isinstance(node, Applied | Widened) and not node.cached:
        if isinstance(node, Applied):
            if node.op is not Op.COPY or not isinstance(node.a, Applied | Widened):
                break
            node = node.a
        else:
            if node.signed and not signed and node.itemsize < 8:
                break
            signed = node.signed
            node = node.source
    return node, signed


def _without_mask(node: Expression) -> Expression:
    """Return the operand of ``node`` if that is an AND with a constant, else ``node``.

    The sum does not need the AND: it counts only bits that the constant leaves.
    """
    if isinstance(node, Applied) and node.op is Op.AND and not node.cached:
        assert node.b is not None
        for x, y in ((node.a, node.b), (node.b, node.a)):
            if isinstance(y, Constant) and x.shape == node.shape:
                return x
    return node


def widest_lane(size: int, geometry: Geometry) -> int:
    """Return the bytes, ``size`` at most, of the widest elements that the circuit can mask."""
    sizes = [lane.bytes for lane in geometry.lanes if lane.bytes <= min(size, geometry.data_bytes)]
    return max(sizes, default=size)


# --- rows of any length --------------------------------------------------------------------------


def sum_rows(count: Applied, axes: tuple[int, ...], geometry: Geometry) -> list[Applied]:
    """Return sums of ``count``, not summed, along ``axes``, of as much as one run of the circuit.

    The axes of a part of longer rows are the remaining ones, and behind these one for each of
    ``axes``.
    """
    longest = min(geometry.longest_run, _MOST_SUMMED) // _widest(count)
    tiles = list(_cut(count, axes, max(1, longest)))
    if len(tiles) == 1 and set(tiles[0].rows) == {1}:
        return [add_up(count, axes)]
    summed = tuple(range(len(count.shape), len(count.shape) + len(axes)))
    return [add_up(tile.of(count), summed) for tile in tiles]


@dataclass(frozen=True, slots=True)
class _Tile:
    """A part of elements, with rows along the axes to be summed."""

    axes: tuple[int, ...]
    start: tuple[int, ...]
    """First element along each of the axes."""
    rows: tuple[int, ...]
    """Rows along each of the axes."""
    width: tuple[int, ...]
    """Elements of a row along each of the axes."""

    def of(self, count: Applied) -> Applied:
        """Return ``count`` of this part alone: the other axes, then rows, then their elements."""
        parts = [self._of_operand(broadcast(x, count.shape)) for x in count.operands]
        return apply(count.op, *parts, itemsize=count.itemsize, options=count.options)

    def _of_operand(self, node: Expression) -> Expression:
        """Return this part of ``node``; logic and tests are done on the part of their operands."""
        if _is_fused(node):
            parts = [self._window(broadcast(x, node.shape)) for x in node.operands]
            itemsize = node.itemsize if node.op.counts else None
            return apply(node.op, *parts, itemsize=itemsize, options=node.options)
        return self._window(node)

    def _window(self, node: Expression) -> Expression:
        steps = [node.strides[axis] for axis in self.axes]
        offset = sum(first * step for first, step in zip(self.start, steps, strict=True))
        others = [axis for axis in range(len(node.shape)) if axis not in self.axes]
        rows = [step * width for step, width in zip(steps, self.width, strict=True)]
        return window(
            node,
            offset,
            (*(node.shape[axis] for axis in others), *self.rows, *self.width),
            (*(node.strides[axis] for axis in others), *rows, *steps),
        )


def _cut(count: Applied, axes: tuple[int, ...], longest: int) -> Iterator[_Tile]:
    """Yield the fewest tiles whose rows have ``longest`` elements at most."""
    room = longest
    ranges: dict[int, list[tuple[int, int, int]]] = {}
    for axis in sorted(axes, key=lambda axis: abs(count.strides[axis])):
        elements = min(count.shape[axis], room)
        room = max(1, room // elements)
        times, rest = divmod(count.shape[axis], elements)
        ranges[axis] = [(0, times, elements)]
        if rest:
            ranges[axis].append((times * elements, 1, rest))
    for part in product(*(ranges[axis] for axis in axes)):
        start, rows, width = (tuple([each[field] for each in part]) for field in range(3))
        yield _Tile(axes, start, rows, width)


def _is_fused(node: Expression) -> TypeGuard[Applied]:
    """Return whether a sum may take the operands of ``node`` in its place."""
    if not isinstance(node, Applied) or node.summed or node.cached:
        return False
    return node.op in LOGIC_OPS or node.op.counts


def _widest(node: Expression) -> int:
    """Return the bytes of the widest element of which a sum over ``node`` may be made."""
    waiting, known, widest = [node], {node}, 0
    while waiting:
        each = waiting.pop()
        widest = max(widest, each.itemsize)
        if _is_fused(each):
            waiting += (x for x in each.operands if x not in known)
            known.update(each.operands)
    return widest
