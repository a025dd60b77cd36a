"""A process that is forked has no device: its parent's is out of reach, and it is told so.

Of the parent's threads the child has one. A lock that another one held would never be free again.
"""

import os
from contextlib import AbstractContextManager
from types import TracebackType
from typing import NoReturn, Protocol
from weakref import WeakSet

from ..errors import LinkError
from ..links.link import Link

__all__ = ["Elsewhere", "refuse_in_children"]


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


def _refuse() -> None:
    for device in _opened:
        device.lock = Elsewhere(device.link.description)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse)
