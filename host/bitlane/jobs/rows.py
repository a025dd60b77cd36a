"""Arrays whose elements belong to sums, as rows that the circuit can walk: views where possible.

Looks at how arrays lie; copies bytes where they lie as no run does, and never computes on them.
"""

from collections.abc import Sequence

import numpy as np

from bitlane_rtl.abi import Mode

from ..driver.geometry import Geometry
from .operands import AnyArray
from .plan import LANES

__all__ = ["rows_of"]


def rows_of(array: AnyArray, axes: Sequence[int], itemsize: int, geometry: Geometry) -> AnyArray:
    """``array``, which has elements, with ``axes`` as one, the last; those that repeat still do.

    ``itemsize``: bytes of an element on the device. A copy if the axes do not merge, or if the
    circuit lacks the means to walk them.
    """
    count = len(axes)
    moved = np.moveaxis(array, axes, range(array.ndim - count, array.ndim))
    kept = moved.ndim - count
    # What repeats is not to be copied as often as it does.
    once = [slice(1 if step == 0 else None) for step in moved.strides[:kept]]
    lean = moved[(*once, ...)]
    lean = lean.reshape(*lean.shape[:kept], -1)
    if not _is_run(lean, itemsize, geometry):
        lean = np.ascontiguousarray(lean)
    return np.broadcast_to(lean, (*moved.shape[:kept], lean.shape[-1]))


def _is_run(rows: AnyArray, itemsize: int, geometry: Geometry) -> bool:
    step = rows.strides[-1]
    if rows.shape[-1] == 1 or step == rows.itemsize:
        return True
    mode = Mode.STRIDED if step else Mode.REPEAT
    by_elements = LANES[itemsize] in geometry.lanes and itemsize <= geometry.data_bytes
    return mode in geometry.modes and by_elements
