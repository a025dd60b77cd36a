"""Who uses a piece of device memory: calls in progress, and values still to be computed from it.

Keeps threads from reading what another is writing. Never touches the memory.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from ..driver.fork import guard
from ..driver.storage import Storage
from ..errors import BusyError, FreedError

__all__ = ["usage_of", "using"]

_guard = guard()
"""Held while claims are made and given up, never while a device works."""


class _Claim:
    """Of one call. Gone with it at the latest, wherever that is interrupted."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()


class _Usage:
    """Of one storage."""

    def __init__(self) -> None:
        self.waiting: WeakSet[Any] = WeakSet()
        """The values that are to be computed from the bytes, before anything changes these."""
        self.windows: WeakSet[Any] = WeakSet()
        """Through which others can change the bytes at any time: while there are any, nothing may
        wait, and the bytes stay."""
        self.counts: tuple[np.dtype[Any], int] | None = None
        """Type of the stored counts of bits, and bytes of each counted element; None if the storage
        holds anything else, or has been written over."""
        self.readers: WeakSet[_Claim] = WeakSet()
        self.writers: WeakSet[_Claim] = WeakSet()
        """Calls in progress."""


_usages: WeakKeyDictionary[Storage, _Usage] = WeakKeyDictionary()


def usage_of(storage: Storage) -> _Usage:
    """What is known of the users of ``storage``. Raises ``FreedError``."""
    if storage.closed:
        raise FreedError("array: its memory has been freed; expected one that is still held")
    return _usages.setdefault(storage, _Usage())


@contextmanager
def using(reads: Iterable[Storage], writes: Iterable[Storage] = ()) -> Iterator[None]:
    """Claim memory for this thread. Many may read what none writes.

    Raises ``BusyError`` or ``FreedError``.
    """
    claim = _Claim()
    places: list[WeakSet[_Claim]] = []
    try:
        with _guard:
            read, written = [usage_of(x) for x in reads], [usage_of(x) for x in writes]
            for usage in read:
                _expect_no(usage.writers, claim, "is writing it")
            for usage in written:
                _expect_no(usage.writers, claim, "is writing it")
                _expect_no(usage.readers, claim, "is reading it")
            places += [x.readers for x in read] + [x.writers for x in written]
            for place in places:
                place.add(claim)
        yield
    finally:
        with _guard:
            for place in places:
                place.discard(claim)


def _expect_no(users: WeakSet[_Claim], own: _Claim, what: str) -> None:
    if any(user.thread != own.thread for user in users):
        raise BusyError(
            f"array: another thread {what}; expected one at a time (wait for it, or use a copy)"
        )
