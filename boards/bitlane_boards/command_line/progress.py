"""Progress and failures of a command, printed on standard error."""

import sys
from collections.abc import Callable

__all__ = ["progress_of"]


def progress_of(name: str) -> Callable[[str], None]:
    """Return a function that prints a line after ``name`` and a colon, and flushes it."""

    def progress(line: str) -> None:
        print(f"{name}: {line}", file=sys.stderr, flush=True)

    return progress
