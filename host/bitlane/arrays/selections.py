"""Selected elements of values: gathered, and written to, by the device or by the host.

`bitlane.compiler.prices` has the rule. The host copies elements, and computes on none of them.
"""

from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..compiler.nodes import Selected
from ..compiler.prices import prices_of
from ..compiler.selections import SelectedBlocks, commands_within
from ..driver import Driver
from ..errors import ShapeError
from ..lowering import ByteOffsets, MovedBlock, Moves, group_moves, lower_moves, packed_strides
from .elementwise import (
    Operand,
    add_axes,
    as_value,
    cast_on_host,
    copy_value,
    drop_extra_axes,
    to_device,
    without_extra_axes,
)
from .indexing import Selection, is_whole_mask, offsets_of, select
from .masks import MOST_PASSES, choose
from .strided import Strided
from .transfers import as_bytes, download, reserve
from .truth import is_true
from .value import Value, changing, overwrite

_MASK_OPS: Final = {Op.XOR, Op.AND, Op.COPY, Op.SHIFT_LEFT, Op.SHIFT_RIGHT}


def gather(source: Value, selection: Selection) -> Value:
    """Return the elements ``selection`` of ``source``, pending; computes the source if it is.

    Raises what `compute` does.
    """
    source.device.expect_open()
    shape, rest = selection.shape, selection.rest
    if 0 in shape:
        return reserve(source.device, shape, source.dtype)
    packed = packed_strides(rest.shape, itemsize=rest.itemsize)
    block = MovedBlock(rest.shape, rest.strides, packed, rest.itemsize)
    layout = shape, selection.strides, rest.itemsize
    node = Selected(source.stored, selection.offsets, block, *layout)
    return Value(source.device, source.dtype, node, (source,))


def assign(target: Value, key: Any, operand: Operand) -> None:
    """Write ``operand`` over the elements of ``target`` that ``key`` selects.

    ``key`` may be the value of a mask. The operand is cast to the type of ``target``, broadcasts,
    and is read before anything is written. If an element is selected several times, the last value
    stays. Raises as `select` and `to_device` do, ``ShapeError`` for a shape that does not
    broadcast, or where elements repeat, and what `compute` does.
    """
    if isinstance(operand, Value):
        work = _Assignment(target, to_device(target.device, "value", operand, target.dtype))
    else:
        work = _Assignment(target, cast_on_host("value", operand, target.dtype))
    shape = getattr(operand, "shape", ())
    if len(shape) > 1 and is_whole_mask(target.strided, key):
        raise ShapeError(f"value: shape {shape}; expected one axis or none for this mask")
    target.expect_writable()
    target.device.expect_open()
    masked = work.price_of_mask(key) if work.takes_mask(key) else inf
    if isinstance(key, Value):
        if masked < work.price_on_host(target.strided.span, target.strided.size, key):
            work.write_by_mask(key)
            return
        key = download(key)
    selection = select(target.strided, key)
    if not work.packed_for(selection).size:
        return
    blocks = _blocks_of(target, selection)
    price = min(masked, work.price_on_host(blocks.span, blocks.size))
    if work.moves_within(price, selection, blocks):
        work.write_by_moves(selection)
    elif masked <= price:
        work.write_by_mask(key)
    else:
        work.write_on_host(selection, blocks)


def _blocks_of(target: Value, selection: Selection) -> SelectedBlocks:
    """Return the selected blocks of ``target``, whose axes of indices are one."""
    rest = selection.rest
    base = target.stored.view.address
    return SelectedBlocks(base, selection.offsets, rest.shape, rest.strides, rest.itemsize)


