"""NumPy's protocols: universal functions on values (NEP 13), and a table of its others (NEP 18).

A function that is not offered is refused by name.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import Signature, signature
from typing import Any, Final, TypeVar

import numpy as np

from bitlane_rtl.abi import Op

from ..arguments.operands import as_flag
from ..errors import NotOfferedError
from .elementwise import elementwise, reduce
from .sums import sum_elements
from .truth import TRUTHS, all_true, any_true, find_truth
from .value import DeviceLike, Value

_UFUNCS: Final[Mapping[np.ufunc, Op]] = {
    np.bitwise_and: Op.AND,
    np.bitwise_or: Op.OR,
    np.bitwise_xor: Op.XOR,
    np.left_shift: Op.SHIFT_LEFT,
    np.right_shift: Op.SHIFT_RIGHT,
    np.invert: Op.NOT,
    np.bitwise_count: Op.COUNT,
    np.positive: Op.COPY,
}
_SUM: Final = np.add
_TRUTH_REDUCTIONS: Final = {np.logical_and: all_true, np.logical_or: any_true}
_REDUCTIONS: Final = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, _SUM, *_TRUTH_REDUCTIONS)
IDENTITY_OF_ONES: Final = (np.bitwise_and, np.logical_and)
"""Reductions that elements of ones do not change; elements of zeros do not change the others."""

_DEFAULTS: Final = {"casting": "same_kind", "order": "K", "subok": True}


def apply_ufunc(
    device: DeviceLike, ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]
) -> Value:
    """Return the result of a universal function that is offered.

    Raises ``NotOfferedError`` for an option, and as `elementwise` and `find_truth` do.
    """
    _expect_defaults(f"np.{ufunc.__name__}", options)
    if ufunc in TRUTHS:
        return find_truth(device, ufunc, operands)
    return elementwise(device, _UFUNCS[ufunc], operands)


def reduce_ufunc(ufunc: np.ufunc, x: Value, options: dict[str, Any]) -> Value:
    """Return ``ufunc.reduce`` of ``x``, for a universal function with a reduction.

    Raises ``NotOfferedError`` for another option than ``axis``, ``keepdims`` and the ``dtype`` of
    sums, and as `reduce` and `sum_elements` do.
    """
    axes, keep = options.pop("axis", 0), as_flag("keepdims", options.pop("keepdims", False))
    dtype = options.pop("dtype", None) if ufunc is _SUM else None
    _expect_defaults(f"np.{ufunc.__name__}.reduce", options)
    if ufunc is _SUM:
        return sum_elements(x, axes, dtype, keep=keep)
    if ufunc in _TRUTH_REDUCTIONS:
        return _TRUTH_REDUCTIONS[ufunc](x, axes, keep=keep)
    return reduce(_UFUNCS[ufunc], x, axes, keep=keep)


def _expect_defaults(name: str, options: Mapping[str, Any]) -> None:
    for option, value in options.items():
        if value is not None and value is not _DEFAULTS.get(option, np._NoValue):
            raise NotOfferedError(
                f"{name}: {option} is not offered on a device; slices, astype, where and out are"
            )


def expect_offered(ufunc: np.ufunc, method: str) -> None:
    """Raise ``NotOfferedError``, by name, for another universal function or method."""
    offered = {"__call__": TRUTHS | _UFUNCS.keys(), "reduce": _REDUCTIONS}
    if ufunc not in offered.get(method, ()):
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise NotOfferedError(
            f"np.{name}: not on a device; np.asarray(x) brings the elements to the host for it"
        )


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
    ours = _FUNCTIONS.get(function)
    if ours is None:
        hint = "not on a device; np.asarray(x) brings the elements to the host for it"
        raise NotOfferedError(f"{_path_of(function)}: {hint}")
    try:
        return ours(*arguments, **options)
    except TypeError:
        # Binding takes 8 us, so it comes after a failure alone.
        reason = _mismatch(signature(ours), arguments, options)
        if reason is None:
            raise
    raise NotOfferedError(
        f"{_path_of(function)}: on a device, {reason} (np.asarray(x) brings the elements to the"
        " host for it)"
    )


def _path_of(function: Any) -> str:
    module = getattr(function, "__module__", "numpy").replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"


def _mismatch(
    parameters: Signature, arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> str | None:
    """Return why the arguments do not fit the parameters; None if they do."""
    try:
        parameters.bind(*arguments, **options)
    except TypeError as error:
        unknown = [option for option in options if option not in parameters.parameters]
        return f"it does not take {unknown[0]}" if unknown else str(error)
    return None
