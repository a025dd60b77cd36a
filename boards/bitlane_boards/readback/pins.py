"""The pins of a board's circuit: names of their ports in netlists, and pins of the package.

They come from the board's description, never from a file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from amaranth.lib.io import DifferentialPort

from ..board import Board
from ..flow.platform import leds, load_platform, sdram_pins
from ..flow.rgmii import rgmii_pins

__all__ = ["BoardPin", "Side", "board_pins"]


class Side(Enum):
    """The signal of a pin: the board's level, the FPGA's level, or the FPGA's output enable.

    Of a pin with a double data rate, the levels at the rising edge and at the falling edge.
    """

    IN = "in"
    OUT = "out"
    ENABLE = "enable"
    IN_FALLING = "in, falling edge"
    OUT_FALLING = "out, falling edge"


@dataclass(frozen=True, slots=True)
class BoardPin:
    """A pin.

    ``port`` and ``bit`` name it in netlists; ``package_pin`` is its name on the package. With
    ``invert`` a low level means 1.
    """

    port: str
    package_pin: str
    invert: bool
    side: Side = Side.OUT
    bit: int = 0


def board_pins(board: Board) -> dict[str, BoardPin]:
    """Return the pins of ``board`` by the names of `Top`'s ports, and ``clk``.

    The pins of an SDRAM chip are bit by bit, with the number of the bit after the name. Those of
    RGMII have the names of `RgmiiPins`, and there is ``rx_clk``.

    Raises ``BitlaneError`` if amaranth-boards is not installed.
    """
    platform = load_platform(board)
    ports = {"clk": platform.request(platform.default_clk, dir="-")}
    if board.ethernet is None:
        uart = platform.request("uart", dir="-")
        ports |= {"rx": uart.rx, "tx": uart.tx}
    ports |= leds(board, platform)
    pins = {}
    for role, port in ports.items():
        # Of a differential pair, the positive half.
        line: Any = port.p if isinstance(port, DifferentialPort) else port.io
        side = Side.IN if role in ("clk", "rx") else Side.OUT
        pins[role] = BoardPin(line.name, line.metadata[0].name, bool(port.invert[0]), side)
    if board.ethernet:
        lines = rgmii_pins(platform, board.ethernet.number)
        del lines["rst"]
        pins |= dict(_rgmii_pins(lines))
    if board.sdram:
        pins |= dict(_sdram_pins(board, platform.request("sdram", dir="-")))
    return pins


def _sdram_pins(board: Board, ports: Any) -> Iterator[tuple[str, BoardPin]]:
    sides = [(name, member, Side.OUT) for name, member in sdram_pins(board).items()]
    sides += [("dq", "o", Side.OUT), ("dq", "i", Side.IN), ("dq", "oe", Side.ENABLE)]
    for name, member, side in sides:
        line = getattr(ports, name).io
        # All lines are enabled together.
        for bit, pin in enumerate(line.metadata[: 1 if side is Side.ENABLE else None]):
            yield f"sdram_{member}_{bit}", BoardPin(line.name, pin.name, False, side, bit)


def _rgmii_pins(lines: dict[str, Any]) -> Iterator[tuple[str, BoardPin]]:
    """Yield the pins of RGMII; each line is two, for both edges of a cycle."""
    clock = lines["rx_clk"].io
    yield "rx_clk", BoardPin(clock.name, clock.metadata[0].name, False, Side.IN)
    for name, port in lines.items():
        sides = {"rx": (Side.IN, Side.IN_FALLING), "tx": (Side.OUT, Side.OUT_FALLING)}[name[:2]]
        for side, edge in zip(sides, ("rise", "fall"), strict=True):
            for bit, pin in enumerate(port.io.metadata):
                role = f"rgmii_{name}_{bit}_{edge}"
                if name != "rx_clk":
                    yield role, BoardPin(port.io.name, pin.name, False, side, bit)
