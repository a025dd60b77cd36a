"""One operation on arrays of the host: cut into pieces, sent, executed and brought back.

While the device computes a piece, the next one goes up and the result of the one before comes
down. Moves bytes; never computes on them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from ..driver.allocator import OutOfDeviceMemory
from ..driver.driver import Driver, Pipeline
from ..driver.ring import Write
from .aliasing import untangle
from .lowering import View, lower
from .operands import AnyArray, address_of, bits, packed_strides
from .tiles import Index, tile_shape, tiles
from .transfer import Layout, Source, rounded, source_of, store

__all__ = ["Target", "compute"]

_EXCHANGE_BYTES: Final = 128
"""What a line could carry in the time that an exchange takes beside its data, about."""

_SMALLEST_PIECE: Final = 1024
"""Bytes in one direction below which nothing is cut for the line's sake."""

_WHOLE: Final[Index] = (...,)


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
    """``op`` of ``inputs``, arrays of unsigned integers of the target's shape, as an array.

    Shift counts saturate. Takes no more memory of the host than the result and what is on its way,
    which is no more than the device has, unless operands must be copied: see ``aliasing``.

    Raises what ``Device`` does.
    """
    with driver.pipeline() as pipeline:
        out = target.out
        plan = _plan_of(driver, inputs, target)
        indices: Iterable[Index] = (_WHOLE,)
        stored = None if out is None else bits(np.asarray(out))
        if plan.box != target.shape:
            if out is None or stored is None:
                out = _array(target, np.empty(_bytes(target), np.uint8))
                stored = bits(out)
            inputs, stored, backwards = untangle(inputs, stored)
            plan = _plan_of(driver, inputs, target)
            indices = tiles(target.shape, plan.box, target.order, backwards=backwards)
        buffer = driver.allocate(plan.size)
        try:
            job = _Job(driver, pipeline, plan, buffer.address, op, inputs, target, arithmetic)
            for index, data in job.results(indices):
                if stored is None:
                    out = _array(target, data)
                else:
                    store(data, stored[index], target.order)
        finally:
            driver.free(buffer)
    assert out is not None
    return out


def _bytes(target: Target) -> int:
    size = target.dtype.itemsize
    for count in target.shape:
        size *= count
    return size


def _array(target: Target, data: NDArray[np.uint8]) -> AnyArray:
    """``data`` from the device, or for it, as the result."""
    strides = packed_strides(target.shape, target.order, target.dtype.itemsize)
    if not data.flags.writeable:
        data = data.copy()
    little = np.ndarray(target.shape, target.dtype.newbyteorder("<"), data, strides=strides)
    return little.astype(target.dtype, order="K", copy=False)


@dataclass(frozen=True, slots=True)
class _Plan:
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


def _plan_of(driver: Driver, inputs: Sequence[AnyArray], target: Target) -> _Plan:
    return _plan(
        target.shape,
        target.order,
        target.dtype.itemsize,
        tuple([source_of(x) for x in inputs]),
        driver.allocator.largest(),
        driver.link.remote,
    )


