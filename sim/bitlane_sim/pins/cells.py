"""Models of vendors' cells for simulation, written for this."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


class SinglePortRam256K(wiring.Component):
    """``SB_SPRAM256KA``, the large RAM of iCE40 UltraPlus, powered and awake.

    Lattice FPGA-TN-02022, section 3. A write leaves the output undefined there; here it becomes the
    inverse of the written word, so that nothing can rely on it.
    """

    ADDRESS: Signal
    DATAIN: Signal
    MASKWREN: Signal
    WREN: Signal
    CHIPSELECT: Signal
    DATAOUT: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "ADDRESS": In(14),
                "DATAIN": In(16),
                "MASKWREN": In(4),
                "WREN": In(1),
                "CHIPSELECT": In(1),
                "DATAOUT": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words: Any = Memory(shape=16, depth=1 << 14, init=[])
        m.submodules.words = words
        write = words.write_port(granularity=4)
        read = words.read_port(domain="comb")
        store = Signal()
        m.d.comb += [
            store.eq(self.CHIPSELECT & self.WREN),
            write.addr.eq(self.ADDRESS),
            write.data.eq(self.DATAIN),
            write.en.eq(self.MASKWREN & store.replicate(4)),
            read.addr.eq(self.ADDRESS),
        ]
        with m.If(store):
            m.d.sync += self.DATAOUT.eq(~self.DATAIN)
        with m.Elif(self.CHIPSELECT):
            m.d.sync += self.DATAOUT.eq(read.data)
        return m


VENDOR_CELLS = {"SB_SPRAM256KA": SinglePortRam256K}
"""The component that replaces an Instance, by the Instance's type."""
