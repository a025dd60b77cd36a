"""What users find in `bitlane`: its names, and where each of them lives."""

from typing import TYPE_CHECKING

from .default import (
    bit_and,
    bit_count,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xor,
    default_device,
)
from .device import Device
from .device import open_device as open
from .driver.allocator import OutOfDeviceMemory
from .driver.queue import DeviceFault
from .errors import BitlaneError, DeviceError, DeviceTimeout, DmlError, LinkError, SettingError
from .jobs.lowering import LayoutError, UnsupportedError
from .jobs.operands import DataTypeError, OutOfRangeError, ShapeError
from .terminal import progress
from .version import __version__

if TYPE_CHECKING:
    from . import dml

__all__ = [
    "BitlaneError",
    "DataTypeError",
    "Device",
    "DeviceError",
    "DeviceFault",
    "DeviceTimeout",
    "DmlError",
    "LayoutError",
    "LinkError",
    "OutOfDeviceMemory",
    "OutOfRangeError",
    "SettingError",
    "ShapeError",
    "UnsupportedError",
    "__version__",
    "bit_and",
    "bit_count",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xor",
    "default_device",
    "dml",
    "open",
    "progress",
]