@lru_cache(maxsize=512)
def _plan(
    shape: tuple[int, ...],
    order: tuple[int, ...],
    itemsize: int,
    sources: tuple[Source, ...],
    room: int,
    remote: bool,
) -> _Plan:
    """How to compute a result of ``shape`` in ``room`` bytes of the device's memory."""

    def sizes(box: tuple[int, ...]) -> list[tuple[int, bool]]:
        """Bytes of each input's piece, and of the result's; and whether pieces differ."""
        cut = [axis for axis, count in enumerate(box) if count < shape[axis]]
        result = itemsize
        for count in box:
            result *= count
        pieces = [
            (rounded(Layout.of(source, box).size), any(source[0][axis] for axis in cut))
            for source in sources
        ]
        return [*pieces, (rounded(result), bool(cut))]

    def line_bytes(box: tuple[int, ...]) -> int:
        """What has to go in the busier direction for a piece."""
        *inputs, (result, _) = sizes(box)
        return max(sum(size for size, differs in inputs if differs or box == shape), result)

    longest = line_bytes(shape)
    if remote:
        # Long pieces make the line wait at both ends, short ones between exchanges.
        best = max(_SMALLEST_PIECE, isqrt(longest * _EXCHANGE_BYTES // 2))
        if longest > 4 * best:
            longest = best

    def fits(box: tuple[int, ...], copies: int) -> bool:
        return line_bytes(box) <= longest and room >= sum(
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
    return _Plan(box, copies == 2, raw, tuple(places[:-1]), places[-1], end)


class _Operand:
    """An input, and which pieces of it the device's memory holds."""

    def __init__(self, array: AnyArray, raw: bool, addresses: Sequence[int]) -> None:
        self._array = array
        self._raw = raw
        self._addresses = addresses
        self._held: list[tuple[Layout, int] | None] = [None] * len(addresses)
        self._last = 0
        self.shape = array.shape
        """Of the latest piece."""

    def piece(self, index: Index, writes: list[Write]) -> View:
        """A piece as the device sees it once ``writes``, to which this adds, have been done.

        The buffer of the piece before is left alone.
        """
        if index is _WHOLE:
            layout = Layout.of(source_of(self._array), self.shape, self._raw)
            writes.append((self._addresses[0], layout.content(self._array)))
            return View(self._addresses[0] + layout.first, layout.strides, self._array.itemsize)
        part = self._array[index]
        self.shape = part.shape
        layout = Layout.of(source_of(part), part.shape, self._raw)
        content = (layout, address_of(part))
        if content in self._held:
            self._last = self._held.index(content)
        else:
            self._last = (self._last + 1) % len(self._addresses)
            self._held[self._last] = content
            writes.append((self._addresses[self._last], layout.content(part)))
        return View(self._addresses[self._last] + layout.first, layout.strides, part.itemsize)


class _Job:
    """An operation whose pieces are on their way."""

    def __init__(
        self,
        driver: Driver,
        pipeline: Pipeline,
        plan: _Plan,
        address: int,
        op: Op,
        inputs: Sequence[AnyArray],
        target: Target,
        arithmetic: bool,
    ) -> None:
        self._runtime = driver
        self._pipeline = pipeline
        self._overlapped = plan.overlapped
        self._op = op
        self._operands = [
            _Operand(x, raw, [address + offset for offset in offsets])
            for x, raw, offsets in zip(inputs, plan.raw, plan.inputs, strict=True)
        ]
        self._target = target
        self._outputs = [address + offset for offset in plan.outputs]
        self._arithmetic = arithmetic

    def results(self, indices: Iterable[Index]) -> Iterator[tuple[Index, NDArray[np.uint8]]]:
        """Pieces of the result, packed, with their indices."""
        if self._overlapped:
            yield from self._flow(indices)
        else:
            for index in indices:
                yield from self._flow((index,))

    def _flow(self, indices: Iterable[Index]) -> Iterator[tuple[Index, NDArray[np.uint8]]]:
        computed = running = None
        for index in chain(indices, (None, None)):
            writes: list[Write] = []
            commands = sent = None
            if index is not None:
                views = [operand.piece(index, writes) for operand in self._operands]
                shape = self._operands[0].shape
                self._outputs.reverse()
                address, itemsize = self._outputs[0], self._target.dtype.itemsize
                strides = packed_strides(shape, self._target.order, itemsize)
                commands = lower(
                    self._op,
                    shape,
                    views[0],
                    views[1] if len(views) > 1 else None,
                    View(address, strides, itemsize),
                    geometry=self._runtime.geometry,
                    saturate=True,
                    arithmetic=self._arithmetic,
                )
                size = itemsize
                for count in shape:
                    size *= count
                sent = (index, (address, size))
            reads = () if computed is None else (computed[1],)
            data = self._pipeline.step(writes, commands, reads)
            if computed is not None:
                yield computed[0], data[0]
            computed, running = running, sent
