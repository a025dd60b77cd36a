"""Mode ``auto``: compile a design in a forked process while Amaranth's simulator runs it.

The process has low priority, and ends with the `Build` that started it.
"""

import gc
import io
import os
import pickle
import signal
import sys
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import IO, Any, NoReturn

from amaranth.hdl import MemoryData, Signal

from .amaranth_internals import all_reports_of, memories_of, signals_of
from .compiling.cache import CacheWarning
from .compiling.library import prepare, provide
from .cpp.simulation import SimulationSource, write_simulation
from .errors import SimulationError, warn_user
from .native import native
from .netlist.lowered import Lowered
from .netlist.lowering import lower

Written = tuple[Lowered, SimulationSource]

_running: set[int] = set()
"""Processes that are not known to have ended."""

_NICE = 5
"""Niceness: a busy process of normal priority gets three times as much of a processor."""


def written(design: Any) -> Written:
    """Return ``design`` as C++. Raises ``SimulationError`` if it cannot be compiled."""
    try:
        with _uncollected():
            lowered = lower(design)
            return lowered, write_simulation(lowered)
    except SimulationError:
        raise
    except Exception as error:
        # The first place is enough of a combinational cycle's path.
        lines = str(error).splitlines()[:2] or [type(error).__name__]
        raise SimulationError(" ".join(line.strip() for line in lines)) from error


@contextmanager
def _uncollected() -> Iterator[None]:
    """Put garbage collections off: a netlist is many objects, and nearly none of them is garbage.

    5,000 signals take 8.8 s with collections, and 5.0 s without.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
            answer, caught = _Reader(self._answer, self._design).load()
        except (EOFError, pickle.UnpicklingError):
            raise SimulationError("the process that compiles has been ended") from None
        finally:
            self._end()
        for warning in caught:
            warn_user(warning)
        if isinstance(answer, str):
            raise SimulationError(answer)
        self._result = answer
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
            try:
                lowered, source = written(design)
                provide(source.text)
                native()
                _send((lowered, source), caught, design, answer)
            except SimulationError as error:
                _send(str(error), caught, design, answer)
    finally:
        os._exit(0)


def _send(
    what: Written | str,
    caught: Sequence[warnings.WarningMessage],
    design: Any,
    answer: IO[bytes],
) -> None:
    content = io.BytesIO()
    cache = [one.message for one in caught if isinstance(one.message, CacheWarning)]
    _Writer(content, design).dump((what, cache))
    answer.write(content.getbuffer())
    answer.flush()


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


# --- between both -----------------------------------------------------------------------------


def _things(design: Any) -> list[Any]:
    """Return the objects that a lowered design refers to, in the same order in both processes."""
    return [*signals_of(design), *memories_of(design), *all_reports_of(design)]


class _Writer(pickle.Pickler):
    def __init__(self, file: IO[bytes], design: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(thing): number for number, thing in enumerate(_things(design))}

    def persistent_id(self, thing: Any) -> int | None:
        number = self._numbers.get(id(thing))
        if number is None and isinstance(thing, Signal | MemoryData):
            raise SimulationError(f"{thing!r} is not in the design")
        return number


class _Reader(pickle.Unpickler):
    def __init__(self, file: IO[bytes], design: Any) -> None:
        super().__init__(file)
        self._things = _things(design)

    def persistent_load(self, number: Any) -> Any:
        return self._things[number]


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
