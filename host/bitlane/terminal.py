"""Lines on standard error: notices anywhere, and on a terminal how far long work is."""

import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Self, TypeVar

_Item = TypeVar("_Item")

_NAME = 16
"""Columns of a name."""

_wanted = [False]


def progress(on: bool = True) -> None:
    """Let calls on large arrays show on a terminal how far they are, or not; at first they do not.

    They are done in smaller pieces then.
    """
    _wanted[:] = [bool(on)]


def progress_is_wanted() -> bool:
    """What ``progress`` was told last."""
    return _wanted[0]


def is_terminal() -> bool:
    """Whether standard error is a terminal. None is if it is closed, or can only be written."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def show(text: str) -> None:
    """Put ``text`` in place of what was shown before, on standard error, if that is a terminal."""
    if is_terminal():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """Print ``line`` on standard error, if there is one that can be written."""
    if sys.stderr is not None:
        with suppress(AttributeError, OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


class Percentage:
    """``name`` and how much of the work is done, until the ``with`` statement ends."""

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


def each(items: Collection[_Item], name: str) -> Iterator[_Item]:
    """``items``, and how many of them are done."""
    with Percentage(name) as percentage:
        for number, item in enumerate(items):
            percentage(number / len(items))
            yield item
