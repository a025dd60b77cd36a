"""The board that a command line names. Knows no command."""

from bitlane.errors import BitlaneError

from .. import Board, boards

__all__ = ["board_named", "board_names"]


def board_names() -> str:
    """All names, for help and errors."""
    return ", ".join(sorted(boards()))


def board_named(name: str) -> Board:
    """The board called ``name``. Raises ``BitlaneError`` that lists the others."""
    found = boards().get(name)
    if found is None:
        raise BitlaneError(f"board {name!r}: unknown; expected one of {board_names()}")
    return found
