"""The search array in cycles, and what it would compare a second beside FAISS and NumPy.

The array is measured in cycles of the simulated circuit, FAISS and NumPy in seconds on this
machine. The caller gives the clock rate that relates them: nothing here has run on an FPGA.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.driver import Command
from bitlane_rtl.abi import Lane, Op
from bitlane_rtl.configuration import Configuration, Search
from cppsim.errors import SimulationError

from ..commands import dense
from ..device.simulator import Simulator
from ..numpy_device import search_cycles
from .job import execute

_BYTES = NDArray[np.uint8]

_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SearchRow:
    """A batch of ``queries`` against ``rows`` of ``row_bits``.

    ``cycles``: from doorbell to the last write response; ``expected``: by `search_cycles`;
    ``faiss`` and ``numpy``: comparisons a second of one core; 0 where it is not installed.
    """

    rows: int
    row_bits: int
    queries: int
    cycles: int
    expected: float
    faiss: float
    numpy: float

    def comparisons(self, mhz: float) -> float:
        """Comparisons a second of the array at ``mhz``."""
        return self.rows * self.queries / self.cycles * mhz * 1e6

    @property
    def met(self) -> bool:
        """Whether it takes the cycles that are expected, within 5 %."""
        return abs(self.cycles / self.expected - 1) <= 0.05

    def fastest(self, mhz: float) -> str:
        """Return the name of the fastest, with the array at ``mhz``."""
        rates = {"array": self.comparisons(mhz), "FAISS": self.faiss, "NumPy": self.numpy}
        return max(rates, key=rates.__getitem__)

    def as_dict(self, mhz: float) -> dict[str, Any]:
        rate = self.comparisons(mhz)
        return {**asdict(self), "mhz": mhz, "comparisons": rate, "met": self.met}


def configured(search: Search, rows: int) -> Configuration:
    """An engine of 64 bits with an array, and memory for ``rows``, queries and results."""
    row_bytes = search.row_bits // 8
    least = rows * row_bytes + search.queries * (row_bytes + 8 * search.nearest)
    memory = -(-least // _MEGABYTE) * _MEGABYTE
    return Configuration(data_width=64, memory_bytes=memory, length_bits=28, search=search)


def measure_search(
    configuration: Configuration,
    rows: int,
    batches: Sequence[int],
    evaluator: str,
    progress: Callable[[str], None],
) -> Iterator[SearchRow]:
    """A row for each number of queries in ``batches``, with random rows and queries.

    Raises ``SimulationError`` if the array finds other rows than NumPy does.
    """
    search = configuration.search
    assert search is not None
    row_bytes = search.row_bits // 8
    generator = np.random.default_rng(0)
    database = generator.integers(0, 256, (rows, row_bytes), np.uint8)
    progress("building the simulator")
    simulator = Simulator(configuration, evaluator)
    try:
        for count in batches:
            queries = generator.integers(0, 256, (count, row_bytes), np.uint8)
            progress(f"{count} queries")
            cycles, found = _search(simulator, search, database, queries)
            started = perf_counter()
            wanted = _by_numpy(database, queries, search.nearest)
            numpy_seconds = perf_counter() - started
            if not np.array_equal(found[..., 0], wanted):
                raise SimulationError(f"bench: the search for {count} queries went wrong")
            compared = rows * count
            yield SearchRow(
                rows=rows,
                row_bits=search.row_bits,
                queries=count,
                cycles=cycles,
                expected=search_cycles(configuration, rows, count),
                faiss=_faiss(database, queries, search.nearest),
                numpy=compared / numpy_seconds,
            )
    finally:
        simulator.close()


def _search(
    simulator: Simulator, search: Search, database: _BYTES, queries: _BYTES
) -> tuple[int, NDArray[np.uint32]]:
    """Cycles of a search, and words (query, rank, {distance, index})."""
    b = database.size
    y = b + queries.size
    size = len(queries) * search.nearest * 8
    walks = dense(0, b), dense(b, queries.size), dense(y, size)
    command = Command(Op.SEARCH, Lane.BITS_8, Lane.BITS_32, b, *walks)
    simulator.memory[:b], simulator.memory[b:y] = database.ravel(), queries.ravel()
    traffic = execute(simulator, [command])
    found = simulator.memory[y : y + size].view(np.uint32)
    return traffic.done, found.reshape(len(queries), search.nearest, 2).copy()


def _by_numpy(database: _BYTES, queries: _BYTES, nearest: int) -> NDArray[np.uint32]:
    """The distances of the nearest rows of each query, sorted: the way that is fast in NumPy."""
    words = database.view(np.uint64)
    found = np.empty((len(queries), nearest), np.uint32)
    for query, best in zip(queries.view(np.uint64), found, strict=True):
        distances = np.bitwise_count(words ^ query).sum(axis=1, dtype=np.uint32)
        best[:] = np.sort(np.partition(distances, nearest - 1)[:nearest])
    return found


def _faiss(database: _BYTES, queries: _BYTES, nearest: int) -> float:
    """Comparisons a second of FAISS on one core; 0 if it is not installed."""
    try:
        import faiss
    except ImportError:
        return 0.0
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(database.shape[1] * 8)
    index.add(database)
    seconds = []
    for _ in range(3):
        started = perf_counter()
        index.search(queries, nearest)
        seconds.append(perf_counter() - started)
    faiss.omp_set_num_threads(threads)
    return len(database) * len(queries) / min(seconds)
