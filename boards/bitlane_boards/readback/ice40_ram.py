"""Adds the memories of an iCE40's bitstream to a netlist of gates.

Facts: Project IceStorm, and Yosys' models SB_RAM40_4K and SB_SPRAM256KA.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..pins import HIGH, LOW, NetlistBuilder
from .asc import BitstreamError
from .chipdb import Tile
from .routing import RAM_OUT, SPRAM_OUT, SPRAM_PINS, Routing

__all__ = ["Memories", "WireSignals"]

_RAM_BITS = 4096
_RAM_DATA = ((range(16), 1), (range(0, 16, 2), 2), (range(1, 16, 4), 4), (range(3, 16, 8), 8))
"""The used data pins and the number of words in a row, by mode."""

_SPRAM_WORDS, _SPRAM_BITS = 1 << 14, 16

_POWERED_BY_1 = ("8k", "5k", "u4k")
"""Devices whose PowerUp bit is 1 for a memory with power."""


class WireSignals(Protocol):
    """The signals of a bitstream's wires, which `Memories` connects."""

    routing: Routing
    builder: NetlistBuilder

    def level(self, wire: int, otherwise: int = LOW) -> int:
        """Return the signal on ``wire``; ``otherwise`` if nothing drives it."""
        ...

    def clocked(self, wire: int) -> None:
        """Record that ``wire`` is a clock."""
        ...

    def later(self, define: Callable[[], None]) -> None:
        """Call ``define`` after all requests that are under way."""
        ...


class Memories:
    """The used memories; each is added when one of its outputs is first requested."""

    def __init__(self, signals: WireSignals) -> None:
        self._signals = signals
        self._outputs: dict[int, list[int]] = {}

    def block(self, cell: int, pin: int) -> int:
        """Return the signal of a block RAM's output."""
        if cell not in self._outputs:
            self._outputs[cell] = self._make(16)
            self._signals.later(lambda: self._define_block(cell))
        return self._outputs[cell][RAM_OUT[pin]]

    def single_port(self, cell: int, pin: int) -> int:
        """Return the signal of a single-port RAM's output."""
        if cell not in self._outputs:
            self._outputs[cell] = self._make(_SPRAM_BITS)
            self._signals.later(lambda: self._define_single_port(cell))
        return self._outputs[cell][SPRAM_OUT[pin]]

    def _make(self, count: int) -> list[int]:
        return [self._signals.builder.signal() for _ in range(count)]

    def _define_block(self, cell: int) -> None:
        routing, builder = self._signals.routing, self._signals.builder
        chip = routing.chip
        wires = {
            chip.wire_name(wire).removeprefix("ram:"): wire for wire in chip.pins(cell).values()
        }
        where = f"memory {routing.describe(wires['RDATA_0'])}"
        (power,) = routing.setting(cell, Tile.RAM_BOTTOM, "RamConfig.PowerUp")
        if power != (chip.device in _POWERED_BY_1):
            raise BitstreamError(f"{where} is in use and without power")
        for tile, up in ((Tile.RAM_BOTTOM, 0), (Tile.RAM_TOP, 1)):
            if routing.setting(cell, tile, "NegClk", up) != [0]:
                raise BitstreamError(f"{where}: falling edges of the clock are not simulated")
        bits = [
            routing.setting(cell, Tile.RAM_TOP, f"RamConfig.CBIT_{bit}", 1)[0] for bit in range(4)
        ]
        contents = routing.bits.contents.get(routing.location(cell)[:2])
        memory = builder.memory(np.zeros(_RAM_BITS, np.uint8) if contents is None else contents)
        self._write_port(memory, wires, bits[0] + 2 * bits[1])
        self._read_port(cell, memory, wires, bits[2] + 2 * bits[3])

    def _read_port(self, cell: int, memory: int, wires: dict[str, int], mode: int) -> None:
        enable = self._port_enable("R", wires)
        pins, shared = _RAM_DATA[mode]
        # Pins that a mode does not use stay low.
        data = [(self._outputs[cell][pin], index * shared) for index, pin in enumerate(pins)]
        if enable != LOW:
            address = self._address("R", wires, shared)
            self._signals.builder.read_port(memory, enable, address, data)

    def _write_port(self, memory: int, wires: dict[str, int], mode: int) -> None:
        enable = self._port_enable("W", wires)
        if enable == LOW:
            return
        level, builder = self._signals.level, self._signals.builder
        pins, shared = _RAM_DATA[mode]
        data = []
        for index, pin in enumerate(pins):
            # Only whole rows are masked.
            mask = builder.invert(level(wires[f"MASK_{pin}"])) if shared == 1 else HIGH
            data.append((level(wires[f"WDATA_{pin}"]), index * shared, mask))
        builder.write_port(memory, enable, self._address("W", wires, shared), data)

    def _port_enable(self, port: str, wires: dict[str, int]) -> int:
        signals = self._signals
        enable = signals.level(wires[f"{port}E"])
        if enable != LOW:
            signals.clocked(wires[f"{port}CLK"])
        return signals.builder.both(enable, signals.level(wires[f"{port}CLKE"], HIGH))

    def _address(self, port: str, wires: dict[str, int], shared: int) -> list[tuple[int, int]]:
        """Return the address: 8 bits select a row of 16, the others a word in the row."""
        weights = [16 << bit for bit in range(8)]
        weights += [1 << bit for bit in range(shared.bit_length() - 1)]
        names = [f"{port}ADDR_{bit}" for bit in range(len(weights))]
        levels = [self._signals.level(wires[name]) for name in names]
        return list(zip(levels, weights, strict=True))

    def _define_single_port(self, cell: int) -> None:
        signals, builder = self._signals, self._signals.builder
        routing = signals.routing
        pins = routing.chip.pins(cell)
        wires = {name: pins[number] for number, name in enumerate(SPRAM_PINS)}
        where = f"memory {routing.chip.bel_names[cell]}"
        if not self._enabled(cell):
            raise BitstreamError(f"{where} is in use and not enabled")
        inputs = [name for name in wires if name != "CLOCK" and "OUT" not in name]
        levels = {name: signals.level(wires[name]) for name in inputs}
        for name, expected in (("STANDBY", LOW), ("SLEEP", LOW), ("POWEROFF", HIGH)):
            if levels[name] != expected:
                raise BitstreamError(f"{where}: {name} is in use, which is not simulated")
        signals.clocked(wires["CLOCK"])
        memory = builder.memory(np.zeros(_SPRAM_WORDS * _SPRAM_BITS, np.uint8))
        address = [(levels[f"ADDRESS_{bit}"], _SPRAM_BITS << bit) for bit in range(14)]
        select, write = levels["CHIPSELECT"], levels["WREN"]
        out = [(signal, bit) for bit, signal in enumerate(self._outputs[cell])]
        builder.read_port(memory, builder.both(select, builder.invert(write)), address, out)
        data = [(levels[f"DATAIN_{bit}"], bit, levels[f"MASKWREN_{bit // 4}"]) for bit in range(16)]
        builder.write_port(memory, builder.both(select, write), address, data)

    def _enabled(self, cell: int) -> bool:
        """Return the enable bit, which is the first bit of its tile for memories of odd number."""
        routing = self._signals.routing
        x, _, z = routing.location(cell)
        ((row, column),) = routing.positions(Tile.IP, f"IpConfig.CBIT_{(z + 1) % 2}")
        return bool(routing.bits.tiles[x, 1][row, column])
