"""Python's operators on arrays: the bitwise ones are expressions, the others say what does them."""

from collections.abc import Callable
from typing import Any, Final, NoReturn, Self

import numpy as np

from ..errors import NotOfferedError
from .base import Base
from .ufuncs import apply_ufunc

_INVERT: Final = np.invert


def _operator(ufunc: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """The operator, with the operands the other way round, and in place."""

    def forward(self: Base, other: Any) -> Any:
        return apply_ufunc(ufunc, "__call__", (self, other), {})

    def reflected(self: Base, other: Any) -> Any:
        return apply_ufunc(ufunc, "__call__", (other, self), {})

    def in_place(self: Base, other: Any) -> Any:
        return apply_ufunc(ufunc, "__call__", (self, other), {"out": (self,)})

    return forward, reflected, in_place


def _refused(symbol: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *others: object) -> NoReturn:
        raise NotOfferedError(
            f"operator {symbol}: arrays on a device have ^ & | ~ << >> and np.array_equal alone;"
            " np.asarray(x) brings the elements to the host for it"
        )

    return refuse


class Operators(Base):
    """``^ & | ~ << >>`` as NumPy has them, also reflected and in place; nothing else."""

    __slots__ = ()

    __xor__, __rxor__, __ixor__ = _operator(np.bitwise_xor)
    __and__, __rand__, __iand__ = _operator(np.bitwise_and)
    __or__, __ror__, __ior__ = _operator(np.bitwise_or)
    __lshift__, __rlshift__, __ilshift__ = _operator(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _operator(np.right_shift)

    def __invert__(self) -> Self:
        result: Self = apply_ufunc(_INVERT, "__call__", (self,), {})
        return result

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    __eq__ = _refused("==")
    __ne__ = _refused("!=")
    __lt__ = _refused("<")
    __le__ = _refused("<=")
    __gt__ = _refused(">")
    __ge__ = _refused(">=")
    __contains__ = _refused("in")
    __add__ = __radd__ = __iadd__ = _refused("+")
    __sub__ = __rsub__ = __isub__ = _refused("-")
    __mul__ = __rmul__ = __imul__ = _refused("*")
    __truediv__ = __rtruediv__ = __itruediv__ = _refused("/")
    __floordiv__ = __rfloordiv__ = __ifloordiv__ = _refused("//")
    __mod__ = __rmod__ = __imod__ = _refused("%")
    __divmod__ = __rdivmod__ = _refused("divmod")
    __pow__ = __rpow__ = __ipow__ = _refused("**")
    __matmul__ = __rmatmul__ = __imatmul__ = _refused("@")
    __neg__ = _refused("-")
    __pos__ = _refused("+")
    __abs__ = _refused("abs")
