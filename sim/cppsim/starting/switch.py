"""The decision to compile a design while Amaranth's simulator runs it."""

import sys
import warnings
from functools import cache
from typing import Any

from ..compiling.library import prepare
from ..errors import SimulationError
from .background import Build, Written, can_build

_SHORT = 0.2
"""Seconds of a run before its design is compiled."""

_SHORT_FOR_SIZE = 5.0
"""The same, as a multiple of the time that Amaranth's simulator took to prepare the design."""

_LONG = 10.0
"""Seconds of a run after which a warning gives the reason why it is not compiled."""

_PAUSE = 0.01
"""Seconds between two checks of the build."""

_INNER = ("amaranth", "cppsim")
"""Packages that a warning does not point at."""


class FallbackWarning(UserWarning):
    """Amaranth's own simulator, which is slow, runs a design; the message has the reason."""


class Switch:
    """Starts the build of ``design`` once its run has taken a while.

    Parameters
    ----------
    design
        The design as Amaranth has prepared it.
    preparation : float
        Seconds that Amaranth's simulator took to prepare the design.

    Attributes
    ----------
    due : float
        The time of the next call of `look`, in seconds of ``perf_counter``.
    reason : str
        Why the design cannot be compiled.
    """

    def __init__(self, design: Any, preparation: float) -> None:
        self.due = 0.0
        self.reason = ""
        self._design = design
        self._patience = max(_SHORT, _SHORT_FOR_SIZE * preparation)
        self._start = 0.0
        self._build: Build | None = None

    def look(self, now: float) -> Written | None:
        """Return the compiled design, None until it is ready."""
        if not self._start:
            self._start = now
            self.due = now + self._patience
            return None
        self.due = now + _PAUSE
        try:
            return self._progress()
        except SimulationError as error:
            self.fail(error)
            return None

    def fail(self, error: SimulationError) -> None:
        """Note that the design cannot be compiled; a long run warns of it."""
        self.reason, self._build = str(error), None
        self.due = self._start + _LONG

    def _progress(self) -> Written | None:
        if self.reason:
            self.due = float("inf")
            fall_back(self.reason)
        elif self._build is None or self._build.lost:
            self._begin()
        else:
            return self._build.result()
        return None

    def _begin(self) -> None:
        reason = _unprepared()
        if reason:
            self.reason, self.due = reason, float("inf")
        elif can_build():
            self._build = Build(self._design)


def fall_back(reason: str) -> None:
    """Warn that Amaranth's simulator runs the design."""
    text = f"left to Amaranth's simulator: {reason}"
    warnings.warn(FallbackWarning(text), stacklevel=_depth_of_user())


def _depth_of_user() -> int:
    """Return the number of calls from the caller up to code outside Amaranth and cppsim."""
    frame, depth = sys._getframe(1), 0
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INNER:
        frame, depth = frame.f_back, depth + 1
    return depth + 1


@cache
def _unprepared() -> str:
    """Return why nothing can be compiled in this process, and warn once."""
    try:
        prepare()
    except SimulationError as error:
        fall_back(str(error))
        return str(error)
    return ""
