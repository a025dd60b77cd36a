"""The catalogue of operators: the one place with their names, operations, operands and docs.

A device, a pool of devices, the functions of `bitlane` and those of `bitlane.dask` have these
methods; each says only how an operation is computed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.axes import Axes
from ..arguments.promotion import Casting
from ..arguments.reductions import Reduction
from ..arrays import Array
from ..errors import NotOfferedError
from .signatures import Binary, Count, Unary

Output: TypeAlias = AnyArray | Array

Result: TypeAlias = AnyArray | Any
"""An ``Array`` if an operand is one, else an array of NumPy's: type checkers accept both."""

Entry: TypeAlias = Callable[["BitOperators"], None]
"""A line of the catalogue: the name and the documentation of a method."""


def method_name(op: Op) -> str:
    """Return the name of the method that computes ``op``: ``bit_xor``."""
    return f"bit_{op.name.lower()}"


def unary(op: Op) -> Callable[[Entry], Unary]:
    """Make an entry the method of one operand that computes ``op``."""

    def call(self: "BitOperators", a: ArrayLike, /, *, out: Output | None = None) -> Result:
        return self._unary(op, a, out)

    return lambda entry: cast(Unary, _described(call, op, entry))


def binary(op: Op) -> Callable[[Entry], Binary]:
    """Make an entry the method of two operands that computes ``op``."""

    def call(
        self: "BitOperators",
        a: ArrayLike,
        b: ArrayLike,
        /,
        *,
        out: Output | None = None,
        casting: Casting = "safe",
    ) -> Result:
        return self._binary(op, a, b, out, casting)

    return lambda entry: cast(Binary, _described(call, op, entry))


def count(op: Op) -> Callable[[Entry], Count]:
    """Make an entry the method that counts that computes ``op``."""

    def call(
        self: "BitOperators",
        a: ArrayLike,
        /,
        dtype: DTypeLike | None = None,
        *,
        out: Output | None = None,
    ) -> Result:
        return self._count(op, a, dtype, out)

    return lambda entry: cast(Count, _described(call, op, entry))


def _described(call: Callable[..., Result], op: Op, entry: Entry) -> Callable[..., Result]:
    assert entry.__name__ == method_name(op)
    call.__name__ = call.__qualname__ = entry.__name__
    call.__doc__ = entry.__doc__
    if op in _REDUCED:
        vars(call)["reduce"] = partial(_refuse_reduce, op)
    return call


_REDUCED: Final = (Op.AND, Op.OR, Op.XOR)
"""Operations of which NumPy's functions have a ``reduce`` on arrays of a device."""


def _refuse_reduce(op: Op, *operands: object, **keywords: object) -> NoReturn:
    """Raise ``NotOfferedError``: a function here is not a universal function of NumPy's."""
    raise NotOfferedError(
        f"{method_name(op)}.reduce: not offered; on the device,"
        f" np.bitwise_{op.name.lower()}.reduce(bitlane.asarray(x), axis=0) computes it"
    )


