"""Translates the JSON netlists of Yosys and nextpnr, cell by cell, to a netlist of gates.

It knows no vendor's cells.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from bitlane.errors import BitlaneError

from ..pins import HIGH, LOW, Netlist, NetlistBuilder
from ..pins.rgmii import edge_port
from .pins import BoardPin, Side

__all__ = ["Cell", "CellReader", "JsonNetlist", "NetlistError", "Translation", "convert"]

Bit = int | str

FALLING = "falling edges of the clock are"
ASYNCHRONOUS = "set or reset without its clock is"
THROUGH = "a read of a word while it is written is"
"""Features of several families' cells, as `Cell.refuse` takes them."""


class NetlistError(BitlaneError):
    """The file is not a readable netlist, or uses a feature that is not simulated."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its kind, its parameters, and the bits at its ports, least significant bit first.

    A bit is the number of a net, or "0", "1", "x" or "z".
    """

    name: str
    kind: str
    parameters: Mapping[str, str]
    connections: Mapping[str, Sequence[Bit]]
    attributes: Mapping[str, str]

    def number(self, name: str, otherwise: int = 0) -> int:
        """Return a numeric parameter. Raises `NetlistError`."""
        value: str | int = self.parameters.get(name, otherwise)
        if isinstance(value, int):
            return value
        try:
            return int(value, 2) if value else otherwise
        except ValueError:
            raise NetlistError(f"{self}: parameter {name} is {value!r}; expected bits") from None

    def text(self, name: str, otherwise: str) -> str:
        """Return a text parameter. Yosys appends a space to one that looks like bits."""
        return self.parameters.get(name, otherwise).strip()

    def bit(self, port: str) -> Bit | None:
        """Return the bit at a port of one bit, or at bit N of a port for PORT[N]."""
        stem, _, index = port.partition("[")
        bits = self.connections.get(stem, ())
        number = int(index[:-1]) if index else 0
        return bits[number] if number < len(bits) else None

    def refuse(self, present: bool, feature: str) -> None:
        """Raise `NetlistError` if a feature is ``present`` that the gates cannot simulate.

        ``feature`` ends with its verb, "is" or "are".
        """
        if present:
            raise NetlistError(f"{self}: {feature} not simulated")

    def expect(self, name: str, value: str) -> None:
        """Raise `NetlistError` unless the parameter ``name`` has ``value`` or is not set."""
        found = self.text(name, value)
        self.refuse(found != value, f"{name} {found} is")

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class JsonNetlist:
    """The top module of a netlist."""

    ports: Mapping[str, Sequence[Bit]]
    cells: tuple[Cell, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the netlist in ``path``. Raises `NetlistError` and ``OSError``."""
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            modules = content["modules"]
            tops = [m for m in modules.values() if int(m["attributes"].get("top", "0"), 2)]
            (top,) = tops or modules.values()
            ports = {name: port["bits"] for name, port in top["ports"].items()}
            cells = [
                Cell(name, cell["type"], *(cell.get(key, {}) for key in _PARTS))
                for name, cell in top["cells"].items()
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise NetlistError(
                f"{path}: no netlist of one top module in the JSON of Yosys or nextpnr:"
                f" {_reason(error)}"
            ) from None
        return cls(ports, tuple(cells))

    def is_read(self, bit: Bit | None) -> bool:
        """Return whether a net has a reader besides its driver."""
        return isinstance(bit, int) and self._users[bit] > 1

    @cached_property
    def _users(self) -> Counter[Bit]:
        users = Counter(bit for bits in self.ports.values() for bit in bits)
        for cell in self.cells:
            users.update(bit for bits in cell.connections.values() for bit in bits)
        return users


def _reason(error: Exception) -> str:
    """Return the cause of ``error`` in few words, whatever the file contains."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not text"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


_PARTS = ("parameters", "connections", "attributes")


@dataclass(slots=True)
class Translation:
    """The state of a translation: signals by net, clocks and PLLs.

    Attributes
    ----------
    netlist
        The netlist that is translated.
    pll_ratio
        The required frequency ratio of a PLL's output to its input, or None.
    plls
        Nets of the outputs of PLLs.
    clock_nets
        Nets that clock a cell, with the cell's port.
    clock_sources
        The net before a clock buffer, by the net after it.
    lines
        The FPGA's level and its disable signal, by the net of a bidirectional pin.
    domains
        Empty if there is one clock. Otherwise, of each clock domain, the frequency ratio of the
        PLL's output to its input, or the net of a pin. The netlist then has an input for each
        domain, named by `edge_port`, and a step is an edge of those that are high.
    falling
        Signals of pins with a double data rate at falling edges, by the net of an input, and by the
        net before an output buffer.
    outputs
        The net before an output buffer, by the net of the pin.
    """

    netlist: JsonNetlist
    pll_ratio: float | None
    plls: list[Bit] = field(default_factory=list)
    builder: NetlistBuilder = field(default_factory=NetlistBuilder)
    clock_nets: dict[Bit, str] = field(default_factory=dict)
    clock_sources: dict[Bit, Bit] = field(default_factory=dict)
    lines: dict[Bit, tuple[int, int]] = field(default_factory=dict)
    domains: Mapping[str, float | Bit] = field(default_factory=dict)
    falling: dict[Bit, int] = field(default_factory=dict)
    outputs: dict[Bit, Bit | None] = field(default_factory=dict)
    _edges: dict[str, int] = field(default_factory=dict)
    _gated: dict[tuple[int, int], int] = field(default_factory=dict)
    _made: dict[Bit, str] = field(default_factory=dict)
    _signals: dict[Bit, int] = field(default_factory=dict)

    def of(self, bit: Bit | None, otherwise: int = LOW) -> int:
        """Return the signal of a net or a constant; ``otherwise`` if ``bit`` is not connected."""
        if bit is None or bit in ("x", "z"):
            return otherwise
        if isinstance(bit, str):
            return HIGH if bit == "1" else LOW
        if bit not in self._signals:
            self._signals[bit] = self.builder.signal()
        return self._signals[bit]

    def tie(self, bit: Bit | None, level: int) -> None:
        """Tie a net to ``level``, `LOW` or `HIGH`."""
        if isinstance(bit, int):
            self._signals[bit] = level

    def drive(self, bit: Bit | None) -> int:
        """Return the signal of a net that a cell drives; a new signal if ``bit`` is not a net."""
        return self.builder.signal() if bit is None or isinstance(bit, str) else self.of(bit)

    def join(self, source: Bit | None, target: Bit | None) -> None:
        """Add a buffer from ``source`` to ``target``."""
        if target is not None and not isinstance(target, str):
            self.builder.lut(0b10, [self.of(source)], self.of(target))

    def clocked(self, cell: Cell, port: str, *enables: int) -> list[int]:
        """Record that ``port`` of ``cell`` is a clock.

        Returns signals that are high while ``enables`` are and the step is an edge of the clock.
        Raises `NetlistError` for a clock of no domain.
        """
        bit = cell.bit(port)
        user = f"{cell}, port {port}"
        if bit is None or not self.domains:
            if bit is not None:
                self.clock_nets.setdefault(bit, user)
            return list(enables)
        source = self.source(bit)
        pins = {net: name for name, net in self.domains.items() if not isinstance(net, float)}
        domain = self._made.get(source) or pins.get(source)
        if domain is None:
            raise NetlistError(f"{user}: clocked by neither the PLL nor a pin with a clock")
        if domain not in self._edges:
            self._edges[domain] = self.builder.signal()
            self.builder.inputs[edge_port(domain)] = (self._edges[domain],)
        return [self._at_edge(self._edges[domain], enable) for enable in enables]

    def _at_edge(self, edge: int, enable: int) -> int:
        # Thousands of flip-flops share few enables.
        if (edge, enable) not in self._gated:
            self._gated[edge, enable] = self.builder.both(enable, edge)
        return self._gated[edge, enable]

    def passes_clock(self, cell: Cell, source: str, target: str) -> None:
        """Record that ``cell`` buffers a clock from one port to another."""
        before, after = cell.bit(source), cell.bit(target)
        if before is not None and after is not None:
            self.clock_sources[after] = before

    def input(self, cell: Cell, pad: str, target: str) -> None:
        """Add an input buffer from the pin at ``pad``, which may be a clock, to ``target``."""
        self.join(cell.bit(pad), cell.bit(target))
        self.passes_clock(cell, pad, target)

    def output(self, cell: Cell, source: str, off: str, pad: str) -> None:
        """Add an output buffer from ``source`` to the pin at ``pad``.

        ``off`` disables it. A disabled pin is high, as an idle UART line is.
        """
        levels = [self.of(cell.bit(port)) for port in (source, off)]
        if (net := cell.bit(pad)) is not None:
            self.outputs[net] = cell.bit(source)
        self.builder.lut(0b1110, levels, self.drive(cell.bit(pad)))

    def line(self, cell: Cell, source: str, off: str, pad: str, target: str) -> None:
        """Add a bidirectional buffer: the FPGA drives ``pad`` while ``off`` is low.

        ``target`` follows only the level that the board drives.
        """
        self.input(cell, pad, target)
        bit = cell.bit(pad)
        if bit is not None:
            self.lines[bit] = (self.of(cell.bit(source)), self.of(cell.bit(off)))

    def pll(self, cell: Cell, ratios: Mapping[str, float]) -> None:
        """Record a PLL with ``ratios`` of its outputs to its input. It is locked at once."""
        first = next(iter(ratios))
        if cell.bit(first) is None:
            raise NetlistError(f"{cell}: only a PLL with the output {first} is simulated")
        for output, ratio in ratios.items():
            made = cell.bit(output)
            if made is not None:
                self.plls.append(made)
                self._expect_ratio(cell, made, ratio)
        self.builder.lut(1, [], self.drive(cell.bit("LOCK")))

    def _expect_ratio(self, cell: Cell, made: Bit, ratio: float) -> None:
        wanted = {name: each for name, each in self.domains.items() if isinstance(each, float)}
        if not wanted and self.pll_ratio is not None:
            wanted = {"sync": self.pll_ratio}
        for name, each in wanted.items():
            if abs(ratio / each - 1) < 1e-9:
                self._made[made] = name
                return
        if wanted:
            expected = " or ".join(f"{each:g}" for each in wanted.values())
            raise NetlistError(f"{cell}: makes {ratio:g} of its input's clock; expected {expected}")

    def finish(self, pins: Mapping[str, BoardPin]) -> Netlist:
        """Name the pins and build the netlist.

        Raises `NetlistError` if a pin is missing, or if a clock is neither from a PLL nor from the
        pin ``clk``.
        """
        builder, netlist = self.builder, self.netlist
        for role, pin in pins.items():
            bits = netlist.ports.get(pin.port, ())
            if pin.bit >= len(bits):
                raise NetlistError(
                    f"no port {pin.port!r} of {pin.bit + 1} bits in the netlist: is it one of this"
                    f" board? it has {', '.join(netlist.ports)}"
                )
            bit = bits[pin.bit]
            signal = self.of(bit)
            if pin.side is not Side.IN and bit in self.lines:
                # A LUT, as for other outputs, so that after an edge it shows the level before.
                driven, off = self.lines[bit]
                only = (0b01, off) if pin.side is Side.ENABLE else (0b10, driven)
                builder.outputs[role] = (builder.lut(only[0], [only[1]]),)
            elif pin.side is Side.IN_FALLING:
                builder.inputs[role] = (self._falling(bit, pin),)
            elif pin.side is Side.OUT_FALLING:
                # As above: a LUT shows the level before the edge.
                before = self.outputs.get(bit)
                builder.outputs[role] = (builder.lut(0b10, [self._falling(before, pin)]),)
            elif pin.side is Side.IN:
                builder.inputs[role] = (builder.signal(),)
                builder.lut(0b01 if pin.invert else 0b10, builder.inputs[role], signal)
            else:
                builder.outputs[role] = (builder.invert(signal) if pin.invert else signal,)
        if self.domains:
            return builder.build()
        clocks = {self.source(bit): user for bit, user in self.clock_nets.items()}
        allowed = set(self.plls) or {netlist.ports[pins["clk"].port][0]}
        for bit, user in clocks.items():
            if bit not in allowed:
                raise NetlistError(f"{user}: clocked by neither the PLL nor pin clk")
        if len(clocks) > 1:
            raise NetlistError(f"{len(clocks)} clocks: {', '.join(clocks.values())}; expected one")
        return builder.build()

    def _falling(self, bit: Bit | None, pin: BoardPin) -> int:
        if bit not in self.falling:
            raise NetlistError(f"pin {pin.package_pin} has no double data rate")
        return self.falling[bit]

    def source(self, bit: Bit) -> Bit:
        """Return the net before all buffers of a clock, or of an input."""
        seen: set[Bit] = set()
        while bit in self.clock_sources and bit not in seen:
            seen.add(bit)
            bit = self.clock_sources[bit]
        return bit


CellReader = Callable[[Translation, Cell], None]
"""A function that adds a cell to a netlist of gates. Raises `NetlistError`."""


def convert(
    netlist: JsonNetlist,
    readers: Mapping[str, CellReader],
    pins: Mapping[str, BoardPin],
    pll_ratio: float | None = None,
    domains: Mapping[str, float | BoardPin] | None = None,
) -> Netlist:
    """Return the netlist of gates of ``netlist``, with the pins' roles for names.

    ``readers`` are by kind of cell, in the order of their calls. ``pll_ratio`` is the required
    frequency ratio of the PLL. With ``domains``, the netlist has several clocks: each is a ratio of
    the PLL, or comes from a pin. Raises `NetlistError` for a feature that is not simulated.
    """
    order = {kind: number for number, kind in enumerate(readers)}
    cells = [cell for cell in netlist.cells if not cell.kind.startswith("$")]
    for cell in cells:
        if cell.kind not in order:
            raise NetlistError(f"{cell}: a kind of cell that is not simulated")
    sources: dict[str, float | Bit] = {}
    for name, domain in (domains or {}).items():
        sources[name] = (
            netlist.ports.get(domain.port, ("x",))[0] if isinstance(domain, BoardPin) else domain
        )
    translation = Translation(netlist, pll_ratio, domains=sources)
    for cell in sorted(cells, key=lambda cell: order[cell.kind]):
        readers[cell.kind](translation, cell)
    return translation.finish(pins)
