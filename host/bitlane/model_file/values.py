"""JSON numbers as elements of a data type, and elements as DxDispatch prints them."""

from math import isfinite

import numpy as np
import numpy.typing as npt

from ..dml import DataType
from .node import Node

__all__ = ["DATA_TYPE_PREFIX", "element", "plain", "print_flat", "print_verbose", "read_data_type"]

DATA_TYPE_PREFIX = "DML_TENSOR_DATA_TYPE_"

_NAMED = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}

Array = npt.NDArray[np.generic]


def read_data_type(node: Node) -> DataType:
    """A data type by its full name or its suffix, ``UNKNOWN`` included."""
    return DataType[node.choice(list(DataType.__members__), DATA_TYPE_PREFIX)]


def element(node: Node, data_type: DataType) -> Array:
    """The number at ``node`` as one element of ``data_type``, without dimensions.

    Integer types take integers in their range. Float types take any number that does not
    overflow, and the strings "nan", "inf" and "-inf" in any case. Raises ``ModelFileError``.
    """
    dtype = data_type.dtype
    if dtype.kind != "f":
        bits = dtype.itemsize * 8
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if dtype.kind == "i" else (0, 1 << bits)
        return np.array(node.integer(low, high - 1), dtype)
    value = node.value
    if isinstance(value, str):
        if value.lower() not in _NAMED:
            raise node.error('a number, "nan", "inf" or "-inf"')
        return np.array(_NAMED[value.lower()], dtype)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise node.error('a number, "nan", "inf" or "-inf"')
    try:
        number = np.float64(float(value))
    except OverflowError:
        raise node.error(f"a number that {data_type.name} can hold") from None
    with np.errstate(over="ignore", under="ignore"):
        # To half precision by way of single, as DxDispatch does: the two roundings can differ
        # from one.
        single = number if data_type is DataType.FLOAT64 else number.astype(np.float32)
        result = np.array(single, dtype)
    if np.isinf(result):
        raise node.error(f"a number that {data_type.name} can hold")
    return result


def print_flat(values: Array) -> str:
    """Elements on one line. Floats have six significant digits, as C++ prints them."""
    return ", ".join(_plain(value) for value in values)


def print_verbose(values: Array) -> str:
    """A line for each element: its index, its value, and its encoding in hexadecimal."""
    index_width = len(str(max(values.size, 1)))
    digits = values.dtype.itemsize * 2
    encodings = values.view(f"<u{values.dtype.itemsize}")
    return "\n".join(
        f"[{index:{index_width}}] {_plain(value)} (0x{int(encoding):0{digits}X})"
        for index, (value, encoding) in enumerate(zip(values, encodings, strict=True))
    )


def plain(values: Array) -> list[int | float | str]:
    """Elements as JSON has them; what is no finite number as model files write it."""
    numbers: list[int | float] = values.tolist()
    return [x if isfinite(x) else str(x) for x in numbers]


def _plain(value: np.generic) -> str:
    return f"{float(value):g}" if isinstance(value, np.floating) else str(int(value))
