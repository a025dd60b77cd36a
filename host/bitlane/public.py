"""What users find in `bitlane`: its names, and where each of them lives."""

from typing import TYPE_CHECKING

from .arrays import Array, explain
from .default import (
    asarray,
    bit_and,
    bit_copy,
    bit_count,
    bit_nand,
    bit_nor,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xnor,
    bit_xor,
    cardinality,
    default_device,
    hamming,
    jaccard,
)
from .device import Device
from .device import open_device as open
from .driver.allocator import OutOfDeviceMemory
from .driver.queue import DeviceFault
from .errors import (
    ArrayIndexError,
    BitlaneError,
    BusyError,
    CopyError,
    DeviceError,
    DeviceTimeout,
    DmlError,
    ExchangeError,
    FreedError,
    LinkError,
    MissingError,
    NotOfferedError,
    OtherDeviceError,
    SearchError,
    SettingError,
)
from .jobs.lowering import LayoutError, UnsupportedError
from .jobs.operands import AxisError, DataTypeError, OutOfRangeError, ShapeError
from .pool import Pool
from .search import BinaryIndex
from .terminal import progress
from .version import __version__

if TYPE_CHECKING:
    from . import array_api, dml

__all__ = [
    "Array",
    "ArrayIndexError",
    "AxisError",
    "BinaryIndex",
    "BitlaneError",
    "BusyError",
    "CopyError",
    "DataTypeError",
    "Device",
    "DeviceError",
    "DeviceFault",
    "DeviceTimeout",
    "DmlError",
    "ExchangeError",
    "FreedError",
    "LayoutError",
    "LinkError",
    "MissingError",
    "NotOfferedError",
    "OtherDeviceError",
    "OutOfDeviceMemory",
    "OutOfRangeError",
    "Pool",
    "SearchError",
    "SettingError",
    "ShapeError",
    "UnsupportedError",
    "__version__",
    "array_api",
    "asarray",
    "bit_and",
    "bit_copy",
    "bit_count",
    "bit_nand",
    "bit_nor",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xnor",
    "bit_xor",
    "cardinality",
    "default_device",
    "dml",
    "explain",
    "hamming",
    "jaccard",
    "open",
    "progress",
]
