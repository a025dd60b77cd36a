"""A board model behind a pseudo-terminal, for tests of pyserial itself."""

import os
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import select
from threading import Event, Thread

from support.board.line import Noise


class Terminal:
    """The board's side of a pseudo-terminal, served by a thread.

    ``serve`` maps the bytes that the host sends to the bytes of the answer.
    """

    def __init__(self, serve: Callable[[bytes], bytes], down: Noise) -> None:
        self._serve = serve
        self._down = down
        self._end = Event()
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        # A host that reads no answers does not keep the thread from its end.
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self.error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                if select([self._master], [], [], 0.01)[0]:
                    answers = self._down(self._serve(os.read(self._master, 4096)))
                    while answers and not self._end.is_set():
                        if select([], [self._master], [], 0.01)[1]:
                            answers = answers[os.write(self._master, answers) :]
        except BaseException as error:  # noqa: BLE001, the test's own thread raises it
            self.error = error

    def pull(self) -> None:
        """Pull the cable: close both ends. May be called again."""
        if not self._end.is_set():
            self._end.set()
            self._thread.join()
            with suppress(OSError):
                os.close(self._slave)
            with suppress(OSError):
                os.close(self._master)


@contextmanager
def terminal(serve: Callable[[bytes], bytes], down: Noise | None = None) -> Iterator[Terminal]:
    """Yield a terminal whose cable is pulled at the end; raise the errors of ``serve``."""
    result = Terminal(serve, down or Noise(0, 0))
    try:
        yield result
    finally:
        result.pull()
    if result.error is not None:
        raise result.error
