"""Distances between arrays of the host: counts of ones along axes, and Jaccard's index of them.

The device counts and adds up; the host adds the sums of rows that are too long for one, and
divides.
"""

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
from ..driver import Driver
from .eager import compute_sums
from .transfer import rows_of

_COUNTS: Final = {op.counted: op for op in Op if op.counts}


def sum_rows(driver: Driver, op: Op, operands: tuple[Any, ...], reduction: Reduction) -> AnyArray:
    """Count the ones along axes in the result of ``op``: COPY, AND, OR or XOR.

    Raises as ``Device`` does.
    """
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
        geometry = driver.geometry
        inputs = [
            rows_of(np.broadcast_to(x, shape), axes, wanted.itemsize, geometry) for x in arrays
        ]
        sums = compute_sums(driver, _COUNTS[op], inputs, wanted)
    if reduction.keepdims:
        sums = np.expand_dims(sums, axes)
    return sums.astype(kind)


def jaccard_index(shared: AnyArray, either: AnyArray) -> NDArray[np.float64]:
    """Divide the ones of AND by the ones of OR; 0 where both are 0."""
    result = np.zeros(shared.shape)
    np.divide(shared, either, out=result, where=either != 0)
    return result
