"""Translates nextpnr's routed netlist of an ECP5, with its implied defaults, to a gate netlist.

Cells as in nextpnr's bitstream writer and Yosys' models of them (lattice/common_sim.vh); of the
block RAM, which has no model there, Lattice FPGA-TN-02204.
"""

from collections.abc import Mapping

import numpy as np

from ..pins import HIGH, LOW
from .json_netlist import (
    ASYNCHRONOUS,
    FALLING,
    THROUGH,
    Cell,
    CellReader,
    NetlistError,
    Translation,
)

__all__ = ["CELLS"]

_DPRAM_ADDRESS = "DBCA"
"""Inputs of a LUT that are the address bits of a LUT RAM."""

_UNITS = 2048
_UNIT_BITS = 9
"""A block RAM consists of units of 9 bits; ports of up to 4 bits use 8 of them."""


def _pll(t: Translation, cell: Cell) -> None:
    path = cell.text("FEEDBK_PATH", "")
    cell.refuse(path != "CLKOP", f"FEEDBK_PATH {path or 'unset'} of the PLL is")
    ratio = cell.number("CLKFB_DIV", 1) / cell.number("CLKI_DIV", 1)
    second = ratio * cell.number("CLKOP_DIV", 8) / cell.number("CLKOS_DIV", 8)
    t.pll(cell, {"CLKOP": ratio, "CLKOS": second})


def _clock_buffer(t: Translation, cell: Cell) -> None:
    t.passes_clock(cell, "CLKI", "CLKO")


def _comb(t: Translation, cell: Cell) -> None:
    mode = cell.text("MODE", "LOGIC")
    if mode == "RAMW_BLOCK":
        return
    table = cell.number("INITVAL")
    # An input without a net is tied to 1 by the bitstream's writer.
    inputs = {port: t.of(cell.bit(port), HIGH) for port in "ABCD"}
    f = t.drive(cell.bit("F"))
    if mode == "LOGIC":
        t.builder.lut(table, list(inputs.values()), f)
    elif mode == "CCU2":
        _carry(t, cell, table, list(inputs.values()), f)
    elif mode == "DPRAM":
        _lut_ram(t, cell, table, inputs, f)
    else:
        cell.refuse(True, f"its mode, {mode}, is")
    ofx = cell.bit("OFX")
    if ofx is not None:
        # M = 1 takes the second LUT of the slice, or the second of two such pairs.
        pair = [f, t.of(cell.bit("F1"))]
        if _is_second(cell):
            pair = [t.of(cell.bit("FXA")), t.of(cell.bit("FXB"))]
        t.builder.lut(0b11001010, [*pair, t.of(cell.bit("M"))], t.drive(ofx))


def _is_second(cell: Cell) -> bool:
    """Return whether a LUT is the second LUT of its slice."""
    bel = cell.attributes.get("NEXTPNR_BEL", "")
    if not bel:
        raise NetlistError(f"{cell}: not placed; expected the netlist that nextpnr wrote")
    return bel.endswith("1")


def _carry(t: Translation, cell: Cell, table: int, inputs: list[int], f: int) -> None:
    builder = t.builder
    fci = t.of(cell.bit("FCI"))
    injected = cell.text("CCU2_INJECT1", "YES") == "YES"
    lut = builder.lut(table, inputs)
    generate = LOW if injected else builder.lut(table & 0xF, inputs[:2])
    builder.lut(0b0110, [lut, LOW if injected else fci], f)
    builder.lut(0b11100100, [lut, generate, fci], t.drive(cell.bit("FCO")))


def _lut_ram(t: Translation, cell: Cell, table: int, inputs: dict[str, int], f: int) -> None:
    inverted = cell.text("WREMUX", "WRE") != "WRE" or cell.text("WCKMUX", "WCK") != "WCK"
    cell.refuse(inverted, "inverted writes are")
    weights = {port: 1 << index for index, port in enumerate("ABCD")}
    address = [
        (t.of(cell.bit(f"WAD{index}")), weights[port]) for index, port in enumerate(_DPRAM_ADDRESS)
    ]
    (enable,) = t.clocked(cell, "WCK", t.of(cell.bit("WRE")))
    data = t.of(cell.bit("WD"))
    t.builder.lut_ram(table, list(inputs.values()), enable, address, data, f)


def _ramw(t: Translation, cell: Cell) -> None:
    """Connect the write address and data of a LUT RAM."""
    for index, port in enumerate(("D0", "B0", "C0", "A0")):
        t.join(cell.bit(port), cell.bit(f"WADO{index}"))
    for index, port in enumerate(("C1", "A1", "D1", "B1")):
        t.join(cell.bit(port), cell.bit(f"WDO{index}"))


