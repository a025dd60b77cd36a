"""What an array holds: elements in the device's memory, or the expression that computes them.

A value knows who uses its memory: calls in progress, and values still to be computed from it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final, Protocol, runtime_checkable
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from ..compiler.evaluate import assign, evaluate
from ..compiler.nodes import Applied, Expression, Stored, broadcast, window
from ..compiler.passes import count_pending
from ..driver.driver import Driver, Storage
from ..driver.fork import guard
from ..errors import BusyError, DataTypeError, FreedError, ShapeError
from ..streaming.operands import shown
from .strided import Strided

_usage_guard = guard()
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
        with _usage_guard:
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
        with _usage_guard:
            for place in places:
                place.discard(claim)


def _expect_no(users: WeakSet[_Claim], own: _Claim, what: str) -> None:
    if any(user.thread != own.thread for user in users):
        raise BusyError(
            f"array: another thread {what}; expected one at a time (wait for it, or use a copy)"
        )


_MOST_PENDING: Final = 256
"""Operations that a value may wait for: with more, it is computed as it is made, so that neither
the memory of the host nor the time to plan grows with a program's loops."""

_guard = guard()
"""Held while it is noted who reads what, never while a device works."""


@runtime_checkable
class Home(Protocol):
    """Where arrays live: a ``Device``, as far as they need it."""

    @property
    def driver(self) -> Driver: ...

    def expect_open(self) -> None:
        """Raises ``LinkError`` if the device has been closed."""


def expect_device(device: object) -> None:
    """Raises ``DataTypeError`` for what is no device."""
    if not isinstance(device, Home):
        raise DataTypeError(f"device: {shown(device)}; expected one that bitlane.open gave")


class Value:
    """Elements of ``dtype`` that ``node`` describes, made from ``sources``.

    Never changes, except that the node becomes a stored one when it is computed: another value
    is another ``Value``.
    """

    __slots__ = (
        "__weakref__",
        "ancestors",
        "dtype",
        "home",
        "kept",
        "leaves",
        "node",
        "operations",
        "readers",
        "shown_only",
    )

    def __init__(
        self,
        home: Home,
        dtype: np.dtype[Any],
        node: Expression,
        sources: Sequence["Value"] = (),
        *,
        shown_only: bool = False,
    ) -> None:
        self.home = home
        self.dtype = dtype
        self.node = node
        self.leaves: WeakSet[Storage] = WeakSet()
        """The memory that computing it reads; its own, once it is there."""
        self.readers: WeakSet[Value] = WeakSet()
        """What is to be computed from it, at any distance, itself not being there yet."""
        self.ancestors: WeakSet[Value] = WeakSet()
        """The values that are not there yet either, and of which this is a reader."""
        self.kept: list[Expression] = []
        """What it is computed from, until it is."""
        self.operations = 0
        """Upper bound of the operations it waits for: those that two sources share count twice."""
        self.shown_only = shown_only
        """Whether it is a view that may repeat elements, and so is not to be written to."""
        if isinstance(node, Stored):
            self.leaves.add(node.storage)
            return
        with _guard:
            # One that another thread has computed since ``node`` was made would be forgotten again.
            self.kept = [source.node for source in sources]
            for source in sources:
                self.leaves |= source.leaves
                self.ancestors |= source.ancestors
                if source.pending:
                    self.ancestors.add(source)
                    self.operations += source.operations
            for each in self.ancestors:
                each.readers.add(self)
            usages = [usage_of(leaf) for leaf in self.leaves]
            for usage in usages:
                usage.waiting.add(self)
        if any(usage.windows for usage in usages) or self._waits_for_many():
            compute(self)

    def _waits_for_many(self) -> bool:
        self.operations += 1
        if self.operations > _MOST_PENDING:
            self.operations = count_pending(self.node)
        return self.operations > _MOST_PENDING

    @property
    def pending(self) -> bool:
        """Whether it is still to be computed."""
        return not isinstance(self.node, Stored)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def stored(self) -> Stored:
        """Where it is in the device's memory; computes it if it is not there."""
        compute(self)
        assert isinstance(self.node, Stored)
        return self.node

    @property
    def strided(self) -> Strided:
        """How its elements lie; element 0 counts as byte 0."""
        return Strided(self.node.shape, self.node.strides, self.node.itemsize)

    @property
    def counted_bytes(self) -> int | None:
        """Bytes of each counted element, if the elements are stored counts of bits; else None."""
        if not isinstance(self.node, Stored):
            return None
        dtype, width = usage_of(self.node.storage).counts or (None, None)
        return width if dtype == self.dtype else None

    def expect_writable(self) -> None:
        """Raises ``ShapeError`` for a view that may repeat elements."""
        if self.shown_only:
            raise ShapeError(
                "array: a broadcast view repeats its elements; expected one that does not (copy it)"
            )

    def derived(self, node: Expression, dtype: np.dtype[Any] | None = None) -> "Value":
        """What ``node``, made from this value's, describes."""
        return Value(self.home, dtype or self.dtype, node, (self,))

    def seen(
        self, strided: Strided, dtype: np.dtype[Any] | None = None, *, shown_only: bool = False
    ) -> "Value":
        """The same memory seen another way; computes what it is to hold."""
        shape, strides, size = strided.shape, strided.strides, strided.itemsize
        node = window(self.stored, strided.offset, shape, strides, size)
        shown_only = shown_only or self.shown_only
        return Value(self.home, dtype or self.dtype, node, shown_only=shown_only)


