"""A memory for third-party bus models that counts every access and fails where a test requests it.

It refuses an access to an address outside its bytes, and records it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cocotbext.axi import AxiBus, AxiRamRead, AxiRamWrite, AxiReadBus, AxiResp
from numpy.typing import NDArray

SPACE = 1 << 32
"""Size of the bus's address space; the models wrap addresses beyond the memory's length."""


@dataclass
class Memory:
    """Bytes from ``base`` on, in the form in which `cocotbext.axi` takes a memory.

    ``bad`` are bytes whose beat is answered with ``response``.
    """

    data: NDArray[np.uint8]
    base: int = 0
    bad: frozenset[int] = frozenset()
    response: AxiResp = AxiResp.SLVERR
    outside: list[str] = field(default_factory=list)
    """Accesses to addresses that the memory does not have."""
    reads: int = 0
    writes: int = 0
    """Runs of bytes that were read and written."""

    def __len__(self) -> int:
        return SPACE

    def __getitem__(self, where: slice) -> bytes:
        self.reads += 1
        return self.data[self._place(where, "read")].tobytes()

    def __setitem__(self, where: slice, data: bytes) -> None:
        self.writes += 1
        self.data[self._place(where, "write")] = np.frombuffer(data, np.uint8)

    def _place(self, where: slice, what: str) -> slice:
        first, end = where.start - self.base, where.stop - self.base
        if not 0 <= first <= end <= self.data.size:
            self.outside.append(f"{what} of {where.start:#x} to {where.stop - 1:#x}")
            raise IndexError(self.outside[-1])
        if not self.bad.isdisjoint(range(where.start, where.stop)):
            raise OSError("told to fail")
        return slice(first, end)

    @contextmanager
    def failing(self, bad: frozenset[int], response: AxiResp) -> Iterator[None]:
        """Answer accesses to the bytes ``bad`` with ``response``."""
        self.bad, self.response = bad, response
        yield
        self.bad = frozenset()


def connect(dut: Any, memory: Memory, two: bool) -> dict[str, Any]:
    """Attach models of a memory to all managers of a core; return their channels, by name.

    The models send SLVERR alone. A test that requests DECERR gets it in place of SLVERR.
    """
    bus = AxiBus.from_prefix(dut, "m_axi")
    write = AxiRamWrite(bus.write, dut.clk, dut.rst, mem=memory)
    read = AxiRamRead(bus.read, dut.clk, dut.rst, mem=memory)
    channels = {"aw": write.aw_channel, "w": write.w_channel, "b": write.b_channel}
    channels |= {"ar": read.ar_channel, "r": read.r_channel}
    _translate(write.b_channel, "bresp", memory)
    _translate(read.r_channel, "rresp", memory)
    if two:
        second = AxiRamRead(AxiReadBus.from_prefix(dut, "m_axi_b"), dut.clk, dut.rst, mem=memory)
        channels |= {"ar_b": second.ar_channel, "r_b": second.r_channel}
        _translate(second.r_channel, "rresp", memory)
    return channels


def _translate(channel: Any, name: str, memory: Memory) -> None:
    send = channel.send

    async def translated(item: Any) -> None:
        if getattr(item, name) == AxiResp.SLVERR:
            setattr(item, name, memory.response)
        await send(item)

    channel.send = translated
