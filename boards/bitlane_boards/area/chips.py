"""The chips that circuits are placed on out of context. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..board import Family
from ..flow import FLOWS
from ..flow.families import Flow

__all__ = ["CHIPS", "Chip"]


@dataclass(frozen=True, slots=True)
class Chip:
    """A chip of a family, and the options of its tools.

    ``part``: arguments of nextpnr; ``mhz``: its target clock, as in the peers'
    figures; ``synthesis``: options of Yosys' command; ``pads``: its commands afterwards; ``pins``:
    a file of pins, for tools that need one. ``block_ram``: whether FIFOs are in block RAM.
    """

    family: Family
    title: str
    part: tuple[str, ...]
    mhz: int
    synthesis: str = ""
    pads: tuple[str, ...] = ()
    pins: str = ""
    block_ram: bool = False

    @property
    def name(self) -> str:
        """The name of its family on the command line."""
        return self.family.name.lower()

    @property
    def flow(self) -> Flow:
        return FLOWS[self.family]


CHIPS: Mapping[str, Chip] = {
    chip.name: chip
    for chip in (
        Chip(
            family=Family.ECP5,
            title="LFE5U-25F, CABGA381, speed grade 6",
            part=("--25k", "--package", "CABGA381", "--speed", "6", "--lpf-allow-unconstrained"),
            mhz=150,
        ),
        Chip(
            family=Family.ICE40,
            title="iCE40HX8K, CT256",
            part=("--hx8k", "--package", "ct256", "--pcf-allow-unconstrained"),
            mhz=80,
            block_ram=True,
        ),
        Chip(
            family=Family.GOWIN,
            title="GW1NR-9C (GW1NR-LV9QN88PC6/I5)",
            part=(
                *("--device", "GW1NR-LV9QN88PC6/I5"),
                *("--vopt", "family=GW1N-9C", "--vopt", "cst=pins"),
            ),
            mhz=100,
            synthesis="-noiopads",
            pads=("iopadmap -bits -inpad IBUF O:I -outpad OBUF I:O", "clean"),
            pins='IO_LOC "clk" 52;\nIO_LOC "i" 25;\nIO_LOC "o" 26;\n',
        ),
    )
}
"""By the name of the family."""
