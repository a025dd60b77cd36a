"""One operation on arrays of the host: cut into pieces, sent, executed and brought back.

While the device computes a piece, the next one goes up and the result of the one before comes
down. Moves bytes; never computes on them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import isqrt, prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from ..driver.allocator import OutOfDeviceMemory
from ..driver.commands import Command
from ..driver.driver import Driver
from ..driver.queue import Read, Write
from ..terminal import Percentage, progress_is_wanted
from .aliasing import untangle
from .call import Call, call_of
from .lowering import View
from .operands import AnyArray, address_of, packed_strides
from .tiles import Index, tile_shape, tiles
from .transfer import Layout, Source, rounded, source_of, store

__all__ = ["Target", "compute"]

_EXCHANGE_BYTES: Final = 128
"""What a line could carry in the time that an exchange takes beside its data, about."""

_SMALLEST_PIECE: Final = 1024
"""Bytes in one direction below which nothing is cut for the line's sake."""

_SHOWN_PIECE: Final = 1 << 20
"""Bytes in one direction of what is cut to show how far it is."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a result goes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: tuple[int, ...]
    """The axes, outermost in memory first."""
    out: AnyArray | None
    """An array of ``shape`` and ``dtype``, in any byte order; None: one of its own."""


def compute(
    driver: Driver, op: Op, inputs: Sequence[AnyArray], target: Target, *, arithmetic: bool
) -> AnyArray:
    """``op`` of ``inputs``, arrays of the target's shape, as an array.

    Two of them are converted to the target's type on their way. Shift counts saturate. Takes no
    more memory of the host than the result and what is on its way, which is no more than the device
    has, unless operands must be copied: see ``aliasing``.

    Raises what ``Device`` does.
    """
    wanted = target.dtype if len(inputs) > 1 else None
    call = call_of(
        op,
        target.shape,
        target.order,
        target.dtype.itemsize,
        tuple([source_of(x, wanted) for x in inputs]),
        arithmetic,
        driver.geometry,
    )
    with driver.lock:
        small = call.line_bytes <= _SMALLEST_PIECE or call.line_bytes <= _at_most(driver, call)
        if small and call.size <= driver.allocator.largest():
            data = _at_once(driver, call, inputs)
            if target.out is None:
                return _array(target, data)
            store(data, np.asarray(target.out), target.order)
            return target.out
        out = target.out
        if out is None:
            out = _array(target, np.empty(call.output_size, np.uint8))
        _in_pieces(driver, call, inputs, np.asarray(out), wanted)
        return out


def _at_once(driver: Driver, call: Call, inputs: Sequence[AnyArray]) -> NDArray[np.uint8]:
    """The packed result of ``call`` on ``inputs``, all of which is on the device together."""
    memory = driver.allocate(call.size)
    try:
        address = memory.address
        writes = [
            (address + offset, layout.content(x))
            for offset, layout, x in zip(call.inputs, call.layouts, inputs, strict=True)
        ]
        driver.run(call.commands(address), before=writes)
        return driver.read(address + call.output, call.output_size)
    finally:
        driver.free(memory)


def _array(target: Target, data: NDArray[np.uint8]) -> AnyArray:
    """``data`` from the device, or for it, as the result."""
    strides = packed_strides(target.shape, target.order, target.dtype.itemsize)
    if not data.flags.writeable:
        data = data.copy()
    little = np.ndarray(target.shape, target.dtype.newbyteorder("<"), data, strides=strides)
    return little.astype(target.dtype, order="K", copy=False)


def _in_pieces(
    driver: Driver,
    call: Call,
    inputs: Sequence[AnyArray],
    out: AnyArray,
    wanted: np.dtype[Any] | None,
) -> None:
    """Put the result of ``call`` on ``inputs`` into ``out``, piece by piece."""
    inputs, out, backwards = untangle(inputs, out)
    sources = tuple([source_of(x, wanted) for x in inputs])
    tiling = _tiling(
        call.shape,
        call.order,
        call.itemsize,
        sources,
        driver.allocator.largest(),
        _at_most(driver, call),
    )
    indices = tiles(call.shape, tiling.box, call.order, backwards=backwards)
    memory = driver.allocate(tiling.size)
    try:
        operands = [
            _Operand(x, source, raw, [memory.address + offset for offset in offsets])
            for x, source, raw, offsets in zip(
                inputs, sources, tiling.raw, tiling.inputs, strict=True
            )
        ]
        pieces = _Pieces(driver, call, operands, tiling, memory.address)
        with Percentage(f"{call.op.name}, {call.output_size:,} bytes ") as percentage:
            done = 0
            for index, data in pieces.results(indices):
                store(data, out[index], call.order)
                done += data.size
                if progress_is_wanted():
                    percentage(done / call.output_size)
    finally:
        driver.free(memory)


def _at_most(driver: Driver, call: Call) -> int:
    """How many of the bytes of ``call`` go in one direction at once.

    On a line long pieces make the line wait at both ends, short ones between exchanges.
    """
    if driver.link.remote:
        best = max(_SMALLEST_PIECE, isqrt(call.line_bytes * _EXCHANGE_BYTES // 2))
        return best if call.line_bytes > 4 * best else call.line_bytes
    return _SHOWN_PIECE if progress_is_wanted() else call.line_bytes


@dataclass(frozen=True, slots=True)
class _Tiling:
    """The size of pieces, and the device's memory for them. Offsets in bytes."""

    box: tuple[int, ...]
    """Elements of a piece along each axis."""
    overlapped: bool
    """Whether a piece is sent while another is computed: there are two buffers then."""
    raw: tuple[bool, ...]
    """Whether each input is sent as it lies."""
    inputs: tuple[tuple[int, ...], ...]
    """Where the buffers of each input start."""
    outputs: tuple[int, ...]
    """Where the buffers of results start."""
    size: int


