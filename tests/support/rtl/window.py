"""A host at the control port of a circuit, for tests of registers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from bitlane_rtl.abi import REGISTERS, register

_OFFSETS = {entry.name: entry.offset for entry in REGISTERS}


@dataclass
class Host:
    """A host that accesses registers by name, or the control port by offset.

    ``get`` and ``set`` access the circuit's other ports.
    """

    ctx: Any
    dut: Any
    port: str = "control"
    offsets: Mapping[str, int] = field(default_factory=lambda: _OFFSETS)

    def get(self, port: str) -> int:
        return int(self.ctx.get(attrgetter(port)(self.dut)))

    def set(self, **values: Any) -> None:
        for port, value in values.items():
            self.ctx.set(getattr(self.dut, port), value)

    def access(self, where: str | int = 0x3FFC, **values: int) -> None:
        """Set the ports of the control window."""
        address = self.offsets[where] if isinstance(where, str) else where
        for port, value in {"address": address, **values}.items():
            self.ctx.set(attrgetter(f"{self.port}.{port}")(self.dut), value)

    async def tick(self, cycles: int = 1) -> None:
        await self.ctx.tick().repeat(cycles)

    async def pulse(self, port: str, cycles: int = 1) -> None:
        self.set(**{port: 1})
        await self.tick(cycles)
        self.set(**{port: 0})

    async def write(self, where: str | int, word: int) -> None:
        self.access(where, write_data=word, write=1)
        await self.tick()
        self.access(write_data=~word & 0xFFFF_FFFF, write=0)

    async def read(self, where: str | int) -> int:
        self.access(where, read=1)
        await self.tick()
        self.access(read=0)
        return self.get(f"{self.port}.read_data")

    async def fields(self, name: str) -> dict[str, int]:
        word = await self.read(name)
        return {bits.name: bits.extract(word) for bits in register(name).bits}
