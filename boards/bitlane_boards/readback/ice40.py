"""Extracts a netlist of gates from an iCE40's bitstream.

It follows the closed switches from the pins backwards and decodes every logic cell, memory and
carry on the way from its bits alone. It uses nothing of the design. Facts: Project IceStorm
(https://prjicestorm.readthedocs.io), and Yosys' models of the cells.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from ..pins import HIGH, LOW, Netlist, NetlistBuilder
from ..pins.netlist import needed_inputs
from .asc import Bitstream, BitstreamError
from .chipdb import ChipDatabase, Tile
from .ice40_ram import Memories
from .routing import LogicPin, PadPin, PllPin, Routing

__all__ = ["LUT_BITS", "Ice40Netlist", "LogicCell", "extract"]

LUT_BITS = (4, 14, 15, 5, 6, 16, 17, 7, 3, 13, 12, 2, 1, 11, 10, 0)
"""Position of each bit of the LUT in a logic cell's 20 bits."""
_CARRY_ENABLE, _FLIP_FLOP, _SET, _ASYNCHRONOUS = 8, 9, 18, 19

_MAJORITY = 0xE8

_PAD_PLL, _CORE_PLL = 2, 3
"""PLLTYPE of PLLs with one output, fed by their pin or by the fabric."""

_SIMPLE_INPUT = 0b01
_NO_OUTPUT, _OUTPUT, _TRISTATE = 0b0000, 0b0110, 0b1010
"""PIN_TYPE's lower 2 and upper 4 bits."""


@dataclass(frozen=True, slots=True)
class LogicCell:
    """A logic cell with a used LUT: its tile, its number there, the positions of its 20 bits.

    ``inputs`` and ``output`` are signals of the netlist. ``rows`` are the rows of the LUT's table
    that its inputs can select; unconnected inputs have a fixed level.
    """

    x: int
    y: int
    number: int
    positions: tuple[tuple[int, int], ...]
    inputs: tuple[int, ...]
    output: int
    table: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ice40Netlist:
    """A netlist, with its clock, its PLL and its logic cells.

    Attributes
    ----------
    clock
        The source of the clock: the name of a pin, or "PLL".
    pll
        Settings of the PLL by Lattice's names, if it is in use.
    cells
        The logic cells whose LUTs reach a pin.
    """

    netlist: Netlist
    clock: str
    pll: Mapping[str, int]
    cells: tuple[LogicCell, ...]

    def pll_ratio(self) -> float:
        """Return the frequency ratio of the PLL's output to its input, with simple feedback."""
        setting = self.pll
        return (setting["DIVF"] + 1) / ((setting["DIVR"] + 1) << setting["DIVQ"])


def extract(
    bits: Bitstream, package: str, pins: Mapping[str, str], inverted: Collection[str] = ()
) -> Ice40Netlist:
    """Return the netlist of ``bits``; ``pins`` gives the pin of ``package`` for each port.

    The ports in ``inverted`` have the opposite levels of their pins. Raises ``BitstreamError`` for
    a feature that is not simulated.
    """
    return _Extraction(Routing(ChipDatabase(bits.device), bits), package, pins).result(inverted)


Lut: TypeAlias = tuple[tuple[int, ...], int]
"""Inputs and table. An input is LOW, or ``~wire``, which is negative unlike any signal."""


class Constants:
    """Finds LUTs with a constant output, even through further LUTs.

    ``lut_of`` returns the `Lut` that drives a wire, or None if another cell drives it.
    """

    def __init__(self, lut_of: Callable[[int], Lut | None]) -> None:
        self._lut_of = lut_of
        self._levels: dict[int, int | None] = {}

    def level(self, wire: int) -> int | None:
        """Return LOW, HIGH, or None if ``wire`` may change."""
        if wire not in self._levels:
            # No LUT in a loop is constant.
            self._levels[wire] = None
            lut = self._lut_of(wire)
            self._levels[wire] = lut and self.of(lut)
        return self._levels[wire]

    def of(self, lut: Lut) -> int | None:
        """Return LOW, HIGH, or None if the output of ``lut`` may change."""
        left, table = needed_inputs(*lut)
        levels = [(signal, self.level(~signal)) for signal in left]
        left, table = needed_inputs(
            tuple(signal if level is None else level for signal, level in levels), table
        )
        return None if left else (LOW, HIGH)[table]


