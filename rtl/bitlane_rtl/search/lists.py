"""Keeps the nearest rows of each query, sorted by distance and then index.

Must never prefer a row to a nearer one, nor to one as near with a lower index, in whatever order
they come.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..ram import Ram
from .layouts import Candidate, Sizes

__all__ = ["Lists", "Neighbour"]


class Neighbour(data.Struct):
    """A row that a search finds. All bits are 1 if the database has too few rows."""

    distance: 32
    index: 32


class Lists(wiring.Component):
    """One sorted list a query, each a word of block RAM that is read, changed and written whole.

    The list of the last candidate is open, in registers. A candidate of another query takes a cycle
    to open its list, and every candidate one to be put into its place, or dropped: ``c`` candidates
    that come in ``g`` groups of the same query take ``c + g`` cycles. Until a list is full all rows
    are candidates, and so a search of ``R`` rows by ``P`` units has ``P + nearest * ln(R / P)`` of
    them a query, the first ``P`` in groups. Lists that are walked an entry a cycle would take a
    tenth of the area and ``nearest + 2`` cycles a candidate: at 64 units, 16 nearest and 65,536
    rows 3,100 cycles a query, whose comparisons take 1,024. These take 300.

    Members
    -------
    empty, empty_query : ``In(1)``, ``In(query_bits)``
        Make this query's list empty. Only before the first candidate since a reset, or ``given``.
    i : ``In(stream.Signature(Candidate))``
    worst_query : ``In(query_bits)``
    worst : ``Out(distance_bits)``
        The distance of the last entry of the list of ``worst_query``, 1 cycle ago, or an earlier
        one of that list, which is as large or larger; all bits are 1 while the list is not full.
    busy : ``Out(1)``
        A candidate is here and not in its list.
    give : ``In(1)``
        Hand out all lists from now on; until ``given``. Only while not ``busy``.
    query_last : ``In(query_bits)``
        The number of the last query.
    o : ``Out(stream.Signature(Neighbour))``
        The entries of all lists, in order of queries.
    given : ``Out(1)``
        The last entry leaves, in this cycle.

    Throughput: see above; ``nearest + 2`` cycles for each list that is handed out.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        super().__init__(
            {
                "empty": In(1),
                "empty_query": In(sizes.query_bits),
                "i": In(stream.Signature(Candidate(sizes))),
                "worst_query": In(sizes.query_bits),
                "worst": Out(sizes.distance_bits),
                "busy": Out(1),
                "give": In(1),
                "query_last": In(sizes.query_bits),
                "o": Out(stream.Signature(Neighbour)),
                "given": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._sizes.key_bits
        entries = [
            Signal(bits, name=f"entry_{rank}", init=(1 << bits) - 1)
            for rank in range(self._sizes.search.nearest)
        ]
        candidate = Signal(Candidate(self._sizes), reset_less=True)
        valid, opens, gives = Signal(), Signal(), Signal()
        # Whose list is open, and whether it is not yet in memory.
        owner, changed = Signal(self._sizes.query_bits), Signal()
        handed = Signal(self._sizes.query_bits)
        read_query = Mux(self.give, handed, self.i.p.query)
        shown = self._memory(m, Cat(entries), owner, changed, read_query)
        self._worst(m, entries[-1][self._sizes.index_bits :], owner, changed)

        enters, puts = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~opens),
            enters.eq(self.i.valid & ~opens),
            puts.eq(valid & ~opens),
            self.busy.eq(valid | changed),
        ]
        with m.If(~opens):
            m.d.sync += valid.eq(self.i.valid)
        # At first an empty list is open, which is that of any query. A list is in memory a cycle
        # after it was changed, and opened again no sooner than that, as another is in between.
        with m.If(enters):
            m.d.sync += [
                candidate.eq(self.i.p),
                opens.eq(self.i.p.query != candidate.query),
            ]
        with m.Elif(opens):
            m.d.sync += opens.eq(0)
        m.d.sync += changed.eq(puts | self.empty)
        with m.If(puts):
            m.d.sync += owner.eq(candidate.query)
        with m.Elif(self.empty):
            m.d.sync += owner.eq(self.empty_query)
        self._put(m, entries, candidate.key, puts)
        self._hand_out(m, entries, handed, gives)
        with m.If(opens | gives):
            m.d.sync += Cat(entries).eq(shown)
        with m.If(self.given):
            m.d.sync += Cat(entries).eq(-1)
        return m

    def _memory(
        self, m: Module, entries: Value, owner: Signal, changed: Signal, query: Value
    ) -> Signal:
        """Store the open list. Shows the list of ``query``, a cycle later."""
        # A list that is read in the cycle of a write to it is not used.
        ram = Ram(len(entries), self._sizes.search.queries, output="shown")
        m.submodules.storage = ram.memory
        m.d.comb += [
            ram.write.addr.eq(owner),
            ram.write.data.eq(entries),
            ram.write.en.eq(changed),
            ram.read.addr.eq(query),
        ]
        m.d.sync += ram.load()
        return ram.output

    def _worst(self, m: Module, distance: Value, owner: Signal, changed: Signal) -> None:
        # Not a `Ram`: a word that is read in the cycle of a write to it must be the old or the new.
        storage: Any = Memory(
            shape=self._sizes.distance_bits, depth=self._sizes.search.queries, init=[]
        )
        m.submodules.worst = storage
        write, read = storage.write_port(), storage.read_port()
        m.d.comb += [
            write.addr.eq(owner),
            write.data.eq(distance),
            write.en.eq(changed),
            read.addr.eq(self.worst_query),
            self.worst.eq(read.data),
        ]

    def _put(self, m: Module, entries: list[Signal], key: Value, puts: Signal) -> None:
        """Move what is farther than ``key`` on by a place, and put it into the one that is free."""
        nearer_before: Value = Const(0)
        before: Value = key
        for rank, entry in enumerate(entries):
            nearer = Signal(name=f"nearer_{rank}")
            m.d.comb += nearer.eq(key < entry)
            with m.If(puts & nearer):
                m.d.sync += entry.eq(Mux(nearer_before, before, key))
            nearer_before, before = nearer, entry

    def _hand_out(self, m: Module, entries: list[Signal], handed: Signal, gives: Signal) -> None:
        """Open one list after the other, and offer its entries. ``gives``: a list is opened."""
        following = Signal(range(max(len(entries), 2)))
        key = Signal(len(entries[0]))
        index_bits = self._sizes.index_bits
        distance, index = key[index_bits:], key[:index_bits]
        last = Signal()
        m.d.comb += [
            self.o.p.distance.eq(Mux(distance.all(), -1, distance)),
            self.o.p.index.eq(Mux(distance.all(), -1, index)),
        ]
        # From a register, as the way from there to the output is long enough.
        several = len(entries) > 1
        pick = [key.eq(Array(entries)[following] if several else entries[0])]
        pick += [following.eq(following + several)]
        with m.FSM():
            with m.State("KEEP"):
                with m.If(self.give):
                    m.next = "OPEN"
            with m.State("OPEN"):
                m.d.comb += gives.eq(1)
                m.d.sync += [last.eq(handed == self.query_last), handed.eq(handed + 1)]
                m.next = "PICK"
            with m.State("PICK"):
                m.d.sync += pick
                m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready & (following != 0)):
                    m.d.sync += pick
                with m.Elif(self.o.ready):  # it has come round
                    m.next = "OPEN"
                    with m.If(last):
                        m.d.comb += self.given.eq(1)
                        m.d.sync += handed.eq(0)
                        m.next = "KEEP"
