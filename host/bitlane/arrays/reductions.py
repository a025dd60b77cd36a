"""AND, OR and XOR of all elements along axes: halves are combined until one element is left.

Expressions alone; nothing is executed here.
"""

from collections.abc import Sequence
from typing import Final

from bitlane_rtl.abi import Op

from ..expression.form import Constant, Expression, apply, broadcast, window
from ..jobs.operands import DataTypeError
from .strided import Strided, axes_of
from .value import Value

__all__ = ["reduced"]

_NOTHING: Final = {Op.AND: 0xFF, Op.OR: 0, Op.XOR: 0}
"""What no elements give: each byte of it."""


def reduced(op: Op, value: Value, axes: int | Sequence[int] | None, *, keep: bool = False) -> Value:
    """``op``, one of AND, OR and XOR, of the elements along ``axes``; of all for None.

    ``keep``: the axes stay, with one element. No elements give what changes no other: all ones
    for AND, else 0. Raises ``ShapeError``, or ``DataTypeError`` for floats.
    """
    if value.dtype.kind == "f":
        raise DataTypeError(
            f"x: data type {value.dtype}; expected integers or truth values (view its bits)"
        )
    rank = len(value.shape)
    chosen = axes_of(range(rank) if axes is None else axes, rank)
    node = value.node
    for axis in sorted(chosen, key=lambda axis: -abs(value.node.strides[axis])):
        node = _along(op, node, axis, truth=value.dtype.kind == "b")
    if not keep:
        node = _shown(node, (*(0 if axis in chosen else slice(None) for axis in range(rank)), ...))
    if all(value.shape[axis] == 1 for axis in chosen):
        # Nothing was combined: a result of its own all the same.
        node = apply(Op.COPY, node)
    return value.derived(node)


def _along(op: Op, node: Expression, axis: int, *, truth: bool) -> Expression:
    """``node`` with one element along ``axis``."""
    count = node.shape[axis]
    before = (slice(None),) * axis
    if not count:
        one = bytes([_NOTHING[op] & (1 if truth else 0xFF)]) * node.itemsize
        shape = (*node.shape[:axis], 1, *node.shape[axis + 1 :])
        return apply(Op.COPY, broadcast(Constant(one), shape))
    odd = []
    while count > 1:
        half, rest = divmod(count, 2)
        if rest:
            odd.append(_shown(node, (*before, slice(2 * half, None))))
        low = _shown(node, (*before, slice(half)))
        node = apply(op, low, _shown(node, (*before, slice(half, 2 * half))))
        count = half
    for each in odd:
        node = apply(op, node, each)
    return node


def _shown(node: Expression, key: tuple[object, ...]) -> Expression:
    part = Strided(node.shape, node.strides, node.itemsize).index(key)
    return window(node, part.offset, part.shape, part.strides)
