"""One pass of a batch of queries over rows of an index, tile by tile.

Two back ends compare a tile: the circuit's search array, which returns the nearest rows, and sums
over rows, which return every distance and exist on every device.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Lane, Mode, Op

from ..driver import ALIGNMENT, ArraySizes, Command, Geometry, Storage, Walk, Write, round_up
from ..errors import OutOfDeviceMemory
from ..lowering import Streams, View, lower
from ..streaming.pipeline import Piece, results
from ..terminal import Percentage, progress_is_wanted
from .blocks import Numbers, Rows
from .database import Database
from .results import DistanceSink, Metric, TopK
from .subsets import HostRows, RowRange

_SHARE = 4
"""The queries, and each of two tiles of the host's rows, take at most 1/4 of the free memory."""

SHOWN_BYTES = 1 << 20
"""Most bytes of a tile's results where progress is shown."""


@dataclass(frozen=True, slots=True)
class ScanTile:
    """Some queries and some adjacent rows: the first of each, and their numbers.

    ``wanted``: the rows that count, from 0 on; None: all. ``row`` counts only such rows.
    """

    query: int
    queries: int
    row: int
    rows: int
    wanted: Numbers | None = None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Device addresses of a tile's queries, rows and results."""

    queries: int
    rows: int
    results: int


class ScanBackend(ABC):
    """A way to compare the queries and rows of a tile on a device."""

    most_queries: int | None
    """Most queries of a batch; None: any number."""

    @abstractmethod
    def result_bytes(self, queries: int, rows: int) -> int:
        """Return the size of the results of a tile."""

    @abstractmethod
    def tile(self, room: int, queries: int, rows: int) -> tuple[int, int]:
        """Return how many queries and rows to compare at once; ``room`` bytes hold the results.

        (0, 0) if the results of one do not fit.
        """

    @abstractmethod
    def commands(self, tile: ScanTile, at: Addresses) -> Iterable[Command]:
        """Return the commands that compare a tile."""

    @abstractmethod
    def add(self, tile: ScanTile, data: NDArray[np.uint8]) -> None:
        """Add the results of a tile to the sink."""


@dataclass(frozen=True, slots=True)
class ScannedRows:
    """The rows of a scan, in order: those of ``database`` in ``ranges``, without gathered ones."""

    database: Database
    ranges: Sequence[RowRange | HostRows]

    @property
    def count(self) -> int:
        """Rows that are compared, also those that do not count."""
        return sum(each.count if isinstance(each, RowRange) else each.rows for each in self.ranges)

    @property
    def streamed(self) -> bool:
        """Whether rows are on the host: each batch of queries sends them."""
        return any(isinstance(each, HostRows) for each in self.ranges)

    def tiles(self, most: int) -> Iterator[RowRange]:
        """Iterate over all rows in order; over the host's at most ``most`` at a time."""
        for each in self.ranges:
            if isinstance(each, HostRows):
                yield from each.tiles(most)
            else:
                yield each


def scan(rows: ScannedRows, queries: Rows, backend: ScanBackend) -> None:
    """Compare ``queries`` (n, row_bytes) to ``rows``. Raises as ``Device`` does."""
    driver = rows.database.driver
    with driver.lock:
        layout = ScanLayout(driver.allocator.largest(), len(queries), rows, backend)
        distances = len(queries) * rows.count
        done = 0
        with (
            Storage(driver, layout.size) as memory,
            Percentage(f"search, {distances:,} distances ") as percentage,
        ):
            for first in range(0, len(queries), layout.queries):
                batch = queries[first : first + layout.queries]
                driver.write(memory.address, rows.database.padded(batch))
                tiles = layout.tiles(memory.address, first, len(batch))
                for tile, data in results(driver, tiles, overlapped=True):
                    backend.add(tile, data)
                    done += tile.queries * tile.rows
                    if progress_is_wanted():
                        percentage(done / distances)