def _flip_flop(t: Translation, cell: Cell) -> None:
    builder = t.builder
    cell.refuse(cell.text("CLKMUX", "CLK") != "CLK", FALLING)
    lsr_bit = cell.bit("LSR")
    asynchronous = cell.text("SRMODE", "LSR_OVER_CE") == "ASYNC"
    cell.expect("LSRMODE", "LSR")
    # SD chooses between the LUT beside it and a wire of its own.
    d = cell.bit("DI") if cell.number("SD") else cell.bit("M")
    enable = HIGH
    match cell.text("CEMUX", "1"):
        case "0":
            enable = LOW
        case "INV":
            enable = builder.invert(t.of(cell.bit("CE"), HIGH))
        case "CE":
            enable = t.of(cell.bit("CE"), HIGH)
    clear = t.of(lsr_bit)
    if cell.text("LSRMUX", "LSR") == "INV" and lsr_bit is not None:
        clear = builder.invert(clear)
    cell.refuse(asynchronous and clear != LOW, ASYNCHRONOUS)
    if cell.text("SRMODE", "LSR_OVER_CE") == "CE_OVER_LSR":
        clear = builder.both(clear, enable)
    enable, clear = t.clocked(cell, "CLK", enable, clear)
    value = int(cell.text("REGSET", "RESET") == "SET")
    builder.flip_flop(
        t.of(d), t.drive(cell.bit("Q")), enable=enable, clear=clear, value=value, first=value
    )


def _io(t: Translation, cell: Cell) -> None:
    direction = cell.text("DIR", "INPUT")
    muxes = (cell.text(f"DATAMUX_{register}", "PADDO") for register in ("OREG", "ODDR"))
    source = "IOLDO" if "IOLDO" in muxes else "I"
    off = "IOLTO" if cell.text("TRIMUX_TSREG", "PADDT") == "IOLTO" else "T"
    if direction == "INPUT":
        t.input(cell, "B", "O")
    elif direction == "OUTPUT":
        t.output(cell, source, off, "B")
    elif direction == "BIDIR":
        t.line(cell, source, off, "B", "O")
    else:
        cell.refuse(True, f"a pin of direction {direction} is")


def _io_logic(t: Translation, cell: Cell) -> None:
    """Add the registers beside a pin."""
    mode = cell.text("MODE", "NONE")
    if mode == "IDDRX1_ODDRX1":
        _double_rate(t, cell)
        return
    cell.refuse(mode != "IREG_OREG" or cell.bit("IOLTO") is not None, f"its mode, {mode}, is")
    if cell.bit("INFF") is not None:
        _io_register(t, cell, "I", ("PADDI", "INFF"), "FF.REGSET")
    if cell.bit("IOLDO") is not None:
        _io_register(t, cell, "O", ("TXDATA0", "IOLDO"), "OUTREG.REGSET")


def _double_rate(t: Translation, cell: Cell) -> None:
    """Add the registers of IDDRX1F or ODDRX1F; a step has both edges of a cycle.

    A delay between pin and register (DELAYG) is not simulated.
    """
    builder = t.builder
    cell.expect("CLKMUX", "CLK")
    (enable,) = t.clocked(cell, "CLK", HIGH)
    paddi, ioldo = cell.bit("PADDI"), cell.bit("IOLDO")
    if paddi is not None and cell.bit("RXDATA0") is not None:
        t.falling[t.source(paddi)] = falling = builder.signal()
        for level, port in ((t.of(paddi), "RXDATA0"), (falling, "RXDATA1")):
            first = builder.signal()
            builder.flip_flop(level, first, enable=enable)
            builder.flip_flop(first, t.drive(cell.bit(port)), enable=enable)
    if ioldo is not None:
        t.falling[ioldo] = builder.signal()
        for port, q in (("TXDATA0", t.drive(ioldo)), ("TXDATA1", t.falling[ioldo])):
            builder.flip_flop(t.of(cell.bit(port)), q, enable=enable)
    if cell.bit("IOLTO") is not None:
        builder.flip_flop(t.of(cell.bit("TSDATA0")), t.drive(cell.bit("IOLTO")), enable=enable)


def _io_register(
    t: Translation, cell: Cell, side: str, ports: tuple[str, str], set_to: str
) -> None:
    cell.refuse(cell.text(f"CLK{side}MUX", "CLK") != "CLK", FALLING)
    enable = HIGH
    if cell.text(f"CE{side}MUX", "1") != "1":
        cell.expect("CEMUX", "CE")
        enable = t.of(cell.bit("CE"), HIGH)
    clear = LOW
    if cell.text(f"LSR{side}MUX", "0") == "LSRMUX":
        cell.expect("LSRMUX", "LSR")
        clear = t.of(cell.bit("LSR"))
    enable, clear = t.clocked(cell, "CLK", enable, clear)
    value = int(cell.text(set_to, "RESET") == "SET")
    d, q = (t.of(cell.bit(ports[0])), t.drive(cell.bit(ports[1])))
    t.builder.flip_flop(d, q, enable=enable, clear=clear, value=value, first=value)


def _weights(width: int) -> dict[int, int]:
    """Return the weights of the address bits that select a word of ``width`` bits."""
    first = {1: 0, 2: 1, 4: 2, 9: 3, 18: 4, 36: 5}[width]
    return {bit: 1 << bit if bit < 3 else _UNIT_BITS << bit - 3 for bit in range(first, 14)}


