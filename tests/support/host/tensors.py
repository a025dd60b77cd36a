"""NumPy arrays in a device's memory as leaves of expressions, and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.compiler.nodes import Stored
from bitlane.driver.driver import Driver, Storage
from bitlane.lowering.strided import View


def upload(driver: Driver, array: NDArray[Any]) -> Stored:
    """Copy ``array``, whose memory may have gaps, steps and repetitions, to the device."""
    low, high = np.lib.array_utils.byte_bounds(array)
    storage = Storage(driver, high - low)
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    content = base.reshape(-1).view(np.uint8)
    first = low - np.lib.array_utils.byte_bounds(base)[0]
    driver.write(storage.address, content[first : first + high - low].tobytes())
    address = storage.address + array.ctypes.data - low
    return Stored(storage, View(address, array.strides, array.itemsize), array.shape)


def download(driver: Driver, stored: Stored) -> NDArray[Any]:
    """Return the elements of ``stored`` as unsigned integers."""
    storage, view = stored.storage, stored.view
    content = driver.read(storage.address, storage.size)
    offset = view.address - storage.address
    return np.ndarray(stored.shape, f"<u{view.itemsize}", content, offset, view.strides)
