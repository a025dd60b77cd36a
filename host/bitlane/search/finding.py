"""Finds rows for queries: accesses the rows as the rule by cost says, and compares them."""

from collections.abc import Iterator
from typing import Final

from .._typing import AnyArray
from ..compiler import Explanation
from ..driver import ALIGNMENT, ArraySizes, Storage
from .blocks import Blocks, Numbers, Rows, count_rows
from .database import Database
from .explaining import explain_plan
from .request import SearchLimits
from .results import Metric, TopK, WithinRadius
from .scan import (
    RowSumsBackend,
    ScanBackend,
    ScanLayout,
    ScannedRows,
    SearchArrayBackend,
    scan,
)
from .subsets import (
    AccessCosts,
    AccessPlan,
    GatheredRows,
    HostRows,
    RowRange,
    cut_gathered,
    in_place,
    plan_access,
)

_SCRATCH: Final = 2
"""Gathered rows take at most 1/2 of the largest hole in the device's memory at a time."""


class Finder:
    """Finds rows of ``database`` by ``metric``; ``array``: the search array to use, if any."""

    def __init__(self, database: Database, metric: Metric, array: ArraySizes | None) -> None:
        self._database = database
        self._metric = metric
        self._array = array

    def find(
        self, blocks: Blocks, rows: Numbers | None, queries: Rows, limits: SearchLimits
    ) -> tuple[AnyArray, ...]:
        """Search ``rows`` of ``blocks``, None: all. Returns what an index does, with their numbers.

        The number of a row is its place among ``rows``.
        """
        if limits.k is None:
            assert limits.radius is not None
            near = WithinRadius(len(queries), limits.radius, self._metric)
            self._scan(blocks, rows, queries, near)
            return near.result()
        top = TopK(len(queries), limits.k, self._metric)
        self._scan(blocks, rows, queries, top)
        if limits.radius is not None:
            top.drop(limits.radius)
        return top.distances, top.indices

    def gathers(self, blocks: Blocks, queries: Rows, limits: SearchLimits) -> bool:
        """Return whether a search of all rows would gather some."""
        if all(block.kept is None for block in blocks if block.on_device):
            return False
        return self._cheapest(blocks, None, len(queries), self._no_sink(limits))[1].gathers

    def explain(
        self, blocks: Blocks, rows: Numbers | None, queries: Rows, limits: SearchLimits
    ) -> Explanation:
        """Return a table of the commands of `find`, by how the rows are accessed."""
        backend, plan = self._cheapest(blocks, rows, len(queries), self._no_sink(limits))
        return explain_plan(self._database, plan, len(queries), backend)

    def _no_sink(self, limits: SearchLimits) -> TopK | WithinRadius:
        """Return a sink for no queries, of the kind that a search uses."""
        if limits.k is not None:
            return TopK(0, limits.k, self._metric)
        return WithinRadius(0, 0, self._metric)

    def _cheapest(
        self, blocks: Blocks, rows: Numbers | None, queries: int, sink: TopK | WithinRadius
    ) -> tuple[ScanBackend, AccessPlan]:
        """Return the cheapest back end and access for a search that fills ``sink``."""
        driver, array = self._database.driver, self._array
        sizes = self._database.row_bytes, self._database.stride
        backend: ScanBackend = RowSumsBackend(driver.geometry, *sizes, self._metric, sink)
        if array is None or not isinstance(sink, TopK) or sink.k > array.nearest:
            return backend, self._plan(blocks, rows, queries, backend)
        nearest = SearchArrayBackend(driver.geometry, array, sink)
        plan = self._plan(blocks, rows, queries, nearest)
        if rows is not None or any(block.kept is not None for block in blocks):
            # The array returns no distances of rows that could be dropped.
            other = self._plan(blocks, rows, queries, backend)
            if other.cycles < plan.cycles:
                return backend, other
        return nearest, plan

    def _plan(
        self, blocks: Blocks, rows: Numbers | None, queries: int, backend: ScanBackend
    ) -> AccessPlan:
        driver, stride = self._database.driver, self._database.stride
        if not queries or not _count(blocks, rows):
            return AccessPlan([], 0)
        copies = self._database.gathers and bool(self._most_gathered(backend))
        if isinstance(backend, SearchArrayBackend):
            costs = AccessCosts.of_array(driver, stride, queries, backend.array, copies=copies)
        else:
            sums = queries * len(self._metric.ops)
            costs = AccessCosts.of_sums(driver, stride, sums, copies=copies)
        return plan_access(blocks, rows, costs, stride)

    def _scan(
        self, blocks: Blocks, rows: Numbers | None, queries: Rows, sink: TopK | WithinRadius
    ) -> None:
        backend, plan = self._cheapest(blocks, rows, len(queries), sink)
        for ranges in self._gathered(plan, self._most_gathered(backend)):
            scan(ScannedRows(self._database, ranges), queries, backend)

    def _most_gathered(self, backend: ScanBackend) -> int:
        """Return how many rows are gathered at a time: a scan needs memory beside them."""
        room, stride = self._database.driver.allocator.largest(), self._database.stride
        least = ScanLayout.least(stride, backend, streamed=True)
        return max(0, min(room // _SCRATCH, (room - least) // ALIGNMENT * ALIGNMENT)) // stride

    def _gathered(self, plan: AccessPlan, most: int) -> Iterator[list[RowRange | HostRows]]:
        """Yield the rows of ``plan`` in order, gathered ones in memory that is freed afterwards.

        At most ``most`` are gathered at a time.
        """
        driver, stride = self._database.driver, self._database.stride
        for some in cut_gathered(plan.accesses, most):
            addresses = [each.addresses for each in some if isinstance(each, GatheredRows)]
            if not addresses:
                yield in_place(some, 0, stride)
                continue
            with Storage(driver, sum(map(len, addresses)) * stride) as scratch:
                self._database.gather(addresses, scratch.address)
                yield in_place(some, scratch.address, stride)


def _count(blocks: Blocks, rows: Numbers | None) -> int:
    return count_rows(blocks) if rows is None else len(rows)
