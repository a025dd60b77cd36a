"""The nearest rows by the circuit's search array: one pass over the database for many queries.

The array finds the nearest of a piece of the database; the host joins what pieces give.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Lane, Op

from ..driver.allocator import round_up
from ..driver.commands import Command, Walk
from ..driver.driver import Driver
from ..driver.geometry import ArraySizes, Geometry
from ..driver.queue import Write
from ..errors import OutOfDeviceMemory
from ..streaming.pipeline import Piece, results
from .database import Database, Rows, Stretch
from .results import Metric, Nearest

_ENTRY = np.dtype([("distance", "<u4"), ("row", "<u4")])
"""What the array writes for a row that it has found."""

_NOTHING = 0xFFFF_FFFF
"""The row of an entry that none fills."""

_SHARE = 4
"""One in so many bytes of the free memory is for each of two tiles of the host's rows."""


def array_for(geometry: Geometry, row_bytes: int, metric: Metric) -> ArraySizes | None:
    """The circuit's search array, if it can compare such rows.

    They may be shorter than its own: zeros behind a row and a query change no Hamming distance.
    """
    array = geometry.search
    if array is None or Op.SEARCH not in geometry.ops or metric.ops != (Op.COUNT_XOR,):
        return None
    return array if row_bytes <= array.row_bytes else None


def offer_nearest(
    driver: Driver, array: ArraySizes, database: Database, queries: Rows, found: Nearest
) -> None:
    """Join to ``found`` the nearest rows of ``database``, whose rows are as long as the array's.

    More queries than the array takes are searched for one batch after another. Raises what
    ``Device`` does.
    """
    with driver.lock:
        space = _Space(driver.allocator.largest(), array, len(queries), database)
        memory = driver.allocate(space.size)
        try:
            for first in range(0, len(queries), space.queries):
                batch = queries[first : first + space.queries]
                driver.write(memory.address, database.padded(batch))
                pieces = _pieces(driver.geometry, database, space, memory.address, len(batch))
                for row, data in results(driver, pieces, overlapped=True):
                    found.merge(first, *_entries(data, len(batch), row))
        finally:
            driver.free(memory)


class _Space:
    """The device's memory during a search: queries, two tiles of the host's rows, two results.

    Offsets and ``size`` in bytes.
    """

    def __init__(self, room: int, array: ArraySizes, queries: int, database: Database) -> None:
        self.entries = array.nearest * _ENTRY.itemsize
        """Bytes of a query's result."""
        stride = array.row_bytes
        self.tile_rows = max(1, room // _SHARE // stride) if database.streamed else 0
        tile = round_up(self.tile_rows * stride)
        self.queries = min(queries, array.queries)
        while self._end(stride, tile) > room and self.queries > 1:
            self.queries = (self.queries + 1) // 2
        while self._end(stride, tile) > room and self.tile_rows > 1:
            self.tile_rows //= 2
            tile = round_up(self.tile_rows * stride)
        start = round_up(self.queries * stride)
        self.tiles = (start, start + tile)
        start += 2 * tile
        self.results = (start, start + round_up(self.queries * self.entries))
        self.size = self._end(stride, tile)
        if self.size > room:
            raise OutOfDeviceMemory(
                f"search: {room} bytes of free device memory; expected {self.size} for a query,"
                " rows and results"
            )

    def _end(self, stride: int, tile: int) -> int:
        return (
            round_up(self.queries * stride) + 2 * tile + 2 * round_up(self.queries * self.entries)
        )


def _pieces(
    geometry: Geometry, database: Database, space: _Space, address: int, queries: int
) -> Iterator[Piece[int]]:
    """A command for each piece of the database, whose first row is the key."""
    stride = database.stride
    most = ((1 << geometry.length_bits) - 1) // stride
    tiles = [address + offset for offset in space.tiles]
    places = [address + offset for offset in space.results]
    for stretch in database.tiles(max(1, space.tile_rows)):
        tiles.reverse()
        start, writes = _sent(stretch, tiles[0], database)
        for row in range(0, stretch.count, most):
            places.reverse()
            rows = min(most, stretch.count - row)
            size = queries * space.entries
            command = _command(
                _run(start + row * stride, rows * stride),
                _run(address, queries * stride),
                _run(places[0], size),
            )
            yield Piece(stretch.first + row, writes, [command], (places[0], size))
            writes = []


def _sent(stretch: Stretch, tile: int, database: Database) -> tuple[int, list[Write]]:
    """Where the rows of ``stretch`` are once something has been written."""
    if stretch.content is None:
        return stretch.address, []
    return tile, [(tile, database.padded(stretch.content))]


def _run(address: int, size: int) -> Walk:
    return Walk(address, address + size - 1)


def _command(rows: Walk, queries: Walk, found: Walk) -> Command:
    return Command(
        op=Op.SEARCH,
        lane=Lane.BITS_8,
        out_lane=Lane.BITS_32,
        run=rows.last - rows.base + 1,
        a=rows,
        b=queries,
        y=found,
        fence=True,
    )


def _entries(
    data: NDArray[np.uint8], queries: int, first: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Distances and indices (queries, nearest) of what was found in rows from ``first`` on."""
    entries = data.view(_ENTRY).reshape(queries, -1)
    none = entries["row"] == _NOTHING
    distances = np.where(none, np.iinfo(np.int32).max, entries["distance"]).astype(np.int32)
    indices = np.where(none, -1, entries["row"].astype(np.int64) + first)
    return distances, indices
