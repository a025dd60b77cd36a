"""A driver on a model of the device that records every access.

A test can show with it that a call was refused before any access.
"""

from dataclasses import dataclass, field
from typing import Any

from bitlane.driver.driver import Driver
from bitlane.links.link import BytesLike
from bitlane_rtl.abi import CONTROL_BASE, Op
from support.host.model_link import Bytes, ModelLink
from support.record import Record


@dataclass(kw_only=True)
class NotingLink(ModelLink):
    """A link to a memory without zeros at first, and a counter of cycles that is about to wrap."""

    memory_bytes: int = 1 << 16
    memory_base: int = 0x4000_0000
    busy_cycles: int | None = 0xFFFF_FFF0
    calls: list[str] = field(default_factory=list)
    """Reads and writes of the memory, and operations by their names, in order."""
    flip: int | None = None
    """If set, each command flips bit 0 of the byte at this offset from its output's start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.memory[:] = 0xA5

    def read(self, address: int, size: int) -> Bytes:
        if address < CONTROL_BASE:
            self.calls.append("read")
        return super().read(address, size)

    def write(self, address: int, data: BytesLike) -> None:
        if address < CONTROL_BASE:
            self.calls.append("write")
        super().write(address, data)

    def execute(self, record: Record) -> None:
        self.calls.append(Op(record.op).name)
        super().execute(record)
        if self.flip is not None:
            self.memory[record.word("Y_BASE") - self.memory_base + self.flip] ^= 1


class ModelDriver(Driver):
    """The driver on a `NotingLink`, which is ``model``."""

    def __init__(self, **changes: Any) -> None:
        self.model = NotingLink(**changes)
        super().__init__(self.model)
