"""Lines on standard error: notices, and on a terminal the progress of long work."""

import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Self, TypeVar

_Item = TypeVar("_Item")

_NAME = 16
"""Columns for a name."""

_wanted = [False]


def progress(on: bool = True) -> None:
    """Show the progress of calls on large arrays on a terminal, or stop; the default is off.

    With progress, arrays are processed in smaller tiles.
    """
    _wanted[:] = [bool(on)]


def progress_is_wanted() -> bool:
    """Return the last setting of `progress`."""
    return _wanted[0]


def is_terminal() -> bool:
    """Return whether standard error is a terminal; not if it is closed."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def show(text: str) -> None:
    """Replace the shown line by ``text``, on standard error, if that is a terminal."""
    if is_terminal():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """Print ``line`` on standard error, if it can be written."""
    if sys.stderr is not None:
        with suppress(AttributeError, OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


class Percentage:
    """Shows ``name`` and the percentage of finished work until the ``with`` block ends."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = -1

    def __call__(self, fraction: float) -> None:
        percent = int(100 * fraction)
        if percent != self._shown:
            self._shown = percent
            show(f"{self._name:{_NAME}}{percent:3} %")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown >= 0:
            show("")


def track(items: Collection[_Item], name: str) -> Iterator[_Item]:
    """Iterate over ``items``, and show the percentage of finished ones."""
    with Percentage(name) as percentage:
        for number, item in enumerate(items):
            percentage(number / len(items))
            yield item
