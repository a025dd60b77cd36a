"""Stores the rows of an index in blocks: on the device as far as its memory goes, then on the host.

Methods take blocks and return others, and leave those that they take as they were: a call that
fails or is interrupted has changed nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from bitlane_rtl.abi import Op

from ..driver import Command, Driver, Storage
from ..errors import OutOfDeviceMemory
from ..lowering import MovedBlock, Moves, group_moves, lower_moves
from .blocks import Block, Blocks, Numbers, Rows, count_rows, split_rows

_RESERVE = 4
"""1/4 of the device's memory stays free for queries, results and other arrays."""

_MOST = 1 << 22
"""Most bytes of rows that are read to the host at once."""

_GROWTH = 4
"""A new block holds at least 1/4 of the present rows, so that blocks stay few."""

_SPARSE = 2
"""Rows are moved together once their blocks have more than twice as many slots."""

_BLOCKS = 32
"""Most blocks on the device, before small ones are joined."""

_JOINED = 256
"""Bytes of other rows between two that are read with them: about what a read of their own costs."""


class Database:
    """Stores rows of ``row_bytes`` bytes. On the device each takes ``stride``, the last ones 0."""

    def __init__(self, driver: Driver, row_bytes: int, stride: int) -> None:
        self.driver = driver
        self.row_bytes = row_bytes
        self.stride = stride

    def add(
        self, blocks: Blocks, rows: Rows, *, copied: bool, chosen: Numbers | None = None
    ) -> Blocks:
        """Return ``blocks`` with ``rows`` (n, row_bytes) behind the others.

        ``copied``: copy the rows that stay on the host. Memory-mapped files (``np.memmap``) are
        not copied, nor is an array of which rows are ``chosen``, by ascending numbers. Raises
        ``LinkError``.
        """
        result, done = list(blocks), 0
        count = len(rows) if chosen is None else len(chosen)
        # The host copies chosen rows: not all at once.
        most = count if chosen is None else max(1, _MOST // self.stride)
        while done < count:
            block = self._take_block(result, count - done)
            if block is None:
                break
            end = done + min(most, count - done, block.capacity - block.used)
            part = rows[done:end] if chosen is None else rows[chosen[done:end]]
            self.driver.write(block.address + block.used * self.stride, self.padded(part))
            result.append(block.extended(len(part)))
            done = end
        if done < count and chosen is not None:
            result.append(replace(Block.of_host(rows), kept=chosen[done:]))
        elif done < count:
            rest = rows[done:]
            kept = rest.copy() if copied and not isinstance(rest, np.memmap) else rest
            result.append(Block.of_host(kept))
        return tuple(result)

    def _take_block(self, blocks: list[Block], count: int) -> Block | None:
        """Return a block with room, of ``blocks`` or new, or None without memory for a row.

        The last of ``blocks`` is removed from them if it is the one.
        """
        if blocks and blocks[-1].on_device and blocks[-1].used < blocks[-1].capacity:
            return blocks.pop()
        reserve = self.driver.geometry.memory_bytes // _RESERVE
        free = self.driver.allocator.free_bytes - reserve
        most = min(free, self.driver.allocator.largest()) // self.stride
        present = [block for block in blocks if block.on_device]
        rows = count_rows(present)
        spare = _SPARSE * (rows + count) - sum(block.capacity for block in present)
        capacity = min(max(count, min(rows // _GROWTH, spare)), most)
        return self._new_block(capacity) if capacity > 0 else None

    @property
    def gathers(self) -> bool:
        """Whether the device can copy rows."""
        return Op.COPY in self.driver.geometry.ops

    def _new_block(self, capacity: int) -> Block | None:
        """Return an empty block on the device, or None without memory for it."""
        try:
            return Block(Storage(self.driver, capacity * self.stride), capacity, 0)
        except OutOfDeviceMemory:
            return None

    def is_sparse(self, blocks: Blocks) -> bool:
        """Return whether ``blocks`` take over twice the memory that their rows need."""
        for on_device in (True, False):
            some = [x for x in blocks if x.on_device is on_device and not x.in_file]
            if sum(block.capacity for block in some) > _SPARSE * count_rows(some):
                return True
        return False

    def is_scattered(self, blocks: Blocks) -> bool:
        """Return whether there are too many ``blocks``, each of which a search compares alone."""
        return sum(not block.in_file for block in blocks) > _BLOCKS

    def compact(self, blocks: Blocks) -> Blocks:
        """Return fewer blocks of the same rows without gaps, as far as there is memory for both.

        Moves rows within the device and within the host's memory. Raises ``LinkError``.
        """
        first = self._first_to_move(blocks)
        result = list(blocks[:first])
        for _, some in groupby(blocks[first:], lambda block: (block.on_device, block.in_file)):
            group = tuple(some)
            alone = len(group) == 1 and not group[0].has_gaps
            result += group if alone or group[0].in_file else self._joined(group)
        return tuple(result)

    def _joined(self, group: Blocks) -> Blocks:
        """Return one block with the rows of ``group``, or those without memory for it."""
        rows = count_rows(group)
        if not group[0].on_device:
            return (Block.of_host(np.concatenate([x.content[x.slots()] for x in group])),)
        block = self._new_block(rows) if self.gathers else None
        if block is None:
            return group
        self.gather(map(self.addresses, group), block.address)
        return (block.extended(rows),)

    @staticmethod
    def _first_to_move(blocks: Blocks) -> int:
        """Return the first block to move.

        Blocks before it have no gaps, and more rows than all that follow them: they stay few.
        """
        first = len(blocks)
        rows = 0
        for number in reversed(range(len(blocks))):
            block = blocks[number]
            if block.has_gaps or block.count <= rows:
                first = number
            rows += block.count
        return first

    def to_host(self, blocks: Blocks) -> Blocks:
        """Return blocks of the same rows, those with gaps copied to the host's memory.

        Raises ``LinkError``.
        """
        return tuple(
            Block.of_host(self.read((block,), np.arange(block.count)))
            if block.on_device and block.has_gaps
            else block
            for block in blocks
        )

    def to_device(self, blocks: Blocks) -> Blocks:
        """Return blocks of the same rows, those on the host sent to the device if it has room.

        Raises ``LinkError``.
        """
        result: Blocks = ()
        for block in blocks:
            if block.on_device or block.in_file:
                result = (*result, block)
            else:
                result = self.add(result, block.content[block.slots()], copied=False)
        return result

    def addresses(self, block: Block) -> Numbers:
        """Return the addresses of all rows of ``block``, which is on the device."""
        return block.address + block.slots() * self.stride

    def gather(self, addresses: Iterable[Numbers], target: int) -> None:
        """Copy rows to memory at ``target``, one behind the other.

        ``addresses``: arrays, each of rows in one block.
        """
        self.driver.run(self.copies(addresses, target))

    def copies(self, addresses: Iterable[Numbers], target: int) -> Iterator[Command]:
        """Return the commands of `gather`."""
        row = MovedBlock((self.stride,), (1,), (1,), 1)
        geometry = self.driver.geometry
        for some in addresses:
            # No command reads across the end of a block.
            moves = Moves(row, some, target + np.arange(len(some)) * self.stride)
            groups = group_moves(moves) or ()
            yield from lower_moves(groups, row, geometry.abilities, geometry.memory)
            target += len(some) * self.stride

    def read(self, blocks: Blocks, rows: Numbers) -> Rows:
        """Return a copy of ``rows``, ascending numbers, in the host's memory."""
        result = np.empty((len(rows), self.row_bytes), np.uint8)
        done = 0
        for block, _, some in split_rows(blocks, rows):
            slots = block.slots(some)
            target = result[done : done + len(slots)]
            if block.on_device:
                self._fetch(block.address, slots, target)
            else:
                target[:] = block.content[slots]
            done += len(slots)
        return result

    def _fetch(self, address: int, slots: Numbers, target: Rows) -> None:
        """Read the rows in ``slots``, from ``address`` on, to ``target``."""
        for spans in self._reads(slots):
            firsts = [int(slots[low]) for low, _ in spans]
            lasts = [int(slots[high - 1]) for _, high in spans]
            reads = [
                (address + first * self.stride, (last - first + 1) * self.stride)
                for first, last in zip(firsts, lasts, strict=True)
            ]
            data = self.driver.exchange((), reads)
            for (low, high), first, read in zip(spans, firsts, data, strict=True):
                rows = read.reshape(-1, self.stride)[slots[low:high] - first]
                target[low:high] = rows[:, : self.row_bytes]

    def _reads(self, slots: Numbers) -> Iterator[list[tuple[int, int]]]:
        """Yield the spans of ``slots`` that are read at once: the first, and the one behind it."""
        far = np.diff(slots) * self.stride > max(self.stride, _JOINED)
        ends = [*(np.flatnonzero(far) + 1).tolist(), len(slots)]
        most = max(1, _MOST // self.stride)
        spans: list[tuple[int, int]] = []
        low = room = 0
        for end in ends:
            while low < end:
                high = int(np.searchsorted(slots[:end], slots[low] + most))
                size = int(slots[high - 1] - slots[low]) + 1
                if spans and size > room:
                    yield spans
                    spans = []
                room = (room if spans else most) - size
                spans.append((low, high))
                low = high
        if spans:
            yield spans

    def padded(self, rows: Rows) -> Rows:
        """Return ``rows`` as the device stores them, as one array of bytes."""
        if self.stride == self.row_bytes:
            return np.ascontiguousarray(rows).reshape(-1)
        result = np.zeros((len(rows), self.stride), np.uint8)
        result[:, : self.row_bytes] = rows
        return result.reshape(-1)
