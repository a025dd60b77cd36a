"""Distances between arrays of bits along axes: counts of ones, and their quotient.

The device counts and adds up; the host adds the sums of rows that are too long for one, and
divides.
"""

from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.axes import chosen_axes
from ..arguments.operands import as_array, result_shape
from ..arguments.promotion import as_pair
from ..arguments.reductions import Reduction, sum_type
from ..streaming.eager import compute_sums
from ..streaming.transfer import rows_of
from .array import Array, as_operand
from .elementwise import as_value, elementwise, sum_counts
from .transfers import download
from .value import DeviceLike, Value, compute

_COUNTS: Final = {op.counted: op for op in Op if op.counts}


def count_ones(device: DeviceLike, op: Op, operands: tuple[Any, ...], reduction: Reduction) -> Any:
    """Count the ones along axes in the result of ``op``: COPY, AND, OR or XOR.

    Returns an array on ``device`` if an operand is one, else one of NumPy's. Raises what
    ``Device`` does.
    """
    device.expect_open()
    if any(isinstance(x, Array) for x in operands):
        return Array(_sum_on_device(device, op, operands, reduction))
    return _sum_host_arrays(device, op, operands, reduction)


def jaccard(device: DeviceLike, a: Any, b: Any, reduction: Reduction) -> NDArray[np.float64]:
    """Divide the ones of AND by the ones of OR; 0 where both are 0."""
    device.expect_open()
    both = (Op.AND, Op.OR)
    if isinstance(a, Array) or isinstance(b, Array):
        values = [_sum_on_device(device, op, (a, b), reduction) for op in both]
        compute(*values)
        shared, either = (download(value) for value in values)
    else:
        wide = replace(reduction, dtype=np.uint64)
        shared, either = (_sum_host_arrays(device, op, (a, b), wide) for op in both)
    result = np.zeros(shared.shape)
    np.divide(shared, either, out=result, where=either != 0)
    return result


def _sum_on_device(
    device: DeviceLike, op: Op, operands: tuple[Any, ...], reduction: Reduction
) -> Value:
    given = [as_operand(name, x) for name, x in zip("ab", operands, strict=False)]
    if op.reads_b:
        value = elementwise(device, op, given, encoding=True)
    else:
        value = as_value(device, "a", given[0])
    counts = elementwise(device, Op.COUNT, [value], encoding=True)
    return sum_counts(counts, reduction.axis, reduction.dtype, keep=reduction.keepdims)


def _sum_host_arrays(
    device: DeviceLike, op: Op, operands: tuple[Any, ...], reduction: Reduction
) -> AnyArray:
    if op.reads_b:
        first, second, wanted = as_pair(op, operands[0], operands[1], "safe")
        arrays = [first, second]
    else:
        arrays = [as_array("a", operands[0])]
        wanted = arrays[0].dtype
    shape = result_shape(arrays[0], arrays[-1])
    axes = chosen_axes(reduction.axis, len(shape))
    kind = sum_type(reduction.dtype, 8 * wanted.itemsize * prod(shape[axis] for axis in axes))
    sums: AnyArray
    if 0 in shape:
        sums = np.zeros([n for axis, n in enumerate(shape) if axis not in axes])
    else:
        geometry = device.driver.geometry
        inputs = [
            rows_of(np.broadcast_to(x, shape), axes, wanted.itemsize, geometry) for x in arrays
        ]
        sums = compute_sums(device.driver, _COUNTS[op], inputs, wanted)
    if reduction.keepdims:
        sums = np.expand_dims(sums, axes)
    return sums.astype(kind)
