"""The bits of elements that can be 1: a sum takes no passes for the others."""

from collections.abc import Callable
from math import prod
from typing import Final, TypeAlias

from bitlane_rtl.abi import Op

from ..lowering import Options
from .nodes import (
    Applied,
    Constant,
    Expression,
    HostSum,
    Joined,
    Selected,
    Stored,
    Viewed,
    Widened,
)

Known: TypeAlias = Callable[[Stored], int | None]
"""Returns a mask of the bits that may be 1 in elements of a stored tensor; None for all."""

_DEEPEST: Final = 4
"""Operations that are followed: each may have two operands."""

_SUM: Final = 4
"""Bytes of a sum."""


def possible_bits(node: Expression, known: Known, depth: int = _DEEPEST) -> int:
    """Return a mask of the bits that may be 1 in elements of ``node``, as unsigned numbers."""
    every = every_bit(node.itemsize)
    if isinstance(node, Stored):
        mask = known(node)
        return every if mask is None else mask
    if isinstance(node, Constant):
        return int.from_bytes(node.content, "little")
    if not depth:
        return every
    if isinstance(node, Viewed):
        return _of_view(node, known, depth - 1)
    if isinstance(node, Widened):
        bits, narrow = possible_bits(node.source, known, depth - 1), every_bit(node.source.itemsize)
        return bits | (every ^ narrow) if node.signed and bits > narrow >> 1 else bits
    if isinstance(node, Selected):
        return possible_bits(node.source, known, depth)
    if isinstance(node, HostSum):
        return _of_host_sum(node, known, depth - 1)
    if isinstance(node, Joined):
        bits = 0
        for part in node.parts:
            bits |= possible_bits(part, known, depth - 1)
        return bits
    return _of_operation(node, known, depth - 1) if isinstance(node, Applied) else every


def every_bit(itemsize: int) -> int:
    """Return a mask of all bits of an element of ``itemsize`` bytes."""
    return (1 << 8 * itemsize) - 1


def shows_elements(offset: int, strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether an element of a view begins where one of ``itemsize`` bytes does."""
    return not any(step % itemsize for step in (offset, *strides))


def _of_view(view: Viewed, known: Known, depth: int) -> int:
    source = view.source
    every = every_bit(view.itemsize)
    narrow = view.itemsize <= source.itemsize
    if not (narrow and shows_elements(view.offset, view.strides, source.itemsize)):
        return every
    return possible_bits(source, known, depth) & every


def _of_operation(node: Applied, known: Known, depth: int) -> int:
    every = every_bit(node.itemsize)
    if node.op.counts:
        return _up_to(min(_most_counted(node, known, depth), every_bit(_SUM)))
    if node.op is Op.COPY:
        return possible_bits(node.a, known, depth)
    if node.b is None or node.op not in (Op.AND, Op.OR, Op.XOR):
        return every
    first = possible_bits(node.a, known, depth)
    if node.op is Op.AND:
        return first & possible_bits(node.b, known, depth)
    return every if first == every else first | possible_bits(node.b, known, depth)


def _of_host_sum(total: HostSum, known: Known, depth: int) -> int:
    every = every_bit(total.itemsize)
    if min(total.weights) < 0:
        return every
    most = 0
    for part, weight in zip(total.parts, total.weights, strict=True):
        rows = prod(part.shape) // prod(total.shape)
        most += weight * rows * _most_counted(part, known, depth)
    return min(_up_to(most), every)


def _most_counted(count: Applied, known: Known, depth: int) -> int:
    """Return a number that no result of ``count`` exceeds, before it is taken modulo 2**32."""
    most = 8 * count.a.itemsize
    if Options.TEST in count.options:
        most = 1
    elif count.op is Op.COUNT:
        most = possible_bits(count.a, known, depth).bit_count()
    return most * prod(count.operand_shape[axis] for axis in count.summed)


def _up_to(number: int) -> int:
    """Return a mask of the bits of numbers up to ``number``."""
    return (1 << number.bit_length()) - 1
