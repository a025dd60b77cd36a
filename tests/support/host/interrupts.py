"""Ctrl-C at a chosen point.

Python handles the signal at the start of every function, and at the end of every C function.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import CO_GENERATOR
from itertools import count
from types import FrameType
from typing import Any


def _gives_back(frame: FrameType | None) -> bool:
    """Return whether Python calls this frame for a dead object, where it discards exceptions."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(("weakref.py", "_weakrefset.py")) and code.co_name in (
            "__call__",
            "_remove",
            "remove",
        ):
            return True
        frame = frame.f_back
    return False


@contextmanager
def interrupted(after: int, where: Sequence[str]) -> Iterator[None]:
    """Raise Ctrl-C at the ``after``th point from here in a file whose path ends with ``where``."""
    places = count()

    def profile(frame: FrameType, event: str, _: object) -> None:
        # A profiler's error as a generator goes on leaves the frame behind: Python's own fault.
        begins = event == "call" and not frame.f_code.co_flags & CO_GENERATOR
        here = frame.f_code.co_filename.endswith(tuple(where))
        if not here or not (begins or event == "c_return") or _gives_back(frame):
            return
        if next(places) == after:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def attempt(
    action: Callable[..., object], where: Sequence[str], place: int, *arguments: Any
) -> bool:
    """Return whether Ctrl-C at ``place`` in ``where`` came before the end of ``action``."""
    try:
        with interrupted(place, where):
            action(*arguments)
    except KeyboardInterrupt:
        return True
    return False
