"""Sends tiles of rows and then all queries past the units, again and again. Decides no hit."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import Load, Sizes, Tag

__all__ = ["Feeder"]


class Feeder(wiring.Component):
    """Walks through the store: a row for each unit, then all queries, until all rows were there.

    Members
    -------
    stored, ended, query_last, sent
        As those of `Intake`.
    full : ``In(1)``
        Send no query. Rows of a tile whose first was sent go on.
    address : ``Out(range(store_depth))``
        To the `Store`.
    load, tag : ``Out(Load)``, ``Out(Tag)``
        What stands at ``address``. ``tag.worst`` is 0.
    over : ``Out(1)``
        All queries have passed all rows. Until ``again``.
    again : ``In(1)``
        The next search may begin.

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
                "again": In(1),
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
            none.eq(self.ended & (self.stored == 0) & ~self.again),
        ]
        place = Signal(range(self._sizes.stored_rows))
        position, position_last = Signal.like(self.load.position), Signal.like(self.load.position)
        query = Signal(self._sizes.query_bits)
        base = Signal(self._sizes.index_bits)
        loads, asks, stalled = Signal(), Signal(), Signal()
        m.d.sync += [
            stalled.eq(self.full),
            self.load.valid.eq(loads),
            self.load.position.eq(position),
            self.tag.valid.eq(asks),
            self.tag.query.eq(query),
            self.tag.base.eq(base),
            self.address.eq(Mux(loads, place, query)),
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
                m.d.sync += [position.eq(position + 1), place.eq(place + 1)]
                with m.If(position == position_last):
                    m.next = "QUERIES"
            with m.State("QUERIES"):
                m.d.comb += asks.eq(~stalled)
                with m.If(asks):
                    m.d.sync += query.eq(query + 1)
                    with m.If(query == self.query_last):
                        m.d.sync += base.eq(base + units)
                        m.next = "WAIT"
            with m.State("OVER"):
                with m.If(self.again):
                    m.d.sync += [self.over.eq(0), base.eq(0)]
                    m.next = "WAIT"
        return m
