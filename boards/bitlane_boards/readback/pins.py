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

__all__ = ["BoardPin", "Side", "board_pins"]


class Side(Enum):
    """The signal of a pin: the board's level, the FPGA's level, or the FPGA's output enable."""

    IN = "in"
    OUT = "out"
    ENABLE = "enable"


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

    The pins of an SDRAM chip are bit by bit, with the number of the bit after the name.

    Raises ``BitlaneError`` if amaranth-boards is not installed.
    """
    platform = load_platform(board)
    uart = platform.request("uart", dir="-")
    ports = {
        "clk": platform.request(platform.default_clk, dir="-"),
        "rx": uart.rx,
        "tx": uart.tx,
        **leds(board, platform),
    }
    pins = {}
    for role, port in ports.items():
        # Of a differential pair, the positive half.
        line: Any = port.p if isinstance(port, DifferentialPort) else port.io
        side = Side.IN if role in ("clk", "rx") else Side.OUT
        pins[role] = BoardPin(line.name, line.metadata[0].name, bool(port.invert[0]), side)
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
