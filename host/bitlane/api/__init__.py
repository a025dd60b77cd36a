"""The public names of `bitlane` that compute: devices, functions, and the array API."""

from ..arrays import namespace
from . import array_api

# Every device is made in this room, so no array is without its namespace.
namespace.supporting = array_api.supporting
