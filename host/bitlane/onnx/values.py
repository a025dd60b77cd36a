"""The values of one run of a model: on the host, on the device, or on both."""

from collections.abc import Mapping

import numpy as np

from ..api.device import Device
from ..arrays import Array, compute
from .model import HostValue, Tensor


class Values:
    """Values by name. Each is sent to the device, or brought from it, once at most."""

    def __init__(self, device: Device, given: Mapping[str, Tensor]) -> None:
        self._device = device
        self._arrays = {name: x for name, x in given.items() if isinstance(x, Array)}
        self._host: dict[str, HostValue] = {
            name: x for name, x in given.items() if not isinstance(x, Array)
        }

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
        if name not in self._arrays:
            self._arrays[name] = self._device.asarray(np.asarray(self._host[name]))
        return self._arrays[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value that is an array."""
        return np.shape(self._arrays[name] if name in self._arrays else self._host[name])

    def settle(self) -> None:
        """Compute all pending arrays as one job. Raises as ``bitlane.compute``."""
        pending = [x for x in self._arrays.values() if x.pending]
        if pending:
            compute(*pending)

    def host(self, name: str) -> HostValue:
        """Return a value on the host. Computes all pending arrays as one job before."""
        if name not in self._host:
            if self._arrays[name].pending:
                self.settle()
            self._host[name] = self._arrays[name].get()
        return self._host[name]
