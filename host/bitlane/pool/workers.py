"""The processes of a pool: each opens a device and takes the next call when it is free."""

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

from .. import terminal
from ..closeable import Closeable
from ..errors import DeviceTimeout, LinkError, WorkerLostError
from ..terminal import Percentage, progress_is_wanted

_ENDING_SECONDS = 5.0
"""Seconds that a process may take to end after its connection is closed."""

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of ``Device`` by name, its arguments, and its keywords."""


class Worker(Closeable):
    """The device ``url``, number ``number`` of a pool, opened by a process that this starts.

    One thread at a time may use it.
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

    def wait_open(self, seconds: float) -> None:
        """Wait until the device is open. Raises as ``open_device`` does, or ``LinkError``."""
        with self._deadline(seconds):
            try:
                well, what = self._line.recv()
            except (EOFError, OSError) as error:
                raise LinkError(str(self._lost(seconds))) from error
        if not well:
            raise what

    def call(self, call: Call, seconds: float) -> object:
        """Return the result of ``call`` on the device.

        Raises `WorkerLostError` if the device is out of reach, or the error of the call.
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
        """Return the error that says why the process has closed its connection."""
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
        """Kill the process if the block takes longer, so that no thread waits for it any more."""
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
"""Seconds that devices may take to open: a new simulator is compiled first."""


class _Batch:
    """Calls of one `WorkerGroup.run`, and their results. Threads share it."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.over = Event()
        """Set when all calls are done, or one has failed."""
        self.results: list[Any] = [None] * len(calls)
        self.error: BaseException | None = None
        self._left = len(calls)
        self._lock = Lock()

    @property
    def done(self) -> float:
        """The share of the calls that are done."""
        return 1 - self._left / len(self.calls)

    def store(self, number: int, result: object) -> None:
        with self._lock:
            self.results[number] = result
            self._left -= 1
            if self._left == 0:
                self.over.set()

    def fail(self, error: BaseException) -> None:
        with self._lock:
            self.error = self.error or error
            self.over.set()


Task = tuple[_Batch, int]
"""A call, by its number in its batch."""

Tasks = SimpleQueue[Task | None]
"""The calls that wait for a worker. Each None ends one worker."""


def dismiss(tasks: Tasks, workers: int) -> None:
    """End as many ``workers`` as take calls from ``tasks``, without waiting for them.

    It takes no lock, so that the garbage collector may call it.
    """
    for _ in range(workers):
        tasks.put(None)


class WorkerGroup(Closeable):
    """The devices ``urls``, each with a process and a thread that waits for it.

    ``seconds``: a device that takes longer for a call is lost. ``tasks``: an empty queue; the
    threads hold the group until `dismiss` ends them. Threads may share the group. Raises as
    ``open_device`` does; no process is left running then.
    """

    def __init__(self, urls: Sequence[str], seconds: float, tasks: Tasks) -> None:
        self._seconds = seconds
        self._process = os.getpid()
        self._tasks = tasks
        self._lock = Lock()
        self._closed = False
        self._lost: list[str] = []
        self._workers: list[Worker] = []
        try:
            for number, url in enumerate(urls, 1):
                self._workers.append(Worker(number, url))
            for worker in self._workers:
                worker.wait_open(_OPENING_SECONDS)
        except BaseException:
            for worker in self._workers:
                worker.close()
            raise
        self._threads = [
            Thread(target=self._serve, args=(worker,), daemon=True) for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def alive(self) -> tuple[Worker, ...]:
        """The workers whose devices are not lost."""
        return tuple(self._workers)

    @property
    def lost(self) -> tuple[str, ...]:
        """A line for each device that was lost, in that order."""
        return tuple(self._lost)

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results of ``calls``, in their order, whichever device computes them.

        Raises ``LinkError`` if no device is left, or the first error of a call; no further call is
        begun then.
        """
        batch = _Batch(calls)
        with self._lock:
            self._expect_workers()
            for number in range(len(calls)):
                self._tasks.put((batch, number))
        try:
            # Each call has its deadline, after which its device is lost: this comes to an end.
            with Percentage(f"pool, {len(calls):,} chunks ") as percentage:
                while not batch.over.wait(terminal.EVERY):
                    if progress_is_wanted():
                        percentage(batch.done)
        except BaseException as error:
            batch.fail(error)
            raise
        if batch.error is not None:
            raise batch.error
        return batch.results

    def _expect_workers(self) -> None:
        if os.getpid() != self._process:
            raise LinkError("pool: it was opened in another process; open one here")
        if self._closed:
            raise LinkError("pool: it is closed; bitlane.Pool opens a new one")
        if not self._workers:
            raise self._none_left()

    def _none_left(self) -> LinkError:
        return LinkError(f"pool: no device is left: {'; '.join(self._lost)}")

    def _serve(self, worker: Worker) -> None:
        """Pass calls to ``worker`` until it is lost or the group is closed."""
        while task := self._tasks.get():
            if not self._pass_on(worker, task):
                return
            # While the thread waits, it holds no array of the last call.
            del task
        self._retire(worker)

    def _pass_on(self, worker: Worker, task: Task) -> bool:
        """Pass a call to ``worker``; return whether it can take another one."""
        batch, number = task
        if batch.over.is_set():
            return True
        try:
            batch.store(number, worker.call(batch.calls[number], self._seconds))
        except WorkerLostError as lost:
            self._tasks.put(task)
            self._retire(worker, str(lost))
            return False
        except Exception as error:  # noqa: BLE001, raised where the call came from
            batch.fail(error)
        return True

    def _retire(self, worker: Worker, *lost: str) -> None:
        with self._lock:
            self._workers.remove(worker)
            self._lost += lost
            # No worker would take the calls that are left.
            while not self._workers and not self._tasks.empty():
                if task := self._tasks.get():
                    task[0].fail(self._none_left())
        worker.close()

    def close(self) -> None:
        """Finish the calls that have begun, and end the processes. May be called again."""
        with self._lock:
            if not self._closed:
                dismiss(self._tasks, len(self._workers))
            self._closed = True
        if os.getpid() == self._process:
            for thread in self._threads:
                thread.join()
