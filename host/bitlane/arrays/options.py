"""NumPy's options of methods: memory order, casting, and those that are refused on a device."""

from typing import Any, Final

import numpy as np

from ..arguments.operands import shown
from ..errors import DataTypeError, NotOfferedError, ShapeError
from ..lowering import order_of
from .strided import Strided

_CASTINGS: Final = ("no", "equiv", "safe", "same_kind", "unsafe")


def expect_default(method: str, option: str, given: Any, *defaults: Any) -> None:
    """Raise ``NotOfferedError`` for an option with another value than its defaults."""
    if not any(given is default for default in (np._NoValue, *defaults)):
        raise NotOfferedError(
            f"{method}: {option} is not offered on a device; x.get().{method}({option}=...) does it"
            " on the host"
        )


def expect_castable(function: str, old: np.dtype[Any], new: np.dtype[Any], casting: object) -> None:
    """Raise ``DataTypeError`` unless ``casting`` allows to cast ``old`` to ``new``."""
    if casting not in _CASTINGS:
        raise DataTypeError(f"{function}: casting is {casting!r}; expected one of {_CASTINGS}")
    if not np.can_cast(old, new, casting):
        raise DataTypeError(
            f"{function}: from {old} to {new}; casting is {casting!r} (casting='unsafe' allows all)"
        )


def as_order(order: object) -> str:
    """Return a memory order as one of the letters C, F, A and K. Raises ``ShapeError``."""
    letter = order.upper() if isinstance(order, str) else None
    if letter not in ("C", "F", "A", "K"):
        raise ShapeError(f"order: {shown(order)}; expected 'C', 'F', 'A' or 'K'")
    return letter


def order_axes(order: str, strided: Strided) -> tuple[int, ...]:
    """Return the axes of a copy in memory ``order``, outermost first: C, F, A or K.

    Raises ``ShapeError``.
    """
    axes = tuple(range(len(strided.shape)))
    if as_order(order) == "K":
        return order_of(strided.strides)
    return axes[::-1] if is_fortran(order, strided) else axes


def reading_axes(order: str, strided: Strided) -> tuple[int, ...]:
    """Return the axes in which elements are read in ``order``, outermost first: C, F, A or K.

    As NumPy's iterators do for K, axes that repeat elements stay where they are. Raises
    ``ShapeError``.
    """
    if as_order(order) != "K":
        return order_axes(order, strided)
    steps = [
        abs(step) if n > 1 else 0 for n, step in zip(strided.shape, strided.strides, strict=True)
    ]
    axes: list[int] = []
    for axis in reversed(range(len(steps))):
        place = len(axes)
        for inner in reversed(range(len(axes))):
            if steps[axis] and steps[axes[inner]]:
                if steps[axes[inner]] <= steps[axis]:
                    break
                place = inner
        axes.insert(place, axis)
    return tuple(reversed(axes))


def is_fortran(order: str, strided: Strided) -> bool:
    """Return whether ``order``, other than K, takes elements with the first axis innermost.

    Raises ``ShapeError``.
    """
    letter = as_order(order)
    if letter == "K":
        raise ShapeError("order: 'K'; expected 'C', 'F' or 'A' (x.copy takes 'K', too)")
    return letter == "F" or (
        letter == "A" and not strided.contiguous and strided.transpose().contiguous
    )


def index_flat(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of the element with ``number`` in C's order, from 0 on or from -1 down."""
    index = []
    for count in reversed(shape):
        number, at = divmod(number, count)
        index.append(at)
    return tuple(reversed(index))
