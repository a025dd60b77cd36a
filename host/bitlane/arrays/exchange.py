"""Arrays for other libraries, without a copy where the device's memory is this computer's: DLPack.

Hands out windows on the memory. What other libraries do there is their own doing.
"""

from typing import Any, Final

import numpy as np

from ..compiler.nodes import Stored
from ..errors import ExchangeError
from ..streaming.operands import AnyArray, expect_axes, shown
from .transfers import download
from .value import Value, changing, usage_of

CPU: Final = (1, 0)
"""DLPack's kDLCPU, the first one: this computer's memory, or a copy there."""


def capsule(value: Value, copy: bool | None, dl_device: Any, **options: Any) -> Any:
    """Return a DLPack capsule of the array. Raises ``ExchangeError`` for an unmet request."""
    if options["stream"] is not None:
        raise ExchangeError(
            f"stream: {options['stream']!r}; expected None, as there are no streams"
        )
    if dl_device is not None and not (isinstance(dl_device, tuple) and dl_device == CPU):
        raise ExchangeError(
            f"dl_device: {shown(dl_device)}; expected {CPU}, this computer's memory"
        )
    version = options["max_version"]
    pair = isinstance(version, tuple) and [type(part) for part in version] == [int, int]
    if version is not None and not pair:
        raise ExchangeError(
            f"max_version: {shown(version)}; expected None or two integers (major, minor)"
        )
    array = None if copy else shared(value)
    if array is None:
        if copy is False:
            raise ExchangeError("copy: False; this device's memory is not this computer's")
        array = download(value)
    return array.__dlpack__(**options)


def shared(value: Value) -> AnyArray | None:
    """The elements where they lie, if that is this computer's memory; computes them before.

    Whoever has them can change them at any time: as long as they do, what reads them is computed at
    once. The memory stays as long as the result is held, also after the device has been closed.
    Without elements there is nothing to share, or to copy: the result is an empty array.
    """
    driver = value.home.driver
    expect_axes("array", value.shape)
    if not value.strided.size:
        return np.empty(value.shape, value.dtype)
    memory = driver.link.host_memory
    if memory is None:
        return None
    with changing(value) as node:
        shown = _Window(value, node, memory)
        usage_of(node.storage).windows.add(shown)
        return np.asarray(shown)


class _Window:
    """Elements of the device's memory as NumPy sees them, and what keeps them there."""

    def __init__(self, value: Value, node: Stored, memory: AnyArray) -> None:
        self._kept = node, memory
        base = value.home.driver.geometry.memory_base
        first = memory.__array_interface__["data"][0] + node.view.address - base
        self.__array_interface__ = {
            "version": 3,
            "data": (first, value.shown_only),
            "typestr": value.dtype.newbyteorder("<").str,
            "shape": node.shape,
            "strides": node.view.strides,
        }
