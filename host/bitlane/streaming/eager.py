"""One operation on arrays of the host: cut into tiles, sent, executed and read back.

While the device computes a tile, the next one goes up and the result of the one before comes down.
Moves bytes; never computes on them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
from math import isqrt, prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Lane, Op

from .._typing import AnyArray
from ..arguments.operands import address_of, allocating
from ..driver import Driver, Storage, Write, round_up
from ..errors import OutOfDeviceMemory
from ..lowering import ARITHMETIC, LOGICAL, View
from ..terminal import Percentage, progress_is_wanted
from .call import Call, PackedResult, call_of
from .pipeline import Piece, results
from .tiling import Index, resolve_aliasing, tile_shape, tiles
from .transfer import Layout, Source, source_of, store

_EXCHANGE_BYTES: Final = 128
"""Estimated bytes that a line carries in the fixed time of an exchange."""

_SMALLEST_TILE: Final = 1024
"""Bytes in one direction below which a line's traffic is not cut."""

_SHOWN_TILE: Final = 1 << 20
"""Bytes in one direction of a tile where progress is shown."""


class Target(NamedTuple):
    """The array that takes a result."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: tuple[int, ...]
    """The axes, outermost in memory first."""
    out: AnyArray | None
    """An array of ``shape`` and ``dtype``, in any byte order; None: one of its own."""


def compute(
    driver: Driver, op: Op, inputs: Sequence[AnyArray], target: Target, *, arithmetic: bool
) -> AnyArray:
    """Return ``op`` of ``inputs``, arrays of the target's shape, as an array.

    Two of them are converted to the target's type on their way. Shift counts saturate. Takes host
    memory for the result and the data in flight, which fit in the device, and for copies of
    operands that alias the output: see `resolve_aliasing`.

    Raises as ``Device`` does.
    """
    dtype = target.dtype if len(inputs) > 1 else None
    result = PackedResult(target.shape, target.order, target.dtype.itemsize)
    sources = tuple([source_of(x, dtype) for x in inputs])
    options = ARITHMETIC if arithmetic else LOGICAL
    call = call_of(op, result, sources, options, driver.geometry.abilities)
    with driver.lock:
        if _fits(driver, call):
            data = _in_one_tile(driver, call, inputs)
            if target.out is None:
                return _array(target, data, call.strides)
            store(data, np.asarray(target.out), call.strides)
            return target.out
        out = target.out
        if out is None:
            with allocating("result", call.output_size):
                out = _array(target, np.empty(call.output_size, np.uint8), call.strides)
        _in_tiles(driver, call, inputs, np.asarray(out), dtype)
        return out


def compute_sums(
    driver: Driver, op: Op, inputs: Sequence[AnyArray], dtype: np.dtype[Any] | None
) -> NDArray[np.uint64]:
    """Return the sums of the counts ``op`` of ``inputs`` along their last axis.

    The inputs have one shape, with elements, form runs along that axis, and are converted to
    ``dtype`` on their way. Rows that exceed a run or the device's memory are cut, and the sums of
    their tiles are added up here. Raises as ``Device`` does.
    """
    shape = inputs[0].shape
    result = PackedResult(shape, tuple(range(len(shape) - 1)), Lane.BITS_32.bytes)
    sources = tuple([source_of(x, dtype) for x in inputs])
    call = call_of(op, result, sources, LOGICAL, driver.geometry.abilities)
    with driver.lock:
        if _fits(driver, call):
            return _sums(_in_one_tile(driver, call, inputs), shape[:-1]).astype(np.uint64)
        with allocating("sums", 8 * prod(shape[:-1])):
            sums = np.zeros(shape[:-1], np.uint64)
        _in_tiles(driver, call, inputs, sums, dtype)
        return sums


def _sums(data: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint32]:
    return data.view("<u4").reshape(shape)


def _fits(driver: Driver, call: Call) -> bool:
    """Return whether ``call`` fits in one tile."""
    small = call.line_bytes <= _SMALLEST_TILE or call.line_bytes <= _most_bytes(driver, call)
    return small and call.size <= driver.allocator.largest() and call.adds(call.shape[-1:])


def _in_one_tile(driver: Driver, call: Call, inputs: Sequence[AnyArray]) -> NDArray[np.uint8]:
    """Return the packed result of ``call``, with all ``inputs`` on the device together."""
    memory = Storage(driver, call.size)
    try:
        address = memory.address
        writes = [
            (address + offset, layout.content(x))
            for offset, layout, x in zip(call.inputs, call.layouts, inputs, strict=True)
        ]
        driver.run(call.commands(address), before=writes)
        return driver.read(address + call.output, call.output_size)
    finally:
        memory.close()
        driver.collect()


def _array(target: Target, data: NDArray[np.uint8], strides: tuple[int, ...]) -> AnyArray:
    """Return ``data`` from the device, or for it, as the result."""
    if not data.flags.writeable:
        data = data.copy()
    little = np.ndarray(target.shape, target.dtype.newbyteorder("<"), data, strides=strides)
    return little.astype(target.dtype, order="K", copy=False)


def _in_tiles(
    driver: Driver,
    call: Call,
    inputs: Sequence[AnyArray],
    out: AnyArray,
    dtype: np.dtype[Any] | None,
) -> None:
    """Write the result of ``call`` on ``inputs`` to ``out``, tile by tile; add sums to it."""
    backwards = False
    if not call.summed:
        inputs, out, backwards = resolve_aliasing(inputs, out)
    sources = tuple([source_of(x, dtype) for x in inputs])
    tiling = _tiling(call, sources, driver.allocator.largest(), _most_bytes(driver, call))
    indices = tiles(call.shape, tiling.tile, call.axes, backwards=backwards)
    parts = -(-call.shape[-1] // tiling.tile[-1]) if call.summed else 1
    memory = Storage(driver, tiling.size)
    try:
        operands = [
            _Operand(x, source, raw, [memory.address + offset for offset in offsets])
            for x, source, raw, offsets in zip(
                inputs, sources, tiling.raw, tiling.inputs, strict=True
            )
        ]
        outputs = [memory.address + offset for offset in tiling.outputs]
        pieces = _pieces(call, operands, outputs, indices)
        with Percentage(f"{call.op.name}, {call.output_size:,} bytes ") as percentage:
            done = 0
            for index, data in results(driver, pieces, overlapped=tiling.overlapped):
                if call.summed:
                    part = out[(*index[:-2], ...)]
                    part += _sums(data, part.shape)
                else:
                    part = out[index]
                    store(data, part, call.result_strides(part.shape))
                done += data.size
                if progress_is_wanted():
                    percentage(done / (parts * call.output_size))
    finally:
        memory.close()
        driver.collect()


def _most_bytes(driver: Driver, call: Call) -> int:
    """Return the most bytes of a tile in one direction.

    On a line large tiles leave the line idle at both ends, small ones between exchanges.
    """
    if driver.link.remote:
        best = max(_SMALLEST_TILE, isqrt(call.line_bytes * _EXCHANGE_BYTES // 2))
        return best if call.line_bytes > 4 * best else call.line_bytes
    return _SHOWN_TILE if progress_is_wanted() else call.line_bytes


@dataclass(frozen=True, slots=True)
class _Tiling:
    """The size of tiles, and the device's memory for them. Offsets in bytes."""

    tile: tuple[int, ...]
    """Elements of a tile along each axis."""
    overlapped: bool
    """Whether a tile is sent while another is computed, which takes two buffers."""
    raw: tuple[bool, ...]
    """Whether each input is sent with its gaps."""
    inputs: tuple[tuple[int, ...], ...]
    """Offsets of the buffers of each input."""
    outputs: tuple[int, ...]
    """Offsets of the buffers of results."""
    size: int


