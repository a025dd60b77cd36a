"""Build designs in processes of their own, each a copy of this one that goes on meanwhile.

They let others go first, and are ended with what asked for them.
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
from typing import IO, Any, NoReturn

from amaranth.hdl import MemoryData, Signal

from ..amaranth_internals import memories_of, signals_of
from ..compiling.library import prepare, provide
from ..cpp.simulation import SimulationSource, write_simulation
from ..errors import SimulationError
from ..native.library import native
from ..netlist.lowering import Lowered, lower

__all__ = ["Build", "can_build", "written"]

Written = tuple[Lowered, SimulationSource]

_running: set[int] = set()
"""Processes that have not been seen to end."""

_NICE = 5
"""Where others want the processor too, each of them gets three times as much of it."""


def written(design: Any) -> Written:
    """``design`` as C++. Raises ``SimulationError`` for one that has no such form."""
    try:
        lowered = lower(design)
        return lowered, write_simulation(lowered)
    except SimulationError:
        raise
    except Exception as error:
        # Of the path of a combinational cycle the first place will do.
        lines = str(error).splitlines()[:2] or [type(error).__name__]
        raise SimulationError(" ".join(line.strip() for line in lines)) from error


def can_build() -> bool:
    """Whether a process may be started now: at most one a processor."""
    for process in list(_running):
        _has_ended(process)
    return hasattr(os, "fork") and len(_running) < (os.cpu_count() or 1)


class Build:
    """A design on its way to what is compiled of it.

    Raises ``SimulationError`` if there is no compiler, or no process can be started.
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
        """Whether this is a copy in another process, which will not hear of it."""
        return self._process not in _running

    def result(self) -> Written | None:
        """What is in the cache now, None while it is not. Raises ``SimulationError``."""
        if self._result is not None or not _has_ended(self._process):
            return self._result
        self._answer.seek(0)
        try:
            answer = _Reader(self._answer, self._design).load()
        except (EOFError, pickle.UnpicklingError):
            raise SimulationError("the process that compiles has been ended") from None
        finally:
            self._end()
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
    """End it, and the compiler that it waits for."""
    answer.close()
    # Of another process, of which this is a copy, it says so, too.
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
        try:
            lowered, source = written(design)
            provide(source.text)
            native()
            _send((lowered, source), design, answer)
        except SimulationError as error:
            _send(str(error), design, answer)
    finally:
        os._exit(0)


def _send(what: Written | str, design: Any, answer: IO[bytes]) -> None:
    content = io.BytesIO()
    _Writer(content, design).dump(what)
    answer.write(content.getbuffer())
    answer.flush()


def _detach(kept: int) -> None:
    """Be no burden to the process that this is a copy of, nor to what it talks to."""
    gc.disable()
    os.setpgid(0, 0)
    os.nice(_NICE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


# --- between both -----------------------------------------------------------------------------


def _things(design: Any) -> list[Any]:
    """What both know, in the same order: signals and memories of the design."""
    return [*signals_of(design), *memories_of(design)]


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
