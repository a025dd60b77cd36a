"""The public names of `bitlane` that compute: devices, functions, and the array API.

There are two engines. Arrays of the host are computed at once, by `bitlane.streaming`: cut into
tiles, sent and read back. Arrays on a device are expressions of `bitlane.arrays`, which
`bitlane.compiler` turns into commands when elements are needed. Neither engine imports the other;
``device.py`` alone joins them, by the operands of each call.
"""

from ..arrays import namespace
from . import array_api
from .catalogue import BitOperators, Output, method_name
from .chunked import Chunked, call_of, expect_on_host
from .default import default_device, default_url
from .device import Device, open_device, open_driver

__all__ = [
    "BitOperators",
    "Chunked",
    "Device",
    "Output",
    "call_of",
    "default_device",
    "default_url",
    "expect_on_host",
    "method_name",
    "open_device",
    "open_driver",
]

# Every device is made in this room, so no array is without its namespace.
namespace.supporting = array_api.supporting
