"""What DirectML's objects ask of the device below them, as types. Nothing is done here."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..driver.allocator import Allocation
from ..driver.commands import Command
from ..driver.geometry import Geometry

__all__ = ["DeviceWithEngine", "Engine"]


class Engine(Protocol):
    """What this package asks of a driver; ``bitlane.driver.driver.Driver`` is one."""

    @property
    def geometry(self) -> Geometry: ...

    def allocate(self, size: int) -> Allocation: ...

    def free(self, buffer: Allocation) -> None: ...

    def write(self, address: int, data: npt.NDArray[np.uint8]) -> None: ...

    def read(self, address: int, size: int) -> npt.NDArray[np.uint8]: ...

    def run(self, commands: Iterable[Command]) -> None: ...


class DeviceWithEngine(Protocol):
    """What has a driver; ``bitlane.Device`` is one."""

    @property
    def driver(self) -> Engine: ...
