"""Where a board has the ports of its circuit: names in netlists, and pins of the package.

They are those of the board's description, by place or by name, never guessed from a file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..board import Board
from ..flow.platform import SDRAM_PINS, leds, load_platform

__all__ = ["BoardPin", "Side", "board_pins"]


class Side(Enum):
    """What of a pin is meant: its level, as the board or as the FPGA drives it, or whether the
    FPGA does."""

    IN = "in"
    OUT = "out"
    ENABLE = "enable"


@dataclass(frozen=True, slots=True)
class BoardPin:
    """A pin.

    ``port`` is its name in netlists, ``bit`` which one of several; ``place`` its pin of the
    package. ``invert``: a low level means 1.
    """

    port: str
    place: str
    invert: bool
    side: Side = Side.OUT
    bit: int = 0


def board_pins(board: Board) -> dict[str, BoardPin]:
    """The pins of ``board`` by the names of `Top`'s ports, and ``clk``; those of an SDRAM chip bit
    by bit, with the bit's number behind the name.

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
        line = port.io if hasattr(port, "io") else port.p
        side = Side.IN if role in ("clk", "rx") else Side.OUT
        pins[role] = BoardPin(line.name, line.metadata[0].name, bool(port.invert[0]), side)
    if board.sdram:
        pins |= dict(_sdram_pins(platform.request("sdram", dir="-")))
    return pins


def _sdram_pins(ports: Any) -> Iterator[tuple[str, BoardPin]]:
    sides = [(name, member, Side.OUT) for name, member in SDRAM_PINS.items()]
    sides += [("dq", "o", Side.OUT), ("dq", "i", Side.IN), ("dq", "oe", Side.ENABLE)]
    for name, member, side in sides:
        line = getattr(ports, name).io
        # All lines are enabled together.
        for bit, pin in enumerate(line.metadata[: 1 if side is Side.ENABLE else None]):
            yield f"sdram_{member}_{bit}", BoardPin(line.name, pin.name, False, side, bit)
