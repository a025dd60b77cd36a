"""A search array between streams, and its expected results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.search.search_array import SearchArray
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, compiled, simulate

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Found:
    """The output of an array: (query, rank, {distance, index}), and the cycle of the last beat."""

    words: NDArray[np.uint32]
    last: int


def configured(
    units: int, row_bits: int = 64, queries: int = 16, nearest: int = 4, **others: int
) -> Configuration:
    """Return the configuration of a circuit with an array of these parameters."""
    search = Search(units=units, row_bits=row_bits, queries=queries, nearest=nearest)
    return replace(Configuration(search=search), **others)


def beats(run: Bytes, data_width: int, bad: int | None = None) -> Iterator[dict[str, int]]:
    """Yield ``run`` as beats; the beat number ``bad`` has its error bit set."""
    content = run.tobytes()
    size = data_width // 8
    for start in range(0, len(content), size):
        yield {
            "data": int.from_bytes(content[start : start + size], "little"),
            "last": start + size == len(content),
            "error": start // size == bad,
        }


def search(
    configuration: Configuration,
    batches: Sequence[tuple[Bytes, Bytes]],
    stalls: Stalls = NO_STALLS,
    deadline: int = 100_000,
) -> list[Found]:
    """Send the (queries, rows) of ``batches`` through one array, one batch after the other."""
    array = compiled(SearchArray, configuration)
    search, width = configuration.search, configuration.data_width
    assert search is not None
    sizes = [len(queries) * search.nearest * 64 // width for queries, _ in batches]

    def run(which: int) -> list[Any]:
        return [beat for batch in batches for beat in beats(batch[which], width)]

    sink = Sink(array.o, sum(sizes), stalls, "results")
    queries = Source(array.queries, run(0), stalls, "queries")
    rows = Source(array.rows, run(1), stalls, "rows")
    simulate(array, queries, rows, sink, deadline=deadline)
    found, start = [], 0
    for (queries_sent, _), size in zip(batches, sizes, strict=True):
        payloads = sink.payloads[start : start + size]
        assert not any(payload.error for payload in payloads), "an error that nothing caused"
        content = b"".join(payload.data.to_bytes(width // 8, "little") for payload in payloads)
        words = np.frombuffer(content, np.uint32).reshape(len(queries_sent), search.nearest, 2)
        start += size
        found.append(Found(words, sink.cycles[start - 1]))
    return found
