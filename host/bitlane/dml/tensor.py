"""Tensor descriptions and the arithmetic of their sizes.

A description holds what the fields of DirectML's structure can hold. Whether this is right is for
``rules.check_operator`` to decide, when an operator is created.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from ..errors import DmlError, DmlTypeError
from ..lowering import packed_strides
from .types import DataType, TensorFlags

MINIMUM_BUFFER_TENSOR_ALIGNMENT = 16
"""``DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT``: what every binding's offset is a multiple of, bytes."""

UINT_LAST = 2**32 - 1
"""The largest UINT, the type of sizes and strides."""

_UINT64_LAST = 2**64 - 1

TENSOR_DIMENSION_COUNT_MAX = 5
"""The most dimensions of a tensor below feature level 3_0."""

TENSOR_DIMENSION_COUNT_MAX1 = 8
"""The most dimensions of a tensor from feature level 3_0."""


def last_element(sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """Index of the last element of memory that a tensor reaches, counted from its first one."""
    if strides is None:
        strides = packed_strides(sizes)
    return sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def calc_buffer_tensor_size(
    data_type: DataType, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> int:
    """``DMLCalcBufferTensorSize``: the smallest ``TotalTensorSizeInBytes``, a multiple of 4.

    Unlike the published C++ helper, whose index of the last element is 32 bits wide, this
    cannot wrap. ``sizes`` and ``strides`` are in elements. Raises ``ValueError`` for
    ``DataType.UNKNOWN``, and as ``BufferTensorDesc`` for wrong sizes and strides. Source:
    windows-ai-docs, ``dml-helper-functions``.
    """
    sizes, strides = _layout("DMLCalcBufferTensorSize", sizes, strides)
    return _whole_words((last_element(sizes, strides) + 1) * DataType(data_type).itemsize)


def _whole_words(count: int) -> int:
    return (count + 3) // 4 * 4


@dataclass(frozen=True)
class BufferTensorDesc:
    """``DML_BUFFER_TENSOR_DESC``: the layout of a tensor in a buffer.

    ``sizes`` and ``strides`` are in elements, outermost dimension first. Without ``strides`` the
    tensor is packed; a stride of 0 repeats an element (inputs only), a larger one leaves gaps.
    Without ``total_tensor_size_in_bytes`` the smallest size is computed. Any multiple of the
    byte is accepted there: DirectML asks for "at least the minimum implied size", which is itself
    a multiple of 4, and no source says that larger values must be one too.

    ``guaranteed_base_offset_alignment`` is in bytes: 0, or a power of two that is at least as
    large as an element.

    Raises ``DmlTypeError``, a ``TypeError``, for a data type that is none and for numbers that are
    not integers; ``DmlError`` for numbers that their fields cannot hold (a UINT, 0 to 2**32 - 1,
    or a UINT64), and unless there is a stride for each size. Everything else is judged when an
    operator is created from the description.
    """

    data_type: DataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    flags: TensorFlags
    total_tensor_size_in_bytes: int
    guaranteed_base_offset_alignment: int

    def __init__(
        self,
        data_type: DataType,
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        flags: TensorFlags = TensorFlags.NONE,
        total_tensor_size_in_bytes: int | None = None,
        guaranteed_base_offset_alignment: int = 0,
    ) -> None:
        try:
            data_type = DataType(data_type)
        except (TypeError, ValueError):  # NumPy compares no structures with integers
            raise _type_error("DataType", data_type, "a DataType") from None
        sizes, strides = _layout("BufferTensorDesc", sizes, strides)
        set_field = object.__setattr__
        set_field(self, "data_type", data_type)
        set_field(self, "sizes", sizes)
        set_field(self, "strides", strides)
        where, total = "BufferTensorDesc", total_tensor_size_in_bytes
        if total is not None:
            total = _number(where, "TotalTensorSizeInBytes", total, _UINT64_LAST)
        else:
            total = 0 if data_type is DataType.UNKNOWN else self.least_total_size
        alignment = _number(
            where, "GuaranteedBaseOffsetAlignment", guaranteed_base_offset_alignment
        )
        set_field(self, "flags", _flags(flags))
        set_field(self, "total_tensor_size_in_bytes", total)
        set_field(self, "guaranteed_base_offset_alignment", alignment)

    @classmethod
    def from_array(
        cls, array: npt.NDArray[np.generic], flags: TensorFlags = TensorFlags.NONE
    ) -> Self:
        """The description of what ``Buffer.write(array)`` writes: the elements in C order.

        An array of rank 0 is a tensor of one element. Raises ``DmlError`` if DirectML has no such
        data type, or for bytes in the other order, and ``DmlTypeError`` for what is no array.
        """
        if not isinstance(array, np.ndarray):
            raise DmlTypeError("BufferTensorDesc", "Array", array, "an array of NumPy")
        data_type = DataType.from_numpy(array.dtype)
        if array.dtype != data_type.dtype:
            raise DmlError("BufferTensorDesc", "DataType", array.dtype, "little-endian elements")
        return cls(data_type, array.shape or (1,), None, flags)

    @property
    def dimension_count(self) -> int:
        """``DimensionCount``: the number of ``sizes``."""
        return len(self.sizes)

    @property
    def owned(self) -> bool:
        """Whether it is OWNED_BY_DML: bound when the operator is initialised, and not later."""
        return bool(self.flags & TensorFlags.OWNED_BY_DML)

    @cached_property
    def element_strides(self) -> tuple[int, ...]:
        """The strides in elements, with 0 for dimensions of size 1, which do not move.

        Two tensors of equal sizes touch the same elements in the same order if these are equal.
        """
        strides = packed_strides(self.sizes) if self.strides is None else self.strides
        return tuple(
            0 if size == 1 else stride for size, stride in zip(self.sizes, strides, strict=True)
        )

    @cached_property
    def elements_reached(self) -> int:
        """Elements of memory from the first element to the last one, those between included."""
        return last_element(self.sizes, self.strides) + 1

    @cached_property
    def bytes_reached(self) -> int:
        """Bytes from the first of the first element to the last of the last one."""
        return self.elements_reached * self.data_type.itemsize

    @property
    def least_total_size(self) -> int:
        """The smallest ``TotalTensorSizeInBytes`` of these sizes and strides: a multiple of 4."""
        return _whole_words(self.bytes_reached)


def _layout(
    where: str, sizes: Sequence[int], strides: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return sizes and strides, each a UINT; strides are None, or one for each size.

    Source: DimensionCount, Sizes and Strides of BUFFER_TENSOR_DESC.
    """
    sizes = _numbers(where, "Sizes", sizes)
    if strides is None:
        return sizes, None
    strides = _numbers(where, "Strides", strides)
    if len(strides) != len(sizes):
        raise DmlError(where, "Strides", list(strides), f"{len(sizes)} numbers, as in Sizes")
    return sizes, strides


def _numbers(where: str, field: str, values: Sequence[int]) -> tuple[int, ...]:
    try:
        items = list(values)
    except TypeError:
        raise DmlTypeError(where, field, values, "a list of integers") from None
    return tuple([_number(where, f"{field}[{k}]", item) for k, item in enumerate(items)])


def _number(where: str, field: str, value: int, last: int = UINT_LAST) -> int:
    """Return an integer from 0 to ``last``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise DmlTypeError(where, field, value, "an integer") from None
    if not 0 <= number <= last:
        raise DmlError(where, field, number, f"0 to {last}")
    return number


def _flags(value: int) -> TensorFlags:
    try:
        number = operator.index(value)
    except TypeError:
        raise _type_error("Flags", value, "an integer") from None
    if number < 0:
        # Python takes -1 for all the flags that there are.
        raise _type_error("Flags", number, "TensorFlags")
    return TensorFlags(number)


def _type_error(field: str, value: object, expected: str) -> DmlTypeError:
    return DmlTypeError("BufferTensorDesc", field, value, expected)
