"""A whole device behind the board model: registers, ring and bit operators."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bitlane_rtl.abi import CONTROL_BASE
from support.host.model_link import ModelLink


class DriverDevice:
    """A `ModelLink`, as the device behind a board's link.

    An unsupported access to the registers is an error of the driver, and fails the test.
    """

    steady = False

    def __init__(self, make: Callable[..., ModelLink] = ModelLink, **options: Any) -> None:
        self.link = make(**options)
        self.memory_base = self.link.memory_base
        self.memory_bytes = self.link.memory_bytes
        self.writes: list[tuple[int, int]] = []
        """Address and size of every write to the control window."""

    @property
    def interrupt(self) -> bool:
        return self.link.interrupt

    def read(self, address: int, size: int) -> bytes:
        return np.asarray(self.link.read(address, size)).tobytes()

    def write(self, address: int, data: bytes) -> None:
        if address >= CONTROL_BASE:
            self.writes.append((address, len(data)))
        self.link.write(address, data)