class _Extraction:
    """Creates signals when they are first requested and defines them later, because of loops."""

    def __init__(self, routing: Routing, package: str, pins: Mapping[str, str]) -> None:
        self.routing = routing
        self.builder = NetlistBuilder()
        self._chip = routing.chip
        self._memories = Memories(self)
        self._signals: dict[object, int] = {}
        self._todo: list[Callable[[], None]] = []
        self._clocks: set[str] = set()
        self._cells: list[LogicCell] = []
        self._constants = Constants(self._lut_of)
        if self._pll:
            cell = self._pll[0]
            wire = self._chip.pins(cell)[PllPin.LOCK]
            routing.sources.setdefault(wire, ("pll", cell, PllPin.LOCK))
        known = self._chip.package(package)
        for port, pin in pins.items():
            if pin not in known:
                raise BitstreamError(f"port {port}: package {package} has no pin {pin!r}")
        self._ports = {port: known[pin] for port, pin in pins.items()}

    def result(self, inverted: Collection[str]) -> Ice40Netlist:
        builder = self.builder
        for port, pad in self._ports.items():
            kind = self._pin_type(pad) >> 2
            if kind != _NO_OUTPUT:
                level = self._output(port, pad, kind)
                builder.outputs[port] = (builder.invert(level) if port in inverted else level,)
            elif port in inverted:
                builder.inputs[port] = (builder.signal(),)
                builder.lut(0b01, builder.inputs[port], self._of(("pad", pad)))
            else:
                builder.inputs[port] = (self._of(("pad", pad)),)
        while self._todo:
            self._todo.pop()()
        if len(self._clocks) > 1:
            raise BitstreamError(f"several clocks: {', '.join(sorted(self._clocks))}; expected one")
        return Ice40Netlist(
            netlist=builder.build(),
            clock=next(iter(self._clocks), "none"),
            pll=self._pll[1] if self._pll else {},
            cells=tuple(self._cells),
        )

    def level(self, wire: int, otherwise: int = LOW) -> int:
        """Return the signal on ``wire``; ``otherwise`` if nothing drives it."""
        root = self.routing.root(wire)
        kind, cell, pin = self.routing.sources.get(root, ("nothing", 0, 0))
        match kind:
            case "lc" if pin == LogicPin.COUT:
                return self._defined("carry", self._define_carry, cell)
            case "lc" if pin == LogicPin.OUT and self._bits(cell)[_FLIP_FLOP]:
                return self._defined("q", self._define_flip_flop, cell)
            case "lc":
                constant = self._constants.level(root)
                if constant is None:
                    return self._defined("lut", self._define_lut, cell)
                return constant
            case "carry":
                (carried,) = self.routing.setting(cell, Tile.LOGIC, "CarryInSet")
                return HIGH if carried else LOW
            case "io":
                return self._input(cell, pin)
            case "gb":
                pad = self._global_pad(cell)
                if pad is None:
                    return self.level(self._chip.pins(cell)[0])
                return self._input(pad, PadPin.IN)
            case "ram":
                return self._memories.block(cell, pin)
            case "spram":
                return self._memories.single_port(cell, pin)
            case "pll":
                return HIGH
            case _:
                return otherwise

    def later(self, define: Callable[[], None]) -> None:
        """Call ``define`` after all requests that are under way."""
        self._todo.append(define)

    def clocked(self, wire: int) -> None:
        """Record the clock on ``wire``. Raises ``BitstreamError`` if no pin or PLL drives it."""
        root = self.routing.root(wire)
        kind, cell, pin = self.routing.sources.get(root, ("nothing", 0, 0))
        pad: int | None = cell
        if kind == "gb":
            pad = self._global_pad(cell)
            if pad is None:
                self.clocked(self._chip.pins(cell)[0])
                return
        elif (kind, pin) != ("io", PadPin.IN):
            where = self.routing.describe(root)
            raise BitstreamError(f"wire {where} is a clock, from no pin and no PLL")
        if pad == self._pll_pad:
            self._clocks.add("PLL")
            return
        name = self._pin_name(pad)
        self._clocks.add(name)
        if self._pin_type(pad) & 3 != _SIMPLE_INPUT:
            raise BitstreamError(f"pin {name}: a clock that is not a plain input")

    def _of(self, key: object) -> int:
        if key not in self._signals:
            self._signals[key] = self.builder.signal()
        return self._signals[key]

    def _defined(self, what: str, define: Callable[[int, int], None], cell: int) -> int:
        key = what, cell
        if key not in self._signals:
            signal = self._of(key)
            self.later(lambda: define(cell, signal))
        return self._signals[key]

    # Logic cells.

    def _bits(self, cell: int) -> list[int]:
        return self.routing.setting(cell, Tile.LOGIC, f"LC_{self.routing.location(cell)[2]}")

    def _inputs(self, cell: int) -> list[int]:
        """Return the wires at the inputs of a logic cell."""
        wires = self._chip.pins(cell)
        return [self.routing.lut_input(wires[pin]) for pin in range(4)]

    def _table(self, cell: int) -> int:
        bits = self._bits(cell)
        return sum(bits[position] << row for row, position in enumerate(LUT_BITS))

    def _lut_of(self, root: int) -> Lut | None:
        kind, cell, pin = self.routing.sources[root]
        if kind != "lc" or pin != LogicPin.OUT or self._bits(cell)[_FLIP_FLOP]:
            return None
        return self._lut(cell)

    def _lut(self, cell: int) -> Lut:
        roots = [self.routing.root(wire) for wire in self._inputs(cell)]
        inputs = tuple(~root if root in self.routing.sources else LOW for root in roots)
        return inputs, self._table(cell)

    def _define_lut(self, cell: int, output: int) -> None:
        inputs, table = [self.level(wire) for wire in self._inputs(cell)], self._table(cell)
        self.builder.lut(table, inputs, output)
        x, y, number = self.routing.location(cell)
        fixed = {bit: signal for bit, signal in enumerate(inputs) if signal in (LOW, HIGH)}
        rows = [row for row in range(16) if all(row >> bit & 1 == fixed[bit] for bit in fixed)]
        positions = tuple(self.routing.positions(Tile.LOGIC, f"LC_{number}"))
        self._cells.append(
            LogicCell(x, y, number, positions, tuple(inputs), output, table, tuple(rows))
        )

    def _define_carry(self, cell: int, output: int) -> None:
        wires = self._chip.pins(cell)
        if self._bits(cell)[_CARRY_ENABLE]:
            _, first, second, _ = self._inputs(cell)
            inputs = [self.level(wire) for wire in (first, second, wires[LogicPin.CIN])]
            self.builder.lut(_MAJORITY, inputs, output)
        else:
            self.builder.lut(0, [], output)

    def _define_flip_flop(self, cell: int, q: int) -> None:
        wires, bits = self._chip.pins(cell), self._bits(cell)
        clear = self.level(wires[LogicPin.RESET])
        where = f"flip-flop {self.routing.describe(wires[LogicPin.OUT])}"
        if bits[_ASYNCHRONOUS] and clear != LOW:
            raise BitstreamError(f"{where}: set or reset without its clock is not simulated")
        if self.routing.setting(cell, Tile.LOGIC, "NegClk") != [0]:
            raise BitstreamError(f"{where}: falling edges of the clock are not simulated")
        self.clocked(wires[LogicPin.CLOCK])
        enable = self.level(wires[LogicPin.ENABLE], HIGH)
        # SB_DFFESR and SB_DFFESS: a synchronous set or reset waits for the enable, too.
        clear = self.builder.both(clear, enable)
        constant = self._constants.of(self._lut(cell))
        d = self._defined("lut", self._define_lut, cell) if constant is None else constant
        self.builder.flip_flop(d, q, enable=enable, clear=clear, value=bits[_SET])

    # Pins and the PLL.

    def _pin_name(self, pad: int | None) -> str:
        return next((port for port, cell in self._ports.items() if cell == pad), f"pad {pad}")

    def _pin_type(self, pad: int | None) -> int:
        """Return PIN_TYPE, the kinds of the pin's input (bits 0 and 1) and output (bits 2 to 5)."""
        assert pad is not None
        name = f"IOB_{self.routing.location(pad)[2]}.PINTYPE"
        bits = [self.routing.setting(pad, Tile.IO, f"{name}_{bit}")[0] for bit in range(6)]
        return sum(value << bit for bit, value in enumerate(bits))

    def _input(self, pad: int, pin: int) -> int:
        kind = self._pin_type(pad) & 3
        if pin != PadPin.IN or kind != _SIMPLE_INPUT or pad == self._pll_pad:
            raise BitstreamError(
                f"pin {self._pin_name(pad)}: its kind of input, {kind:02b}, is not simulated"
            )
        return self._of(("pad", pad))

    def _output(self, port: str, pad: int, kind: int) -> int:
        wires = self._chip.pins(pad)
        driven = kind == _OUTPUT
        if kind == _TRISTATE:
            driven = self.level(wires[PadPin.OE], HIGH) == HIGH
        if not driven:
            raise BitstreamError(f"pin {port}: its kind of output, {kind:04b}, is not simulated")
        return self.level(wires[PadPin.OUT])

    def _global_pad(self, cell: int) -> int | None:
        """Return the pin that feeds a global buffer directly, if there is one."""
        x, y, _ = self.routing.location(cell)
        for network in self._chip.networks:
            bit = tuple(int(network[name]) for name in ("bank", "bit_x", "bit_y"))
            if (network["x"], network["y"]) == (x, y) and bit in self.routing.bits.extra:
                pad = int(network["pad_x"]), int(network["pad_y"]), f"io{network['pad_z']}"
                return self.routing.cells[pad]
        return None

    @cached_property
    def _pll(self) -> tuple[int, dict[str, int]] | None:
        """The used PLL and its settings, or None."""
        for cell, name in enumerate(self._chip.bel_names):
            if not name.startswith("pll"):
                continue
            values: dict[str, int] = {}
            for setting, (x, y, entry) in self._chip.settings(cell).items():
                for position in self.routing.positions(Tile.IO, f"PLL.{entry}"):
                    stem, _, bit = setting.rpartition("_")
                    key, shift = (stem, int(bit)) if bit.isdigit() else (setting, 0)
                    value = int(self.routing.bits.tiles[x, y][position]) << shift
                    values[key] = values.get(key, 0) | value
            if values.get("PLLTYPE"):
                if values["PLLTYPE"] not in (_PAD_PLL, _CORE_PLL):
                    raise BitstreamError("a PLL with two outputs is not simulated")
                return cell, values
        return None

    @cached_property
    def _pll_pad(self) -> int | None:
        """The pin whose input is the PLL's output, or None."""
        if not self._pll:
            return None
        return self.routing.sources[self._chip.pins(self._pll[0])[PllPin.OUT]][1]