@lru_cache(maxsize=512)
def _tiling(call: Call, sources: tuple[Source, ...], room: int, most: int) -> _Tiling:
    """Return tiles with which ``call`` on ``sources`` fits in ``room`` bytes of device memory.

    A tile has at most ``most`` bytes in one direction. Raises ``OutOfDeviceMemory``.
    """
    shape = call.shape

    def sizes(tile: tuple[int, ...]) -> list[tuple[int, bool]]:
        """Return the bytes of each input's tile and the result's, and whether tiles differ."""
        cut = [axis for axis, count in enumerate(tile) if count < shape[axis]]
        pieces = [
            (round_up(Layout.of(source, tile).size), any(source.strides[axis] for axis in cut))
            for source in sources
        ]
        return [*pieces, (round_up(call.result_bytes(tile)), bool(cut))]

    def line_bytes(tile: tuple[int, ...]) -> int:
        """Return the bytes of a tile in the busier direction."""
        *inputs, (result, _) = sizes(tile)
        return max(sum(size for size, differs in inputs if differs or tile == shape), result)

    def fits(tile: tuple[int, ...], copies: int) -> bool:
        needed = sum(size * (copies if differs else 1) for size, differs in sizes(tile))
        return line_bytes(tile) <= most and needed <= room and call.adds(tile[-1:])

    copies = 2
    tile = tile_shape(shape, call.axes, lambda tile: fits(tile, 2))
    if tile is None:
        copies = 1
        tile = tile_shape(shape, call.axes, lambda tile: fits(tile, 1))
    if tile is None:
        least = sum(size for size, _ in sizes((1,) * len(shape)))
        raise OutOfDeviceMemory(
            f"device memory: {least} bytes for one element do not fit; the largest hole has"
            f" {room} bytes"
        )
    end = 0
    areas = []
    for size, differs in sizes(tile):
        start, end = end, end + size * (copies if differs else 1)
        areas.append(tuple(range(start, end, size)))
    raw = tuple([Layout.of(source, tile).raw for source in sources])
    return _Tiling(tile, copies == 2, raw, tuple(areas[:-1]), areas[-1], end)


class _Operand:
    """An input, and the tiles of it that the device's memory holds."""

    def __init__(
        self, array: AnyArray, source: Source, raw: bool, addresses: Sequence[int]
    ) -> None:
        self._array = array
        self._source = source
        self._raw = raw
        self._addresses = addresses
        self._held: list[tuple[Layout, int] | None] = [None] * len(addresses)
        self._last = 0

    def tile(self, index: Index, writes: list[Write]) -> tuple[tuple[int, ...], View]:
        """Append the writes of a tile to ``writes``; return its shape and its view.

        The buffer of the tile before is not written.
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
        return part.shape, View(start, layout.strides, self._source.itemsize)


def _pieces(
    call: Call, operands: Sequence[_Operand], outputs: Sequence[int], indices: Iterable[Index]
) -> Iterator[Piece[Index]]:
    """Yield the work on each tile; their results take turns at the addresses ``outputs``."""
    for index, result in zip(indices, cycle(outputs), strict=False):
        writes: list[Write] = []
        tiles = [operand.tile(index, writes) for operand in operands]
        shape = tiles[0][0]
        commands = call.lower(shape, [view for _, view in tiles], result)
        yield Piece(index, writes, commands, (result, call.result_bytes(shape)))
