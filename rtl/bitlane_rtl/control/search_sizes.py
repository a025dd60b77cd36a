"""The sizes of the streams of a SEARCH, and the check that the array can process them.

Its outputs are valid for any record. Callers use them only if the operation is SEARCH.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import SEARCH_ENTRY_BYTES
from ..configuration import Configuration, Search
from .record_words import RecordGroup, record_word

__all__ = ["SearchSizes"]


class SearchSizes(wiring.Component):
    """Subtracts BASE from LAST of B and Y, word by word as a record is read.

    Parameters
    ----------
    configuration
        A configuration with a ``search``.
    columns
        Words that arrive together: 1 or 2.

    Members
    -------
    group
        The words of the record.
    b_extent, y_extent
        Bytes of B and Y, less one.
    wrong
        A or B is not a whole number of rows, B has more rows than a batch, or Y has not as many
        entries as the rows of B give.

    Latency: 1 cycle from the last word. Throughput: ``columns`` words a cycle.
    """

    def __init__(self, configuration: Configuration, search: Search, columns: int) -> None:
        self._search = search
        self._columns = columns
        super().__init__(
            {
                "group": In(RecordGroup(columns)),
                "b_extent": Out(configuration.length_bits),
                "y_extent": Out(configuration.length_bits),
                "wrong": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row_log2 = exact_log2(self._search.row_bits // 8)
        list_log2 = exact_log2(self._search.nearest * SEARCH_ENTRY_BYTES)
        query_bits = exact_log2(self._search.queries)
        b, y, rest = self._extent(m, "B"), self._extent(m, "Y"), self._rest(m, row_log2)
        wrong = Cat(
            rest.any(),
            ~b[:row_log2].all(),
            b[row_log2 + query_bits :].any(),
            ~y[:list_log2].all(),
            y[list_log2:] != b[row_log2:],
        )
        m.d.comb += [self.wrong.eq(wrong.any()), self.b_extent.eq(b), self.y_extent.eq(y)]
        return m

    def _rest(self, m: Module, bits: int) -> Signal:
        """Return the low ``bits`` of RUN."""
        rest = Signal(bits, reset_less=True)
        word, valid = record_word(self.group, "RUN")
        with m.If(valid):
            m.d.sync += rest.eq(word)
        return rest

    def _extent(self, m: Module, stream: str) -> Signal:
        """Return LAST less BASE, which is the word before LAST."""
        base, extent = Signal(32, reset_less=True), Signal(32, reset_less=True)
        first, first_valid = record_word(self.group, f"{stream}_BASE")
        last, last_valid = record_word(self.group, f"{stream}_LAST")
        with m.If(first_valid):
            m.d.sync += base.eq(first)
        with m.If(last_valid):
            m.d.sync += extent.eq(last - (first if self._columns > 1 else base))
        return extent
