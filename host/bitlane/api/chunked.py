"""The operators on arrays that are computed chunk by chunk: what a pool and Dask share.

Arguments are checked, and the types and shapes of results computed, before any chunk is.
"""

from abc import abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitlane_rtl.abi import Op

from ..arguments.axes import chosen_axes
from ..arguments.operands import count_type
from ..arguments.promotion import Casting, as_pair
from ..arguments.reductions import Reduction, sum_type
from ..arrays import Array
from ..errors import OtherDeviceError
from .catalogue import BitOperators, Output, Result, method_name

Kind = TypeVar("Kind", bound=Any)
"""An array of this kind has the ``dtype`` and ``shape`` of NumPy's arrays."""


class Chunked(BitOperators, Generic[Kind]):
    """The operators on arrays of one kind, such as NumPy's or Dask's."""

    __slots__ = ()

    @abstractmethod
    def _operand(self, name: str, x: Any) -> Kind:  # noqa: ANN401, whatever NumPy takes
        """Return ``x`` as an array of this kind. Raises ``DataTypeError`` or `OtherDeviceError`."""

    @abstractmethod
    def _element_wise(
        self, op: Op, operands: Sequence[Kind], dtype: np.dtype[Any], out: Output | None
    ) -> Result:
        """Compute ``op`` of the chunks of ``operands``, which broadcast, into ``dtype``."""

    @abstractmethod
    def _rows(self, operands: Sequence[Kind]) -> tuple[Sequence[Kind], tuple[int, ...]]:
        """Return operands whose axes can be added up, and the shape that they broadcast to."""

    @abstractmethod
    def _along(
        self, name: str, operands: Sequence[Kind], dtype: np.dtype[Any], keywords: dict[str, Any]
    ) -> Result:
        """Call the method ``name`` on chunks that are whole along the axes ``keywords["axis"]``."""

    def _unary(self, op: Op, a: ArrayLike, out: Output | None) -> Result:
        array = self._operand("a", a)
        return self._element_wise(op, (array,), array.dtype.newbyteorder("="), out)

    def _binary(
        self, op: Op, a: ArrayLike, b: ArrayLike, out: Output | None, casting: Casting
    ) -> Result:
        return self._element_wise(op, *self._pair(op, a, b, casting), out)

    def _count(self, op: Op, a: ArrayLike, dtype: DTypeLike | None, out: Output | None) -> Result:
        return self._element_wise(op, (self._operand("a", a),), count_type(dtype, out), out)

    def _pair(
        self, op: Op, a: ArrayLike, b: ArrayLike, casting: Casting
    ) -> tuple[list[Kind], np.dtype[Any]]:
        """Return two operands, and the type in which they meet; no element is looked at."""
        given = [
            x if type(x) is int else self._operand(name, x) for name, x in (("a", a), ("b", b))
        ]
        one, other = (x if isinstance(x, int) else np.empty(0, x.dtype) for x in given)
        first, second, dtype = as_pair(op, one, other, casting)
        operands = [
            self._operand(name, fitted) if isinstance(x, int) else x
            for name, x, fitted in (("a", given[0], first), ("b", given[1], second))
        ]
        return operands, dtype.newbyteorder("=")

    def _row_sums(self, op: Op, operands: tuple[ArrayLike, ...], reduction: Reduction) -> Result:
        name = "hamming" if op.reads_b else "cardinality"
        if op.reads_b:
            a, b = operands
            arrays, wide = self._pair(op, a, b, "safe")
        else:
            arrays = [self._operand("a", operands[0])]
            wide = arrays[0].dtype
        rows, shape = self._rows(arrays)
        axes = chosen_axes(reduction.axis, len(shape))
        kind = sum_type(reduction.dtype, 8 * wide.itemsize * prod(shape[axis] for axis in axes))
        keywords = {"axis": axes, "dtype": kind, "keepdims": reduction.keepdims}
        return self._along(name, rows, kind, keywords)

    def _jaccard(self, a: ArrayLike, b: ArrayLike, reduction: Reduction) -> NDArray[np.float64]:
        rows, shape = self._rows(self._pair(Op.AND, a, b, "safe")[0])
        axes = chosen_axes(reduction.axis, len(shape))
        keywords = {"axis": axes, "keepdims": reduction.keepdims}
        return self._along("jaccard", rows, np.dtype(np.float64), keywords)


def expect_on_host(name: str, x: object, kinds: str) -> None:
    """Raise ``OtherDeviceError`` for an ``Array``, which is on a device; ``kinds`` are expected."""
    if isinstance(x, Array):
        raise OtherDeviceError(
            f"{name}: an array on a device; expected one of {kinds} ({name}.get() gives it)"
        )


def call_of(op: Op, dtype: np.dtype[Any]) -> tuple[str, dict[str, Any]]:
    """Return the method of ``Device`` that computes ``op`` of a chunk, and its keywords."""
    return method_name(op), {"dtype": dtype} if op.counts else {}
