"""Models of vendors' cells: as their makers describe them, port by port."""

import random

from amaranth.hdl import ClockSignal, Const, Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins.model import VENDOR_CELLS
from cppsim import Model
from cppsim.circuits import Circuit


class Ram(wiring.Component):
    """One ``SB_SPRAM256KA``."""

    address: In(14)
    data: In(16)
    mask: In(4)
    write: In(1)
    select: In(1)
    out: Out(16)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = Instance(
            "SB_SPRAM256KA",
            i_CLOCK=ClockSignal(),
            i_ADDRESS=self.address,
            i_DATAIN=self.data,
            i_MASKWREN=self.mask,
            i_WREN=self.write,
            i_CHIPSELECT=self.select,
            i_STANDBY=Const(0),
            i_SLEEP=Const(0),
            i_POWEROFF=Const(1),
            o_DATAOUT=self.out,
        )
        return m


def test_large_ram_reads_holds_and_writes_groups_of_four_bits() -> None:
    ram = Model(Circuit(Ram(), VENDOR_CELLS))
    choose = random.Random(1)
    stored = dict.fromkeys((0, 1, 8192, 16383), 0)
    out = None
    for _ in range(3000):
        address = choose.choice(list(stored))
        data, mask = choose.getrandbits(16), choose.getrandbits(4)
        write, select = choose.getrandbits(1), choose.getrandbits(1)
        given = {"address": address, "data": data, "mask": mask, "write": write, "select": select}
        for port, value in given.items():
            ram.set(port, value)
        ram.step()
        if select and write:
            bits = sum(0xF << 4 * group for group in range(4) if mask >> group & 1)
            stored[address] = stored[address] & ~bits | data & bits
            # Undefined by Lattice; by this model the opposite of the data.
            out = data ^ 0xFFFF
        elif select:
            out = stored[address]
        assert out is None or ram.get("out") == out, given
    ram.close()
