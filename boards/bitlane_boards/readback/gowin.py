"""Translates Yosys' synthesised netlist for a Gowin FPGA to a netlist of gates.

Cells as in Yosys' models of them (gowin/cells_sim.v); of the block RAM, which has no behaviour
there, Gowin UG285.
"""

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..pins import HIGH, LOW
from .json_netlist import ASYNCHRONOUS, FALLING, THROUGH, Cell, CellReader, Translation

__all__ = ["CELLS"]

_FLIP_FLOPS = {
    f"DFF{falling}{clear}{enabled}": (falling, clear, enabled)
    for falling, clear, enabled in product(("", "N"), ("", *"SRPC"), ("", "E"))
}
"""Falling edge, letter of the set or reset, and enable of each flip-flop, by its name."""
_CLEARS = {"S": ("SET", 1), "R": ("RESET", 0), "P": ("PRESET", 1), "C": ("CLEAR", 0)}

_ROWS = 64
"""The number of parameters that hold a block RAM's first contents."""

_ADD_OR_SUBTRACT = 2
"""The ALU_MODE that Yosys uses: I3 chooses between I0 + I1 and I0 - I1."""


def _constant(t: Translation, cell: Cell) -> None:
    t.tie(cell.bit(cell.kind[0]), HIGH if cell.kind == "VCC" else LOW)


def _pll(t: Translation, cell: Cell) -> None:
    others = any(cell.bit(port) for port in ("CLKOUTP", "CLKOUTD", "CLKOUTD3"))
    cell.refuse(others, "a PLL with outputs other than CLKOUT is")
    t.pll(cell, {"CLKOUT": (cell.number("FBDIV_SEL") + 1) / (cell.number("IDIV_SEL") + 1)})


def _lut(t: Translation, cell: Cell) -> None:
    inputs = [t.of(cell.bit(f"I{index}")) for index in range(int(cell.kind[-1]))]
    t.builder.lut(cell.number("INIT"), inputs, t.drive(cell.bit("F")))


def _mux(t: Translation, cell: Cell) -> None:
    inputs = [t.of(cell.bit(port)) for port in ("I0", "I1", "S0")]
    t.builder.lut(0b11001010, inputs, t.drive(cell.bit("O")))


def _alu(t: Translation, cell: Cell) -> None:
    mode = cell.number("ALU_MODE")
    cell.refuse(mode != _ADD_OR_SUBTRACT, f"ALU_MODE {mode} is")
    total = carry = 0
    for row in range(16):
        a, b, add, carried = (row >> bit & 1 for bit in range(4))
        half = a ^ b ^ add ^ 1
        total |= (half ^ carried) << row
        carry |= (carried if half else a) << row
    inputs = [t.of(cell.bit(port)) for port in ("I0", "I1", "I3", "CIN")]
    t.builder.lut(total, inputs, t.drive(cell.bit("SUM")))
    t.builder.lut(carry, inputs, t.drive(cell.bit("COUT")))


def _flip_flop(t: Translation, cell: Cell) -> None:
    falling, clear, enabled = _FLIP_FLOPS[cell.kind]
    cell.refuse(bool(falling), FALLING)
    port, value = _CLEARS.get(clear, ("", 0))
    level = t.of(cell.bit(port)) if port else LOW
    cell.refuse(clear in ("P", "C") and level != LOW, ASYNCHRONOUS)
    t.clocked(cell, "CLK")
    t.builder.flip_flop(
        t.of(cell.bit("D")),
        t.drive(cell.bit("Q")),
        enable=t.of(cell.bit("CE"), HIGH) if enabled else HIGH,
        clear=level,
        value=value,
        first=cell.number("INIT", value),
    )


def _input(t: Translation, cell: Cell) -> None:
    t.input(cell, "I", "O")


def _output(t: Translation, cell: Cell) -> None:
    t.output(cell, "I", "OEN", "O")


def _lut_ram(t: Translation, cell: Cell) -> None:
    t.clocked(cell, "CLK")
    read = [t.of(cell.bit(f"RAD[{bit}]")) for bit in range(4)]
    write = [(t.of(cell.bit(f"WAD[{bit}]")), 1 << bit) for bit in range(4)]
    enable = t.of(cell.bit("WRE"))
    for bit in range(4):
        data, out = t.of(cell.bit(f"DI[{bit}]")), t.drive(cell.bit(f"DO[{bit}]"))
        t.builder.lut_ram(cell.number(f"INIT_{bit}"), read, enable, write, data, out)


