"""One file per board, and the building, loading and reading back of bitstreams.

This package may import `bitlane` and `bitlane_rtl`; neither of them may import it.
"""

from importlib import import_module

from .board import Board

__all__ = ["Board", "boards"]

_MODULES = (
    *("icebreaker", "hx8k", "ulx3s", "tangnano9k", "icepi_zero", "icesugar_pro"),
    *("colorlight_i5", "colorlight_5a_75b", "ecpix5"),
)


def boards() -> dict[str, Board]:
    """All boards by name."""
    found = [board for module in _MODULES for board in import_module(f".{module}", __name__).BOARDS]
    return {board.name: board for board in found}
