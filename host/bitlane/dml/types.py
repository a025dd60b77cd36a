"""DirectML's enumerations, with DirectML's values. Names and numbers only: no rule lives here."""

from contextlib import suppress
from enum import IntEnum, IntFlag
from functools import cache
from typing import cast

import numpy as np
import numpy.typing as npt

from ..errors import DmlTypeError


class DataType(IntEnum):
    """``DML_TENSOR_DATA_TYPE``: how the elements of a tensor are encoded.

    The bit operators act on the native encoding, so that a type matters to them for its width
    alone (and for which types an operator takes).
    """

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11

    @property
    def itemsize(self) -> int:
        """Bytes of an element: 1, 2, 4 or 8. Raises ``ValueError`` for ``UNKNOWN``."""
        return self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The little-endian NumPy type. Raises ``ValueError`` for ``UNKNOWN``."""
        if self is DataType.UNKNOWN:
            raise ValueError("DataType.UNKNOWN has no size and no NumPy type")
        return _dtype_of(self)

    @classmethod
    def from_numpy(cls, dtype: npt.DTypeLike) -> "DataType":
        """The data type that a NumPy type is, in either byte order. Raises ``DmlTypeError``."""
        names = [member.name for member in cls if member is not cls.UNKNOWN]
        name, found = "", cast(object, dtype)
        if dtype is not None:  # which NumPy takes for float64
            with suppress(TypeError):
                found = np.dtype(dtype).name
                name = found.upper()
        if name not in names:
            raise DmlTypeError("DataType", "NumPy", found, f"one of {', '.join(names).lower()}")
        return cls[name]


@cache
def _dtype_of(data_type: DataType) -> np.dtype[np.generic]:
    return np.dtype(data_type.name.lower()).newbyteorder("<")


class TensorFlags(IntFlag):
    """``DML_TENSOR_FLAGS``."""

    NONE = 0
    OWNED_BY_DML = 1
    """Inputs only: bound once, when the operator is initialised, and never when it is executed."""


class ExecutionFlags(IntFlag):
    """``DML_EXECUTION_FLAGS``, given to ``Device.compile_operator``.

    Half precision and meta commands mean nothing to bit operators: both flags are accepted and
    change nothing.
    """

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4
    """Bindings are read when the command list is executed, not when the dispatch is recorded."""


class Feature(IntEnum):
    """``DML_FEATURE``: what ``Device.check_feature_support`` can be asked."""

    TENSOR_DATA_TYPE_SUPPORT = 0
    FEATURE_LEVELS = 1


class FeatureLevel(IntEnum):
    """``DML_FEATURE_LEVEL``, 0xMm00. Each level has all that the levels below it have.

    For the bit operators there are four steps: none below 2_1, the shifts at 2_1, all seven at
    3_0, more data types at 4_1; the levels above change nothing.
    """

    LEVEL_1_0 = 0x1000
    LEVEL_2_0 = 0x2000
    LEVEL_2_1 = 0x2100
    LEVEL_3_0 = 0x3000
    LEVEL_3_1 = 0x3100
    LEVEL_4_0 = 0x4000
    LEVEL_4_1 = 0x4100
    LEVEL_5_0 = 0x5000
    LEVEL_5_1 = 0x5100
    LEVEL_5_2 = 0x5200
    LEVEL_6_0 = 0x6000
    LEVEL_6_1 = 0x6100
    LEVEL_6_2 = 0x6200
    LEVEL_6_3 = 0x6300
    LEVEL_6_4 = 0x6400

    def __str__(self) -> str:
        return self.name.removeprefix("LEVEL_")

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)


class OperatorType(IntEnum):
    """``DML_OPERATOR_TYPE`` of the seven element-wise bit operators, and of REDUCE in graphs."""

    REDUCE = 55
    ELEMENT_WISE_BIT_SHIFT_LEFT = 97
    ELEMENT_WISE_BIT_SHIFT_RIGHT = 98
    ELEMENT_WISE_BIT_AND = 121
    ELEMENT_WISE_BIT_OR = 122
    ELEMENT_WISE_BIT_XOR = 123
    ELEMENT_WISE_BIT_NOT = 124
    ELEMENT_WISE_BIT_COUNT = 125

    def __str__(self) -> str:
        return f"DML_OPERATOR_{self.name}"

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)


class ReduceFunction(IntEnum):
    """``DML_REDUCE_FUNCTION``: what elements are combined into. Only SUM is offered."""

    ARGMAX = 0
    ARGMIN = 1
    AVERAGE = 2
    L1 = 3
    L2 = 4
    LOG_SUM = 5
    LOG_SUM_EXP = 6
    MAX = 7
    MIN = 8
    MULTIPLY = 9
    SUM = 10
    SUM_SQUARE = 11
