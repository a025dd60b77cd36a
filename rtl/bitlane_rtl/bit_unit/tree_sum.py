"""A balanced tree of additions."""

from collections.abc import Iterable

from amaranth.hdl import Value

__all__ = ["tree_sum"]


def tree_sum(values: Iterable[Value]) -> Value:
    """Return the sum of ``values``, whose number is a power of two. Latency: 0 cycles.

    Each level of additions is one bit wider, so that the sum does not overflow.
    """
    sums = list(values)
    while len(sums) > 1:
        sums = [one + other for one, other in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0]
