"""A runtime without a circuit: device memory is an array, operations are the golden model's.

It notes every call, so that a test can show that a refusal came before anything was done.
"""

from typing import Self

import numpy as np
import numpy.typing as npt

from bitlane import reference
from bitlane.driver.allocator import Allocator, Buffer
from bitlane.driver.geometry import Geometry
from bitlane.jobs.lowering import View
from bitlane_rtl.abi import Lane, Op

BASE = 0x4000_0000


class FakeLink:
    """What is left of a link when there is nothing behind it."""

    description = "fake device"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeRuntime:
    """``bitlane.driver.driver.Runtime`` as far as ``bitlane.dml`` and model files use it."""

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
        self.memory = np.full(size, 0xA5, dtype=np.uint8)
        self.calls: list[str] = []
        self.allocator = Allocator(BASE, size)
        self.cycles = 0xFFFF_FFF0  # about to wrap, as a long-running counter does
        self.closed = False
        self.flip: int | None = None
        """If set, the next operation flips bit 0 of the byte this far behind its output's start."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def allocate(self, size: int, alignment: int = 64) -> Buffer:
        return self.allocator.allocate(size, alignment)

    def free(self, buffer: Buffer) -> None:
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

    def execute(
        self,
        op: Op,
        shape: tuple[int, ...],
        a: View,
        b: View | None,
        y: View,
        *,
        saturate: bool,
        arithmetic: bool = False,
    ) -> None:
        self.calls.append(op.name)
        operands = [self._window(shape, view) for view in (a, b) if view is not None]
        target = self._window(shape, y)
        target[...] = reference.compute(
            op, *operands, saturate=saturate, arithmetic=arithmetic, count_dtype=target.dtype
        )
        if self.flip is not None:
            self.memory[y.address - BASE + self.flip] ^= 1
        self.cycles = (self.cycles + 123) % 2**32

    def _window(self, shape: tuple[int, ...], view: View) -> npt.NDArray[np.unsignedinteger]:
        return np.ndarray(
            shape,
            dtype=f"<u{view.itemsize}",
            buffer=self.memory,
            offset=view.address - BASE,
            strides=view.strides,
        )