class ScanLayout:
    """The device's memory during a scan: queries, two tiles of the host's rows, two results.

    ``size`` in bytes; ``queries`` of a batch.
    """

    def __init__(self, room: int, queries: int, rows: ScannedRows, backend: ScanBackend) -> None:
        self._rows = rows
        self._stride = rows.database.stride
        self._backend = backend
        least = self.least(self._stride, backend, streamed=rows.streamed)
        if room < least:
            raise OutOfDeviceMemory(
                f"search: {room} bytes of free device memory; expected {least} for a query, rows"
                " and results"
            )
        most = queries if backend.most_queries is None else min(queries, backend.most_queries)
        share = room // _SHARE
        # Long rows and results leave no room where each takes its share.
        while not self._fits(room, share, most):
            share //= 2

    @staticmethod
    def least(stride: int, backend: ScanBackend, *, streamed: bool) -> int:
        """Return the fewest bytes of memory in which rows of ``stride`` can be scanned."""
        tiles = 2 if streamed else 0
        return (1 + tiles) * round_up(stride) + 2 * round_up(backend.result_bytes(1, 1))

    def _fits(self, room: int, share: int, queries: int) -> bool:
        """Lay out a ``share`` of bytes for queries and each tile, and results behind them."""
        rows = max(1, share // self._stride)
        self.queries = min(queries, rows)
        self._tile_rows = rows if self._rows.streamed else 0
        tile = round_up(self._tile_rows * self._stride)
        start = round_up(self.queries * self._stride)
        self._tiles = (start, start + tile)
        start += 2 * tile
        half = max(0, (room - start) // 2 // ALIGNMENT * ALIGNMENT)
        if progress_is_wanted():
            half = min(half, max(SHOWN_BYTES, round_up(self._backend.result_bytes(1, 1))))
        count = max(1, self._rows.count)
        if 0 in self._backend.tile(half, self.queries, count):
            return False
        self._result_room = min(half, round_up(self._backend.result_bytes(self.queries, count)))
        self._results = (start, start + self._result_room)
        self.size = start + 2 * self._result_room
        return True

    def tiles(self, address: int, first: int, queries: int) -> Iterator[Piece[ScanTile]]:
        """Return the work for a batch of queries at ``address``, from query ``first`` on."""
        host_tiles = [address + offset for offset in self._tiles]
        halves = [address + offset for offset in self._results]
        for rows in self._rows.tiles(max(1, self._tile_rows)):
            host_tiles.reverse()
            start, writes = self._load(rows, host_tiles[0])
            some, most = self._backend.tile(self._result_room, queries, rows.count)
            for row in range(0, rows.count, most):
                for query in range(0, queries, some):
                    halves.reverse()
                    tile = ScanTile(
                        first + query, min(some, queries - query), *_rows_of(rows, row, most)
                    )
                    at = Addresses(
                        address + query * self._stride, start + row * self._stride, halves[0]
                    )
                    size = self._backend.result_bytes(tile.queries, tile.rows)
                    yield Piece(tile, writes, self._backend.commands(tile, at), (halves[0], size))
                    writes = []

    def _load(self, rows: RowRange, address: int) -> tuple[int, list[Write]]:
        """Return the address of ``rows``, and the write that brings the host's rows there."""
        if rows.content is None:
            return rows.address, []
        return address, [(address, self._rows.database.padded(rows.content))]


def _rows_of(rows: RowRange, start: int, most: int) -> tuple[int, int, Numbers | None]:
    """Return the rows of the tile from row ``start`` on, as in `ScanTile`."""
    count = min(most, rows.count - start)
    first, wanted = rows.within(start, count)
    return first, count, wanted


_ENTRY = np.dtype([("distance", "<u4"), ("row", "<u4")])
"""An entry of the search array's results."""

_NO_ROW = 0xFFFF_FFFF
"""The row of an empty entry."""


class SearchArrayBackend(ScanBackend):
    """The circuit's search array, which returns the nearest rows of each tile."""

    def __init__(self, geometry: Geometry, array: ArraySizes, top: TopK) -> None:
        self.most_queries = array.queries
        self.array = array
        self._most_rows = ((1 << geometry.length_bits) - 1) // array.row_bytes
        self._top = top

    @staticmethod
    def sizes(geometry: Geometry, row_bytes: int, metric: Metric) -> ArraySizes | None:
        """Return the sizes of the search array if it can compare such rows, else None.

        Rows may be shorter than the array's: zeros after a row and a query change no distance.
        """
        array = geometry.search
        if array is None or Op.SEARCH not in geometry.ops or metric.ops != (Op.COUNT_XOR,):
            return None
        return array if row_bytes <= array.row_bytes else None

    def result_bytes(self, queries: int, rows: int) -> int:
        return queries * self.array.nearest * _ENTRY.itemsize

    def tile(self, room: int, queries: int, rows: int) -> tuple[int, int]:
        if self.result_bytes(queries, rows) > room:
            return 0, 0
        return queries, min(rows, self._most_rows)

    def commands(self, tile: ScanTile, at: Addresses) -> Iterable[Command]:
        stride = self.array.row_bytes
        yield Command(
            op=Op.SEARCH,
            lane=Lane.BITS_8,
            out_lane=Lane.BITS_32,
            run=tile.rows * stride,
            a=_run(at.rows, tile.rows * stride),
            b=_run(at.queries, tile.queries * stride),
            y=_run(at.results, self.result_bytes(tile.queries, tile.rows)),
            fence=True,
        )

    def add(self, tile: ScanTile, data: NDArray[np.uint8]) -> None:
        assert tile.wanted is None, "the nearest rows may be others"
        entries = data.view(_ENTRY).reshape(tile.queries, -1)
        empty = entries["row"] == _NO_ROW
        distances = np.where(empty, np.iinfo(np.int32).max, entries["distance"]).astype(np.int32)
        indices = np.where(empty, -1, entries["row"].astype(np.int64) + tile.row)
        self._top.merge(tile.query, distances, indices)


def _run(address: int, size: int) -> Walk:
    return Walk(address, address + size - 1)


class RowSumsBackend(ScanBackend):
    """Sums of counts over rows: every distance, on every device.

    The device counts and adds up; if the circuit has no sums, the host adds up the counts.
    """

    most_queries = None

    def __init__(
        self, geometry: Geometry, row_bytes: int, stride: int, metric: Metric, sink: DistanceSink
    ) -> None:
        self._geometry = geometry
        self._stride = stride
        self._metric = metric
        self._sink = sink
        self._summed = Mode.SUM in geometry.modes
        lanes = [lane.bytes for lane in geometry.lanes if row_bytes % lane.bytes == 0]
        self._element = 1 if self._summed else max(lanes, default=1)
        self._elements = row_bytes // self._element
        self._each = 4 if self._summed else self._elements

    def result_bytes(self, queries: int, rows: int) -> int:
        return queries * rows * self._each * len(self._metric.ops)

    def tile(self, room: int, queries: int, rows: int) -> tuple[int, int]:
        pairs = room // self.result_bytes(1, 1)
        some = min(rows, pairs)
        return (min(queries, pairs // some), some) if some else (0, 0)

    def commands(self, tile: ScanTile, at: Addresses) -> Iterator[Command]:
        size, y = self._element, at.results
        shape = (tile.queries, tile.rows, self._elements)
        a = View(at.rows, (0, self._stride, size), size)
        b = View(at.queries, (self._stride, 0, size), size)
        for op in self._metric.ops:
            target = View(y, (self._each * tile.rows, self._each, 1), 1)
            if self._summed:
                target = View(y, (self._each * tile.rows, self._each), self._each)
            streams, has = Streams(a, b, target), self._geometry
            yield from lower(op, shape, streams, has.abilities, has.memory)
            y += tile.queries * tile.rows * self._each

    def add(self, tile: ScanTile, data: NDArray[np.uint8]) -> None:
        shape = (len(self._metric.ops), tile.queries, tile.rows)
        if self._summed:
            sums = data.view("<u4").reshape(shape)
        else:
            sums = data.reshape(*shape, self._elements).sum(axis=-1, dtype=np.uint32)
        if tile.wanted is not None:
            sums = sums[:, :, tile.wanted]
        self._sink.add(tile.query, self._metric.of(list(sums)), tile.row)
