"""A stand-in for CuPy without a GPU: NumPy's arrays with CuPy's restrictions on operands.

An operand is an array of this module, a plain bool, int, float or complex, or a NumPy scalar. An
enumeration or a NumPy array as the other operand, and an implicit copy to NumPy, raise TypeError.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

__all__ = ["StrictArray", "strict_cupy"]

_SCALARS = (bool, int, float, complex)


class StrictArray(NDArrayOperatorsMixin):
    """An array "on the GPU"; `get` copies it to NumPy. A result without axes is an array, too."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, inner: Any) -> None:
        self._inner = np.asarray(inner)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        if method != "__call__":
            return NotImplemented
        return _applied(ufunc)(*inputs, **more)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._inner, name)
        return _applied(found) if callable(found) else found

    def __getitem__(self, index: Any) -> "StrictArray":
        return StrictArray(self._inner[_index(index)])

    def __setitem__(self, index: Any, values: Any) -> None:
        self._inner[_index(index)] = _operand(values)

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator["StrictArray"]:
        return map(StrictArray, self._inner)

    def __bool__(self) -> bool:
        return bool(self._inner)

    def __int__(self) -> int:
        return int(self._inner)

    def __index__(self) -> int:
        return self._inner.__index__()

    def get(self) -> Any:
        return self._inner.copy()


def _operand(value: Any) -> Any:
    """Return NumPy's form of ``value``. Raises TypeError for types that CuPy refuses."""
    if isinstance(value, StrictArray):
        return value._inner
    if type(value) in _SCALARS or isinstance(value, np.generic):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def _index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    return index if index is None or isinstance(index, slice) else _operand(index)


def _setting(value: Any) -> Any:
    """Return NumPy's form of an argument that may also be a shape, a type or a string."""
    if isinstance(value, type | np.dtype | str | tuple) or value is None:
        return value
    return _operand(value)


def _applied(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` of NumPy as a function of arrays of this module."""

    def call(*given: Any, out: tuple[StrictArray, ...] | None = None, **more: Any) -> Any:
        words = {name: _setting(value) for name, value in more.items()}
        if out is not None:
            function(*map(_setting, given), out=tuple(x._inner for x in out), **words)
            return out[0]
        found = function(*map(_setting, given), **words)
        return StrictArray(found) if isinstance(found, np.ndarray | np.generic) else found

    return call


_NAMES = "arange bincount cumsum flatnonzero full maximum minimum searchsorted where zeros"


def strict_cupy() -> Any:
    """Return the parts of CuPy that the model of many instances uses; for `sys.modules`."""
    runtime = SimpleNamespace(getDeviceCount=lambda: 1)
    functions = {name: _applied(getattr(np, name)) for name in _NAMES.split()}
    return SimpleNamespace(
        asarray=lambda array: StrictArray(np.array(array)),
        cuda=SimpleNamespace(runtime=runtime),
        **functions,
    )
