"""A driver without a link: `models.record` executes the commands.

It notes every call, so that a test can show that a refusal came before anything was done.
"""

from collections.abc import Iterable
from typing import Self

import numpy as np
import numpy.typing as npt

from bitlane.driver.allocator import Allocation, Allocator
from bitlane.driver.commands import Command, encode
from bitlane.driver.geometry import Geometry
from bitlane_rtl.abi import RECORD_WORDS, Lane, Op
from support.models.record import Interpreter, Record

BASE = 0x4000_0000


class FakeLink:
    """What is left of a link when there is nothing behind it."""

    description = "fake device"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeDriver:
    """``bitlane.driver.driver.Driver`` as far as ``bitlane.dml`` and model files use it."""

    def __init__(
        self,
        size: int = 1 << 20,
        ops: frozenset[Op] = frozenset(Op),
        lanes: frozenset[Lane] = frozenset(Lane),
        counters: bool = True,
    ) -> None:
        self.geometry = Geometry(
            8, 4, 8, 20, 20, BASE, BASE + size - 1, ops=ops, lanes=lanes, counters=counters
        )
        self.link = FakeLink()
        self.circuit = Interpreter(
            memory_bytes=size,
            memory_base=BASE,
            length_bits=20,
            count_bits=20,
            ops=ops,
            lanes=lanes,
        )
        self.memory = self.circuit.memory
        self.memory[:] = 0xA5
        self.calls: list[str] = []
        self.allocator = Allocator(BASE, size)
        self.cycles = 0xFFFF_FFF0  # about to wrap, as a long-running counter does
        self.closed = False
        self.flip: int | None = None
        """If set, each command flips bit 0 of the byte this far behind its output's start."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def allocate(self, size: int) -> Allocation:
        return self.allocator.allocate(size)

    def free(self, buffer: Allocation) -> None:
        self.allocator.free(buffer)

    def write(self, address: int, data: npt.NDArray[np.uint8]) -> None:
        self.calls.append("write")
        self.memory[address - BASE : address - BASE + data.size] = data

    def read(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        self.calls.append("read")
        return self.memory[address - BASE : address - BASE + size].copy()

    def read_register(self, name: str) -> int:
        assert name == "BUSY_CYCLES"
        return self.cycles if self.geometry.counters else 0

    def run(self, commands: Iterable[Command]) -> None:
        for command in commands:
            self.calls.append(command.op.name)
            words = encode(command).tolist()
            self.circuit.execute(Record(words + [0xEEEEEEEE] * (RECORD_WORDS - len(words))))
            if self.flip is not None:
                self.memory[command.y.base - BASE + self.flip] ^= 1
            self.cycles = (self.cycles + 123) % 2**32
