"""A system on chip with a processor and the core in it: LiteX writes its Verilog.

VexRiscv runs a program from ROM. An interconnect, AXI or Wishbone, connects the processor and the
core's managers to the RAM, and the processor to the core's control window.
"""

from contextlib import chdir
from pathlib import Path

from litex.build.generic_platform import Pins
from litex.build.sim import SimPlatform
from litex.gen import ClockDomain, LiteXModule
from litex.soc.cores.gpio import GPIOOut
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from wishbone_core import WishboneCore

from bitlane_boards.litex import add_bitlane
from bitlane_rtl import abi
from bitlane_rtl.configurations import small

ROM, STACK, RAM, LEDS, WINDOW = 0, 0x1000_0000, 0x4000_0000, 0xF000_0000, 0x9000_0000
"""Addresses on the bus; WINDOW is the core's control window."""

ROM_BYTES, STACK_BYTES, RAM_BYTES = 0x2000, 0x1000, 0x1_0000

_CLOCK_HZ = 50_000_000
_PINS = [("clock", 0, Pins(1)), ("reset", 0, Pins(1)), ("leds", 0, Pins(2))]


class Clocking(LiteXModule):
    """The clock and the reset of everything, from pins."""

    def __init__(self, platform: SimPlatform) -> None:
        self.cd_sys = ClockDomain()
        self.comb += self.cd_sys.clk.eq(platform.request("clock"))
        self.comb += self.cd_sys.rst.eq(platform.request("reset"))


class Soc(SoCCore):
    """Processor, ROM, a RAM for its stack, one for tensors, the core, and two LEDs.

    On Wishbone, ``verilog`` is the file with the core; LiteX's own function adds the one on AXI.
    """

    add_bitlane = add_bitlane

    def __init__(
        self, platform: SimPlatform, program: list[int], verilog: Path | None = None
    ) -> None:
        super().__init__(
            platform,
            _CLOCK_HZ,
            cpu_type="vexriscv",
            bus_standard="axi" if verilog is None else "wishbone",
            integrated_rom_size=ROM_BYTES,
            integrated_rom_init=program,
            integrated_sram_size=STACK_BYTES,
            integrated_main_ram_size=RAM_BYTES,
            ident="",
            with_uart=False,
            with_timer=False,
            with_ctrl=False,
        )
        self.crg = Clocking(platform)
        self.leds = GPIOOut(platform.request("leds"))
        self.csr.add("leds", n=0)
        if verilog is None:
            self.add_bitlane(configuration=small(), memory_bytes=RAM_BYTES)
        else:
            self.bitlane = WishboneCore(platform, verilog)
            self.bus.add_master("bitlane", self.bitlane.manager)
            window = SoCRegion(origin=WINDOW, size=abi.CONTROL_SIZE, cached=False)
            self.bus.add_slave("bitlane_control", self.bitlane.control, window)
            self.irq.add("bitlane", use_loc_if_exists=True)
        names = ("rom", "sram", "main_ram", "bitlane_control")
        found = [self.mem_map["csr"], *(self.bus.regions[name].origin for name in names)]
        assert found == [LEDS, ROM, STACK, RAM, WINDOW], found


def write(program: bytes, folder: Path, verilog: Path | None = None) -> list[Path]:
    """Write the system ``soc`` with ``program`` in its ROM; return the files of all its modules.

    ``verilog`` is as for `Soc`.
    """
    words = [int.from_bytes(program[k : k + 4], "little") for k in range(0, len(program), 4)]
    platform = SimPlatform("SIM", _PINS)
    system = Soc(platform, words, verilog)
    with chdir(folder):
        platform.get_verilog(system, name="soc").write("soc.v")
    return [folder / "soc.v", *(Path(source) for source, *_ in platform.sources)]
