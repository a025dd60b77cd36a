"""How many bytes B and Y of a SEARCH have, and whether all sizes are what the array can do.

It looks at any record as if it were a SEARCH, and leaves it to others to ask.
"""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import RECORD, RECORD_WORDS
from ..configuration import Configuration, Search

__all__ = ["SearchSizes"]

_ENTRY_LOG2 = 3
"""Of the bytes of what is found: two words."""


class SearchSizes(wiring.Component):
    """Takes LAST less BASE of B and Y, word by word as a record is read.

    Parameters
    ----------
    configuration
        With a ``search``.
    columns
        Words that arrive together: 1 or 2.

    Members
    -------
    words, position, take
        As for `Refusals`.
    b_extent, y_extent : ``Out(length_bits)``
        Bytes of B and Y, less one.
    wrong : ``Out(1)``
        A or B is no whole rows, B has more of them than a batch, or Y is not as long as what is
        found for them.

    Latency: 1 cycle from the last word. Throughput: ``columns`` words a cycle.
    """

    def __init__(self, configuration: Configuration, search: Search, columns: int) -> None:
        self._search = search
        self._columns = columns
        super().__init__(
            {
                "words": In(32 * columns),
                "position": In(range(RECORD_WORDS // columns)),
                "take": In(1),
                "b_extent": Out(configuration.length_bits),
                "y_extent": Out(configuration.length_bits),
                "wrong": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row_log2 = (self._search.row_bits // 8).bit_length() - 1
        list_log2 = self._search.nearest.bit_length() - 1 + _ENTRY_LOG2
        query_bits = self._search.queries.bit_length() - 1
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

    def _word(self, name: str) -> tuple[Value, Value]:
        """The word ``name`` of the record, and whether it is there."""
        group, column = divmod(RECORD[name].word, self._columns)
        here = self.take & (self.position == group)
        return self.words[32 * column : 32 * column + 32], here

    def _rest(self, m: Module, bits: int) -> Signal:
        """The low ``bits`` of RUN."""
        rest = Signal(bits, reset_less=True)
        word, here = self._word("RUN")
        with m.If(here):
            m.d.sync += rest.eq(word)
        return rest

    def _extent(self, m: Module, stream: str) -> Signal:
        """LAST less BASE, which is the word before it."""
        base, extent = Signal(32, reset_less=True), Signal(32, reset_less=True)
        first, first_here = self._word(f"{stream}_BASE")
        last, last_here = self._word(f"{stream}_LAST")
        with m.If(first_here):
            m.d.sync += base.eq(first)
        with m.If(last_here):
            m.d.sync += extent.eq(last - (first if self._columns > 1 else base))
        return extent