@dataclass(frozen=True, slots=True)
class _Assignment:
    """``source``, of the type of ``target``, to be written over elements of it."""

    target: Value
    source: Value | AnyArray

    @property
    def _driver(self) -> Driver:
        return self.target.device.driver

    def takes_mask(self, key: Any) -> bool:
        """Return whether ``key`` is a mask by which the device can choose between two elements."""
        if not isinstance(key, Value | np.ndarray) or key.dtype.kind != "b":
            return False
        shape, rank = self.target.shape, len(key.shape)
        geometry = self._driver.geometry
        able = geometry.ops >= _MASK_OPS and len(geometry.lanes) == 4
        one = len(self._shape_of(len(shape) - rank)) <= len(shape) - rank
        return able and one and rank > 0 and key.shape == shape[:rank]

    def price_of_mask(self, mask: Value | AnyArray) -> float:
        """Return the price of passes over all elements of the target."""
        prices, geometry = prices_of(self._driver.link), self._driver.geometry
        beats = MOST_PASSES * self.target.strided.nbytes / geometry.abilities.data_bytes
        sent = [mask.nbytes] if isinstance(mask, np.ndarray) else []
        return MOST_PASSES * prices.command + beats * prices.beat + prices.of_host(sent, 0)

    def price_on_host(self, span: range, elements: int, mask: Value | None = None) -> float:
        """Return the price of fetching ``span`` and ``mask``, and of sending ``span`` back.

        Less the price of the source, if it is on the host: moves would take it to the device.
        """
        prices = prices_of(self._driver.link)
        moved = [len(span), len(span)]
        if mask is not None:
            moved.append(mask.strided.nbytes)
        if isinstance(self.source, Value):
            moved.append(self.source.strided.nbytes)
            return prices.of_host(moved, elements)
        return prices.of_host(moved, elements) - prices.of_host([self.source.nbytes], 0)

    def packed_for(self, selection: Selection) -> Strided:
        """Return the source, as if it were packed, repeated to the selection. ``ShapeError``."""
        shape = self._shape_of(len(selection.shape))
        return Strided.packed(shape, self.target.dtype.itemsize).broadcast(selection.shape)

    def moves_within(self, price: float, selection: Selection, blocks: SelectedBlocks) -> bool:
        """Return whether moves of the source cost no more than ``price``."""
        given, link = self.packed_for(selection), self._driver.link
        abilities = self._driver.geometry.abilities
        written = blocks.size * blocks.itemsize
        if prices_of(link).of_moves(blocks.offsets.count, written, abilities) > price:
            return False
        moves = _moves_of(selection, given, 0, blocks.starts, slice(None))
        if group_moves(moves, prices_of(link).most_commands(price)) is None:
            return False
        # Sorting takes longer than all the rest.
        moves = _moves_of(selection, given, 0, *_last_of_each(blocks.starts))
        return commands_within(price, moves, abilities, link) is not None

    def write_by_moves(self, selection: Selection) -> None:
        """Copy the elements on the device, each to its address."""
        target = self.target
        source = self._on_device(len(selection.shape))
        if source.pending or source.stored.storage is target.stored.storage:
            source = copy_value(source)
        given, first = source.strided.broadcast(selection.shape), source.stored.view.address
        starts, last = _last_of_each(_blocks_of(target, selection).starts)
        moves = _moves_of(selection, given, first, starts, last)
        geometry = self._driver.geometry
        groups = group_moves(moves)
        assert groups is not None, "any number is accepted"
        with changing(target, source):
            commands = lower_moves(groups, moves.block, geometry.abilities, geometry.memory)
            self._driver.run(commands)

    def write_by_mask(self, mask: Value | AnyArray) -> None:
        """Write all elements, the source where the mask is true, in passes on the device."""
        target, rank = self.target, len(mask.shape)
        chosen = is_true(as_value(target.device, "index", mask))
        chosen = add_axes(chosen, tuple(range(rank, len(target.shape))))
        source = self._on_device(len(target.shape) - rank)
        overwrite(target, choose(chosen, source, target), fresh=True)

    def write_on_host(self, selection: Selection, blocks: SelectedBlocks) -> None:
        """Fetch the bytes of the target, write over the elements, and send the bytes back."""
        array = download(self.source) if isinstance(self.source, Value) else self.source
        array = array.reshape(self._shape_of(len(selection.shape)))
        elements = as_bytes(array).view(f"<u{array.itemsize}").reshape(array.shape)
        if array.ndim:
            inside = range(selection.position, selection.position + len(selection.index_shape))
            whole = np.broadcast_to(elements, selection.shape)
            ordered = np.moveaxis(whole, inside, range(len(inside)))
            elements = ordered.reshape(-1, *blocks.shape)
        span, driver = blocks.span, self._driver
        with changing(self.target):
            data = driver.read(span.start, len(span))
            data = data if data.flags.writeable else data.copy()
            blocks.put(data, elements)
            driver.write(span.start, data)

    def _on_device(self, rank: int) -> Value:
        value = to_device(self.target.device, "value", self.source, self.target.dtype)
        return drop_extra_axes(value, rank)

    def _shape_of(self, rank: int) -> tuple[int, ...]:
        """Return the shape of the source without first axes of one element beyond ``rank``."""
        return without_extra_axes(self.source, rank)


def _moves_of(
    selection: Selection,
    given: Strided,
    first: int,
    starts: ByteOffsets,
    chosen: ByteOffsets | slice,
) -> Moves:
    """Return the moves of ``given``, at the address ``first``, to blocks of a target at ``starts``.

    ``chosen``: the numbers of the moves, each of which has one of ``starts``.
    """
    inner, outer = selection.split(given)
    block = MovedBlock(outer.shape, outer.strides, selection.rest.strides, outer.itemsize)
    return Moves(block, first + offsets_of(inner)[chosen], starts)


def _last_of_each(starts: ByteOffsets) -> tuple[ByteOffsets, ByteOffsets | slice]:
    """Return each address once, in the order of their last positions, and these positions."""
    steps = np.diff(starts)
    if (steps > 0).all() or (steps < 0).all():
        return starts, slice(None)
    _, from_end = np.unique(starts[::-1], return_index=True)
    last = np.sort(len(starts) - 1 - from_end)
    return starts[last], last
