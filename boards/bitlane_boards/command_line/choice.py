"""The argument that names a board. It knows no command."""

import argparse

from .. import boards

__all__ = ["add_board"]


def add_board(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    """Add the argument ``board``, the name of a board."""
    names = sorted(boards())
    parser.add_argument("board", metavar="BOARD", nargs=nargs, choices=names, help=", ".join(names))
