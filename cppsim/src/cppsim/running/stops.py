"""Counts of the stops of compiled code for Python, by lines of testbenches and processes."""

import linecache
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..amaranth_internals import PyTriggerState, waiting_process
from ..errors import is_of_no_user

Line = tuple[str, int]
"""A file and a line; a text and 0 for a reason without a line."""


class Stops:
    """The stops of one simulation.

    Attributes
    ----------
    left : int
        The stops before the next one that is sampled; at 0, that is the current one.
    lines : Counter
        The sampled waits by their line, and other reasons to stop.
    period : int
        Stops for each that is sampled: to find a line takes as long as ten stops. A prime number,
        so that all of the waits that end in turns are sampled.
    """

    period = 61

    def __init__(self) -> None:
        self.left = self.period - 1
        self.lines: Counter[Line] = Counter()
        self._periods = 0

    @property
    def count(self) -> int:
        """The points in time at which Python ran, whether or not it did anything."""
        return (self._periods + 1) * self.period - 1 - self.left

    def again(self) -> int:
        """Return `left` at the stop after a sampled one."""
        self._periods += 1
        return self.period - 1

    def advance(self) -> bool:
        """Count a stop; return whether it is sampled."""
        self.left = self.left - 1 if self.left else self.again()
        return not self.left

    def note(self, waits: Iterable[Any]) -> None:
        """Note ``waits``, which have ended, and whose processes are about to continue."""
        self.lines.update(line_of(_process_of(wait)) for wait in waits)

    def note_reasons(self, reasons: Iterable[str]) -> None:
        """Note reasons to stop other than waits."""
        self.lines.update((reason, 0) for reason in reasons)


def _process_of(wait: Any) -> Any:
    """Return the process of a wait, or of a trigger, which in mode ``check`` is Amaranth's."""
    return waiting_process(wait) if isinstance(wait, PyTriggerState) else wait.process


def line_of(process: Any) -> Line:
    """Return the innermost line of a user at which ``process`` waits."""
    found: Line = (process.constructor.__qualname__, 0)
    inner = process.coroutine
    while inner is not None:
        frame = _attribute(inner, "frame")
        if frame is not None and not is_of_no_user(frame.f_globals):
            found = (frame.f_code.co_filename, frame.f_lineno)
        inner = _attribute(inner, "await") or getattr(inner, "gi_yieldfrom", None)
    return found


def _attribute(waiting: Any, name: str) -> Any:
    """Return an attribute that coroutines and generators have by different names."""
    found = (getattr(waiting, f"{kind}_{name}", None) for kind in ("cr", "ag", "gi"))
    return next((x for x in found if x is not None), None)


def text_of(line: Line) -> str:
    """Return a line with its file, number and source, or the reason why there is none."""
    file, number = line
    if not number:
        return file
    path, here = Path(file), Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{shown}:{number}: {linecache.getline(file, number).strip()}"