class _Side(NamedTuple):
    """Names of a side's ports and parameters; an empty one is not there."""

    name: str
    write: str
    into: str
    out: str
    read_mode: str
    write_mode: str

    @property
    def number(self) -> int:
        """The number of the side in names of parameters."""
        return "AB".index(self.name)


_TWO = (
    _Side("A", "WREA", "DIA", "DOA", "READ_MODE0", "WRITE_MODE0"),
    _Side("B", "WREB", "DIB", "DOB", "READ_MODE1", "WRITE_MODE1"),
)
_ONE_AND_ONE = (_Side("A", "CEA", "DI", "", "", ""), _Side("B", "", "", "DO", "READ_MODE", ""))
_RAMS = {"DPB": _TWO, "DPX9B": _TWO, "SDPB": _ONE_AND_ONE, "SDPX9B": _ONE_AND_ONE}


def _block_ram(t: Translation, cell: Cell) -> None:
    """Add a block RAM: 16384 bits, or with X9 in its name 9 bits for each byte."""
    unit = 9 if "X9" in cell.kind else 8
    memory = t.builder.memory(_contents(cell, unit))
    for side in _RAMS[cell.kind]:
        _ram_side(t, cell, memory, unit, side)


def _contents(cell: Cell, unit: int) -> NDArray[np.uint8]:
    size = 32 * unit
    contents = np.zeros(_ROWS * size, np.uint8)
    for row in range(_ROWS):
        value = cell.number(f"INIT_RAM_{row:02X}")
        if value:
            contents[row * size : (row + 1) * size] = [value >> bit & 1 for bit in range(size)]
    return contents


def _ram_side(t: Translation, cell: Cell, memory: int, unit: int, side: _Side) -> None:
    builder = t.builder
    write = t.of(cell.bit(side.write)) if side.write else LOW
    enable = _selected(t, cell, side)
    width = cell.number(f"BIT_WIDTH_{side.number}", 4 * unit)
    outs = {bit: cell.bit(f"{side.out}[{bit}]") for bit in range(width)}
    read = {bit: out for bit, out in outs.items() if t.netlist.is_read(out)}
    if enable == LOW or (write == LOW and not read):
        return
    t.clocked(cell, f"CLK{side.name}")
    first = (width * 8 // unit - 1).bit_length()
    weights = {bit: unit << (bit - 3) if bit >= 3 else 1 << bit for bit in range(first, 14)}
    address = [(t.of(cell.bit(f"AD{side.name}[{bit}]")), weights[bit]) for bit in weights]
    if read:
        cell.refuse(cell.number(side.read_mode) != 0, "output registers are")
        reset = t.of(cell.bit(f"RESET{side.name}"))
        cell.refuse(reset != LOW, "a reset of the outputs is")
        mode = cell.number(side.write_mode)
        cell.refuse(write != LOW and mode == 1, THROUGH)
        reading = builder.both(enable, builder.invert(write)) if mode == 0 else enable
        data = [(t.drive(out), bit) for bit, out in read.items()]
        builder.read_port(memory, reading, address, data)
    if write != LOW:
        # From two bytes on, the lowest address bits enable bytes.
        stored = []
        for bit in range(width):
            strobe = cell.bit(f"AD{side.name}[{bit // unit}]") if width >= 2 * unit else "1"
            stored.append((t.of(cell.bit(f"{side.into}[{bit}]")), bit, t.of(strobe)))
        builder.write_port(memory, builder.both(enable, write), address, stored)


def _selected(t: Translation, cell: Cell, side: _Side) -> int:
    """Return a signal that is high while the side is enabled and its block is selected."""
    builder = t.builder
    enable = t.of(cell.bit(f"CE{side.name}"))
    wanted = cell.number(f"BLK_SEL_{side.number}")
    for bit in range(3):
        select = t.of(cell.bit(f"BLKSEL{side.name}[{bit}]"))
        enable = builder.both(enable, select if wanted >> bit & 1 else builder.invert(select))
    return enable


CELLS: Mapping[str, CellReader] = {
    "VCC": _constant,
    "GND": _constant,
    "rPLL": _pll,
    **dict.fromkeys(_FLIP_FLOPS, _flip_flop),
    **dict.fromkeys(_RAMS, _block_ram),
    **{f"LUT{inputs}": _lut for inputs in range(1, 5)},
    **{f"MUX2_LUT{inputs}": _mux for inputs in range(5, 9)},
    "ALU": _alu,
    "IBUF": _input,
    "OBUF": _output,
    "TBUF": _output,
    "RAM16SDP4": _lut_ram,
}
"""Constants come first, so that the other cells see their levels."""
