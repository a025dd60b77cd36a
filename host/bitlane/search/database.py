"""The rows of a database, on the device and on the host."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..driver.driver import Driver, Storage
from ..errors import OutOfDeviceMemory

Rows = NDArray[np.uint8]

_RESERVE = 4
"""1/4 of the device's memory stays free for queries, results and other arrays."""

_MOST = 1 << 16
"""Most rows that are read to the host at once."""

_GROWTH = 4
"""A new block holds at least 1/4 of the present rows, so that blocks stay few."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """``count`` rows from ``first`` on: at ``address`` on the device, or the host's ``content``."""

    first: int
    count: int
    address: int = 0
    content: Rows | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    """Device memory for ``capacity`` rows, of which the first ``count`` are stored."""

    storage: Storage
    capacity: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class _Stored:
    """The rows of a database: those in ``blocks``, then those in the first ``chunks`` of the host.

    One assignment replaces it, so that rows are added all or not at all.
    """

    blocks: tuple[_Block, ...] = ()
    chunks: int = 0


class Database:
    """Rows of ``row_bytes`` bytes, numbered in the order in which they were added.

    On the device each row takes ``stride`` bytes, the last of them zeros.
    """

    def __init__(self, driver: Driver, row_bytes: int, stride: int) -> None:
        self._driver = driver
        self.row_bytes = row_bytes
        self.stride = stride
        self._stored = _Stored()
        self._chunks: list[Rows] = []

    @property
    def count(self) -> int:
        """Rows."""
        return _count(self._stored.blocks) + sum(map(len, self._host_chunks()))

    def _host_chunks(self) -> Iterator[Rows]:
        return islice(self._chunks, self._stored.chunks)

    def add(self, rows: Rows, *, copied: bool) -> None:
        """Append ``rows`` (n, row_bytes). ``copied``: copy the rows that stay on the host.

        Memory-mapped files (``np.memmap``) are not copied. Raises ``LinkError``; after any error
        or Ctrl-C no row has been added.
        """
        before = self._stored
        blocks, done = list(before.blocks), 0
        # Numbers ascend from block to block: once rows are on the host, all later ones are.
        while done < len(rows) and not before.chunks:
            block = self._take_block(blocks, len(rows) - done)
            if block is None:
                break
            part = rows[done : done + block.capacity - block.count]
            place = block.storage.address + block.count * self.stride
            self._driver.write(place, self.padded(part))
            blocks.append(replace(block, count=block.count + len(part)))
            done += len(part)
        # An interrupted call may have left a chunk behind those that count.
        del self._chunks[before.chunks :]
        if done < len(rows):
            rest = rows[done:]
            self._chunks.append(rest.copy() if copied and not isinstance(rest, np.memmap) else rest)
        self._stored = _Stored(tuple(blocks), len(self._chunks))

    def _take_block(self, blocks: list[_Block], count: int) -> _Block | None:
        """Return a block with room, of ``blocks`` or new, or None without memory for a row.

        The last of ``blocks`` is removed from them if it is the one.
        """
        if blocks and blocks[-1].count < blocks[-1].capacity:
            return blocks.pop()
        reserve = self._driver.geometry.memory_bytes // _RESERVE
        free = self._driver.allocator.free_bytes - reserve
        most = min(free, self._driver.allocator.largest()) // self.stride
        capacity = min(max(count, _count(blocks) // _GROWTH), most)
        if capacity < 1:
            return None
        try:
            return _Block(Storage(self._driver, capacity * self.stride), capacity)
        except OutOfDeviceMemory:
            return None

    def clear(self) -> None:
        """Remove all rows, and free their memory."""
        before, self._stored = self._stored, _Stored()
        self._chunks.clear()
        for block in before.blocks:
            block.storage.close()

    @property
    def streamed(self) -> bool:
        """Whether rows are on the host: each search sends them."""
        return self._stored.chunks > 0

    def tiles(self, most: int) -> Iterator[RowRange]:
        """Iterate over all rows in order; over the host's at most ``most`` at a time."""
        first = 0
        for block in self._stored.blocks:
            yield RowRange(first, block.count, block.storage.address)
            first += block.count
        for rows in self._host_chunks():
            for start in range(0, len(rows), most):
                content = rows[start : start + most]
                yield RowRange(first, len(content), content=content)
                first += len(content)

    def rows(self, first: int, count: int) -> Rows:
        """Return a copy of ``count`` rows from ``first`` on, in the host's memory."""
        result = np.empty((count, self.row_bytes), np.uint8)
        for chosen in self.tiles(_MOST):
            low = max(first, chosen.first)
            high = min(first + count, chosen.first + chosen.count)
            for start in range(low, high, _MOST):
                stop = min(start + _MOST, high)
                part = self._fetch(chosen, start - chosen.first, stop - start)
                result[start - first : stop - first] = part
        return result

    def _fetch(self, chosen: RowRange, first: int, count: int) -> Rows:
        if chosen.content is not None:
            return chosen.content[first : first + count]
        address = chosen.address + first * self.stride
        data = self._driver.read(address, count * self.stride)
        return data.reshape(count, self.stride)[:, : self.row_bytes]

    def padded(self, rows: Rows) -> Rows:
        """Return ``rows`` as the device stores them, as one array of bytes."""
        if self.stride == self.row_bytes:
            return np.ascontiguousarray(rows).reshape(-1)
        result = np.zeros((len(rows), self.stride), np.uint8)
        result[:, : self.row_bytes] = rows
        return result.reshape(-1)


def _count(blocks: Iterable[_Block]) -> int:
    return sum(block.count for block in blocks)
