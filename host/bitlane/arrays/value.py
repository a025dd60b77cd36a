"""Values of arrays: elements in the device's memory, or the expression that computes them.

Keeps account of the users of memory: calls in progress, and values still to be computed from it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable
from weakref import ref

import numpy as np

from ..arguments.operands import shown
from ..compiler import (
    Expression,
    Stored,
    Viewed,
    assign,
    broadcast,
    count_pending,
    evaluate,
    possible_bits,
    window,
)
from ..compiler.bounds import every_bit, shows_elements
from ..driver import Driver, Storage, fork_safe_lock
from ..errors import BusyError, DataTypeError, FreedError, ShapeError
from .strided import Strided

_usage_guard = fork_safe_lock()
"""Held while claims are made and released, never while a device works."""

_Member = TypeVar("_Member")

_Group: TypeAlias = set[ref[_Member]]
"""Objects that the group does not keep alive. Listing a `WeakSet` takes seven times as long."""


def _add(group: _Group[_Member], member: _Member) -> None:
    """Add ``member`` until it dies."""
    group.add(ref(member, group.discard))


def members(group: _Group[_Member]) -> list[_Member]:
    """Return the members of ``group``, which another thread or a finalizer may change meanwhile."""
    if not group:
        return []
    return [member for each in list(group) if (member := each()) is not None]


class _Usage:
    """The users of one storage."""

    __slots__ = ("bits", "readers", "waiting", "windows", "writers")

    def __init__(self) -> None:
        self.waiting: _Group[Value] = set()
        """Values to be computed from the bytes before anything changes these."""
        self.windows: _Group[Any] = set()
        """Windows through which other libraries can change the bytes at any time. While there are
        any, no value may wait, and the bytes stay."""
        self.bits: tuple[int, int] | None = None
        """Bytes of each element of a computed value, and a mask of the bits that may be 1 in it.
        None if the storage holds anything else, or has been written over."""
        self.readers: _Group[Claim] = set()
        self.writers: _Group[Claim] = set()
        """Calls in progress."""

    def add_window(self, window: object) -> None:
        """Note a window, which other libraries write through as long as it is held."""
        _add(self.windows, window)


def usage_of(storage: Storage) -> _Usage:
    """Return the account of the users of ``storage``. Raises ``FreedError``."""
    if storage.closed:
        raise FreedError("array: its memory has been freed; expected one that is still held")
    if storage.users is None:
        new = _Usage()
        with _usage_guard:
            # No call in between, in which a finalizer could make another one.
            if storage.users is None:
                storage.users = new
    usage: _Usage = storage.users
    return usage


def known_bits(stored: Stored) -> int | None:
    """Return a mask of the bits that may be 1 in elements of ``stored``; None for all of them."""
    usage: _Usage | None = stored.storage.users
    if usage is None or usage.bits is None:
        return None
    itemsize, bits = usage.bits
    view = stored.view
    if itemsize != view.itemsize:
        return None
    first = view.address - stored.storage.address
    return bits if shows_elements(first, view.strides, itemsize) else None


class Claim:
    """A claim of this thread on memory, for a ``with`` block. Many may read what none writes.

    Entering it raises ``BusyError`` or ``FreedError``. The claim ends with the call, wherever that
    is interrupted, because nothing else keeps it alive.
    """

    __slots__ = ("__weakref__", "_groups", "_reads", "_writes", "thread")

    def __init__(self, reads: Iterable[Storage], writes: Iterable[Storage] = ()) -> None:
        self.thread = get_ident()
        self._reads = reads
        self._writes = writes
        self._groups: list[_Group[Claim]] = []

    def __enter__(self) -> None:
        try:
            with _usage_guard:
                read = [usage_of(storage) for storage in self._reads]
                written = [usage_of(storage) for storage in self._writes]
                for usage in read:
                    self._expect_no(usage.writers, "is writing it")
                for usage in written:
                    self._expect_no(usage.writers, "is writing it")
                    self._expect_no(usage.readers, "is reading it")
                self._groups += [x.readers for x in read] + [x.writers for x in written]
                for group in self._groups:
                    _add(group, self)
        except BaseException:
            self._end()
            raise

    def _expect_no(self, others: "_Group[Claim]", what: str) -> None:
        if others and any(other.thread != self.thread for other in members(others)):
            raise BusyError(
                f"array: another thread {what}; expected one at a time (wait for it, or use a copy)"
            )

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        own = ref(self)
        for group in self._groups:
            group.discard(own)


_MOST_PENDING: Final = 256
"""Most operations that a value waits for. With more, it is computed as it is made, so that neither
the memory of the host nor the time to plan grows with a program's loops."""

