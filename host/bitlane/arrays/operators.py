"""Python's operators on arrays: the bitwise ones are expressions, the others say what does them."""

from collections.abc import Callable
from typing import Any, NoReturn, Self

from bitlane_rtl.abi import Op

from ..errors import NotOfferedError
from ..jobs.operands import DataTypeError
from .base import Base, operand, stored_in
from .operations import inverted, operate

__all__ = ["Operators", "combined"]


def combined(op: Op, a: Any, b: Any, *, encoding: bool = False) -> Any:
    """``op`` of two operands, one of which is an array here, as another such array."""
    like = a if isinstance(a, Base) else b
    first, second = operand("a", a), operand("b", b)
    return type(like)(operate(like.value.home, op, first, second, encoding=encoding))


def _operator(op: Op) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """The operator, with the operands the other way round, and in place."""

    def forward(self: Base, other: Any) -> Any:
        return combined(op, self, other)

    def reflected(self: Base, other: Any) -> Any:
        return combined(op, other, self)

    def in_place(self: Base, other: Any) -> Any:
        return stored_in(self, combined(op, self, other).value)

    return forward, reflected, in_place


def _refused(symbol: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *others: object) -> NoReturn:
        raise NotOfferedError(
            f"operator {symbol}: bitlane's arrays have ^ & | ~ << >> and np.array_equal alone;"
            " np.asarray(x) brings the elements to the host for anything else"
        )

    return refuse


class Operators(Base):
    """``^ & | ~ << >>`` as NumPy has them, also reflected and in place; nothing else."""

    __slots__ = ()

    __xor__, __rxor__, __ixor__ = _operator(Op.XOR)
    __and__, __rand__, __iand__ = _operator(Op.AND)
    __or__, __ror__, __ior__ = _operator(Op.OR)
    __lshift__, __rlshift__, __ilshift__ = _operator(Op.SHIFT_LEFT)
    __rshift__, __rrshift__, __irshift__ = _operator(Op.SHIFT_RIGHT)

    def __invert__(self) -> Self:
        if self.value.dtype.kind == "f":
            raise DataTypeError(
                f"x: data type {self.value.dtype}; ~ expects integers or truth values"
                " (bitlane.bit_not takes the bits of floats)"
            )
        return type(self)(inverted(self.value))

    __hash__ = None  # type: ignore[assignment]  # elements change

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
