"""Several devices as one: calls on NumPy's arrays, cut into chunks that are computed apart.

Checks everything before a chunk is sent; the devices compute every bit of every result.
"""

from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

import numpy as np
from numpy.typing import ArrayLike

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..api import Chunked, Output, call_of, expect_on_host
from ..arguments.operands import as_array, result_shape, use_output
from ..closeable import Closeable
from ..driver import expected_timeout
from ..errors import SettingError
from ..search import SearchRequest, Selection, as_rows
from .split import chunk_of, split, split_axis

if TYPE_CHECKING:
    from .workers import WorkerGroup


_QUERIES: Final = 256
"""Most queries in one call of a search."""


class Pool(Chunked[AnyArray], Closeable):
    """The devices ``urls`` as one: ``Pool(["sim", "sim", "serial:/dev/ttyUSB1"])``.

    Each is opened by a separate process. Methods are those of ``Device``, on NumPy's arrays: they
    are cut along an axis into chunks of up to about 1 MiB, and each device takes the next chunk
    when it has finished one. ``timeout``: seconds that a device may take for a chunk.

    A device is lost if its process ends, its link fails or it takes too long: the other devices
    compute its chunk, and `lost` reports it. Threads may share a pool. Leaving its ``with``
    statement ends the processes, and so does Python some time after the last reference is gone.

    Raises ``SettingError``, ``LinkError`` if a device cannot be opened, and in calls what
    ``Device`` raises; ``LinkError`` says which devices were lost if none is left.
    """

    _workers: "WorkerGroup"

    def __init__(self, urls: Sequence[str], *, timeout: float = 600.0) -> None:
        if isinstance(urls, str) or not urls or not all(isinstance(url, str) for url in urls):
            raise SettingError(f"pool: {urls!r}; expected URLs of devices, like ['sim', 'sim']")
        seconds = expected_timeout(timeout)
        # multiprocessing is slow to import.
        from .workers import Tasks, WorkerGroup, dismiss

        tasks: Tasks = SimpleQueue()
        # The threads of the group hold it, so that it outlives a pool that nobody closes. Before
        # they start, so that Ctrl-C in between leaves no process.
        finalize(self, dismiss, tasks, len(urls)).atexit = False
        self._workers = WorkerGroup(urls, seconds, tasks)

    @property
    def closed(self) -> bool:
        """Whether the pool has been closed: it cannot be used again."""
        return self._workers.closed

    @property
    def devices(self) -> tuple[str, ...]:
        """The URLs of the devices that are not lost."""
        return tuple(worker.url for worker in self._workers.alive)

    @property
    def lost(self) -> tuple[str, ...]:
        """A line for each device that was lost: which, and why."""
        return self._workers.lost

    @property
    def processes(self) -> tuple[int, ...]:
        """The number of each device's process."""
        return tuple(worker.pid for worker in self._workers.alive)

    def search(
        self,
        queries: ArrayLike,
        database: ArrayLike,
        k: int | None = None,
        *,
        radius: float | None = None,
        metric: str = "hamming",
        ids: ArrayLike | None = None,
        select: Selection | None = None,
    ) -> tuple[AnyArray, ...]:
        """See ``Device.search``: each device searches chunks of the rows that count."""
        for name, x in (("queries", queries), ("database", database)):
            expect_on_host(name, x, "NumPy's")
        request = SearchRequest(queries, k, radius, metric)
        rows = as_rows("database", database)
        request.expect_rows(len(rows), ids, select)
        shape = (request.ids.count, rows.shape[1])
        axis = split_axis(shape, (0,))
        chunks = [slice(0, shape[0])] if axis is None else self._chunks(shape, axis, 1)
        parts = [(chunk.start, np.asarray(request.rows_of(rows, chunk))) for chunk in chunks]
        calls = [
            (first, start, part)
            for first in range(0, max(1, len(request.queries)), _QUERIES)
            for start, part in parts
        ]
        answers = self._workers.run(
            [
                (
                    "search",
                    (request.queries[first : first + _QUERIES], part),
                    request.keywords(len(part)),
                )
                for first, _, part in calls
            ]
        )
        return request.join(
            (first, start, answer) for (first, start, _), answer in zip(calls, answers, strict=True)
        )

    def _operand(self, name: str, x: ArrayLike) -> AnyArray:
        expect_on_host(name, x, "NumPy's")
        return as_array(name, x)

    def _element_wise(
        self, op: Op, operands: Sequence[AnyArray], dtype: np.dtype[Any], out: Output | None
    ) -> AnyArray:
        shape = result_shape(operands[0], operands[-1])
        output = None if out is None else use_output(out, shape, dtype)
        axis = split_axis(shape, range(len(shape)))
        name, keywords = call_of(op, dtype)
        if axis is None:
            (result,) = self._workers.run([(name, tuple(operands), keywords)])
            if output is None:
                return np.asarray(result)
            output[...] = result
            return output
        chunks = self._chunks(shape, axis, operands[0].itemsize)
        results = self._workers.run(_calls(name, operands, (len(shape), axis), chunks, keywords))
        # An output may overlap operands: it is written when all are read.
        return np.concatenate(results, axis, out=output)

    def _rows(self, operands: Sequence[AnyArray]) -> tuple[Sequence[AnyArray], tuple[int, ...]]:
        return operands, result_shape(operands[0], operands[-1])

    def _along(
        self, name: str, operands: Sequence[AnyArray], dtype: object, keywords: dict[str, Any]
    ) -> AnyArray:
        shape = result_shape(operands[0], operands[-1])
        rank, summed = len(shape), keywords["axis"]
        axis = split_axis(shape, [each for each in range(rank) if each not in summed])
        if axis is None:
            (whole,) = self._workers.run([(name, tuple(operands), keywords)])
            return np.asarray(whole)
        chunks = self._chunks(shape, axis, operands[0].itemsize)
        results = self._workers.run(_calls(name, operands, (rank, axis), chunks, keywords))
        gone = 0 if keywords["keepdims"] else sum(each < axis for each in summed)
        return np.concatenate(results, axis - gone)

    def _chunks(self, shape: tuple[int, ...], axis: int, itemsize: int) -> list[slice]:
        return split(shape, axis, itemsize, max(1, len(self._workers.alive)))

    def close(self) -> None:
        """Finish the calls that are under way, and end the processes. May be called again."""
        self._workers.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else f", {len(self.lost)} lost" if self.lost else ""
        return f"<bitlane.Pool: {', '.join(self.devices)}{state}>"


def _calls(
    name: str,
    operands: Sequence[AnyArray],
    cut: tuple[int, int],
    chunks: Sequence[slice],
    keywords: dict[str, Any],
) -> list[tuple[str, tuple[AnyArray, ...], dict[str, Any]]]:
    """Return a call of ``name`` for each of ``chunks``; ``cut``: rank of the result, axis cut."""
    return [(name, tuple(chunk_of(x, *cut, chunk) for x in operands), keywords) for chunk in chunks]
