"""When a simulation that Amaranth's simulator runs is worth compiling, and when that is done."""

import sys
import warnings
from functools import cache
from typing import Any

from ..compiling.library import prepare
from ..errors import SimulationError
from .background import Build, Written, can_build

__all__ = ["FallbackWarning", "Switch"]

_SHORT = 0.2
"""Seconds that a run may take before anything is done about it."""

_SHORT_FOR_SIZE = 5.0
"""The same, in times that Amaranth's simulator took for the design before it ran."""

_LONG = 10.0
"""Seconds of a run for which somebody wants to know why it is slow."""

_PAUSE = 0.01
"""Seconds between two looks."""

_INNER = ("amaranth", "cppsim")
"""Packages in which a warning is of no use to whoever reads it."""


class FallbackWarning(UserWarning):
    """A design is left to Amaranth's own simulator, which is slow, and why."""


class Switch:
    """Has ``design`` compiled once its run has taken a while, and asks for no time until then.

    Parameters
    ----------
    design
        As Amaranth has prepared it.
    preparation : float
        Seconds that Amaranth's simulator took to prepare for it.

    Attributes
    ----------
    due : float
        When `look` wants to be called, in seconds of ``perf_counter``.
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
        """What is to be adopted, if it is there."""
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
        """The design cannot be compiled, of which whoever waits for long will hear."""
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
    """Warn that a design is left to Amaranth's simulator."""
    text = f"left to Amaranth's simulator: {reason}"
    warnings.warn(FallbackWarning(text), stacklevel=_depth_of_user())


def _depth_of_user() -> int:
    """How many calls above the caller the first is that is neither Amaranth's nor cppsim's."""
    frame, depth = sys._getframe(1), 0
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INNER:
        frame, depth = frame.f_back, depth + 1
    return depth + 1


@cache
def _unprepared() -> str:
    """Why nothing can be compiled in this process, of which it tells once."""
    try:
        prepare()
    except SimulationError as error:
        fall_back(str(error))
        return str(error)
    return ""
