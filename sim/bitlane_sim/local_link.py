"""The part that all links to devices of this process share: their memory is an array here."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import LinkError
from bitlane.links.link import Link
from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, WORD_BYTES
from bitlane_rtl.configuration import Configuration


class LocalLink(Link):
    """A link to a device of this process. Its methods raise ``LinkError`` for bad addresses."""

    @property
    @abstractmethod
    def host_memory(self) -> NDArray[np.uint8]:
        """The bytes of the device's memory itself."""

    @property
    @abstractmethod
    def configuration(self) -> Configuration:
        """The parameters of the circuit."""

    def _expect_open(self) -> None:
        if self.closed:
            raise LinkError(f"{self.description}: the link is closed")

    def _offsets(self, address: int, size: int) -> range:
        """Return the offsets of words in the control window."""
        offset = address - CONTROL_BASE
        if offset % WORD_BYTES or size % WORD_BYTES or offset + size > CONTROL_SIZE:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are not whole words of the"
                " control window"
            )
        return range(offset, offset + size, WORD_BYTES)

    def _memory(self, address: int, size: int) -> NDArray[np.uint8]:
        configuration = self.configuration
        start = address - configuration.memory_base
        if start < 0 or start + size > configuration.memory_bytes:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are outside the memory,"
                f" {configuration.memory_base:#x} to {configuration.memory_last:#x}"
            )
        return self.host_memory[start : start + size]
