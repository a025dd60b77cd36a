"""Lines on standard error: notices, and on a terminal the progress of long work."""

import sys
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event, Thread
from time import monotonic
from typing import Self, TypeVar

_Item = TypeVar("_Item")

_NAME = 16
"""Columns for a name."""

_wanted = [False]


def progress(on: bool = True) -> None:
    """Show the progress of calls that take a second on a terminal, or stop; the default is off.

    A line shows the share of the work that is done, where a call is cut into tiles, else the
    seconds that a transfer or a computation has taken. With progress, arrays are processed in
    smaller tiles.
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
        with suppress(OSError, ValueError):
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """Print ``line`` on standard error, if it can be written."""
    if sys.stderr is not None:
        with suppress(AttributeError, OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


_shown: "list[Percentage | Elapsed]" = []
"""Blocks that show something, in the order in which they began."""


class Percentage:
    """Shows ``name`` and the percentage of finished work until the ``with`` block ends."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._percent = -1

    def __call__(self, fraction: float) -> None:
        percent = int(100 * fraction)
        if self._percent < 0:
            _shown.append(self)
        if percent != self._percent:
            self._percent = percent
            show(f"{self._name:{_NAME}}{percent:3} %")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._percent >= 0:
            _shown.remove(self)
            show("")


EVERY = 1.0
"""Seconds between two lines of `Elapsed`, and before its first."""


class Elapsed:
    """Shows ``name`` and the seconds of a ``with`` block that takes longer than one.

    Only on a terminal, and while no other block shows anything.
    """

    __slots__ = ("_end", "_name", "_thread")

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: Thread | None = None

    def __enter__(self) -> None:
        if is_terminal():
            self._end = Event()
            self._thread = Thread(target=self._show, args=(monotonic(),), daemon=True)
            self._thread.start()

    def _show(self, started: float) -> None:
        try:
            while not self._end.wait(EVERY):
                if not _shown:
                    _shown.append(self)
                if _shown[0] is self:
                    show(f"{self._name:{_NAME}}{monotonic() - started:3.0f} s")
        finally:
            if self in _shown:
                _shown.remove(self)
                if not _shown:
                    show("")

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._end.set()
            self._thread.join()


def timed(lock: AbstractContextManager[object], name: str) -> AbstractContextManager[object]:
    """Return ``lock``; with progress, it shows ``name`` and its seconds while it is held."""
    return _timed(lock, name) if _wanted[0] else lock


@contextmanager
def _timed(lock: AbstractContextManager[object], name: str) -> Iterator[None]:
    with lock, Elapsed(name):
        yield


def track(items: Collection[_Item], name: str) -> Iterator[_Item]:
    """Iterate over ``items``, and show the percentage of finished ones."""
    with Percentage(name) as percentage:
        for number, item in enumerate(items):
            percentage(number / len(items))
            yield item
