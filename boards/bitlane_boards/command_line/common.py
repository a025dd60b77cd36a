"""The argument that names a board and the progress on standard error, for all commands."""

import argparse
import sys
from collections.abc import Callable, Iterable

from .. import boards

__all__ = ["add_board", "progress_of"]


class _Names(list[str]):
    """Names of boards, and with them all that begins with ``prefix``."""

    def __init__(self, names: Iterable[str], prefix: str | None) -> None:
        super().__init__(names)
        self._prefix = prefix

    def __contains__(self, name: object) -> bool:
        wanted = self._prefix is not None and str(name).startswith(self._prefix)
        return wanted or super().__contains__(name)


def add_board(
    parser: argparse.ArgumentParser, nargs: str | None = None, prefix: str | None = None
) -> None:
    """Add the argument ``board``, the name of a board or a name that begins with ``prefix``."""
    names = _Names(sorted(boards()), prefix)
    shown = [*names, f"{prefix}TARGET"] if prefix else names
    parser.add_argument("board", metavar="BOARD", nargs=nargs, choices=names, help=", ".join(shown))


def progress_of(name: str) -> Callable[[str], None]:
    """Return a function that prints a line after ``name`` and a colon, and flushes it."""

    def progress(line: str) -> None:
        print(f"{name}: {line}", file=sys.stderr, flush=True)

    return progress
