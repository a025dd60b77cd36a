"""The AXI4 memory of the simulated system: one or two read sides and a write side. Wires only."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.bus import Axi4

from .interface import AddressRange, MemoryControl, ReadStorage, WriteStorage
from .reading import ReadSide
from .writing import WriteSide


class Axi4Memory(wiring.Component):
    """A legal AXI4 subordinate that answers in the least possible time, or later, by its settings.

    Parameters
    ----------
    addresses : AddressRange
        Addresses of the memory.
    two : bool
        Whether there is a second port, for reads alone.

    Members
    -------
    axi : ``In(Axi4(address_width, data_width))``
    axi_b : ``In(Axi4(address_width, data_width, write=False))``
        Only with ``two``.
    control : ``In(MemoryControl(address_width))``
        All zero: AR, AW and W always ready, first R one cycle after AR, no gap, B one cycle after
        the last W. The same settings apply to both ports.
    read, read_b, write : ``Out(ReadStorage(addresses))``, ``Out(WriteStorage(addresses))``
        Ports of the RAM.

    Latency and throughput: see ``ReadSide`` and ``WriteSide``.
    """

    axi: Any
    axi_b: Any
    control: Any
    read: Any
    read_b: Any
    write: Any

    def __init__(self, addresses: AddressRange, *, two: bool) -> None:
        self._addresses = addresses
        self._two = two
        widths = addresses.address_width, addresses.data_width
        members = {
            "axi": In(Axi4(*widths)),
            "control": In(MemoryControl(addresses.address_width)),
            "read": Out(ReadStorage(addresses)),
            "write": Out(WriteStorage(addresses)),
        }
        if two:
            members["axi_b"] = In(Axi4(*widths, write=False))
            members["read_b"] = Out(ReadStorage(addresses))
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.write = write = WriteSide(self._addresses, channel=0)
        m.submodules.read = read = ReadSide(self._addresses, channel=3)
        sides: list[tuple[Any, Any, Any]] = [
            (write, self.axi, self.write),
            (read, self.axi, self.read),
        ]
        if self._two:
            m.submodules.read_b = read_b = ReadSide(self._addresses, channel=5)
            sides.append((read_b, self.axi_b, self.read_b))
        for side, axi, storage in sides:
            wiring.connect(m, wiring.flipped(self.control), side.control)
            for name, member in side.axi.signature.members.items():
                inner, outer = getattr(side.axi, name), getattr(axi, name)
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
            wiring.connect(m, side.storage, wiring.flipped(storage))
        return m
