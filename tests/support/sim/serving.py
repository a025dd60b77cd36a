"""Serve simulated pins on a pseudo-terminal while a test does something else. No tests here."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bitlane_boards.pins.pty import PtyServer


@contextmanager
def serving(server: PtyServer) -> Iterator[None]:
    """Serve in the background."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            while not stop.is_set():
                server.serve(0.02)
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failures
