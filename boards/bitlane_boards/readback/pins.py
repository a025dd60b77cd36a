"""Where a board has the ports of its circuit: names in netlists, and pins of the package.

They are those of the board's description, by place or by name, never guessed from a file.
"""

from dataclasses import dataclass

from ..board import Board
from ..flow.platform import load_platform

__all__ = ["BoardPin", "board_pins"]


@dataclass(frozen=True, slots=True)
class BoardPin:
    """A pin.

    ``port`` is its name in netlists, ``place`` its pin of the package. ``invert``: a low level
    means 1.
    """

    port: str
    place: str
    invert: bool


def board_pins(board: Board) -> dict[str, BoardPin]:
    """The pins of ``board`` by the names of `Top`'s ports, and ``clk``.

    Raises ``BitlaneError`` if amaranth-boards is not installed.
    """
    platform = load_platform(board)
    uart = platform.request("uart", dir="-")
    ports = {
        "clk": platform.request(platform.default_clk, dir="-"),
        "rx": uart.rx,
        "tx": uart.tx,
        "busy": platform.request("led", board.busy_led, dir="-"),
        "fault": platform.request("led", board.fault_led, dir="-"),
    }
    pins = {}
    for role, port in ports.items():
        # Of a differential pair, the positive half.
        line = port.io if hasattr(port, "io") else port.p
        pins[role] = BoardPin(line.name, line.metadata[0].name, bool(port.invert[0]))
    return pins
