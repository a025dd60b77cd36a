"""Every distance between queries and rows, by sums over rows: on every device.

The device counts and adds up; a circuit without sums counts, and the host adds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Mode

from ..driver.allocator import round_up
from ..driver.commands import Command
from ..driver.driver import Driver
from ..driver.geometry import Geometry
from ..driver.queue import Write
from ..errors import OutOfDeviceMemory
from ..lowering.lower import lower
from ..lowering.strided import Streams, View
from ..streaming.pipeline import Piece, results
from .database import Database, Rows, Stretch
from .results import Found, Metric

_SHARE = 4
"""One in so many bytes of the free memory is for the queries, and for each of two tiles."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The queries and the rows of a piece: the first of each, and how many."""

    query: int
    queries: int
    row: int
    rows: int


def offer_distances(
    driver: Driver, database: Database, queries: Rows, metric: Metric, found: Found
) -> None:
    """Show ``found`` the distances of ``queries`` (n, row_bytes) to all rows of ``database``.

    Raises what ``Device`` does.
    """
    counts = _Counts(driver.geometry, database.row_bytes, metric)
    with driver.lock:
        space = _Space(driver.allocator.largest(), len(queries), database, counts.size)
        memory = driver.allocate(space.size)
        try:
            for first in range(0, len(queries), space.queries):
                batch = queries[first : first + space.queries]
                driver.write(memory.address, database.padded(batch))
                pieces = _Pieces(database, counts, space, memory.address)
                for part, data in results(driver, pieces.of(len(batch)), overlapped=True):
                    sums = counts.sums(data, part.queries, part.rows)
                    found.offer(first + part.query, metric.of(sums), part.row)
        finally:
            driver.free(memory)


class _Counts:
    """How a circuit gives the sums of a metric: as such, or as counts to be added up."""

    def __init__(self, geometry: Geometry, row_bytes: int, metric: Metric) -> None:
        self._geometry = geometry
        self._metric = metric
        self._summed = Mode.SUM in geometry.modes
        lanes = [lane.bytes for lane in geometry.lanes if row_bytes % lane.bytes == 0]
        self._element = 1 if self._summed else max(lanes, default=1)
        self._elements = row_bytes // self._element
        self._each = 4 if self._summed else self._elements
        self.size = self._each * len(metric.ops)
        """Bytes of the results for one query and one row."""

    def commands(self, part: _Part, rows: View, queries: View, y: int) -> Iterator[Command]:
        """Counts of the rows of ``part`` with its queries, rows of bytes each, to ``y``."""
        size = self._element
        shape = (part.queries, part.rows, self._elements)
        a = View(rows.address, (0, rows.strides[0], size), size)
        b = View(queries.address, (queries.strides[0], 0, size), size)
        for op in self._metric.ops:
            target = View(y, (self._each * part.rows, self._each, 1), 1)
            if self._summed:
                target = View(y, (self._each * part.rows, self._each), self._each)
            yield from lower(op, shape, Streams(a, b, target), self._geometry)
            y += part.queries * part.rows * self._each

    def sums(self, data: NDArray[np.uint8], queries: int, rows: int) -> list[NDArray[np.uint32]]:
        """What the results of `commands` say: sums (queries, rows), one array an operation."""
        shape = (len(self._metric.ops), queries, rows)
        if self._summed:
            return list(data.view("<u4").reshape(shape))
        return list(data.reshape(*shape, self._elements).sum(axis=-1, dtype=np.uint32))


class _Space:
    """The device's memory during a search: queries, two tiles of the host's rows, two results.

    Offsets and ``size`` in bytes. ``pair``: bytes of the results for one query and one row.
    """

    def __init__(self, room: int, queries: int, database: Database, pair: int) -> None:
        self.pair = pair
        share = room // _SHARE
        tiles = 2 if database.streamed else 0
        least = (1 + tiles) * round_up(database.stride) + 2 * round_up(pair)
        if room < least:
            raise OutOfDeviceMemory(
                f"search: {room} bytes of free device memory; expected {least} for a query, rows"
                " and results"
            )
        # Long rows and results leave none, where each takes what it may.
        while not self._fits(room, share, queries, database):
            share //= 2

    def _fits(self, room: int, share: int, queries: int, database: Database) -> bool:
        """Lay out a ``share`` of bytes for queries and each tile, and results behind them."""
        stride = database.stride
        self.queries = min(queries, max(1, share // stride))
        self.tile_rows = max(1, share // stride) if database.streamed else 0
        tile = round_up(self.tile_rows * stride)
        start = round_up(self.queries * stride)
        self.tiles = (start, start + tile)
        start += 2 * tile
        pairs = (room - start) // (2 * self.pair)
        self.pairs = min(pairs, self.queries * max(1, database.count))
        """Of a query and a row each, whose results fit at a time."""
        half = round_up(self.pairs * self.pair)
        while self.pairs > 0 and start + 2 * half > room:
            self.pairs -= 1
            half = round_up(self.pairs * self.pair)
        self.results = (start, start + half)
        self.size = start + 2 * half
        return self.pairs > 0


class _Pieces:
    """What is to be done for a batch of queries that is at ``address``."""

    def __init__(self, database: Database, counts: _Counts, space: _Space, address: int) -> None:
        self._database = database
        self._counts = counts
        self._space = space
        self._address = address
        self._tiles = [address + offset for offset in space.tiles]
        self._results = [address + offset for offset in space.results]

    def of(self, queries: int) -> Iterator[Piece[_Part]]:
        """Pieces of as many pairs as there is room for, a tile after the other."""
        for tile in self._database.tiles(max(1, self._space.tile_rows)):
            address, writes = self._sent(tile)
            rows = min(tile.count, self._space.pairs)
            some = min(queries, max(1, self._space.pairs // rows))
            corners = (
                (query, row)
                for row in range(0, tile.count, rows)
                for query in range(0, queries, some)
            )
            for query, row in corners:
                part = _Part(
                    query, min(some, queries - query), tile.first + row, min(rows, tile.count - row)
                )
                yield self._piece(part, address + row * self._database.stride, writes)
                writes = []

    def _sent(self, tile: Stretch) -> tuple[int, list[Write]]:
        """Where the rows of ``tile`` are once something has been written."""
        if tile.content is None:
            return tile.address, []
        self._tiles.reverse()
        return self._tiles[0], [(self._tiles[0], self._database.padded(tile.content))]

    def _piece(self, part: _Part, rows: int, writes: list[Write]) -> Piece[_Part]:
        self._results.reverse()
        result, stride = self._results[0], self._database.stride
        queries = View(self._address + part.query * stride, (stride, 1), 1)
        commands = self._counts.commands(part, View(rows, (stride, 1), 1), queries, result)
        size = part.queries * part.rows * self._space.pair
        return Piece(part, writes, commands, (result, size))
