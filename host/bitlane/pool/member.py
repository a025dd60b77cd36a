"""A device of a pool, seen from the pool: its process, and the line to it.

Every wait has a deadline: a process that exceeds it is killed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from threading import Timer
from typing import Any

from ..closing import Closing
from ..errors import BitlaneError, DeviceTimeout, LinkError

__all__ = ["Call", "LostError", "Member"]

_ENDING_SECONDS = 5.0
"""What a process may take to end when it is told so."""

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of ``Device`` by name, its arguments, and its keywords."""


class LostError(BitlaneError):
    """The device will not answer again; one line says which, and why."""


class Member(Closing):
    """The device ``url``, number ``number`` of a pool, opened by a process that this starts.

    For one thread at a time.
    """

    def __init__(self, number: int, url: str) -> None:
        self.url = url
        self._line, there = Pipe()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker", str(there.fileno()), url],
                pass_fds=[there.fileno()],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
            )
        self.name = f"device {number}, {url!r}, process {self._process.pid}"
        self._late = False

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def opened(self, seconds: float) -> None:
        """Wait until the device is open. Raises what ``open_device`` does, or ``LinkError``."""
        with self._deadline(seconds):
            try:
                well, what = self._line.recv()
            except (EOFError, OSError) as error:
                raise LinkError(str(self._lost(seconds))) from error
        if not well:
            raise what

    def call(self, call: Call, seconds: float) -> object:
        """What the device makes of ``call``.

        Raises `LostError` if it is out of reach, or what the call raised.
        """
        with self._deadline(seconds):
            try:
                self._line.send(call)
                well, what = self._line.recv()
            except (EOFError, OSError) as error:
                raise self._lost(seconds) from error
        if isinstance(what, LinkError | DeviceTimeout):
            raise LostError(f"{self.name}: {what}") from what
        if not well:
            raise what
        return what

    def _lost(self, seconds: float) -> LostError:
        """Why the process has hung up."""
        if self._late:
            return LostError(f"{self.name}: no answer within {seconds:g} s")
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return LostError(f"{self.name}: hung up")
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return LostError(f"{self.name}: {how}")

    @contextmanager
    def _deadline(self, seconds: float) -> Iterator[None]:
        """Kill the process if the block takes longer: whatever waits for it goes on then."""
        timer = Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _expire(self) -> None:
        self._late = True
        self._process.kill()

    def close(self) -> None:
        self._line.close()
        try:
            self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
