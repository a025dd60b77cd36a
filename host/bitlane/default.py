"""The operators as functions, on one device that is opened when it is first needed."""

import atexit
import os
from threading import Lock
from typing import Final

from numpy.typing import ArrayLike, DTypeLike

from .device import Device, open_device
from .jobs.operands import AnyArray

__all__ = [
    "bit_and",
    "bit_count",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xor",
    "default_device",
    "default_url",
]

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


def bit_not(a: ArrayLike, /, *, out: AnyArray | None = None) -> AnyArray:
    """``Device.bit_not`` on the default device."""
    return default_device().bit_not(a, out=out)


def bit_and(a: ArrayLike, b: ArrayLike, /, *, out: AnyArray | None = None) -> AnyArray:
    """``Device.bit_and`` on the default device."""
    return default_device().bit_and(a, b, out=out)


def bit_or(a: ArrayLike, b: ArrayLike, /, *, out: AnyArray | None = None) -> AnyArray:
    """``Device.bit_or`` on the default device."""
    return default_device().bit_or(a, b, out=out)


def bit_xor(a: ArrayLike, b: ArrayLike, /, *, out: AnyArray | None = None) -> AnyArray:
    """``Device.bit_xor`` on the default device."""
    return default_device().bit_xor(a, b, out=out)


def bit_shift_left(a: ArrayLike, b: ArrayLike, /, *, out: AnyArray | None = None) -> AnyArray:
    """``Device.bit_shift_left`` on the default device."""
    return default_device().bit_shift_left(a, b, out=out)


def bit_shift_right(a: ArrayLike, b: ArrayLike, /, *, out: AnyArray | None = None) -> AnyArray:
    """``Device.bit_shift_right`` on the default device."""
    return default_device().bit_shift_right(a, b, out=out)


def bit_count(
    a: ArrayLike, /, dtype: DTypeLike | None = None, *, out: AnyArray | None = None
) -> AnyArray:
    """``Device.bit_count`` on the default device."""
    return default_device().bit_count(a, dtype, out=out)
