"""A line on standard error when a compilation takes longer than a second."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer

__all__ = ["noticed"]

_PATIENCE = 1.0
"""Seconds of silence. Most designs are compiled sooner."""


@contextmanager
def noticed(line: str) -> Iterator[None]:
    """Print ``line`` on standard error if the ``with`` block takes longer than a second."""
    timer = Timer(_PATIENCE, _say, [line])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(line: str) -> None:
    if sys.stderr is not None:
        with suppress(AttributeError, OSError, ValueError):
            print(line, file=sys.stderr, flush=True)