_guard = fork_safe_lock()
"""Held while dependents and sources are noted, never while a device works."""


@runtime_checkable
class DeviceLike(Protocol):
    """The part of a ``Device`` that arrays need."""

    @property
    def driver(self) -> Driver: ...

    def expect_open(self) -> None:
        """Raise ``LinkError`` if the device has been closed."""


def expect_device(device: object) -> None:
    """Raise ``DataTypeError`` for anything but a device."""
    if not isinstance(device, DeviceLike):
        raise DataTypeError(f"device: {shown(device)}; expected one that bitlane.open gave")


class Value:
    """Elements of ``dtype`` that ``node`` describes, made from ``sources``.

    Never changes, except that the node becomes a stored one when it is computed: another value
    is another ``Value``.
    """

    __slots__ = (
        "__weakref__",
        "dependents",
        "device",
        "dtype",
        "keepalive",
        "node",
        "operations",
        "readonly",
        "sources",
        "storages",
    )

    def __init__(
        self,
        device: DeviceLike,
        dtype: np.dtype[Any],
        node: Expression,
        sources: Sequence["Value"] = (),
        *,
        readonly: bool = False,
    ) -> None:
        self.device = device
        self.dtype = dtype
        self.node = node
        self.storages: _Group[Storage] = set()
        """The memory that computing the value reads; its own, once it is computed."""
        self.dependents: _Group[Value] = set()
        """The values that wait for it, directly or not, while it is pending."""
        self.sources: _Group[Value] = set()
        """The pending values that it waits for, directly or not."""
        self.keepalive: list[Expression | Storage] = []
        """The nodes of its sources, held until it is computed, and freed memory that it reads."""
        self.operations = 0
        """Operations that it waits for; those that two sources share count twice."""
        self.readonly = readonly
        """Whether it is a view that must not be written to: it may repeat elements, or it shows
        booleans as numbers. On a device, the bytes of booleans are 0 and 1."""
        if isinstance(node, Stored):
            self.storages.add(ref(node.storage))
            return
        with _guard:
            while (usages := self._register(sources)) is None:
                pass
        if any(usage.windows for usage in usages) or self._waits_for_many():
            compute(self)

    def _register(self, sources: Sequence["Value"]) -> list[_Usage] | None:
        """Note everything that the value waits for; return the users of the memory that it reads.

        None if a finalizer has computed a source meanwhile, which then knows nothing of this value.
        """
        pending = [source for source in sources if source.pending]
        # One that another thread has computed since ``node`` was made would be forgotten again.
        self.keepalive += [source.node for source in sources]
        self.operations = 0
        for source in sources:
            self.storages |= source.storages
            self.sources |= source.sources
        for source in pending:
            self.sources.add(ref(source))
            self.operations += source.operations
        for each in members(self.sources):
            _add(each.dependents, self)
        usages = [usage_of(storage) for storage in members(self.storages)]
        for usage in usages:
            _add(usage.waiting, self)
        return usages if all(source.pending for source in pending) else None

    def _waits_for_many(self) -> bool:
        self.operations += 1
        if self.operations > _MOST_PENDING:
            self.operations = count_pending(self.node)
        return self.operations > _MOST_PENDING

    @property
    def pending(self) -> bool:
        """Whether the value is still to be computed."""
        return not isinstance(self.node, Stored)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def stored(self) -> Stored:
        """The tensor in the device's memory; computes it if the value is pending."""
        compute(self)
        assert isinstance(self.node, Stored)
        return self.node

    @property
    def strided(self) -> Strided:
        """Shape, strides and item size, with element 0 at byte 0."""
        return Strided(self.node.shape, self.node.strides, self.node.itemsize)

    def expect_writable(self) -> None:
        """Raise ``ShapeError`` for a read-only view."""
        if self.readonly:
            raise ShapeError(
                "array: a read-only view, which repeats its elements or shows the bytes of booleans"
                " as numbers; expected an array that can be written (copy it)"
            )

    def derived(self, node: Expression, dtype: np.dtype[Any] | None = None) -> "Value":
        """Return the value of ``node``, which is made from this value's node."""
        return Value(self.device, dtype or self.dtype, node, (self,))

    def view(
        self, strided: Strided, dtype: np.dtype[Any] | None = None, *, readonly: bool = False
    ) -> "Value":
        """Return a view of the same memory; computes the value if it is pending."""
        shape, strides, size = strided.shape, strided.strides, strided.itemsize
        node = window(self.stored, strided.offset, shape, strides, size)
        readonly = readonly or self.readonly
        return Value(self.device, dtype or self.dtype, node, readonly=readonly)


