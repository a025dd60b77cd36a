"""Locks across a fork: a child process cannot use its parent's device, and gets an error.

A child has one of its parent's threads. A lock that another thread held would never be free again:
data that all devices share are guarded by locks that are held for a moment, and by no thread while
a process is forked.
"""

import os
from contextlib import AbstractContextManager
from threading import RLock
from types import TracebackType
from typing import NoReturn, Protocol
from weakref import WeakSet

from ..links import Link, opened_elsewhere


class _Locked(Protocol):
    link: Link
    lock: AbstractContextManager[object]


class ForeignProcessLock(AbstractContextManager[object]):
    """Replacement for the lock of a device that another process opened; raises when taken."""

    def __init__(self, description: str) -> None:
        self._description = description

    def __enter__(self) -> NoReturn:
        raise opened_elsewhere(self._description)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing: it is never entered."""


_opened: WeakSet[_Locked] = WeakSet()


def invalidate_after_fork(device: _Locked) -> None:
    """Make the device's ``lock`` raise ``LinkError`` in processes that are forked later."""
    _opened.add(device)


def fork_safe_lock() -> AbstractContextManager[object]:
    """Return a reentrant lock that no other thread holds in a forked process.

    It guards a module's data and is held for a moment at a time, because forking waits for it.
    Reentrant, because a finalizer or a signal handler may run, and need it, while it is held: it
    keeps other threads out, so that the data must be whole after each statement.
    """
    lock = RLock()
    if hasattr(os, "register_at_fork"):
        release = lock.release
        os.register_at_fork(before=lock.acquire, after_in_parent=release, after_in_child=release)
    return lock


def _invalidate() -> None:
    for device in _opened:
        device.lock = ForeignProcessLock(device.link.description)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_invalidate)
