"""The public names of `bitlane` that compute: devices, functions, and the array API.

There are two engines. Arrays of the host are computed at once, by `bitlane.streaming`: cut into
tiles, sent and read back. Arrays on a device are expressions of `bitlane.arrays`, which
`bitlane.compiler` turns into commands when elements are needed. Neither engine imports the other;
``device.py`` alone joins them, by the operands of each call.
"""

from ..arrays import namespace
from . import array_api

# Every device is made in this room, so no array is without its namespace.
namespace.supporting = array_api.supporting
