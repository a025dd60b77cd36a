"""NumPy's protocols: universal functions on values (NEP 13), and a table of its others (NEP 18).

A function that is not offered is refused by name.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Final, TypeVar

import numpy as np

from bitlane_rtl.abi import Op

from ..errors import NotOfferedError
from .elementwise import Operand, as_value, elementwise, reduce, sum_counts
from .value import DeviceLike, Value

_UFUNCS: Final[Mapping[np.ufunc, Op]] = {
    np.bitwise_and: Op.AND,
    np.bitwise_or: Op.OR,
    np.bitwise_xor: Op.XOR,
    np.left_shift: Op.SHIFT_LEFT,
    np.right_shift: Op.SHIFT_RIGHT,
    np.invert: Op.NOT,
    np.bitwise_count: Op.COUNT,
}
_REDUCTIONS: Final[Mapping[np.ufunc, Op]] = {
    ufunc: _UFUNCS[ufunc] for ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
}
_SUM: Final = np.add
_DEFAULTS: Final = {"where": True, "casting": "same_kind", "order": "K", "subok": True}


def apply_ufunc(
    device: DeviceLike,
    ufunc: np.ufunc,
    method: str,
    operands: Sequence[Operand],
    options: dict[str, Any],
) -> Value:
    """Return the result of a universal function, or of its ``reduce``.

    Raises ``NotOfferedError``, by name, for another function, method or option, and as
    `elementwise`, `reduce` and `sum_counts` do.
    """
    name = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
    if method == "__call__" and ufunc in _UFUNCS:
        result = elementwise(device, _UFUNCS[ufunc], operands)
    elif method == "reduce" and (ufunc in _REDUCTIONS or ufunc is _SUM):
        x = as_value(device, "x", operands[0])
        axes, keep = options.pop("axis", 0), bool(options.pop("keepdims", False))
        if ufunc is _SUM:
            result = sum_counts(x, axes, options.pop("dtype", None), keep=keep)
        else:
            result = reduce(_REDUCTIONS[ufunc], x, axes, keep=keep)
    else:
        raise NotOfferedError(
            f"{name}: not on a device; np.asarray(x) brings the elements to the host for it"
        )
    for option, value in options.items():
        if value is not None and value is not _DEFAULTS.get(option, np._NoValue):
            raise NotOfferedError(
                f"{name}: {option} is not offered on a device; slices, astype and out are"
            )
    return result


_Function = TypeVar("_Function", bound=Callable[..., Any])

_FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {}


def implements(function: Any) -> Callable[[_Function], _Function]:
    """Register the decorated function as NumPy's ``function`` of arrays on a device."""

    def register(ours: _Function) -> _Function:
        _FUNCTIONS[function] = ours
        return ours

    return register


def offers(name: str) -> bool:
    """Return whether NumPy's function ``name`` takes arrays on a device."""
    return getattr(np, name, None) in _FUNCTIONS


def apply_function(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a registered function. Raises ``NotOfferedError`` for others, and for options."""
    module = getattr(function, "__module__", "numpy").replace("numpy", "np", 1)
    name = f"{module}.{function.__name__}"
    ours = _FUNCTIONS.get(function)
    if ours is None:
        raise NotOfferedError(
            f"{name}: not on a device; np.asarray(x) brings the elements to the host for it"
        )
    parameters = signature(ours)
    try:
        parameters.bind(*arguments, **options)
    except TypeError as error:
        unknown = [option for option in options if option not in parameters.parameters]
        reason = f"it does not take {unknown[0]}" if unknown else str(error)
        raise NotOfferedError(f"{name}: on a device, {reason}") from None
    return ours(*arguments, **options)
