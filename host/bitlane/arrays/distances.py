"""Distances between arrays on a device: counts of ones along axes."""

from typing import Any

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.reductions import Reduction
from .array import Array
from .elementwise import as_value, elementwise
from .operands import as_operand
from .sums import sum_ones
from .transfers import download
from .value import DeviceLike, Value, compute


def count_ones(
    device: DeviceLike, op: Op, operands: tuple[Any, ...], reduction: Reduction
) -> Array:
    """Count the ones along axes in the result of ``op``: COPY, AND, OR or XOR.

    One of ``operands`` is on ``device``. Raises as ``Device`` does.
    """
    return Array(_sum(device, op, operands, reduction))


def count_shared(device: DeviceLike, a: Any, b: Any, reduction: Reduction) -> list[AnyArray]:
    """Count the ones of AND and of OR along axes, and read both; one operand is on ``device``."""
    values = [_sum(device, op, (a, b), reduction) for op in (Op.AND, Op.OR)]
    compute(*values)
    return [download(value) for value in values]


def _sum(device: DeviceLike, op: Op, operands: tuple[Any, ...], reduction: Reduction) -> Value:
    given = [as_operand(name, x) for name, x in zip("ab", operands, strict=False)]
    if op.reads_b:
        value = elementwise(device, op, given, encoding=True)
    else:
        value = as_value(device, "a", given[0])
    return sum_ones(value, reduction.axis, reduction.dtype, keep=reduction.keepdims)
