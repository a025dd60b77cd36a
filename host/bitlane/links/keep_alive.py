"""A thread that keeps the session of an idle link alive."""

from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Final, Protocol
from weakref import ref

from bitlane_rtl.abi import SESSION_SECONDS

KEEP_SECONDS: Final = SESSION_SECONDS / 4
"""Seconds between two looks at a link: a session survives two requests that are lost."""


class _Kept(Protocol):
    """A link with a session."""

    def keep(self) -> None:
        """Keep the session alive unless the link was used since the last call."""
        ...


class KeepAlive:
    """Keeps the session of a link alive from `start` to `stop`, by a thread that does not own it.

    The thread ends with the link, also if nothing refers to the link any more, and with Python. A
    process that is forked has no such thread, and must not use this object.

    Attributes
    ----------
    turn : RLock
        Held by each call of the link, so that the thread leaves a link alone that is in use.
    """

    def __init__(self) -> None:
        self.turn = RLock()
        self._stopped = False
        # Its `put` may be called from a finalizer at any place; an `Event` could wait for itself.
        self._ends: SimpleQueue[None] = SimpleQueue()

    def start(self, link: _Kept, seconds: float) -> None:
        """Call ``link.keep()`` every ``seconds``, except while another call holds ``turn``."""
        arguments = ref(link), seconds
        Thread(target=self._run, args=arguments, name="bitlane keep-alive", daemon=True).start()

    def stop(self) -> None:
        """End the calls: none begins once this has returned and ``turn`` is free."""
        self._stopped = True
        self._ends.put(None)

    def _run(self, link: "ref[_Kept]", seconds: float) -> None:
        while not self._waited(seconds):
            kept = link()
            if kept is None:
                return
            if self.turn.acquire(blocking=False):
                try:
                    if not self._stopped:
                        kept.keep()
                finally:
                    self.turn.release()
            # The link may end while the thread waits.
            del kept

    def _waited(self, seconds: float) -> bool:
        """Wait for ``seconds``; return whether `stop` was called."""
        try:
            self._ends.get(timeout=seconds)
        except Empty:
            return False
        return True