def compute(*values: Value) -> None:
    """Compute those of ``values``, all of one device, that are pending, as one job.

    Raises ``OutOfDeviceMemory``, ``FreedError``, ``BusyError`` and what ``Device`` does; they are
    pending still then, and can be asked for again.
    """
    values = tuple(value for value in values if value.pending)
    if not values:
        return
    home = values[0].home
    home.expect_open()
    with using(_read_by(*values)), home.driver.lock:
        # Another thread may have computed some of them meanwhile.
        pending = [value for value in values if value.pending]
        results = evaluate(home.driver, [value.node for value in pending])
        with _guard:
            for value, result in zip(pending, results, strict=True):
                _settle(value, result)


def _read_by(*values: Value) -> set[Storage]:
    """The memory that computing ``values`` reads, also while another thread computes a part."""
    with _guard:
        return {leaf for value in values for leaf in value.leaves}


def _settle(value: Value, result: Stored) -> None:
    """Note that ``value`` is there. What is to be computed from it may read it from there."""
    readers = [reader for reader in value.readers if reader.pending]
    # First what makes readers wait for more: whoever interrupts this leaves nothing unguarded.
    usage_of(result.storage).waiting.update(readers)
    for reader in readers:
        reader.leaves.add(result.storage)
    node = value.node
    if isinstance(node, Applied) and node.op.counts and not node.summed:
        usage_of(result.storage).counts = (value.dtype, node.a.itemsize)
    value.node = result
    value.leaves = WeakSet({result.storage})
    for reader in readers:
        reader.ancestors.discard(value)
    value.ancestors.clear()
    value.readers.clear()
    value.kept.clear()


@contextmanager
def changing(
    target: Value, source: Value | None = None, *, but: Value | None = None
) -> Iterator[Stored]:
    """Claims the memory of ``target`` for a change, and that of ``source`` to be read.

    Computes whatever else needs the elements as they are, except for ``but``. Raises as `compute`.
    """
    home, node = target.home, target.stored
    home.expect_open()
    reads = set() if source is None else _read_by(source)
    with using(reads, [node.storage]), home.driver.lock:
        usage = usage_of(node.storage)
        with _guard:
            waiting = [value for value in usage.waiting if value is not but]
        compute(*waiting)
        with _guard:
            usage.waiting.difference_update(waiting)
            usage.counts = None
        yield node


def overwrite(target: Value, source: Value, *, fresh: bool = False) -> None:
    """Give the elements of ``target`` those of ``source``, which is of its type and broadcasts.

    As if the source had been copied first. ``fresh``: nobody else has the source, which need not
    have a value afterwards. Raises as `compute` does, and ``ShapeError`` where elements repeat.
    """
    target.expect_writable()
    target.home.expect_open()
    broadcast(source.node, target.shape)
    if not target.strided.size:
        return
    with changing(target, source, but=source if fresh else None) as node:
        assign(target.home.driver, node, source.node)


def free(value: Value) -> None:
    """Give the memory of ``value`` back, if it has any. Raises ``BusyError``."""
    if isinstance(value.node, Stored) and not value.node.storage.closed:
        with using((), [value.node.storage]):
            if usage_of(value.node.storage).windows:
                raise BusyError(
                    "array: another library shows its memory; expected nobody to (drop what"
                    " from_dlpack gave, or the array: its memory is freed with the last of them)"
                )
            value.node.storage.close()
