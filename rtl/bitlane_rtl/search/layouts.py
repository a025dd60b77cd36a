"""Layouts of the signals between the parts of a search array, and their widths.

This module holds data only.
"""

from dataclasses import dataclass
from functools import cached_property

from amaranth.lib import data
from amaranth.utils import bits_for, ceil_log2, exact_log2

from ..configuration import Configuration, Search

__all__ = ["CLUSTER", "Beat", "Candidate", "Hits", "Load", "Sizes", "Slot", "Tag"]

CLUSTER = 4
"""Units that share the registers of ``bits`` and a FIFO of hits."""


@dataclass(frozen=True)
class Sizes:
    """The widths and depths of a search array.

    Raises ``ValueError`` if ``configuration`` has no search array.
    """

    configuration: Configuration

    def __post_init__(self) -> None:
        if self.configuration.search is None:
            raise ValueError("search: None; there is no array to build")

    @cached_property
    def search(self) -> Search:
        search = self.configuration.search
        assert search is not None
        return search

    @property
    def data_width(self) -> int:
        """Bits of a beat."""
        return self.configuration.data_width

    @property
    def words(self) -> int:
        """Beats of a row."""
        return self.search.row_bits // self.data_width

    @property
    def clusters(self) -> int:
        return -(-self.search.units // CLUSTER)

    @property
    def query_bits(self) -> int:
        """Bits of a query's number."""
        return exact_log2(self.search.queries)

    @property
    def distance_bits(self) -> int:
        """Bits of a distance. The value with all bits 1 exceeds every distance."""
        return bits_for(self.search.row_bits)

    @property
    def index_bits(self) -> int:
        """Bits of a row's number in the database, which is a run."""
        return max(self.configuration.length_bits - exact_log2(self.search.row_bits // 8), 1)

    @property
    def key_bits(self) -> int:
        """Bits of a sort key: the index in the low bits, the distance above it."""
        return self.distance_bits + self.index_bits

    @property
    def position_bits(self) -> int:
        """Bits of a unit's number."""
        return max(ceil_log2(self.search.units), 1)

    @property
    def stored_rows(self) -> int:
        """Rows that the store buffers: at least two tiles, a power of two."""
        return 1 << max(ceil_log2(2 * self.search.units), 4)

    @property
    def store_depth(self) -> int:
        """Entries of the store: a half for queries, and a half for rows."""
        return 2 * max(self.search.queries, self.stored_rows)


class Beat(data.StructLayout):
    """A beat of rows or queries; ``last`` of its run; ``error``: it could not be read."""

    def __init__(self, data_width: int) -> None:
        super().__init__({"data": data_width, "last": 1, "error": 1})


class Load(data.StructLayout):
    """If ``valid``, the bits in flight to the units are the row of the unit ``position``."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__({"valid": 1, "position": sizes.position_bits})


class Tag(data.StructLayout):
    """The query of the distances that the units output, if ``valid``.

    ``base``: the index of the row in unit 0; ``worst``: a distance that the rows to find are below.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(
            {
                "valid": 1,
                "query": sizes.query_bits,
                "base": sizes.index_bits,
                "worst": sizes.distance_bits,
            }
        )


class Hits(data.StructLayout):
    """The units of a cluster whose rows are nearer to a query than ``worst``: a 1 in ``units``."""

    def __init__(self, sizes: Sizes, units: int) -> None:
        super().__init__(
            {
                "query": sizes.query_bits,
                "base": sizes.index_bits,
                "units": units,
                "distances": data.ArrayLayout(sizes.distance_bits, units),
            }
        )


class Slot(data.StructLayout):
    """A slot of the chain of clusters. It carries a hit if ``valid``."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(
            {
                "valid": 1,
                "query": sizes.query_bits,
                "base": sizes.index_bits,
                "position": sizes.position_bits,
                "distance": sizes.distance_bits,
            }
        )


class Candidate(data.StructLayout):
    """A row that may be one of the nearest to ``query``.

    ``key``: the sort key, the row's index in the low bits and its distance above.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__({"query": sizes.query_bits, "key": sizes.key_bits})
