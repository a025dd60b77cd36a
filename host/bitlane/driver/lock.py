"""One thread at a time on a device, and only in the process that opened it."""

import os
from contextlib import AbstractContextManager
from threading import RLock
from types import TracebackType
from typing import NoReturn
from weakref import WeakSet

from ..errors import LinkError

__all__ = ["DeviceLock"]


class DeviceLock:
    """A lock that its holder may take again. Take it as ``with lock.held:``.

    In a process that was forked meanwhile, where a thread that held the lock does not exist and
    the device is somebody else's, ``held`` raises ``LinkError``, which names ``description``.
    """

    def __init__(self, description: str) -> None:
        self._description = description
        self.held: AbstractContextManager[object] = RLock()
        _LOCKS.add(self)

    @property
    def elsewhere(self) -> bool:
        """Whether the device is another process's."""
        return isinstance(self.held, _Elsewhere)

    def lose(self) -> None:
        """The process is a new one."""
        self.held = _Elsewhere(self._description)


class _Elsewhere(AbstractContextManager[object]):
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


_LOCKS: WeakSet[DeviceLock] = WeakSet()


def _lose_all() -> None:
    for lock in _LOCKS:
        lock.lose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lose_all)
