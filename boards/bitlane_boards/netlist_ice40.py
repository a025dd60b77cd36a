"""From the bits of an iCE40's bitstream to a netlist of gates: what the file really makes.

Follows the switches that are on from the pins backwards, and takes every logic cell, memory and
carry that it meets as its own bits say. Nothing comes from the design. Facts: Project IceStorm
(https://prjicestorm.readthedocs.io), and Yosys' models of the cells.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bitlane_sim.pins.netlist import HIGH, LOW, Netlist, NetlistBuilder, needed_inputs

from .netlist_asc import Bits, BitstreamError
from .netlist_chipdb import ChipDatabase, Tile

__all__ = ["LUT_BITS", "Ice40Netlist", "LogicCell", "extract"]

LUT_BITS = (4, 14, 15, 5, 6, 16, 17, 7, 3, 13, 12, 2, 1, 11, 10, 0)
"""Which of a logic cell's 20 bits is each bit of its LUT."""
_CARRY_ENABLE, _FLIP_FLOP, _SET, _ASYNCHRONOUS = 8, 9, 18, 19

_O, _LO, _CIN, _COUT, _ENABLE, _CLOCK, _RESET = range(4, 11)
"""Pins of a logic cell, behind its 4 inputs."""

_PLL_LOCK, _PLL_A, _PLL_B, _PLL_A_GLOBAL, _PLL_B_GLOBAL = range(10, 15)
_PAD_PLL, _CORE_PLL = 2, 3
"""PLLTYPE of PLLs with one output, fed by their pin or from within."""

_OE, _OUT, _IN = 4, 5, 7
"""Pins of a cell at the edge: its output enable, its output and its input."""

_SIMPLE_INPUT = 0b01
_NO_OUTPUT, _OUTPUT, _TRISTATE = 0b0000, 0b0110, 0b1010
"""PIN_TYPE's lower 2 and upper 4 bits."""

_RAM_BITS = 4096
_RAM_DATA = ((range(16), 1), (range(0, 16, 2), 2), (range(1, 16, 4), 4), (range(3, 16, 8), 8))
"""By mode: the data pins in use, and how many words share a row."""

_SPRAM_PINS = sorted(
    [f"ADDRESS_{bit}" for bit in range(14)]
    + [f"{name}_{bit}" for name in ("DATAIN", "DATAOUT") for bit in range(16)]
    + [f"MASKWREN_{bit}" for bit in range(4)]
    + ["CHIPSELECT", "CLOCK", "POWEROFF", "SLEEP", "STANDBY", "WREN"]
)


@dataclass(frozen=True, slots=True)
class LogicCell:
    """A logic cell in use: its tile, its number there, and the places of its 20 bits."""

    x: int
    y: int
    number: int
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Ice40Netlist:
    """A netlist, and how it came about.

    Attributes
    ----------
    clock
        What clocks it: the name of a pin, or "PLL".
    pll
        Settings of the PLL by Lattice's names, if it is in use.
    cells
        The logic cells that reach a pin.
    """

    netlist: Netlist
    clock: str
    pll: Mapping[str, int]
    cells: tuple[LogicCell, ...]

    def pll_ratio(self) -> float:
        """How much faster the PLL's output is than its input: DIVF, DIVQ and DIVR, one feedback."""
        setting = self.pll
        return (setting["DIVF"] + 1) / (setting["DIVR"] + 1) / 2 ** setting["DIVQ"]


def extract(
    bits: Bits, package: str, pins: Mapping[str, str], inverted: Collection[str] = ()
) -> Ice40Netlist:
    """The netlist of ``bits``, with the pins of ``package`` named by ``pins``: pin by port.

    The ports in ``inverted`` are the opposite of their pins. Raises ``BitstreamError`` for what is
    not understood, rather than to guess.
    """
    return _Extraction(ChipDatabase(bits.device), bits, package, pins).result(inverted)


