"""A process that is forked has no device: its parent's is out of reach, and it is told so.

Of the parent's threads the child has one. A lock that another one held would never be free again:
what all devices share is guarded by locks that are held for a moment, and nobody has while a
process is forked.
"""

import os
from contextlib import AbstractContextManager
from threading import Lock
from types import TracebackType
from typing import NoReturn, Protocol
from weakref import WeakSet

from ..errors import LinkError
from ..links.link import Link


class _Locked(Protocol):
    link: Link
    lock: AbstractContextManager[object]


class Elsewhere(AbstractContextManager[object]):
    """In place of the lock of a device that another process has opened: cannot be taken."""

    def __init__(self, description: str) -> None:
        self._description = description

    def __enter__(self) -> NoReturn:
        raise LinkError(
            f"{self._description}: the device was opened in another process; open it here, after"
            " the fork: bitlane.open(url)"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Never entered."""


_opened: WeakSet[_Locked] = WeakSet()


def refuse_in_children(device: _Locked) -> None:
    """Have whoever takes the device's ``lock`` in a forked process get a ``LinkError``."""
    _opened.add(device)


def guard() -> Lock:
    """A lock that no other thread holds in a forked process.

    For a module's own data, held for a moment at a time: forking waits for it.
    """
    lock = Lock()
    if hasattr(os, "register_at_fork"):
        release = lock.release
        os.register_at_fork(before=lock.acquire, after_in_parent=release, after_in_child=release)
    return lock


def _refuse() -> None:
    for device in _opened:
        device.lock = Elsewhere(device.link.description)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse)
