"""The operators as functions, on one device that is opened when it is first needed."""

import atexit
import os
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .arrays import Array
from .arrays.elementwise import Axes
from .device import Device, Out, Result, open_device
from .signatures import binary, count, unary
from .streaming.promotion import Casting

VARIABLE: Final = "BITLANE_DEVICE"
"""The environment variable that names the default device."""

DEFAULT_URL: Final = "sim"

_lock = Lock()
_opened: list[Device] = []


class _DefaultDevice(Device):
    """Everybody's device: leaving a ``with`` statement leaves it open."""

    def __exit__(self, *raised: object) -> None:
        """Others may be using the device."""


@atexit.register
def _close() -> None:
    for device in _opened:
        device.close()


def _forget() -> None:
    """In a forked process: the device is another one's, whose threads may have held the lock."""
    global _lock
    _lock = Lock()
    _opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def default_url() -> str:
    """What the default device is: environment variable BITLANE_DEVICE, else ``sim``."""
    return os.environ.get(VARIABLE) or DEFAULT_URL


def default_device() -> Device:
    """The device of the module's functions, `default_url`.

    Opened by the first call of a process, and by the first one after its ``close``; closed when
    Python ends.
    Leaving a ``with`` statement does not close it. Raises ``LinkError``.
    """
    with _lock:
        if not _opened or _opened[0].closed:
            _opened[:] = [_DefaultDevice(open_device(default_url()).driver)]
        return _opened[0]


def _device_of(*operands: object) -> Device:
    """The device that one of the operands is on, else the default one."""
    for x in operands:
        if isinstance(x, Array) and isinstance(x.device, Device):
            return x.device
    return default_device()


def asarray(x: ArrayLike, dtype: DTypeLike | None = None, *, copy: bool | None = None) -> Array:
    """``Device.asarray`` on the default device."""
    return default_device().asarray(x, dtype, copy=copy)


@unary
def bit_not(a: ArrayLike, /, *, out: Out | None = None) -> Result:
    """``Device.bit_not``, on the device of an operand or the default one."""
    return _device_of(a, out).bit_not(a, out=out)


@unary
def bit_copy(a: ArrayLike, /, *, out: Out | None = None) -> Result:
    """``Device.bit_copy``, on the device of an operand or the default one."""
    return _device_of(a, out).bit_copy(a, out=out)


@binary
def bit_and(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_and``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_and(a, b, out=out, casting=casting)


@binary
def bit_or(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_or``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_or(a, b, out=out, casting=casting)


@binary
def bit_xor(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_xor``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_xor(a, b, out=out, casting=casting)


@binary
def bit_nand(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_nand``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_nand(a, b, out=out, casting=casting)


@binary
def bit_nor(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_nor``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_nor(a, b, out=out, casting=casting)


@binary
def bit_xnor(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_xnor``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_xnor(a, b, out=out, casting=casting)


@binary
def bit_shift_left(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_shift_left``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_shift_left(a, b, out=out, casting=casting)


@binary
def bit_shift_right(
    a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
) -> Result:
    """``Device.bit_shift_right``, on the device of an operand or the default one."""
    return _device_of(a, b, out).bit_shift_right(a, b, out=out, casting=casting)


@count
def bit_count(a: ArrayLike, /, dtype: DTypeLike | None = None, *, out: Out | None = None) -> Result:
    """``Device.bit_count``, on the device of an operand or the default one."""
    return _device_of(a, out).bit_count(a, dtype, out=out)


def cardinality(
    a: ArrayLike, axis: Axes = -1, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Result:
    """``Device.cardinality``, on the device of an operand or the default one."""
    return _device_of(a).cardinality(a, axis, dtype=dtype, keepdims=keepdims)


def hamming(
    a: ArrayLike,
    b: ArrayLike,
    axis: Axes = -1,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Result:
    """``Device.hamming``, on the device of an operand or the default one."""
    return _device_of(a, b).hamming(a, b, axis, dtype=dtype, keepdims=keepdims)


def jaccard(
    a: ArrayLike, b: ArrayLike, axis: Axes = -1, *, keepdims: bool = False
) -> NDArray[np.float64]:
    """``Device.jaccard``, on the device of an operand or the default one."""
    return _device_of(a, b).jaccard(a, b, axis, keepdims=keepdims)
