"""A system on chip of others' parts with the core in it: LiteX writes its Verilog.

PicoRV32 runs a program from ROM; an AXI interconnect takes it and the core's two managers to the
RAM, and it to the core's control window. Nothing of bitlane's Python is needed or known here.
"""

from contextlib import chdir
from pathlib import Path
from typing import Any

from litex.build.generic_platform import Pins
from litex.build.sim import SimPlatform
from litex.gen import ClockDomain, Instance, LiteXModule, Signal
from litex.soc.cores.gpio import GPIOOut
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import axi

ROM, RAM, LEDS, WINDOW = 0, 0x4000_0000, 0x8200_0000, 0x9000_0000
"""Where things are for the processor; WINDOW is the core's control window."""

ROM_BYTES, STACK_BYTES, RAM_BYTES = 0x2000, 0x1000, 0x1_0000

_CLOCK_HZ = 50_000_000
_ALL = ("aw", "w", "b", "ar", "r")
_PINS = [("clock", 0, Pins(1)), ("reset", 0, Pins(1)), ("leds", 0, Pins(2))]


class Clocking(LiteXModule):
    """The clock and the reset of everything, from pins."""

    def __init__(self, platform: SimPlatform) -> None:
        self.cd_sys = ClockDomain()
        self.comb += self.cd_sys.clk.eq(platform.request("clock"))
        self.comb += self.cd_sys.rst.eq(platform.request("reset"))


class Soc(SoCCore):
    """Processor, ROM, a RAM for its stack, one for tensors, the core ``module``, and two LEDs."""

    def __init__(self, platform: SimPlatform, program: list[int], module: Path) -> None:
        super().__init__(
            platform,
            _CLOCK_HZ,
            cpu_type="picorv32",
            bus_standard="axi",
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
        places = ROM, RAM, LEDS
        assert places == tuple(self.mem_map[x] for x in ("rom", "main_ram", "csr")), self.mem_map
        self.add_core(platform, module)

    def add_core(self, platform: SimPlatform, module: Path) -> None:
        """The exported module between the buses."""
        platform.add_source(str(module))
        window = axi.AXILiteInterface(data_width=32, address_width=32)
        ports = {"i_clk": self.crg.cd_sys.clk, "i_rst": self.crg.cd_sys.rst, "o_irq": Signal()}
        for prefix, channels in (("m_axi", _ALL), ("m_axi_b", ("ar", "r"))):
            bus = axi.AXIInterface(data_width=32, address_width=32, id_width=1)
            self.bus.add_master(name=prefix, master=bus)
            ports |= _ports(bus, prefix, channels, manager=True)
        ports |= _ports(window, "s_axil", _ALL, manager=False)
        self.bus.add_slave("bitlane", window, SoCRegion(origin=WINDOW, size=0x4000, cached=False))
        self.specials += Instance(module.stem, **ports)


def _ports(bus: Any, prefix: str, channels: tuple[str, ...], *, manager: bool) -> dict[str, Any]:
    """Connections of an instance whose ports ``prefix`` are those ``channels`` of ``bus``."""
    ports = {}
    for name in channels:
        channel = getattr(bus, name)
        forth, back = ("o", "i") if manager == (name in ("aw", "w", "ar")) else ("i", "o")
        fields = {"valid": channel.valid}
        fields |= {field: getattr(channel, field) for field, *_ in channel.payload.layout}
        if isinstance(bus, axi.AXIInterface):
            fields |= {"last": channel.last} if name in ("w", "r") else {}
            fields |= {"id": channel.id} if name != "w" else {}
        else:
            fields |= {"addr": channel.addr[:14]} if name in ("aw", "ar") else {}
        for field, signal in fields.items():
            ports[f"{forth}_{prefix}_{name}{field}"] = signal
        ports[f"{back}_{prefix}_{name}ready"] = channel.ready
    return ports


def write(program: bytes, module: Path, folder: Path) -> list[Path]:
    """Write the system ``soc`` with ``program`` in its ROM; the files of all its modules."""
    words = [int.from_bytes(program[k : k + 4], "little") for k in range(0, len(program), 4)]
    platform = SimPlatform("SIM", _PINS)
    system = Soc(platform, words, module)
    with chdir(folder):
        platform.get_verilog(system, name="soc").write("soc.v")
    return [folder / "soc.v", *(Path(source) for source, *_ in platform.sources)]
