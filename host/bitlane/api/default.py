"""The default device, which is opened when it is first needed, and the operators on it."""

import atexit
import os
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitlane_rtl.abi import Op

from ..arguments.promotion import Casting
from ..arguments.reductions import Reduction
from ..arrays import Array
from .catalogue import BitOperators, Output, Result
from .device import Device, open_driver

VARIABLE: Final = "BITLANE_DEVICE"
"""The environment variable that names the default device."""

DEFAULT_URL: Final = "sim"

_lock = Lock()
opened: list[Device] = []
"""The default device, once it is open."""


class _DefaultDevice(Device):
    """A shared device: leaving a ``with`` statement does not close it."""

    def __exit__(self, *raised: object) -> None:
        """Leave the device open: others may be using it."""


@atexit.register
def _close() -> None:
    for device in opened:
        device.close()


def _forget() -> None:
    """Forget the parent process's device in a forked one; its threads may have held the lock."""
    global _lock
    _lock = Lock()
    opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def default_url() -> str:
    """Return the default device's URL: environment variable BITLANE_DEVICE, else ``sim``."""
    return os.environ.get(VARIABLE) or DEFAULT_URL


def default_device() -> Device:
    """Return the device of the module's functions, `default_url`.

    The first call of a process opens it, as does the first one after its ``close``; it is closed
    when Python ends. Leaving a ``with`` statement does not close it. Raises ``LinkError``.
    """
    with _lock:
        if not opened or opened[0].closed:
            opened[:] = [_DefaultDevice(open_driver(default_url()))]
        return opened[0]


def _device_of(*operands: object) -> Device:
    """Return the device that one of the operands is on, else the default one."""
    for x in operands:
        if isinstance(x, Array) and isinstance(x.device, Device):
            return x.device
    return default_device()


def asarray(x: ArrayLike, dtype: DTypeLike | None = None, *, copy: bool | None = None) -> Array:
    """Return ``x`` as an array on the default device; see ``Device.asarray``."""
    return default_device().asarray(x, dtype, copy=copy)


class AnyDevice(BitOperators):
    """The operators on the device of an operand, else on the default device."""

    def _unary(self, op: Op, a: ArrayLike, out: Output | None) -> Result:
        return _device_of(a, out)._unary(op, a, out)

    def _binary(
        self, op: Op, a: ArrayLike, b: ArrayLike, out: Output | None, casting: Casting
    ) -> Result:
        return _device_of(a, b, out)._binary(op, a, b, out, casting)

    def _count(self, op: Op, a: ArrayLike, dtype: DTypeLike | None, out: Output | None) -> Result:
        return _device_of(a, out)._count(op, a, dtype, out)

    def _row_sums(self, op: Op, operands: tuple[ArrayLike, ...], reduction: Reduction) -> Result:
        return _device_of(*operands)._row_sums(op, operands, reduction)

    def _jaccard(self, a: ArrayLike, b: ArrayLike, reduction: Reduction) -> NDArray[np.float64]:
        return _device_of(a, b)._jaccard(a, b, reduction)

    def __repr__(self) -> str:
        return "bitlane"
