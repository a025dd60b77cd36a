"""The argument that names a board and the progress on standard error, for all commands."""

import argparse
import sys
from collections.abc import Callable

from .. import boards

__all__ = ["add_board", "progress_of"]


def add_board(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    """Add the argument ``board``, the name of a board."""
    names = sorted(boards())
    parser.add_argument("board", metavar="BOARD", nargs=nargs, choices=names, help=", ".join(names))


def progress_of(name: str) -> Callable[[str], None]:
    """Return a function that prints a line after ``name`` and a colon, and flushes it."""

    def progress(line: str) -> None:
        print(f"{name}: {line}", file=sys.stderr, flush=True)

    return progress