@lru_cache(maxsize=512)
def _tiling(
    shape: tuple[int, ...],
    order: tuple[int, ...],
    itemsize: int,
    sources: tuple[Source, ...],
    room: int,
    most: int,
) -> _Tiling:
    """How to compute a result of ``shape`` in ``room`` bytes of the device's memory.

    A piece has ``most`` bytes in one direction.
    """

    def sizes(box: tuple[int, ...]) -> list[tuple[int, bool]]:
        """Bytes of each input's piece, and of the result's; and whether pieces differ."""
        cut = [axis for axis, count in enumerate(box) if count < shape[axis]]
        result = itemsize * prod(box)
        pieces = [
            (rounded(Layout.of(source, box).size), any(source[0][axis] for axis in cut))
            for source in sources
        ]
        return [*pieces, (rounded(result), bool(cut))]

    def line_bytes(box: tuple[int, ...]) -> int:
        """What has to go in the busier direction for a piece."""
        *inputs, (result, _) = sizes(box)
        return max(sum(size for size, differs in inputs if differs or box == shape), result)

    def fits(box: tuple[int, ...], copies: int) -> bool:
        return line_bytes(box) <= most and room >= sum(
            size * (copies if differs else 1) for size, differs in sizes(box)
        )

    copies = 2
    box = tile_shape(shape, order, lambda box: fits(box, 2))
    if box is None:
        copies = 1
        box = tile_shape(shape, order, lambda box: fits(box, 1))
    if box is None:
        least = sum(size for size, _ in sizes((1,) * len(shape)))
        raise OutOfDeviceMemory(
            f"device memory: {least} bytes for one element do not fit; the largest hole has"
            f" {room} bytes"
        )
    end = 0
    places = []
    for size, differs in sizes(box):
        start, end = end, end + size * (copies if differs else 1)
        places.append(tuple(range(start, end, size)))
    raw = tuple([Layout.of(source, box).raw for source in sources])
    return _Tiling(box, copies == 2, raw, tuple(places[:-1]), places[-1], end)


class _Operand:
    """An input, and which pieces of it the device's memory holds."""

    def __init__(
        self, array: AnyArray, source: Source, raw: bool, addresses: Sequence[int]
    ) -> None:
        self._array = array
        self._source = source
        self._raw = raw
        self._addresses = addresses
        self._held: list[tuple[Layout, int] | None] = [None] * len(addresses)
        self._last = 0

    def piece(self, index: Index, writes: list[Write]) -> tuple[tuple[int, ...], View]:
        """A piece's shape, and where it lies once ``writes``, to which this adds, are done.

        The buffer of the piece before is left alone.
        """
        part = self._array[index]
        layout = Layout.of(self._source, part.shape, self._raw)
        content = (layout, address_of(part))
        if content in self._held:
            self._last = self._held.index(content)
        else:
            self._last = (self._last + 1) % len(self._addresses)
            self._held[self._last] = content
            writes.append((self._addresses[self._last], layout.content(part)))
        start = self._addresses[self._last] + layout.first
        return part.shape, View(start, layout.strides, self._source[1])


class _Piece(NamedTuple):
    tile: Index
    writes: list[Write]
    """What it needs that is not on the device."""
    commands: Iterable[Command]
    result: Read


class _Pieces:
    """A call whose pieces go through the device's memory from ``address`` on."""

    def __init__(
        self,
        driver: Driver,
        call: Call,
        operands: Sequence[_Operand],
        tiling: _Tiling,
        address: int,
    ) -> None:
        self._driver = driver
        self._call = call
        self._overlapped = tiling.overlapped
        self._operands = operands
        self._outputs = [address + offset for offset in tiling.outputs]

    def results(self, indices: Iterable[Index]) -> Iterator[tuple[Index, NDArray[np.uint8]]]:
        """Pieces of the result, packed, with their indices."""
        driver = self._driver
        if not self._overlapped:
            for piece in map(self._piece, indices):
                driver.run(piece.commands, before=piece.writes)
                yield piece.tile, driver.read(*piece.result)
            return
        computed = running = None
        for index in chain(indices, (None, None)):
            sent = None if index is None else self._piece(index)
            data = driver.run(
                running.commands if running else (),
                meanwhile=sent.writes if sent else (),
                reads=(computed.result,) if computed else (),
            )
            if computed:
                yield computed.tile, data[0]
            computed, running = running, sent

    def _piece(self, index: Index) -> _Piece:
        writes: list[Write] = []
        parts = [operand.piece(index, writes) for operand in self._operands]
        shape = parts[0][0]
        self._outputs.reverse()
        result = self._outputs[0]
        commands = self._call.lowered(shape, [view for _, view in parts], result)
        return _Piece(index, writes, commands, (result, self._call.itemsize * prod(shape)))