def _block_ram(t: Translation, cell: Cell) -> None:
    builder = t.builder
    contents = np.zeros(_UNITS * _UNIT_BITS, np.uint8)
    for row in range(64):
        value = cell.number(f"INITVAL_{row:02X}")
        for word in range(16) if value else ():
            bits = value >> 20 * word & (1 << 18) - 1
            at = (row * 16 + word) * 18
            contents[at : at + 18] = [bits >> bit & 1 for bit in range(18)]
    memory = builder.memory(contents)
    for side in "AB":
        _ram_side(t, cell, memory, side)


def _data_ports(side: str, width: int) -> tuple[list[str], list[str]]:
    """Names of the data inputs and outputs of a block RAM's side, bit by bit."""
    other = "B" if side == "A" else "A"
    into, its_into, out, its_out = (
        [f"{port}{bit}" for bit in range(18)]
        for port in (f"DI{side}", f"DI{other}", f"DO{side}", f"DO{other}")
    )
    if width == 36:
        # The wide side uses the other side's inputs for its upper half, and its outputs for its
        # lower half.
        into += its_into
        out = its_out + out if side == "B" else []
    return into[:width], out[:width]


def _ram_side(t: Translation, cell: Cell, memory: int, side: str) -> None:
    builder, width = t.builder, cell.number(f"DATA_WIDTH_{side}", 18)
    into, out = _data_ports(side, width)
    enable = _selected(t, cell, side)
    write = _muxed(t, cell, f"WE{side}", LOW)
    used = [bit for bit, port in enumerate(out) if t.netlist.is_read(cell.bit(port))]
    if enable == LOW or (write == LOW and not used):
        return
    cell.refuse(cell.text(f"REGMODE_{side}", "NOREG") != "NOREG", "output registers are")
    reset = used and _muxed(t, cell, f"RST{side}", LOW) != LOW
    cell.refuse(bool(reset), "a reset of the outputs is")
    cell.refuse(cell.text(f"CLK{side}MUX", f"CLK{side}") == "INV", FALLING)
    enable, write = t.clocked(cell, f"CLK{side}", enable, write)
    weights = _weights(width)
    address = [(_data(t, cell, f"AD{side}{bit}"), weight) for bit, weight in weights.items()]
    if used:
        mode = cell.text(f"WRITEMODE_{side}", "NORMAL")
        cell.refuse(mode == "WRITETHROUGH" and write != LOW, THROUGH)
        reading = builder.both(enable, builder.invert(write)) if mode == "NORMAL" else enable
        data = [(t.drive(cell.bit(out[bit])), bit) for bit in used]
        builder.read_port(memory, reading, address, data)
    if write != LOW:
        # From 18 bits on, the lowest address bits enable bytes.
        stored = []
        for bit, port in enumerate(into):
            mask = _data(t, cell, f"AD{side}{bit // _UNIT_BITS}") if width >= 18 else HIGH
            stored.append((_data(t, cell, port), bit, mask))
        builder.write_port(memory, builder.both(enable, write), address, stored)


def _selected(t: Translation, cell: Cell, side: str) -> int:
    """Return a signal that is high while the side is enabled and its chip select matches."""
    enable = _muxed(t, cell, f"CE{side}", HIGH)
    decode = cell.text(f"CSDECODE_{side}", "0b000").removeprefix("0b")
    for index, wanted in enumerate(reversed(decode)):
        select = _muxed(t, cell, f"CS{side}{index}", LOW)
        enable = t.builder.both(enable, select if wanted == "1" else t.builder.invert(select))
    return enable


def _muxed(t: Translation, cell: Cell, port: str, otherwise: int) -> int:
    """Return the signal of a block RAM's port after the multiplexer that may invert or tie it.

    A wire without a net is 1; nextpnr leaves constants to the multiplexer.
    """
    bit = cell.bit(port)
    mux = cell.text(f"{port}MUX", port if bit is not None else "")
    if mux in ("0", "1"):
        return HIGH if mux == "1" else LOW
    if not mux:
        return otherwise
    signal = t.of(bit, HIGH)
    return t.builder.invert(signal) if mux == "INV" else signal


def _data(t: Translation, cell: Cell, port: str) -> int:
    """Return the signal of a block RAM's address or data input, low unless it is tied high."""
    bit = cell.bit(port)
    if bit is None:
        return HIGH if cell.text(f"{port}MUX", "0") == "1" else LOW
    return t.of(bit)


CELLS: Mapping[str, CellReader] = {
    "EHXPLLL": _pll,
    "DCCA": _clock_buffer,
    "TRELLIS_IO": _io,  # before the registers, whose clock may come from a pin
    "DP16KD": _block_ram,
    "TRELLIS_COMB": _comb,
    "TRELLIS_FF": _flip_flop,
    "TRELLIS_RAMW": _ramw,
    "IOLOGIC": _io_logic,
    "SIOLOGIC": _io_logic,
}
