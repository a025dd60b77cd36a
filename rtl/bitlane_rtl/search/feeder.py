"""Sends a tile of rows to the units and then all queries past them, tile by tile."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import Load, Sizes, Tag

__all__ = ["Feeder"]


class Feeder(wiring.Component):
    """Reads the store: a row for each unit, then all queries, and so on until the rows are used up.

    ========  ==============================================  =====================================
    State     Output                                          Next
    ========  ==============================================  =====================================
    WAIT      nothing                                         ROWS, if a tile is stored or the last
                                                              rows are; OVER, if none are left
    ROWS      a row for each unit                             QUERIES, after the tile's last row
    QUERIES   the queries, with pauses while ``full``         WAIT, after the last query
    OVER      ``over``                                        WAIT, with ``restart``
    ========  ==============================================  =====================================

    Members
    -------
    stored, ended, query_last, sent
        The ports of `Intake` with these names.
    full
        Send no query. A tile that has begun still loads all its rows.
    address
        The `Store` reads this row or query.
    load, tag
        The use of the row or query at ``address``. ``tag.worst`` is 0.
    over
        All queries have been compared with all rows; held until ``restart``.
    restart
        The next search may begin.

    Latency: 3 cycles from ``stored`` to the first ``load`` of a tile.
    Throughput: a row or a query a cycle; a tile is ``units + queries + 1`` cycles.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        super().__init__(
            {
                "stored": In(range(sizes.stored_rows + 1)),
                "ended": In(1),
                "query_last": In(sizes.query_bits),
                "sent": Out(1),
                "full": In(1),
                "address": Out(range(sizes.store_depth)),
                "load": Out(Load(sizes)),
                "tag": Out(Tag(sizes)),
                "over": Out(1),
                "restart": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        units = self._sizes.search.units
        # Registers cut the paths of the long comparisons; a tile starts a cycle later.
        whole, some, none = Signal(), Signal(), Signal()
        m.d.sync += [
            whole.eq(self.stored >= units),
            some.eq(self.ended & (self.stored != 0)),
            none.eq(self.ended & (self.stored == 0) & ~self.restart),
        ]
        row = Signal(range(self._sizes.stored_rows))
        position, position_last = Signal.like(self.load.position), Signal.like(self.load.position)
        query = Signal(self._sizes.query_bits)
        base = Signal(self._sizes.index_bits)
        loads, sends, stalled = Signal(), Signal(), Signal()
        m.d.sync += [
            stalled.eq(self.full),
            self.load.valid.eq(loads),
            self.load.position.eq(position),
            self.tag.valid.eq(sends),
            self.tag.query.eq(query),
            self.tag.base.eq(base),
            self.address.eq(Mux(loads, row, query)),
            self.address[-1].eq(loads),
        ]
        m.d.comb += self.sent.eq(loads)
        with m.FSM():
            with m.State("WAIT"):
                m.d.sync += [
                    position.eq(0),
                    query.eq(0),
                    position_last.eq(Mux(whole, units - 1, self.stored - 1)),
                ]
                with m.If(whole | some):
                    m.next = "ROWS"
                with m.Elif(none):
                    m.d.sync += self.over.eq(1)
                    m.next = "OVER"
            with m.State("ROWS"):
                m.d.comb += loads.eq(1)
                m.d.sync += [position.eq(position + 1), row.eq(row + 1)]
                with m.If(position == position_last):
                    m.next = "QUERIES"
            with m.State("QUERIES"):
                m.d.comb += sends.eq(~stalled)
                with m.If(sends):
                    m.d.sync += query.eq(query + 1)
                    with m.If(query == self.query_last):
                        m.d.sync += base.eq(base + units)
                        m.next = "WAIT"
            with m.State("OVER"):
                with m.If(self.restart):
                    m.d.sync += [self.over.eq(0), base.eq(0)]
                    m.next = "WAIT"
        return m
