"""Mode ``auto``: compile a design in a forked process while Amaranth's simulator runs it.

The process has low priority, and ends with the `Build` that started it.
"""

import gc
import os
import pickle
import signal
import sys
import tempfile
import warnings
import weakref
from functools import cache
from typing import IO, Any, NoReturn

from .compiling.cache import CacheWarning
from .compiling.library import prepare
from .designs import Written, built
from .errors import SimulationError, warn_user
from .native import native
from .waveforms import waves

_running: set[int] = set()
"""Processes that are not known to have ended."""

_NICE = 5
"""Niceness: a busy process of normal priority gets three times as much of a processor."""


def can_build() -> bool:
    """Return whether a process may be started: at most one for each processor."""
    for process in list(_running):
        _has_ended(process)
    return hasattr(os, "fork") and len(_running) < (os.cpu_count() or 1)


class Build:
    """The compilation of a design in a forked process.

    Raises ``SimulationError`` without a compiler, or if the process cannot be started.
    """

    def __init__(self, design: Any) -> None:
        prepare()
        self._design = design
        self._answer = answer = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this
        self._process = _start(design, answer)
        self._end = weakref.finalize(self, _end, self._process, answer)
        self._result: Written | None = None

    @property
    def lost(self) -> bool:
        """Whether this process is a fork of the one that started the build."""
        return self._process not in _running

    def result(self) -> Written | None:
        """Return the compiled design, None until it is ready. Raises ``SimulationError``."""
        if self._result is not None or not _has_ended(self._process):
            return self._result
        self._answer.seek(0)
        try:
            reason, caught = pickle.load(self._answer)
        except (EOFError, pickle.UnpicklingError):
            raise SimulationError("the process that compiles has been ended") from None
        finally:
            self._end()
        for warning in caught:
            warn_user(warning)
        if reason:
            raise SimulationError(reason)
        self._result = built(self._design)
        return self._result


# --- here -------------------------------------------------------------------------------------


def _start(design: Any, answer: IO[bytes]) -> int:
    with warnings.catch_warnings():
        # Other threads do not matter: the copy shares nothing with them, nor does anybody wait.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            process = os.fork()
        except OSError as error:
            raise SimulationError(f"no process to compile in: {error.strerror}") from None
    if process == 0:
        _work(design, answer)
    _running.add(process)
    return process


def _has_ended(process: int) -> bool:
    try:
        ended, _ = os.waitpid(process, os.WNOHANG)
    except ChildProcessError:
        ended = process
    if ended:
        _running.discard(process)
    return bool(ended)


def _end(process: int, answer: IO[bytes]) -> None:
    """End the process, and its compiler."""
    answer.close()
    # In a fork of the process that started it, the build counts as ended.
    if not _has_ended(process):
        try:
            os.killpg(process, signal.SIGTERM)
        except OSError:  # it is not yet a group
            os.kill(process, signal.SIGTERM)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)


# --- in the copy ------------------------------------------------------------------------------


def _work(design: Any, answer: IO[bytes]) -> NoReturn:
    try:
        _detach(answer.fileno())
        with warnings.catch_warnings(record=True) as caught:
            reason = ""
            try:
                built(design)
                native()
                waves()
            except SimulationError as error:
                reason = str(error)
        messages = [x.message for x in caught if isinstance(x.message, CacheWarning)]
        answer.write(pickle.dumps((reason, messages)))
        answer.flush()
    finally:
        os._exit(0)


def _detach(answer: int) -> None:
    """Lower the priority, and close all files but ``answer`` of the original process."""
    gc.disable()
    os.setpgid(0, 0)
    os.nice(_NICE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.closerange(3, answer)
    os.closerange(answer + 1, os.sysconf("SC_OPEN_MAX"))


_SHORT = 0.2
"""Seconds of a run before its design is compiled."""

_SHORT_FOR_SIZE = 5.0
"""The same, as a multiple of the time that Amaranth's simulator took to prepare the design."""

_LONG = 10.0
"""Seconds of a run after which a warning gives the reason why it is not compiled."""

_PAUSE = 0.01
"""Seconds between two checks of the build."""


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
    warn_user(FallbackWarning(f"left to Amaranth's simulator: {reason}"))


@cache
def _unprepared() -> str:
    """Return why nothing can be compiled in this process, and warn once."""
    try:
        if not hasattr(os, "fork"):
            raise SimulationError("mode auto needs fork, which this system lacks; use mode always")
        prepare()
    except SimulationError as error:
        fall_back(str(error))
        return str(error)
    return ""
