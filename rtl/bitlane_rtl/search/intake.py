"""Accepts a batch of queries, then rows, and writes them to the store. It counts both."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..primitives import step
from .layouts import Beat, Sizes
from .store import StoreWrite

__all__ = ["Intake"]

_UNCOUNTED = 3
"""Rows of one beat that can be accepted before the first of them is counted."""


class Intake(wiring.Component):
    """Fills the store: queries from address 0 on, and rows cyclically in the upper half.

    Members
    -------
    queries
        Accepted after a reset and after ``restart``, up to ``last``.
    rows
        Accepted after all queries. ``last`` always ends a row, on both streams.
    write
        Beats for the `Store`.
    empty, empty_query
        A query is complete, so its list must become empty.
    query_last
        The number of the last query. Valid once rows are accepted.
    stored
        Rows in the store that have not been sent to the units.
    ended
        All rows of this search have been stored.
    count
        Rows of this search that have been stored.
    sent
        A row was sent to a unit, so its entry of the store is free.
    restart
        The search is over.
    failed
        A beat was in error. Until a reset, all further beats are accepted and dropped.

    Throughput: a beat a cycle. Latency: 2 cycles from a row's last beat to ``stored``.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        beats = In(stream.Signature(Beat(sizes.data_width)))
        super().__init__(
            {
                "queries": beats,
                "rows": beats,
                "write": Out(StoreWrite(sizes)),
                "empty": Out(1),
                "empty_query": Out(sizes.query_bits),
                "query_last": Out(sizes.query_bits),
                "stored": Out(range(sizes.stored_rows + 1)),
                "ended": Out(1),
                "count": Out(sizes.index_bits + 1),
                "sent": In(1),
                "restart": In(1),
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
        # Decisions use the registered beat, which keeps the paths from the streams short.
        beat, beat_valid, of_rows = Signal(Beat(self._sizes.data_width)), Signal(), Signal()
        accepted = Mux(takes_rows, rows.valid & rows.ready, queries.valid & queries.ready)
        m.d.sync += [
            beat.eq(Mux(takes_rows, rows.p, queries.p)),
            beat_valid.eq(accepted),
            of_rows.eq(takes_rows),
        ]
        with m.If(queries.valid & queries.ready & queries.p.last):
            m.d.sync += [takes_queries.eq(0), takes_rows.eq(1)]
        with m.If(rows.valid & rows.ready & rows.p.last):
            m.d.sync += takes_rows.eq(0)
        with m.If(beat_valid & beat.error):
            m.d.sync += self.failed.eq(1)
        whole = self._write(m, beat, beat_valid, of_rows)
        self._count(m, whole & of_rows, beat_valid & of_rows & beat.last, room)
        with m.If(self.restart):
            m.d.sync += [takes_queries.eq(1), self.ended.eq(0), self.count.eq(0)]
        return m

    def _write(self, m: Module, beat: Any, beat_valid: Signal, of_rows: Signal) -> Signal:
        """Write the beat to the store. Return whether it is the last of its row."""
        word = Signal(range(self._sizes.words))
        row = Signal(range(self._sizes.stored_rows))
        query = Signal(self._sizes.query_bits)
        whole = Signal()
        m.d.comb += [
            whole.eq(beat_valid & (word == self._sizes.words - 1)),
            self.write.enable.eq(beat_valid),
            self.write.address.eq(Mux(of_rows, row, query)),
            self.write.address[-1].eq(of_rows),
            self.write.word.eq(word),
            self.write.data.eq(beat.data),
            self.empty.eq(whole & ~of_rows),
            self.empty_query.eq(query),
        ]
        if self._sizes.words > 1:
            with m.If(beat_valid):
                m.d.sync += word.eq(word + 1)
        with m.If(whole & of_rows):
            m.d.sync += row.eq(row + 1)
        with m.If(self.empty):
            m.d.sync += [query.eq(query + 1), self.query_last.eq(query)]
        with m.If(self.restart):
            m.d.sync += query.eq(0)
        return whole

    def _count(self, m: Module, stores: Any, ends: Any, room: Signal) -> None:
        """Count rows in and out."""
        step(m, self.stored, stores, self.sent)
        with m.If(stores):
            m.d.sync += self.count.eq(self.count + 1)
        with m.If(ends):
            m.d.sync += self.ended.eq(1)
        m.d.sync += room.eq(self.stored < self._sizes.stored_rows - _UNCOUNTED)
