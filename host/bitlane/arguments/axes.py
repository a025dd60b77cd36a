"""Axes of an array, as arguments of calls name them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import AxisError, ShapeError
from .operands import plain_index, shown

Axes: TypeAlias = int | Sequence[int] | None
"""An axis, several, or all."""


class NumpyAxisError(AxisError, np.exceptions.AxisError):
    """The ``AxisError`` that is raised: also NumPy's, with its ``axis`` and ``ndim``."""

    def __init__(self, message: str, axis: int, ndim: int) -> None:
        super().__init__(message)
        self.axis = axis
        self.ndim = ndim

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_axis_error, (str(self), self.axis, self.ndim)


def _restore_axis_error(message: str, axis: int, ndim: int) -> NumpyAxisError:
    """Restore a pickled error, whose class shows the name of ``bitlane.AxisError``."""
    return NumpyAxisError(message, axis, ndim)


# Tracebacks show the name that users write.
NumpyAxisError.__module__, NumpyAxisError.__qualname__ = "bitlane", "AxisError"


def as_list(numbers: Any) -> list[Any]:  # noqa: ANN401, whatever NumPy takes
    """Return a number, a sequence or an array of numbers as a list of Python numbers."""
    plain = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    return list(plain) if isinstance(plain, Sequence) else [plain]


def normalize_axis(axis: object, rank: int) -> int:
    """Return one axis, counted from the front. Raises ``AxisError`` or ``ShapeError``."""
    try:
        number = plain_index(axis)
    except TypeError:
        raise ShapeError(f"axis: {shown(axis)}; expected an integer") from None
    return normalize_axes(number, rank)[0]


def normalize_axes(axes: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """Return ``axes`` as numbers from 0 on, in the given order.

    Raises ``AxisError`` for an axis out of range, ``ShapeError`` if one is repeated or not an
    integer.
    """
    try:
        numbers = [plain_index(axis) for axis in as_list(axes)]
    except TypeError:
        raise ShapeError(f"axes: {shown(axes)}; expected integers") from None
    for axis in numbers:
        if not -rank <= axis < rank:
            known = f"expected {-rank} to {rank - 1}" if rank else "there are no axes"
            raise NumpyAxisError(f"axis: {axis}; {known}", axis, rank)
    positive = tuple(axis % rank for axis in numbers)
    if len(set(positive)) != len(positive):
        raise ShapeError(f"axes: {tuple(numbers)}; expected each once")
    return positive


def reduced_axes(axes: Axes, rank: int) -> tuple[int, ...]:
    """Return the axes of a reduction of NumPy's as `chosen_axes` does.

    An axis, or a tuple of axes. Without axes, an array may be reduced along the axis 0 or -1.
    Raises ``AxisError`` or ``ShapeError``.
    """
    if axes is None or isinstance(axes, tuple):
        return chosen_axes(axes, rank)
    one = normalize_axis(axes, rank or 1)
    return (one,) if rank else ()


def chosen_axes(axes: Axes, rank: int) -> tuple[int, ...]:
    """Return ``axes`` from 0 on, in ascending order; all for None. Raises ``ShapeError``."""
    return tuple(sorted(normalize_axes(range(rank) if axes is None else axes, rank)))
