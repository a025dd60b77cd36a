"""The processes of a pool: each has a device and takes the next call when it is free."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import Pipe
from queue import SimpleQueue
from threading import Event, Lock, Thread, Timer
from typing import Any

from ..closeable import Closing
from ..errors import DeviceTimeout, LinkError, WorkerLostError

_ENDING_SECONDS = 5.0
"""What a process may take to end when it is told so."""

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of ``Device`` by name, its arguments, and its keywords."""


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

        Raises `WorkerLostError` if it is out of reach, or what the call raised.
        """
        with self._deadline(seconds):
            try:
                self._line.send(call)
                well, what = self._line.recv()
            except (EOFError, OSError) as error:
                raise self._lost(seconds) from error
        if isinstance(what, LinkError | DeviceTimeout):
            raise WorkerLostError(f"{self.name}: {what}") from what
        if not well:
            raise what
        return what

    def _lost(self, seconds: float) -> WorkerLostError:
        """Why the process has hung up."""
        if self._late:
            return WorkerLostError(f"{self.name}: no answer within {seconds:g} s")
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return WorkerLostError(f"{self.name}: hung up")
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return WorkerLostError(f"{self.name}: {how}")

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


_OPENING_SECONDS = 600.0
"""What devices may take to open: a simulator that is new is compiled first."""


class _Batch:
    """Calls that belong together, and what has come of them. Threads share it."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.over = Event()
        """Set when all is done, or something has gone wrong."""
        self.results: list[Any] = [None] * len(calls)
        self.error: BaseException | None = None
        self._left = len(calls)
        self._lock = Lock()

    def keep(self, number: int, result: object) -> None:
        with self._lock:
            self.results[number] = result
            self._left -= 1
            if self._left == 0:
                self.over.set()

    def fail(self, error: BaseException) -> None:
        with self._lock:
            self.error = self.error or error
            self.over.set()


_Task = tuple[_Batch, int]
"""A call, by its number in its batch."""


class Crew(Closing):
    """The devices ``urls``, each with a process and a thread that waits for it.

    ``seconds``: what a device may take over a call, or else is lost. Threads may share the crew.
    Raises what ``open_device`` does; nothing is left running then.
    """

    def __init__(self, urls: Sequence[str], seconds: float) -> None:
        self._seconds = seconds
        self._process = os.getpid()
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._lock = Lock()
        self._closed = False
        self._lost: list[str] = []
        self._members: list[Member] = []
        try:
            for number, url in enumerate(urls, 1):
                self._members.append(Member(number, url))
            for member in self._members:
                member.opened(_OPENING_SECONDS)
        except BaseException:
            for member in self._members:
                member.close()
            raise
        self._threads = [
            Thread(target=self._serve, args=(member,), daemon=True) for member in self._members
        ]
        for thread in self._threads:
            thread.start()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def members(self) -> tuple[Member, ...]:
        """Those that are not lost."""
        return tuple(self._members)

    @property
    def lost(self) -> tuple[str, ...]:
        """A line for each device that was lost, in that order."""
        return tuple(self._lost)

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """What comes of ``calls``, in their order, whoever does them.

        Raises ``LinkError`` if no device is left, or the first error of a call; the others are
        not begun any more then.
        """
        batch = _Batch(calls)
        with self._lock:
            self._expect_members()
            for number in range(len(calls)):
                self._tasks.put((batch, number))
        try:
            # Each call has its deadline, after which its device is lost: this comes to an end.
            batch.over.wait()
        except BaseException as error:
            batch.fail(error)
            raise
        if batch.error is not None:
            raise batch.error
        return batch.results

    def _expect_members(self) -> None:
        if os.getpid() != self._process:
            raise LinkError("pool: it was opened in another process; open one here")
        if self._closed:
            raise LinkError("pool: it is closed; bitlane.Pool opens a new one")
        if not self._members:
            raise self._none_left()

    def _none_left(self) -> LinkError:
        return LinkError(f"pool: no device is left: {'; '.join(self._lost)}")

    def _serve(self, member: Member) -> None:
        """Have ``member`` do what there is to do, until it is lost or the crew is closed."""
        while task := self._tasks.get():
            batch, number = task
            if batch.over.is_set():
                continue
            try:
                result = member.call(batch.calls[number], self._seconds)
            except WorkerLostError as lost:
                self._tasks.put(task)
                self._leave(member, str(lost))
                return
            except Exception as error:  # noqa: BLE001, raised where the call came from
                batch.fail(error)
            else:
                batch.keep(number, result)
        self._leave(member)

    def _leave(self, member: Member, *lost: str) -> None:
        with self._lock:
            self._members.remove(member)
            self._lost += lost
            # Nobody would do what is left.
            while not self._members and not self._tasks.empty():
                if task := self._tasks.get():
                    task[0].fail(self._none_left())
        member.close()

    def close(self) -> None:
        """Finish what is under way, and end the processes. May be called again."""
        with self._lock:
            if not self._closed:
                for _ in self._members:
                    self._tasks.put(None)
            self._closed = True
        if os.getpid() == self._process:
            for thread in self._threads:
                thread.join()
