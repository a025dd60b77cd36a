"""Exact test for elements of a strided layout that share memory. Integer arithmetic only."""

from collections.abc import Sequence
from math import gcd, prod

WORK_LIMIT = 200_000
"""Steps after which ``overlaps_itself`` gives up. Layouts in practice need fewer than ten."""


class _OutOfWork(Exception):
    pass


def overlaps_itself(sizes: Sequence[int], strides: Sequence[int]) -> bool | None:
    """Return whether two different indices have the same address.

    ``sizes`` are at least 1, and ``strides`` non-negative. The answer is exact;
    ``None`` means that it was not found within ``WORK_LIMIT`` steps (the question is a subset-sum
    problem, so that some layouts, which no program would choose, are out of reach).
    """
    axes = sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size > 1)
    if any(stride == 0 for stride, _ in axes):
        return True
    reach = 0
    nested = True
    for stride, size in axes:
        nested = nested and stride > reach
        reach += stride * (size - 1)
    if nested:
        return False
    if prod(size for _, size in axes) > reach + 1:
        return True
    try:
        return _Search(axes).finds_zero()
    except _OutOfWork:
        return None


class _Search:
    """Search for steps ``d_i``, not all 0, ``|d_i| < size_i``, with ``sum(d_i * stride_i) == 0``.

    Such steps lead from one element to another at the same address.
    """

    def __init__(self, axes: Sequence[tuple[int, int]]) -> None:
        self._axes = axes
        self._reach = [0]
        self._gcd = [0]
        for stride, size in axes:
            self._reach.append(self._reach[-1] + stride * (size - 1))
            self._gcd.append(gcd(self._gcd[-1], stride))
        self._work = 0

    def finds_zero(self) -> bool:
        # The largest stride with a step other than 0 may be taken with a positive step.
        for top in range(len(self._axes) - 1, 0, -1):
            stride, size = self._axes[top]
            for step in range(1, min(size - 1, self._reach[top] // stride) + 1):
                if self._reaches(top, step * stride):
                    return True
        return False

    def _reaches(self, count: int, target: int) -> bool:
        """Return whether steps of the ``count`` smallest strides can sum up to ``target``."""
        self._work += 1
        if self._work > WORK_LIMIT:
            raise _OutOfWork
        if count == 0:
            return target == 0
        if abs(target) > self._reach[count] or target % self._gcd[count]:
            return False
        stride, size = self._axes[count - 1]
        rest = self._reach[count - 1]
        first = max(-(size - 1), -((rest - target) // stride))
        last = min(size - 1, (rest + target) // stride)
        return any(
            self._reaches(count - 1, target - step * stride) for step in range(first, last + 1)
        )