class BitOperators(ABC):
    """The operators as methods, and the distances made of their counts."""

    __slots__ = ()

    @unary(Op.NOT)
    def bit_not(self) -> None:
        """Invert every bit of ``a``; of truth values, the truth."""

    @unary(Op.COPY)
    def bit_copy(self) -> None:
        """Copy the bits of ``a``."""

    @binary(Op.AND)
    def bit_and(self) -> None:
        """Return the bits that are 1 in ``a`` and ``b``."""

    @binary(Op.OR)
    def bit_or(self) -> None:
        """Return the bits that are 1 in ``a`` or ``b``."""

    @binary(Op.XOR)
    def bit_xor(self) -> None:
        """Return the bits in which ``a`` and ``b`` differ."""

    @binary(Op.NAND)
    def bit_nand(self) -> None:
        """Return the bits that are 0 in ``a`` or ``b``."""

    @binary(Op.NOR)
    def bit_nor(self) -> None:
        """Return the bits that are 0 in ``a`` and ``b``."""

    @binary(Op.XNOR)
    def bit_xnor(self) -> None:
        """Return the bits in which ``a`` and ``b`` are alike."""

    @binary(Op.SHIFT_LEFT)
    def bit_shift_left(self) -> None:
        """Shift the integers ``a`` left by ``b``, element by element.

        Shift counts below 0, or of the width or more, give 0 as NumPy's do (``bitlane.dml`` takes
        them modulo the width, as DirectML does).
        """

    @binary(Op.SHIFT_RIGHT)
    def bit_shift_right(self) -> None:
        """Shift the integers ``a`` right by ``b``: logically if unsigned, else with their sign.

        Shift counts below 0, or of the width or more, give 0, or -1 for a negative ``a``, as
        NumPy's do (``bitlane.dml`` takes them modulo the width and shifts logically, as DirectML
        does).
        """

    @count(Op.COUNT)
    def bit_count(self) -> None:
        """Count the bits of each element's encoding that are 1, as ``dtype``: uint8 or uint32.

        The default is the type of ``out``, else uint8. Unlike ``np.bitwise_count``, which counts
        the absolute value, -1 has as many as its type has bits.
        """

    def cardinality(
        self,
        a: ArrayLike,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> Result:
        """Count the bits of ``a`` that are 1 along ``axis``, one or several; of all for None.

        As uint32, or as ``dtype``, an integer type that holds the bits of a row; for another,
        ``OutOfRangeError``. ``keepdims``: the axes stay, with one element. Rows longer than the
        circuit adds up at once are cut, and the host adds up the sums of the parts; those of an
        ``Array`` are refused.
        """
        return self._row_sums(Op.COPY, (a,), Reduction(axis, dtype, keepdims))

    def hamming(
        self,
        a: ArrayLike,
        b: ArrayLike,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> Result:
        """Count the bits in which ``a`` and ``b`` differ along ``axis``; see `cardinality`.

        It counts bits, and does not divide by their number, unlike SciPy's function of that name.
        """
        return self._row_sums(Op.XOR, (a, b), Reduction(axis, dtype, keepdims))

    def jaccard(
        self, a: ArrayLike, b: ArrayLike, axis: Axes = -1, *, keepdims: bool = False
    ) -> NDArray[np.float64]:
        """Divide the bits that ``a`` and ``b`` share by those that either has, along ``axis``.

        Jaccard's index, float64 from 0 to 1: the Tanimoto similarity of chemists, and 0 where
        neither has a bit, as in RDKit. The Jaccard distance is 1 minus it.
        """
        return self._jaccard(a, b, Reduction(axis, keepdims=keepdims))

    @abstractmethod
    def _unary(self, op: Op, a: ArrayLike, out: Output | None) -> Result:
        """Compute ``op`` of one operand."""

    @abstractmethod
    def _binary(
        self, op: Op, a: ArrayLike, b: ArrayLike, out: Output | None, casting: Casting
    ) -> Result:
        """Compute ``op`` of two operands."""

    @abstractmethod
    def _count(self, op: Op, a: ArrayLike, dtype: DTypeLike | None, out: Output | None) -> Result:
        """Count bits into elements of ``dtype``."""

    @abstractmethod
    def _row_sums(self, op: Op, operands: tuple[ArrayLike, ...], reduction: Reduction) -> Result:
        """Count the bits that are 1 in ``op`` (COPY or XOR) of the operands, along axes."""

    @abstractmethod
    def _jaccard(self, a: ArrayLike, b: ArrayLike, reduction: Reduction) -> NDArray[np.float64]:
        """Compute `jaccard`."""


# As for the other operators, Python's messages show the name that users call.
for _method in (BitOperators.cardinality, BitOperators.hamming, BitOperators.jaccard):
    _method.__qualname__ = _method.__name__
