"""The board that a command line names. Knows no command."""

import argparse

from .. import boards

__all__ = ["add_board"]


def add_board(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    """Add the argument ``board``, which is the name of one of those that there are."""
    names = sorted(boards())
    parser.add_argument("board", metavar="BOARD", nargs=nargs, choices=names, help=", ".join(names))
