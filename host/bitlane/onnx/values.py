"""The values of one run of a model: on the host, on the device, or on both."""

from collections.abc import Mapping

import numpy as np

from .._typing import AnyArray
from ..api import Device
from ..arrays import Array, compute
from .model import HostValue, Tensor
from .packing import pack_bits


def send_packed(device: Device, array: AnyArray) -> Array:
    """Return truth values as packed bits on ``device``."""
    sent: Array = device.asarray(pack_bits(array, device.driver.geometry))
    return sent


class Weights:
    """The constants of a model on the device. Each is sent once, when it is first read."""

    def __init__(self, device: Device, constants: Mapping[str, AnyArray]) -> None:
        self._device = device
        self._constants = constants
        self._arrays: dict[str, Array] = {}
        self._packed: dict[str, Array] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._constants

    def host(self, name: str) -> AnyArray:
        return self._constants[name]

    def array(self, name: str) -> Array:
        """Return a constant on the device. Raises ``OutOfDeviceMemory`` or ``LinkError``."""
        if name not in self._arrays:
            self._arrays[name] = self._device.asarray(self._constants[name])
        return self._arrays[name]

    def packed(self, name: str) -> Array:
        """Return truth values as packed bits on the device. Raises as `array`."""
        if name not in self._packed:
            self._packed[name] = send_packed(self._device, self._constants[name])
        return self._packed[name]


class RunValues:
    """Values by name. Each is sent to the device, or brought from it, once at most.

    Values ``given`` take the place of ``weights`` of their names.
    """

    def __init__(self, device: Device, weights: Weights, given: Mapping[str, Tensor]) -> None:
        self._device = device
        self._weights = weights
        self._arrays = {name: x for name, x in given.items() if isinstance(x, Array)}
        self._host: dict[str, HostValue] = {
            name: x for name, x in given.items() if not isinstance(x, Array)
        }
        self._packed: dict[str, Array] = {}

    def _is_weight(self, name: str) -> bool:
        return name in self._weights and not (name in self._arrays or name in self._host)

    def add_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Add arrays on the device, which may be pending; they replace values of their names."""
        self._arrays.update(arrays)
        for name in arrays:
            self._host.pop(name, None)

    def add_host(self, results: Mapping[str, HostValue]) -> None:
        """Add values that another backend has computed."""
        self._host.update(results)

    def array(self, name: str) -> Array:
        """Return a value on the device. Raises ``OutOfDeviceMemory`` or ``LinkError``."""
        if self._is_weight(name):
            return self._weights.array(name)
        if name not in self._arrays:
            self._arrays[name] = self._device.asarray(np.asarray(self._host[name]))
        return self._arrays[name]

    def packed(self, name: str) -> Array:
        """Return truth values on the host as packed bits on the device. Raises as `array`."""
        if self._is_weight(name):
            return self._weights.packed(name)
        if name not in self._packed:
            self._packed[name] = send_packed(self._device, np.asarray(self._host[name]))
        return self._packed[name]

    def is_truth_on_host(self, name: str) -> bool:
        """Return whether a value is an array of truth values that is not on the device."""
        if name in self._arrays:
            return False
        x = self._weights.host(name) if self._is_weight(name) else self._host[name]
        return isinstance(x, np.ndarray) and x.dtype.kind == "b"

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value that is an array."""
        if name in self._arrays:
            return self._arrays[name].shape
        x = self._weights.host(name) if self._is_weight(name) else self._host[name]
        return np.asarray(x).shape

    def settle(self) -> None:
        """Compute all pending arrays as one job. Raises as ``bitlane.compute``."""
        pending = [x for x in self._arrays.values() if x.pending]
        if pending:
            compute(*pending)

    def host(self, name: str) -> HostValue:
        """Return a value on the host. Computes all pending arrays as one job before."""
        if self._is_weight(name):
            return self._weights.host(name)
        if name not in self._host:
            if self._arrays[name].pending:
                self.settle()
            self._host[name] = self._arrays[name].get()
        return self._host[name]
