"""A board whose times the device ``numpy`` predicts. Packages of boards name theirs."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from bitlane_rtl.configuration import Configuration

from .line_time import LineTime
from .memories import Memory

ENTRY_POINT_GROUP = "bitlane.predicted_boards"
"""Entry points that return `PredictedBoard` by name."""


@dataclass(frozen=True, slots=True)
class PredictedBoard:
    """A board's circuit, its clock, the line to it, and its memory."""

    name: str
    configuration: Configuration
    clock_hz: int
    line: LineTime
    memory: Memory


def board_named(name: str) -> PredictedBoard:
    """Return the board. Raises ``ValueError`` if no installed package has it."""
    found: dict[str, PredictedBoard] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        boards: Mapping[str, PredictedBoard] = entry.load()()
        found |= boards
    if name not in found:
        raise ValueError(f"option board: {name!r}; choose {', '.join(found) or 'none: no boards'}")
    return found[name]
