"""Transfers of elements between the host's memory and the device's, and DLPack.

Moves bytes alone. DLPack shares windows on the memory; other libraries may write through them.
"""

from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.operands import allocating, as_zeros_and_ones, expect_axes, shown
from ..compiler import Constant, Stored, apply
from ..driver import Storage
from ..errors import ExchangeError, OutOfDeviceMemory
from ..lowering import View, order_of, packed_strides
from .strided import Strided
from .value import Claim, DeviceLike, Value, changing, compute_waiting, usage_of

_SPREAD: Final = 2
"""Elements come back with their gaps if they span at most this many times their bytes."""


def reserve(
    device: DeviceLike,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    order: tuple[int, ...] | None = None,
) -> Value:
    """Reserve packed elements with any content. Raises ``OutOfDeviceMemory``."""
    device.expect_open()
    storage = Storage(device.driver, prod(shape) * dtype.itemsize)
    strides = packed_strides(shape, order, dtype.itemsize)
    view = View(storage.address, strides, dtype.itemsize)
    return Value(device, dtype, Stored(storage, view, shape))


def constant(device: DeviceLike, array: AnyArray) -> Value:
    """Return the one element of ``array``, of rank 0, as a constant of the commands that use it."""
    return Value(device, array.dtype.newbyteorder("="), Constant(as_bytes(array).tobytes()))


def upload(device: DeviceLike, array: AnyArray) -> Value:
    """Copy ``array`` to the device's memory, with its axes in the same order, without gaps.

    Raises ``OutOfDeviceMemory`` and ``LinkError``.
    """
    order = order_of(array.strides)
    try:
        value = reserve(device, array.shape, array.dtype.newbyteorder("="), order)
    except OutOfDeviceMemory as error:
        raise OutOfDeviceMemory(
            f"{error}; pass the NumPy array itself, which device.bit_xor and the others send in"
            " parts, or give a simulator more: bitlane.open('sim?memory=3GiB')"
        ) from None
    if array.size:
        device.driver.write(value.stored.view.address, as_bytes(array.transpose(order)))
    return value


def replace(target: Value, array: AnyArray) -> None:
    """Send ``array`` over the elements of ``target``, of its shape and type, in C's order.

    Raises as `changing` does, and ``ShapeError`` where elements repeat.
    """
    target.expect_writable()
    target.device.expect_open()
    if array.size:
        with changing(target) as node:
            target.device.driver.write(node.view.address, as_bytes(array))


def as_bytes(array: AnyArray) -> NDArray[np.uint8]:
    """Return the bytes of ``array``, in C's order and the device's byte order.

    The bytes of booleans become 0 and 1.
    """
    if array.dtype.kind == "b":
        array = as_zeros_and_ones(array)
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8)


def download(value: Value) -> AnyArray:
    """Copy ``value`` to the host's memory, with its axes in the same order.

    Elements far apart are brought together on the device first. Raises ``LinkError``,
    ``OutOfHostMemory``, or ``ShapeError`` for more axes than NumPy's arrays have.
    """
    value.device.expect_open()
    strided = value.strided
    expect_axes("array", strided.shape)
    if not strided.size:
        return np.empty(strided.shape, value.dtype)
    with allocating("array", strided.nbytes):
        return _read_elements(value, strided)


def _read_elements(value: Value, strided: Strided) -> AnyArray:
    if len(strided.span) > _SPREAD * strided.nbytes:
        value = value.derived(apply(Op.COPY, value.node))
        strided = value.strided
    stored, span = value.stored, strided.span
    with Claim((stored.storage,)):
        data = value.device.driver.read(stored.view.address + span.start, len(span))
    little = value.dtype.newbyteorder("<")
    elements = np.ndarray(strided.shape, little, data, -span.start, strided.strides)
    if strided.repeats or len(span) != strided.nbytes or not data.flags.writeable:
        elements = elements.copy(order="K")
    return elements.astype(value.dtype, order="K", copy=False)


# --- DLPack ------------------------------------------------------------------------------------

CPU: Final = (1, 0)
"""DLPack's kDLCPU, number 0: this computer's memory."""


def make_capsule(value: Value, copy: bool | None, dl_device: Any, **options: Any) -> Any:
    """Return a DLPack capsule of the array. Raises ``ExchangeError`` for an unmet request."""
    if options["stream"] is not None:
        raise ExchangeError(
            f"stream: {options['stream']!r}; expected None, as a device has no streams"
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
    if _is_readonly(value) and (version is None or version < (1, 0)):
        # Before its version 1.0, DLPack has no mark of memory that must not be written to.
        if copy is False:
            raise ExchangeError(
                f"copy: False with max_version {version}; expected (1, 0) or later, as the elements"
                " are read-only"
            )
        copy = True
    array = None if copy else share(value)
    if array is None:
        if copy is False:
            raise ExchangeError("copy: False; this device's memory is not this computer's")
        array = download(value)
    return array.__dlpack__(**options)


def _is_readonly(value: Value) -> bool:
    """Return whether no other library may write to the elements: booleans stay 0 and 1."""
    return value.readonly or value.dtype.kind == "b"


def share(value: Value) -> AnyArray | None:
    """Share the elements, if the device's memory is this computer's; computes them before.

    The owner of the result can change the elements at any time: as long as it is held, values that
    read the memory are computed at once, and the memory stays, also after the device is closed.
    Without elements the result is an empty array.
    """
    driver = value.device.driver
    expect_axes("array", value.shape)
    if not value.strided.size:
        return np.empty(value.shape, value.dtype)
    memory = driver.link.memory_view
    if memory is None:
        return None
    value.device.expect_open()
    node = value.stored
    # Others may read meanwhile: nothing is written yet.
    with Claim([node.storage]), driver.lock:
        shown = _Window(value, node, memory)
        usage_of(node.storage).add_window(shown)
        compute_waiting(node.storage)
        return np.asarray(shown)


class _Window:
    """A window on the device's memory for NumPy, which keeps the memory alive."""

    def __init__(self, value: Value, node: Stored, memory: AnyArray) -> None:
        self._kept = node, memory
        base = value.device.driver.geometry.memory_base
        first = memory.__array_interface__["data"][0] + node.view.address - base
        self.__array_interface__ = {
            "version": 3,
            "data": (first, _is_readonly(value)),
            "typestr": value.dtype.newbyteorder("<").str,
            "shape": node.shape,
            "strides": node.view.strides,
        }
