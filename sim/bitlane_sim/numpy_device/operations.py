"""Each operation is a function on NumPy's arrays of elements, without addresses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import and_, or_, xor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Lane, Mode, Op

Elements: TypeAlias = NDArray[Any]
"""Elements of a stream: an axis for each loop, the run last."""


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A function that takes the elements of A, of B if there is one, and of Y, which it writes."""

    function: Callable[..., None]

    has_steps: bool = True
    """Whether it has results in between, which take memory."""

    def __call__(self, *elements: Elements) -> None:
        self.function(*elements)


DTYPES: Mapping[int, np.dtype[Any]] = {lane: np.dtype(f"<u{lane.bytes}") for lane in Lane}
"""The type of the elements of each lane."""

_SIGNED = {lane: np.dtype(f"<i{lane.bytes}") for lane in Lane}

LOGIC: Mapping[Op, Callable[..., Any]] = {
    Op.AND: and_,
    Op.OR: or_,
    Op.XOR: xor,
    Op.COPY: lambda a, *_: a,
}
"""Logic of arrays of NumPy or CuPy, by ``Op.base``. Campaigns compute with it, too."""

_UFUNCS = {and_: np.bitwise_and, or_: np.bitwise_or, xor: np.bitwise_xor}
"""Functions that write their result without an array in between."""


def computation(control: Mapping[str, int]) -> Elementwise:
    """Return the function of a command with these fields of CONTROL, none of them refused."""
    op = Op(control["OP"])
    if op.counts:
        return _count(op, control)
    if op in (Op.SHIFT_LEFT, Op.SHIFT_RIGHT):
        return _shift(op, control)
    if op is Op.COPY:
        return Elementwise(_copy, has_steps=False)
    if op is Op.NOT:
        return Elementwise(lambda a, y: np.invert(a, out=y), has_steps=False)
    logic = LOGIC[op.base]
    if op.negates:
        return Elementwise(lambda a, b, y: np.invert(logic(a, b), out=y))
    if ufunc := _UFUNCS.get(logic):
        return Elementwise(lambda a, b, y: ufunc(a, b, out=y), has_steps=False)
    return Elementwise(lambda a, b, y: np.copyto(y, logic(a, b)))


def _copy(a: Elements, y: Elements) -> None:
    # Within one memory NumPy's copyto may take the elements backwards and read what it has written.
    if np.may_share_memory(a, y):
        np.positive(a, out=y)
    else:
        np.copyto(y, a)


def _count(op: Op, control: Mapping[str, int]) -> Elementwise:
    """Counts, tests of counts, and their sums over runs."""
    test, negate = control["TEST"], control["NEGATE"]
    sums, logic = control["Y_MODE"] == Mode.SUM, LOGIC[op.base]

    def count(a: Elements, *others: Elements) -> None:
        *inputs, y = others
        ones = logic(a, *inputs)
        if test:
            compare = np.equal if negate else np.not_equal
            found = compare(ones, 0)
        else:
            found = np.bitwise_count(ones)
        if sums:
            found.sum(axis=-1, dtype=np.uint32, out=y[..., 0])
        else:
            np.copyto(y, found)

    return Elementwise(count)


def _shift(op: Op, control: Mapping[str, int]) -> Elementwise:
    """Shifts by the elements of B: wrapped at the width, or with the fill from the width on."""
    lane = Lane(control["LANE"])
    bits = lane.bytes * 8
    signed = op is Op.SHIFT_RIGHT and control["ARITHMETIC"]
    shift = np.left_shift if op is Op.SHIFT_LEFT else np.right_shift

    def shifted(a: Elements, b: Elements, y: Elements) -> None:
        value = a.view(_SIGNED[lane]) if signed else a
        places = b & (bits - 1)
        result = shift(value, places.view(value.dtype)).view(DTYPES[lane])
        if control["SATURATE"]:
            fill = (value >> (bits - 1)).view(DTYPES[lane]) if signed else DTYPES[lane].type(0)
            result = np.where(b >= bits, fill, result)
        np.copyto(y, result)

    return Elementwise(shifted)


def nearest(rows: NDArray[np.uint8], queries: NDArray[np.uint8], count: int) -> NDArray[np.uint32]:
    """Return the ``count`` nearest of ``rows`` for each query, as (query, rank, [distance, row]).

    Rows and queries have a multiple of 8 bytes. Entries that no row fills are 0xFFFFFFFF.
    """
    found = np.full((len(queries), count, 2), 0xFFFFFFFF, "<u4")
    # One array for each word of a row, so that each step is over all rows at once.
    words = np.ascontiguousarray(rows.view("<u8").T)
    distances = np.empty(len(rows), np.uint16)
    for entry, query in zip(found, queries.view("<u8"), strict=True):
        distances.fill(0)
        for column, word in zip(words, query, strict=True):
            distances += np.bitwise_count(column ^ word)
        kept = min(count, len(rows))
        farthest = np.partition(distances, kept - 1)[kept - 1]
        near = np.flatnonzero(distances <= farthest)
        order = near[np.argsort(distances[near], kind="stable")[:kept]]
        entry[:kept, 0] = distances[order]
        entry[:kept, 1] = order
    return found