class _Extraction:
    def __init__(
        self, chip: ChipDatabase, bits: Bits, package: str, pins: Mapping[str, str]
    ) -> None:
        self._chip, self._bits = chip, bits
        self._builder = NetlistBuilder()
        self._entries = [chip.entries(tile) for tile in range(len(chip.tiles))]
        self._driver = self._switched_on()
        self._signals: dict[object, int] = {}
        self._todo: list[tuple[Callable[[int, int], None], int, int]] = []
        self._clocks: set[str] = set()
        self._cells: dict[int, LogicCell] = {}
        self._rams: dict[int, dict[str, int]] = {}
        self._sources = self._find_sources()
        self._bel_at = {
            (int(bel["x"]), int(bel["y"]), name): index
            for index, (bel, name) in enumerate(zip(chip.bels, chip.bel_names, strict=True))
        }
        self._ports = self._find_ports(package, pins)

    def result(self, inverted: Collection[str]) -> Ice40Netlist:
        builder = self._builder
        for port, bel in self._ports.items():
            kind = self._io_setting(bel)[1]
            if kind != _NO_OUTPUT:
                level = self._output(port, bel, kind)
                builder.outputs[port] = (builder.invert(level) if port in inverted else level,)
            elif port in inverted:
                builder.inputs[port] = (builder.signal(),)
                builder.lut(0b01, builder.inputs[port], self._of(("pad", bel)))
            else:
                builder.inputs[port] = (self._of(("pad", bel)),)
        while self._todo:
            define, bel, signal = self._todo.pop()
            define(bel, signal)
        if len(self._clocks) > 1:
            raise BitstreamError(f"several clocks: {', '.join(sorted(self._clocks))}; expected one")
        return Ice40Netlist(
            netlist=builder.build(),
            clock=next(iter(self._clocks), "none"),
            pll=self._pll[1] if self._pll else {},
            cells=tuple(self._cells.values()),
        )

    # What is connected with what.

    def _switched_on(self) -> NDArray[np.int32]:
        """For every wire the one that drives it through a switch that is on, or -1."""
        chip = self._chip
        configuration = np.zeros((chip.height, chip.width, 16, 64), np.uint8)
        for (x, y), tile in self._bits.tiles.items():
            configuration[y, x, :, : tile.shape[1]] = tile
        switches = chip.switches
        values = np.zeros(len(switches), np.int32)
        for index in range(5):
            used = switches["bits"] > index
            at = switches[used]
            bit = configuration[at["y"], at["x"], at[f"row{index}"], at[f"column{index}"]]
            values[used] = values[used] << 1 | bit
        pips = chip.pips
        # A switch without bits is a LUT that passes an input on; it is taken as the LUT that it is.
        real = switches["bits"][pips["switch"]] > 0
        on = real & (pips["mask"] == values[pips["switch"]])
        driver = np.full(len(chip.wires), -1, np.int32)
        driver[pips["target"][on]] = pips["source"][on]
        targets, counts = np.unique(pips["target"][on], return_counts=True)
        if (counts > 1).any():
            wire = int(targets[counts > 1][0])
            raise BitstreamError(f"wire {self._describe(wire)} has two drivers")
        return driver

    def _root(self, wire: int) -> int:
        """The wire from which ``wire`` gets its level."""
        for _ in range(len(self._driver)):
            source = int(self._driver[wire])
            if source < 0:
                return wire
            wire = source
        raise BitstreamError(f"wire {self._describe(wire)} drives itself")

    def _find_sources(self) -> dict[int, tuple[str, int, int]]:
        """By wire: the kind of cell that drives it, the cell, and the number of the pin."""
        chip = self._chip
        outputs = {
            "lc": (_O, _LO, _COUT),
            "io": (_IN, _IN + 1),
            "gb": (1,),
            "ram": range(16, 32),
            "spram": [_SPRAM_PINS.index(f"DATAOUT_{bit}") for bit in range(16)],
        }
        sources: dict[int, tuple[str, int, int]] = {}
        for bel, name in enumerate(chip.bel_names):
            kind = name.rstrip("0123456789").rstrip("_")
            if kind in outputs:
                wires = chip.pins(bel)
                for pin in outputs[kind]:
                    if pin not in wires:
                        # The last logic cell of a tile passes its LUT on to none.
                        continue
                    sources.setdefault(wires[pin], (kind, bel, pin))
                if name == "lc0":
                    sources[wires[_CIN]] = ("carry", bel, _CIN)
        return sources

    def _find_ports(self, package: str, pins: Mapping[str, str]) -> dict[str, int]:
        known = self._chip.package(package)
        for port, pin in pins.items():
            if pin not in known:
                raise BitstreamError(f"port {port}: package {package} has no pin {pin!r}")
        return {port: known[pin] for port, pin in pins.items()}

    # Signals are made when they are first asked for, and defined later: there are loops.

    def _of(self, key: object) -> int:
        if key not in self._signals:
            self._signals[key] = self._builder.signal()
        return self._signals[key]

    def _later(self, key: object, define: Callable[[int, int], None], bel: int) -> int:
        if key not in self._signals:
            self._todo.append((define, bel, self._of(key)))
        return self._signals[key]

    def _level(self, wire: int, otherwise: int = LOW) -> int:
        """The signal on ``wire``; ``otherwise`` if nothing drives it."""
        root = self._root(wire)
        if root not in self._sources:
            return self._special(root, otherwise)
        kind, bel, pin = self._sources[root]
        match kind:
            case "lc" if pin == _COUT:
                return self._later(("carry", bel), self._define_carry, bel)
            case "lc" if pin == _O and self._cell_bits(bel)[_FLIP_FLOP]:
                return self._later(("q", bel), self._define_flip_flop, bel)
            case "lc":
                constant = self._constant(bel)
                if constant is not None:
                    return constant
                return self._later(("lut", bel), self._define_lut, bel)
            case "carry":
                return HIGH if self._flag(bel, Tile.LOGIC, "CarryInSet") else LOW
            case "io":
                return self._input(bel, pin)
            case "gb":
                return self._global(bel)
            case "ram":
                return self._ram(bel)[f"RDATA_{pin - 16}"]
            case _:
                return self._spram(bel)[_SPRAM_PINS[pin]]

    def _special(self, wire: int, otherwise: int) -> int:
        if self._pll and wire == self._chip.pins(self._pll[0])[_PLL_LOCK]:
            return HIGH
        return otherwise

    def _clocked(self, wire: int) -> None:
        """Note what clocks through ``wire``."""
        root = self._root(wire)
        kind, bel, pin = self._sources.get(root, ("nothing", 0, 0))
        if kind == "gb":
            if self._global_pad(bel) is None:
                return self._clocked(self._chip.pins(bel)[0])
            kind, bel, pin = "io", self._global_pad(bel) or 0, _IN
        if kind != "io" or pin != _IN:
            raise BitstreamError(f"wire {self._describe(root)} is a clock, from no pin and no PLL")
        if bel == self._pll_pad:
            self._clocks.add("PLL")
        else:
            self._clocks.add(self._pin_name(bel))
            if self._io_setting(bel)[0] != _SIMPLE_INPUT:
                raise BitstreamError(f"pin {self._pin_name(bel)}: a clock that is no plain input")

    # The cells.

    def _cell_bits(self, bel: int) -> list[int]:
        row = self._chip.bels[bel]
        tile = self._bits.tiles[int(row["x"]), int(row["y"])]
        return [int(tile[place]) for place in self._entries[Tile.LOGIC][f"LC_{row['z']}"]]

    def _flag(self, bel: int, tile: int, name: str, up: int = 0) -> bool:
        row = self._chip.bels[bel]
        (place,) = self._entries[tile][name]
        return bool(self._bits.tiles[int(row["x"]), int(row["y"]) + up][place])

    def _use(self, bel: int) -> dict[int, int]:
        """The pins of a logic cell, which is now among those in use."""
        row = self._chip.bels[bel]
        x, y, z = (int(row[name]) for name in "xyz")
        places = tuple(self._entries[Tile.LOGIC][f"LC_{z}"])
        self._cells.setdefault(bel, LogicCell(x, y, z, places))
        return self._chip.pins(bel)

    def _lut_inputs(self, bel: int) -> list[int]:
        wires = self._use(bel)
        return [self._level(self._lut_input(wires[pin])) for pin in range(4)]

    def _lut_input(self, wire: int) -> int:
        """The wire of the tile behind a LUT's input: nextpnr's own may stand for any of them."""
        row = self._chip.wires[wire]
        name = self._chip.wire_name(wire).removesuffix("_lut")
        return self._inputs_by_name[int(row["name_x"]), int(row["name_y"]), name]

    @cached_property
    def _inputs_by_name(self) -> dict[tuple[int, int, str], int]:
        chip = self._chip
        (inputs,) = np.nonzero(chip.wires["type"] == 4)
        rows = chip.wires[inputs]
        return {
            (int(row["name_x"]), int(row["name_y"]), chip.wire_name(int(wire))): int(wire)
            for wire, row in zip(inputs, rows, strict=True)
        }

    def _table(self, bel: int) -> int:
        bits = self._cell_bits(bel)
        return sum(bits[place] << row for row, place in enumerate(LUT_BITS))

    def _constant(self, bel: int) -> int | None:
        """The level of a LUT to which nothing makes a difference: where constants come from."""
        wires = self._chip.pins(bel)
        roots = [self._root(self._lut_input(wires[pin])) for pin in range(4)]
        # Any other signal stands for those that may change.
        inputs = tuple(-1 if root in self._sources else LOW for root in roots)
        left, table = needed_inputs(inputs, self._table(bel))
        return None if left else (LOW, HIGH)[table]

    def _define_lut(self, bel: int, output: int) -> None:
        self._builder.lut(self._table(bel), self._lut_inputs(bel), output)

    def _define_carry(self, bel: int, output: int) -> None:
        wires = self._use(bel)
        if self._cell_bits(bel)[_CARRY_ENABLE]:
            _, first, second, _ = self._lut_inputs(bel)
            # The majority of three.
            self._builder.lut(0xE8, [first, second, self._level(wires[_CIN])], output)
        else:
            self._builder.lut(0, [], output)

    def _define_flip_flop(self, bel: int, q: int) -> None:
        wires, bits = self._use(bel), self._cell_bits(bel)
        clear = self._level(wires[_RESET])
        where = f"flip-flop {self._describe(wires[_O])}"
        if bits[_ASYNCHRONOUS] and clear != LOW:
            raise BitstreamError(f"{where}: set or reset without its clock is not simulated")
        if self._flag(bel, Tile.LOGIC, "NegClk"):
            raise BitstreamError(f"{where}: falling edges of the clock are not simulated")
        self._clocked(wires[_CLOCK])
        enable = self._level(wires[_ENABLE], HIGH)
        if not bits[_ASYNCHRONOUS]:
            # SB_DFFESR: a synchronous set or reset waits for the enable, too.
            clear = self._builder.both(clear, enable)
        d = self._later(("lut", bel), self._define_lut, bel)
        self._builder.flip_flop(d, q, enable=enable, clear=clear, value=bits[_SET])

    # The pins.

    def _pin_name(self, bel: int) -> str:
        return next((port for port, pad in self._ports.items() if pad == bel), f"pad {bel}")

    def _io_setting(self, bel: int) -> tuple[int, int]:
        """PIN_TYPE: how the pin comes in, and how it goes out."""
        row = self._chip.bels[bel]
        tile = self._bits.tiles[int(row["x"]), int(row["y"])]
        names = [f"IOB_{row['z']}.PINTYPE_{bit}" for bit in range(6)]
        setting = [int(tile[self._entries[Tile.IO][name][0]]) for name in names]
        value = sum(bit << index for index, bit in enumerate(setting))
        return value & 3, value >> 2

    def _input(self, bel: int, pin: int) -> int:
        kind = self._io_setting(bel)[0]
        if pin != _IN or kind != _SIMPLE_INPUT or bel == self._pll_pad:
            raise BitstreamError(
                f"pin {self._pin_name(bel)}: its kind of input, {kind:02b}, is not simulated"
            )
        return self._of(("pad", bel))

    def _output(self, port: str, bel: int, kind: int) -> int:
        wires = self._chip.pins(bel)
        always = kind == _OUTPUT or kind == _TRISTATE and self._level(wires[_OE], HIGH) == HIGH
        if not always:
            raise BitstreamError(f"pin {port}: its kind of output, {kind:04b}, is not simulated")
        return self._level(wires[_OUT])

    def _global_pad(self, bel: int) -> int | None:
        """The pin whose own line feeds a global buffer, if one does."""
        row = self._chip.bels[bel]
        for network in self._chip.networks:
            bit = tuple(int(network[name]) for name in ("bank", "bit_x", "bit_y"))
            if (network["x"], network["y"]) == (row["x"], row["y"]) and bit in self._bits.extra:
                place = int(network["pad_x"]), int(network["pad_y"]), f"io{network['pad_z']}"
                return self._bel_at[place]
        return None

    def _global(self, bel: int) -> int:
        pad = self._global_pad(bel)
        if pad is None:
            return self._level(self._chip.pins(bel)[0])
        return self._input(pad, _IN)

    # The PLL.

    @cached_property
    def _pll(self) -> tuple[int, dict[str, int]] | None:
        """The PLL in use, and its settings."""
        for bel, name in enumerate(self._chip.bel_names):
            if not name.startswith("pll"):
                continue
            values: dict[str, int] = {}
            for setting, (x, y, entry) in self._chip.settings(bel).items():
                if f"PLL.{entry}" not in self._entries[Tile.IO]:
                    continue
                (place,) = self._entries[Tile.IO][f"PLL.{entry}"]
                stem, _, bit = setting.rpartition("_")
                many = bit.isdigit()
                value = int(self._bits.tiles[x, y][place]) << (int(bit) if many else 0)
                values[stem if many else setting] = values.get(stem if many else setting, 0) | value
            if values.get("PLLTYPE"):
                if values["PLLTYPE"] not in (_PAD_PLL, _CORE_PLL):
                    raise BitstreamError("a PLL with two outputs is not simulated")
                return bel, values
        return None

    @cached_property
    def _pll_pad(self) -> int | None:
        """The pin through which the PLL's output comes in."""
        if not self._pll:
            return None
        return self._sources[self._chip.pins(self._pll[0])[_PLL_A]][1]

    # The memories.

    def _ram(self, bel: int) -> dict[str, int]:
        if bel in self._rams:
            return self._rams[bel]
        chip, builder = self._chip, self._builder
        wires = {
            chip.wire_name(wire).removeprefix("ram:"): wire for wire in chip.pins(bel).values()
        }
        data = {f"RDATA_{bit}": builder.signal() for bit in range(16)}
        self._rams[bel] = data
        where = f"memory {self._describe(wires['RDATA_0'])}"
        if self._flag(bel, Tile.RAM_BOTTOM, "RamConfig.PowerUp") != (chip.device in _POWERED_BY_1):
            raise BitstreamError(f"{where} is in use and without power")
        for tile, up in ((Tile.RAM_BOTTOM, 0), (Tile.RAM_TOP, 1)):
            if self._flag(bel, tile, "NegClk", up):
                raise BitstreamError(f"{where}: falling edges of the clock are not simulated")
        mode = [self._flag(bel, Tile.RAM_TOP, f"RamConfig.CBIT_{bit}", 1) for bit in range(4)]
        row = chip.bels[bel]
        contents = self._bits.contents.get((int(row["x"]), int(row["y"])))
        number = builder.memory(np.zeros(_RAM_BITS, np.uint8) if contents is None else contents)
        self._later(("read port", bel), lambda *_: self._read_port(bel, number, wires, mode), bel)
        self._later(("write port", bel), lambda *_: self._write_port(bel, number, wires, mode), bel)
        return data

    def _read_port(self, bel: int, memory: int, wires: dict[str, int], mode: list[bool]) -> None:
        enable = self._port_enable("R", wires)
        pins, shared = _RAM_DATA[mode[2] + 2 * mode[3]]
        # Pins that a mode does not use stay low.
        data = [(self._rams[bel][f"RDATA_{pin}"], index * shared) for index, pin in enumerate(pins)]
        if enable != LOW:
            self._builder.read_port(memory, enable, self._address("R", wires, shared), data)

    def _write_port(self, bel: int, memory: int, wires: dict[str, int], mode: list[bool]) -> None:
        enable = self._port_enable("W", wires)
        if enable == LOW:
            return
        pins, shared = _RAM_DATA[mode[0] + 2 * mode[1]]
        data = []
        for index, pin in enumerate(pins):
            mask = HIGH
            if shared == 1:
                mask = self._builder.invert(self._level(wires[f"MASK_{pin}"]))
            data.append((self._level(wires[f"WDATA_{pin}"]), index * shared, mask))
        self._builder.write_port(memory, enable, self._address("W", wires, shared), data)

    def _port_enable(self, port: str, wires: dict[str, int]) -> int:
        enable = self._level(wires[f"{port}E"])
        if enable != LOW:
            self._clocked(wires[f"{port}CLK"])
        return self._builder.both(enable, self._level(wires[f"{port}CLKE"], HIGH))

    def _address(self, port: str, wires: dict[str, int], shared: int) -> list[tuple[int, int]]:
        """The lower 8 bits choose a row of 16, the others which of the words in it."""
        weights = [16 << bit for bit in range(8)]
        weights += [1 << bit for bit in range(shared.bit_length() - 1)]
        names = [f"{port}ADDR_{bit}" for bit in range(len(weights))]
        levels = [self._level(wires[name]) for name in names]
        return list(zip(levels, weights, strict=True))

    def _spram(self, bel: int) -> dict[str, int]:
        if bel in self._rams:
            return self._rams[bel]
        data = {f"DATAOUT_{bit}": self._builder.signal() for bit in range(16)}
        self._rams[bel] = data
        self._later(("spram", bel), lambda *_: self._define_spram(bel), bel)
        return data

    def _define_spram(self, bel: int) -> None:
        builder = self._builder
        pins = self._chip.pins(bel)
        wires = {name: pins[number] for number, name in enumerate(_SPRAM_PINS)}
        where = f"memory {self._chip.bel_names[bel]}"
        levels = {name: self._level(wire) for name, wire in wires.items() if "OUT" not in name}
        if not self._spram_enabled(bel):
            raise BitstreamError(f"{where} is in use and not enabled")
        for name, expected in (("STANDBY", LOW), ("SLEEP", LOW), ("POWEROFF", HIGH)):
            if levels[name] != expected:
                raise BitstreamError(f"{where}: {name} is in use, which is not simulated")
        self._clocked(wires["CLOCK"])
        memory = builder.memory(np.zeros(16 << 14, np.uint8))
        address = [(levels[f"ADDRESS_{bit}"], 16 << bit) for bit in range(14)]
        select, write = levels["CHIPSELECT"], levels["WREN"]
        out = [(self._rams[bel][f"DATAOUT_{bit}"], bit) for bit in range(16)]
        builder.read_port(memory, builder.both(select, builder.invert(write)), address, out)
        data = [(levels[f"DATAIN_{bit}"], bit, levels[f"MASKWREN_{bit // 4}"]) for bit in range(16)]
        builder.write_port(memory, builder.both(select, write), address, data)

    def _spram_enabled(self, bel: int) -> bool:
        """Of the two memories at either edge, the one with the odd number has the first bit."""
        row = self._chip.bels[bel]
        ((line, column),) = self._entries[Tile.IP][f"IpConfig.CBIT_{(int(row['z']) + 1) % 2}"]
        return bool(self._bits.tiles[int(row["x"]), 1][line, column])

    def _describe(self, wire: int) -> str:
        row = self._chip.wires[wire]
        return f"{self._chip.wire_name(wire)} at {row['name_x']},{row['name_y']}"


_POWERED_BY_1: Sequence[str] = ("8k", "5k", "u4k")
"""Devices whose PowerUp bit is 1 for a memory with power."""