def compute(*values: Value) -> None:
    """Compute those of ``values``, all of one device, that are pending, as one job.

    Raises ``OutOfDeviceMemory``, ``FreedError``, ``BusyError`` and what ``Device`` does; the values
    are still pending then, and can be computed later.
    """
    waiting = [value for value in values if value.pending]
    if not waiting:
        return
    device = waiting[0].device
    device.expect_open()
    with Claim(_read_by(waiting)), device.driver.lock:
        # Another thread may have computed some of them meanwhile.
        pending = [value for value in waiting if value.pending]
        results = evaluate(device.driver, [value.node for value in pending])
        with _guard:
            for value, result in zip(pending, results, strict=True):
                if value.pending:  # a finalizer has not computed it meanwhile
                    _settle(value, result)


def _read_by(values: Sequence[Value]) -> set[Storage]:
    """Return the memory that computing ``values`` reads; other threads may compute a part."""
    with _guard:
        return {storage for value in values for storage in members(value.storages)}


def _settle(value: Value, result: Stored) -> None:
    """Note that ``value`` is computed: its dependents may read ``result``."""
    # First what makes dependents wait for more: an interrupt leaves nothing unguarded.
    _wait_for(value, result)
    # The memory of a view is that of all elements of its source.
    node = value.node.source if isinstance(value.node, Viewed) else value.node
    bits = possible_bits(node, known_bits)
    if bits != every_bit(node.itemsize):
        usage_of(result.storage).bits = node.itemsize, bits
    value.node = result
    value.storages = {ref(result.storage)}
    # A finalizer may have made dependents meanwhile; a computed value gets no more of them.
    for dependent in _wait_for(value, result):
        dependent.sources.discard(ref(value))
    value.sources.clear()
    value.dependents.clear()
    value.keepalive.clear()


def _wait_for(value: Value, result: Stored) -> list[Value]:
    """Make the pending dependents of ``value`` wait for changes of ``result``; return them."""
    dependents = [dependent for dependent in members(value.dependents) if dependent.pending]
    for dependent in dependents:
        _add(usage_of(result.storage).waiting, dependent)
        dependent.storages.add(ref(result.storage))
    return dependents


@contextmanager
def changing(
    target: Value, source: Value | None = None, *, but: Value | None = None
) -> Iterator[Stored]:
    """Claim the memory of ``target`` for a change, and the memory that ``source`` reads.

    Computes first all values that need the elements as they are, except for ``but``. Raises as
    `compute` does.
    """
    device, node = target.device, target.stored
    device.expect_open()
    reads = set() if source is None else _read_by([source])
    with Claim(reads, [node.storage]), device.driver.lock:
        compute_waiting(node.storage, but=but)
        yield node


def compute_waiting(storage: Storage, *, but: Value | None = None) -> None:
    """Compute all values that need the bytes of ``storage`` as they are, except for ``but``.

    Those that read freed memory, too, can never be computed. Any bit may be 1 then. Raises as
    `compute` does.
    """
    usage = usage_of(storage)
    with _guard:
        waiting = [value for value in members(usage.waiting) if value is not but]
        left = [value for value in waiting if not _is_lost(value)]
    compute(*left)
    with _guard:
        usage.waiting.difference_update(map(ref, waiting))
        usage.bits = None


def _is_lost(value: Value) -> bool:
    """Return whether ``value`` reads freed memory: computing it raises ``FreedError`` from now on.

    Without the freed memory it might be computed again, but from bytes that have been changed.
    """
    freed = [storage for storage in members(value.storages) if storage.closed]
    value.keepalive += freed
    return bool(freed)


def overwrite(target: Value, source: Value, *, fresh: bool = False) -> None:
    """Write ``source``, which is of the same type and broadcasts, over the elements of ``target``.

    The result is as if the source had been copied first. ``fresh``: nobody else has the source,
    which need not have a value afterwards. Raises as `compute` does, and ``ShapeError`` where
    elements repeat.
    """
    target.expect_writable()
    target.device.expect_open()
    broadcast(source.node, target.shape)
    if not target.strided.size:
        return
    with changing(target, source, but=source if fresh else None) as node:
        assign(target.device.driver, node, source.node)


def free(value: Value) -> None:
    """Free the memory of ``value``, if it has any. Raises ``BusyError``."""
    if isinstance(value.node, Stored) and not value.node.storage.closed:
        with Claim((), [value.node.storage]):
            if usage_of(value.node.storage).windows:
                raise BusyError(
                    "array: another library shows its memory; expected nobody to (drop what"
                    " from_dlpack gave, or the array: its memory is freed with the last of them)"
                )
            value.node.storage.close()
