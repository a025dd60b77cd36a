"""Arithmetic on elements: flat arrays of ``uint64``; the upper bits of narrow elements are 0."""

from dataclasses import dataclass

import numpy as np

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..counter_random import Array, namespace
from .fields import is_one_of

_ONE = np.uint64(1)

# CuPy takes no enumeration as an operand.
_LEFT, _RIGHT = int(Op.SHIFT_LEFT), int(Op.SHIFT_RIGHT)


@dataclass(frozen=True, slots=True)
class Computation:
    """The operation on each element: ``op`` on ``bits`` bits. Arrays of (elements,).

    ``saturate`` and ``arithmetic`` are masks: how shifts are done.
    """

    op: Array
    bits: Array
    saturate: Array
    arithmetic: Array

    @property
    def mask(self) -> Array:
        """Masks of 8 to 64 ones."""
        return np.uint64((1 << 64) - 1) >> (np.uint64(64) - self.bits.astype(np.uint64))


def compute(how: Computation, a: Array, b: Array) -> Array:
    """Return the results for elements ``a`` and ``b``, (elements,); a count is a number of ones."""
    xp, op, mask = namespace(how.op), how.op, how.mask
    counted = xp.where(op < 12, op, op & 3)
    low = counted & 3
    logic = xp.where(low == 0, a & b, xp.where(low == 1, a | b, xp.where(low == 2, a ^ b, a)))
    inverted = is_one_of(counted, [op for op in LOGIC_OPS if op & 4])
    logic = xp.where(inverted, ~logic, logic) & mask
    shifts = (op == _LEFT) | (op == _RIGHT)
    result = xp.where(op >= 12, ones_in(logic), logic)
    if bool(shifts.any()):
        result = xp.where(shifts, _shifted(how, a, b), result)
    return result


def ones_in(values: Array) -> Array:
    """Return the number of ones in each of ``values``."""
    five, three, four = 0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0F0F_0F0F_0F0F_0F0F
    values = values - ((values >> _ONE) & np.uint64(five))
    values = (values & np.uint64(three)) + ((values >> np.uint64(2)) & np.uint64(three))
    values = (values + (values >> np.uint64(4))) & np.uint64(four)
    return (values * np.uint64(0x0101_0101_0101_0101)) >> np.uint64(56)


def _shifted(how: Computation, a: Array, b: Array) -> Array:
    xp, mask, width = namespace(how.op), how.mask, how.bits.astype(np.uint64)
    beyond = how.saturate & (b >= width)
    count = b & (width - _ONE)
    left = (a << count) & mask
    negative = how.arithmetic & ((a >> (width - _ONE)) & _ONE != 0)
    fill = xp.where(negative, mask, np.uint64(0))
    # What comes in from above: ones where the sign is one.
    right = (a >> count) | (fill & ~(mask >> count))
    left = xp.where(beyond, np.uint64(0), left)
    right = xp.where(beyond, fill, right)
    return xp.where(how.op == _LEFT, left, right)
