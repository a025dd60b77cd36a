"""Elements on their way between the host's memory and the device's. Moves bytes alone."""

from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from ..compiler.nodes import Constant, Stored, apply
from ..driver.driver import Storage
from ..lowering.routes import View
from ..streaming.operands import AnyArray, expect_axes, host_memory, order_of, packed_strides
from .strided import Strided
from .value import Home, Value, changing, using

_SPREAD: Final = 2
"""Elements come back with their gaps while they span no more than so many times their bytes."""


def reserve(
    home: Home, shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None = None
) -> Value:
    """Elements that are whatever the memory holds, packed. Raises ``OutOfDeviceMemory``."""
    home.expect_open()
    storage = Storage(home.driver, prod(shape) * dtype.itemsize)
    strides = packed_strides(shape, order, dtype.itemsize)
    view = View(storage.address, strides, dtype.itemsize)
    return Value(home, dtype, Stored(storage, view, shape))


def constant(home: Home, array: AnyArray) -> Value:
    """The one element of ``array``, of rank 0; it is sent with what uses it."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return Value(home, array.dtype.newbyteorder("="), Constant(little.tobytes()))


def upload(home: Home, array: AnyArray) -> Value:
    """A copy of ``array`` in the device's memory, with its axes in the same order, without gaps.

    Raises ``OutOfDeviceMemory`` and ``LinkError``.
    """
    order = order_of(array.strides)
    value = reserve(home, array.shape, array.dtype.newbyteorder("="), order)
    if array.size:
        home.driver.write(value.stored.view.address, _bytes(array.transpose(order)))
    return value


def replace(target: Value, array: AnyArray) -> None:
    """Send ``array`` over the elements of ``target``, of its shape and type, in C's order.

    Raises as `changing` does, and ``ShapeError`` where elements repeat.
    """
    target.expect_writable()
    target.home.expect_open()
    if array.size:
        with changing(target) as node:
            target.home.driver.write(node.view.address, _bytes(array))


def _bytes(array: AnyArray) -> NDArray[np.uint8]:
    """The bytes of ``array``, in C's order and the device's."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8)


def download(value: Value) -> AnyArray:
    """A copy of ``value`` in the host's memory, with its axes in the same order.

    Elements far apart are brought together on the device first. Raises ``LinkError``,
    ``OutOfHostMemory``, or ``ShapeError`` for more axes than NumPy's arrays have.
    """
    value.home.expect_open()
    strided = value.strided
    expect_axes("array", strided.shape)
    if not strided.size:
        return np.empty(strided.shape, value.dtype)
    with host_memory("array", strided.nbytes):
        return _downloaded(value, strided)


def _downloaded(value: Value, strided: Strided) -> AnyArray:
    if len(strided.span) > _SPREAD * strided.nbytes:
        value = value.derived(apply(Op.COPY, value.node))
        strided = value.strided
    stored, span = value.stored, strided.span
    with using((stored.storage,)):
        data = value.home.driver.read(stored.view.address + span.start, len(span))
    little = value.dtype.newbyteorder("<")
    elements = np.ndarray(strided.shape, little, data, -span.start, strided.strides)
    if strided.repeats or len(span) != strided.nbytes or not data.flags.writeable:
        elements = elements.copy(order="K")
    return elements.astype(value.dtype, order="K", copy=False)
