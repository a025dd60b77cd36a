"""Frames of requests for the serial line. Answers are ignored."""

import random

from bitlane_rtl.abi import CONTROL_BASE, register
from bitlane_rtl.abi.frames import Request
from support.serial.frames import DELIMITER, frame, request

__all__ = ["RequestWriter"]


class RequestWriter:
    """Numbers requests by ``sequence``, and draws the sequence number of HELLO from ``chance``."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.sequence = 0

    def hello(self) -> bytes:
        self.sequence = self._chance.randrange(256)
        return DELIMITER + self._request(Request.HELLO, self._chance.getrandbits(32), 0)

    def register(self, name: str, value: int) -> bytes:
        """Write a register of 32 bits."""
        return self.write(CONTROL_BASE + register(name).offset, value.to_bytes(4, "little"))

    def read(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes."""
        return self._request(Request.READ, address, size)

    def write(self, address: int, data: bytes) -> bytes:
        return self._request(Request.WRITE, address, len(data), data)

    def _request(self, kind: Request, address: int, size: int, data: bytes = b"") -> bytes:
        self.sequence += 1
        return frame(request(self.sequence - 1, kind, address, size, data))
