"""Delta cycles of a compiled simulation: the Python side of native/deltas.cc."""

import ctypes
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import partial
from itertools import starmap

from ..native import InstanceHandle, native
from ..native.compiled import DesignInstance

_FIRST_WATCHES = 16
"""Room for watches at first; it at least doubles."""


class Attention(IntEnum):
    """``Attention`` of deltas.h."""

    TICKS = 0
    WATCHES = 1
    DELTAS = 2


class _Watch(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("word", "depth", "rising", "falling", "before", "now")
    )


_SIZE = ctypes.sizeof(_Watch) // 8
"""64-bit words of a watch."""
_DEPTH, _RISING, _FALLING, _BEFORE, _NOW = range(1, _SIZE)


class _Pair(ctypes.Structure):
    _fields_ = (("word", ctypes.c_uint64), ("other", ctypes.c_uint64))


class _Control(ctypes.Structure):
    # Pointers of these types keep alive what they point to.
    _fields_ = (
        ("model", ctypes.POINTER(InstanceHandle)),
        ("size", ctypes.c_uint64),
        ("rows", ctypes.POINTER(ctypes.c_uint64)),
        ("capacity", ctypes.c_uint64),
        ("newest", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("origin", ctypes.c_uint64),
        ("still", ctypes.c_uint64),
        ("clocks", ctypes.POINTER(_Pair)),
        ("clocks_size", ctypes.c_uint64),
        ("derived", ctypes.POINTER(_Pair)),
        ("derived_size", ctypes.c_uint64),
        ("late", ctypes.POINTER(ctypes.c_uint8)),
        ("late_rows", ctypes.c_uint64),
        ("watches", ctypes.POINTER(_Watch)),
        ("watches_size", ctypes.c_uint64),
        ("settles", ctypes.c_uint64),
        ("settled", ctypes.c_uint64),
        ("answer", ctypes.c_uint64),
        ("fired", ctypes.c_uint64),
        ("attention", ctypes.c_uint64),
        ("stopped", ctypes.c_uint64),
    )


Piece = tuple[int, int, int, int]
"""A part of a signal: its word, its lowest bit there, its mask, and its lowest bit in the signal"""


class Deltas:
    """The delta cycles of a model, and the signals that it watches.

    Attributes
    ----------
    control : ctypes.Structure
        The fields shared with compiled code.
    begin, end, run, look : callable
        The functions of deltas.h, without their first argument.
    prepared : bool
        `prepare` has been called.
    """

    def __init__(self, model: DesignInstance) -> None:
        self.control = _Control(ctypes.pointer(model.native), model.source.size)
        pairs = [(word, before) for word, before in model.source.previous.items()]
        self.control.clocks, self.control.clocks_size = _pairs(pairs), len(pairs)
        self._library = library = native()
        address = ctypes.c_void_p(ctypes.addressof(self.control))
        self.begin = partial(library.deltas_begin, address)
        self.end = partial(library.deltas_end, address)
        self.run = partial(library.deltas_run, address)
        self.look = partial(library.deltas_look, address)
        self.prepared = False
        self._rows: list[memoryview] = []
        self._room = (_Watch * _FIRST_WATCHES)()
        self._use_room()

    def prepare(self, deepest: int, derived: Mapping[int, int]) -> None:
        """Provide for delta cycles.

        ``deepest`` is the largest depth of a signal; ``derived`` has the depth of each clock that
        logic makes, by the word of its pending edge.
        """
        control, self.prepared = self.control, True
        size, capacity = control.size, 1 + deepest
        content = (ctypes.c_uint64 * (size * capacity))()
        control.rows, control.capacity = content, capacity
        whole = memoryview(content).cast("B").cast("Q")
        self._rows = [whole[size * row : size * (row + 1)] for row in range(capacity)]
        rows = 1 + max(derived.values(), default=0)
        control.derived, control.derived_size = _pairs(list(derived.items())), len(derived)
        control.late = (ctypes.c_uint8 * (rows * max(1, len(derived))))()
        control.late_rows = rows

    def reset(self) -> None:
        """Return to power-on."""
        control = self.control
        control.count = control.fired = control.stopped = 0
        if control.derived_size:
            ctypes.memset(control.late, 0, control.late_rows * control.derived_size)

    def row(self, depth: int) -> memoryview | None:
        """Return the words that logic of this depth shows; None for those at power-on."""
        control = self.control
        count = control.count
        depth = min(depth, count)
        if control.origin and depth == count:
            return None
        return self._rows[(control.newest + depth - 1) % control.capacity]

    # --- watches ------------------------------------------------------------------------------

    def add(self, pieces: Sequence[Piece], *, depth: int, settled: bool) -> int:
        """Add the parts of a signal; return the number of the first."""
        first, size = self.control.watches_size, len(pieces)
        if first + size > len(self._room):
            room = (_Watch * (2 * (first + size)))()
            ctypes.memmove(room, self._room, ctypes.sizeof(self._room))
            self._room = room
        self._use_room()
        for number, (word, *_) in enumerate(pieces, first):
            self._room[number].word, self._room[number].depth = word, depth
        self.control.watches_size = first + size
        self.control.settles |= settled
        return int(first)

    def _use_room(self) -> None:
        self.control.watches = self._room
        self._watches = memoryview(self._room).cast("B").cast("Q")

    def deepen(self, first: int, size: int, depth: int) -> None:
        """Set the depth of a signal."""
        for number in range(first, first + size):
            self._room[number].depth = depth

    def note(self, first: int, pieces: Sequence[Piece], value: int) -> None:
        """Set the value of a signal at the last look."""
        at = first * _SIZE + _NOW
        for _, shift, mask, low in pieces:
            self._watches[at] = (value >> low & mask) << shift
            at += _SIZE

    def settle(self, first: int, pieces: Sequence[Piece]) -> None:
        """Make the last two looks at a signal equal."""
        for at in range(first * _SIZE, (first + len(pieces)) * _SIZE, _SIZE):
            self._watches[at + _BEFORE] = self._watches[at + _NOW]

    def arm(self, first: int, pieces: Sequence[Piece], rising: int, falling: int) -> None:
        """Set the bits of a signal whose changes call a waker."""
        watches, at = self._watches, first * _SIZE
        for _, shift, mask, low in pieces:
            watches[at + _RISING] = (rising >> low & mask) << shift
            watches[at + _FALLING] = (falling >> low & mask) << shift
            at += _SIZE

    def values(self, first: int, pieces: Sequence[Piece]) -> tuple[int, int]:
        """Return the values of a signal at the last two looks, without sign."""
        watches, at = self._watches, first * _SIZE
        if len(pieces) == 1:
            _, shift, mask, low = pieces[0]
            before, after = watches[at + _BEFORE], watches[at + _NOW]
            return (before >> shift & mask) << low, (after >> shift & mask) << low
        before = after = 0
        for _, shift, mask, low in pieces:
            before |= (watches[at + _BEFORE] >> shift & mask) << low
            after |= (watches[at + _NOW] >> shift & mask) << low
            at += _SIZE
        return before, after


def _pairs(content: Sequence[tuple[int, int]]) -> "ctypes.Array[_Pair]":
    return (_Pair * max(1, len(content)))(*starmap(_Pair, content))
