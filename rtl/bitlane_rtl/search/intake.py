"""Takes a batch of queries, then rows, and puts them into the store. Takes no beat too many."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..counter import step
from .layouts import Beat, Sizes

__all__ = ["Intake"]

_ON_THEIR_WAY = 3
"""Rows of one beat that can come before the first of them is counted."""


class Intake(wiring.Component):
    """Fills the store: queries from address 0 on, rows round and round its upper half.

    Members
    -------
    queries : ``In(stream.Signature(Beat(data_width)))``
        The first search takes them at once, another after ``again``.
    rows : ``In(stream.Signature(Beat(data_width)))``
        Taken when all queries have been. What either's ``last`` ends is whole rows.
    write, write_address, write_word, write_data
        To the `Store`.
    empty, empty_query : ``Out(1)``, ``Out(query_bits)``
        Another query has come; its list is empty.
    query_last : ``Out(query_bits)``
        The number of the last query, when rows come.
    stored : ``Out(range(stored_rows + 1))``
        Rows in the store that were not sent.
    ended : ``Out(1)``
        All rows are in the store, or were.
    count : ``Out(index_bits + 1)``
        Rows that have been in the store.
    sent : ``In(1)``
        A row was read, and gives its place away.
    again : ``In(1)``
        The search is over.
    failed : ``Out(1)``
        A beat was in error; so it stays until a reset, and all that comes is taken and lost.

    Throughput: a beat a cycle. Latency: 2 cycles from a row's last beat to ``stored``.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        beats = In(stream.Signature(Beat(sizes.data_width)))
        super().__init__(
            {
                "queries": beats,
                "rows": beats,
                "write": Out(1),
                "write_address": Out(range(sizes.store_depth)),
                "write_word": Out(range(sizes.words)),
                "write_data": Out(sizes.data_width),
                "empty": Out(1),
                "empty_query": Out(sizes.query_bits),
                "query_last": Out(sizes.query_bits),
                "stored": Out(range(sizes.stored_rows + 1)),
                "ended": Out(1),
                "count": Out(sizes.index_bits + 1),
                "sent": In(1),
                "again": In(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        takes_queries, takes_rows, room = Signal(init=1), Signal(), Signal(init=1)
        queries, rows = self.queries, self.rows
        m.d.comb += [
            queries.ready.eq(takes_queries | self.failed),
            rows.ready.eq((takes_rows & room) | self.failed),
        ]
        # All that is decided is decided of the beat in registers.
        beat, beat_valid, of_rows = Signal(Beat(self._sizes.data_width)), Signal(), Signal()
        comes = Mux(takes_rows, rows.valid & rows.ready, queries.valid & queries.ready)
        m.d.sync += [
            beat.eq(Mux(takes_rows, rows.p, queries.p)),
            beat_valid.eq(comes),
            of_rows.eq(takes_rows),
        ]
        with m.If(queries.valid & queries.ready & queries.p.last):
            m.d.sync += [takes_queries.eq(0), takes_rows.eq(1)]
        with m.If(rows.valid & rows.ready & rows.p.last):
            m.d.sync += takes_rows.eq(0)
        with m.If(beat_valid & beat.error):
            m.d.sync += self.failed.eq(1)
        whole = self._place(m, beat, beat_valid, of_rows)
        self._count(m, whole & of_rows, beat_valid & of_rows & beat.last, room)
        with m.If(self.again):
            m.d.sync += [takes_queries.eq(1), self.ended.eq(0), self.count.eq(0)]
        return m

    def _place(self, m: Module, beat: Any, beat_valid: Signal, of_rows: Signal) -> Signal:
        """Write the beat where it belongs. Whether it is the last of its row."""
        word = Signal(range(self._sizes.words))
        place = Signal(range(self._sizes.stored_rows))
        query = Signal(self._sizes.query_bits)
        whole = Signal()
        m.d.comb += [
            whole.eq(beat_valid & (word == self._sizes.words - 1)),
            self.write.eq(beat_valid),
            self.write_address.eq(Mux(of_rows, place, query)),
            self.write_address[-1].eq(of_rows),
            self.write_word.eq(word),
            self.write_data.eq(beat.data),
            self.empty.eq(whole & ~of_rows),
            self.empty_query.eq(query),
        ]
        if self._sizes.words > 1:
            with m.If(beat_valid):
                m.d.sync += word.eq(word + 1)
        with m.If(whole & of_rows):
            m.d.sync += place.eq(place + 1)
        with m.If(self.empty):
            m.d.sync += [query.eq(query + 1), self.query_last.eq(query)]
        with m.If(self.again):
            m.d.sync += query.eq(0)
        return whole

    def _count(self, m: Module, stores: Any, ends: Any, room: Signal) -> None:
        """Count rows in and out."""
        step(m, self.stored, stores, self.sent)
        with m.If(stores):
            m.d.sync += self.count.eq(self.count + 1)
        with m.If(ends):
            m.d.sync += self.ended.eq(1)
        m.d.sync += room.eq(self.stored < self._sizes.stored_rows - _ON_THEIR_WAY)
