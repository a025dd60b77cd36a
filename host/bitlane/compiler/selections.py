"""Selections of elements: by commands of the device, or by the host, as costs less.

The host copies elements, and computes on none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..driver import Abilities, Command, Driver, Storage
from ..links import Link
from ..lowering import BlockOffsets, ByteOffsets, Moves, View, group_moves, lower_moves, span
from ..lowering.offsets import in_bytes
from .nodes import Expression, Selected, Stored, reach
from .prices import prices_of


@dataclass(frozen=True, slots=True)
class SelectedBlocks:
    """Blocks of elements that lie at irregular distances, in the device's memory."""

    base: int
    """The address from which offsets count."""
    offsets: BlockOffsets
    """Those of element 0 of each block."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def size(self) -> int:
        """The number of elements of all blocks."""
        return self.offsets.count * prod(self.shape)

    @property
    def starts(self) -> ByteOffsets:
        """The address of element 0 of each block."""
        return in_bytes(self.offsets, self.base)

    @property
    def span(self) -> range:
        """The addresses from the lowest byte of the blocks to the highest."""
        first = self.base + self.offsets.first
        own = span(self.shape, self.strides, self.itemsize, first)
        return range(own.start, own.stop + self.offsets.last * self.offsets.unit)

    def take(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bytes of all blocks in sequence, taken from ``data``, the bytes of `span`."""
        table = self._table(data)
        # Faster than an index, but it copies a table that has gaps or overlaps.
        rows = self.offsets.rows
        numbers = table.flags.c_contiguous and rows.dtype != bool
        chosen = table.take(rows, 0) if numbers else table[rows]
        return np.ascontiguousarray(chosen).reshape(-1).view(np.uint8)

    def put(self, data: NDArray[np.uint8], elements: NDArray[Any]) -> None:
        """Write ``elements``, unsigned, over all blocks in ``data``, the bytes of `span`.

        ``elements`` broadcasts to (blocks, *shape); of blocks at one address, the last stays.
        """
        self._table(data)[self.offsets.rows] = elements

    def _table(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Return a view of ``data`` with the block at each multiple of the unit."""
        own = span(self.shape, self.strides, self.itemsize)
        rows, strides = self.offsets.last + 1, (self.offsets.unit, *self.strides)
        return np.ndarray((rows, *self.shape), f"<u{self.itemsize}", data, -own.start, strides)


@dataclass(frozen=True, slots=True)
class SelectionPlan:
    """The way in which ``node`` is computed: by commands, or by the host if there are none."""

    node: Selected
    blocks: SelectedBlocks
    commands: Sequence[Command]

    @property
    def text(self) -> str:
        """The work of the host, for people."""
        return (
            f"selects {self.blocks.size:,} elements: fetches {len(self.blocks.span):,} bytes,"
            f" sends {self.node.nbytes:,}"
        )


def plan_selection(
    node: Selected, target: int, abilities: Abilities, link: Link | None
) -> SelectionPlan:
    """Choose how to compute ``node``, which is to lie from the address ``target`` on.

    As few commands as the moves allow, unless the host selects at a lower price. Raises what
    `lower` does.
    """
    block = node.block
    base = node.source.view.address
    blocks = SelectedBlocks(base, node.offsets, block.shape, block.read, block.itemsize)
    price = prices_of(link).of_host((len(blocks.span), node.nbytes), blocks.size)
    commands = None
    if prices_of(link).of_moves(node.offsets.count, node.nbytes, abilities) <= price:
        size = prod(block.shape) * block.itemsize
        targets = target + size * np.arange(node.offsets.count, dtype=np.int64)
        moves = Moves(block, blocks.starts, targets)
        commands = commands_within(price, moves, abilities, link)
    return SelectionPlan(node, blocks, commands or ())


def commands_within(
    price: float, moves: Moves, abilities: Abilities, link: Link | None
) -> list[Command] | None:
    """Return the commands of ``moves``, or None if they cost more than ``price``."""
    prices = prices_of(link)
    groups = group_moves(moves, prices.most_commands(price))
    if groups is None:
        return None
    commands = list(lower_moves(groups, moves.block, abilities, None))
    return None if prices.of_commands(commands, abilities) > price else commands


def selections_of(roots: Sequence[Expression]) -> list[Selected]:
    """Return the selections that ``roots`` need, and that are not cached."""
    needed, cached = reach(roots)
    return [node for node in needed if isinstance(node, Selected) and node not in cached]


def compute_selections(driver: Driver, roots: Sequence[Expression]) -> dict[Expression, Stored]:
    """Compute the selections that ``roots`` need; they are cached while the result is held.

    Raises ``OutOfDeviceMemory``, and what ``Driver.run``, ``read`` and ``write`` raise.
    """
    made: dict[Expression, Stored] = {}
    try:
        for node in selections_of(roots):
            made[node] = _compute(driver, node)
            node.cache(made[node])
    except BaseException:
        for stored in made.values():
            stored.storage.close()
        raise
    return made


def _compute(driver: Driver, node: Selected) -> Stored:
    storage = Storage(driver, node.nbytes)
    try:
        plan = plan_selection(node, storage.address, driver.geometry.abilities, driver.link)
        if plan.commands:
            driver.run(plan.commands)
        else:
            fetched = plan.blocks.span
            data = driver.read(fetched.start, len(fetched))
            driver.write(storage.address, plan.blocks.take(data))
    except BaseException:
        # Not left to Python: an error's traceback refers to it.
        storage.close()
        raise
    return Stored(storage, View(storage.address, node.strides, node.itemsize), node.shape)
