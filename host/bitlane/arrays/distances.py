"""How much the bits of arrays differ or have in common, along axes: counts, and their quotient.

The device counts and adds up; the host adds what does not fit into one sum, and divides.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bitlane_rtl.abi import Op

from ..streaming.eager import compute_sums
from ..streaming.operands import AnyArray, as_array, result_shape
from ..streaming.promotion import as_pair
from ..streaming.transfer import rows_of
from .base import Base, operand
from .elementwise import Axes, chosen_axes, counted, on_device, operate, sum_type, summed
from .transfers import download
from .value import Home, Value, compute

_COUNTS: Final = {op.counted: op for op in Op if op.counts}
_UINT8: Final = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class Along:
    """What is added up, and into what: axes, the type of sums, and whether the axes stay."""

    axis: Axes
    dtype: DTypeLike | None = None
    keepdims: bool = False


def ones(home: Home, op: Op, operands: tuple[Any, ...], along: Along) -> Any:
    """How many bits along an axis are 1 of what ``op``, COPY, AND, OR or XOR, gives.

    An array on ``home`` if an operand is one, else one of NumPy's. Raises what ``Device`` does.
    """
    home.expect_open()
    arrays = [x for x in operands if isinstance(x, Base)]
    if arrays:
        return type(arrays[0])(_pending(home, op, operands, along))
    return _counted_here(home, op, operands, along)


def jaccard(home: Home, a: Any, b: Any, along: Along) -> NDArray[np.float64]:
    """``ones`` of AND by those of OR; 0 where both are 0."""
    home.expect_open()
    both = (Op.AND, Op.OR)
    if isinstance(a, Base) or isinstance(b, Base):
        values = [_pending(home, op, (a, b), along) for op in both]
        compute(*values)
        shared, either = (download(value) for value in values)
    else:
        wide = replace(along, dtype=np.uint64)
        shared, either = (_counted_here(home, op, (a, b), wide) for op in both)
    result = np.zeros(shared.shape)
    np.divide(shared, either, out=result, where=either != 0)
    return result


def _pending(home: Home, op: Op, operands: tuple[Any, ...], along: Along) -> Value:
    given = [operand(name, x) for name, x in zip("ab", operands, strict=False)]
    if op.reads_b:
        value = operate(home, op, *given, encoding=True)
    else:
        value = on_device(home, "a", given[0])
    return summed(counted(value, _UINT8), along.axis, along.dtype, keep=along.keepdims)


def _counted_here(home: Home, op: Op, operands: tuple[Any, ...], along: Along) -> AnyArray:
    if op.reads_b:
        first, second, wanted = as_pair(op, operands[0], operands[1], "safe")
        arrays = [first, second]
    else:
        arrays = [as_array("a", operands[0])]
        wanted = arrays[0].dtype
    shape = result_shape(arrays[0], arrays[-1])
    axes = chosen_axes(along.axis, len(shape))
    kind = sum_type(along.dtype, 8 * wanted.itemsize * prod(shape[axis] for axis in axes))
    sums: AnyArray
    if 0 in shape:
        sums = np.zeros([n for axis, n in enumerate(shape) if axis not in axes])
    else:
        geometry = home.driver.geometry
        inputs = [
            rows_of(np.broadcast_to(x, shape), axes, wanted.itemsize, geometry) for x in arrays
        ]
        sums = compute_sums(home.driver, _COUNTS[op], inputs, wanted)
    if along.keepdims:
        sums = np.expand_dims(sums, axes)
    return sums.astype(kind)
