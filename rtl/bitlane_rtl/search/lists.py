"""The nearest rows of each query, sorted by distance and then by index.

A row must never displace a nearer row, nor one of the same distance and a lower index, whatever
the order in which the rows arrive.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..primitives import Ram
from .layouts import Candidate, Sizes

__all__ = ["Lists", "Neighbour"]


class Neighbour(data.Struct):
    """A row that a search finds. All bits are 1 if the database has too few rows."""

    distance: 32
    index: 32


class Lists(wiring.Component):
    """A sorted list for each query: one word of block RAM, which is read and written as a whole.

    The list of the last candidate's query is open: it is in registers. A candidate of another query
    takes one cycle to open that query's list. Every candidate takes one cycle to be inserted, or to
    be dropped. So ``c`` candidates in ``g`` groups of the same query take ``c + g`` cycles.

    Until a list is full, every row is a candidate. A search of ``R`` rows by ``P`` units has about
    ``P + nearest * ln(R / P)`` candidates for each query, the first ``P`` of them in groups. With
    64 units, 16 nearest and 65,536 rows, these lists take 300 cycles for each query, and the
    comparisons 1,024. Lists that are searched one entry a cycle would need a tenth of the area, but
    ``nearest + 2`` cycles for each candidate: 3,100 cycles.

    Members
    -------
    empty, empty_query
        Empty this query's list. Allowed only after a reset or ``emitted``, before any candidate.
    i
        Candidates for the lists.
    worst_query
        The query of which ``worst`` is read.
    worst
        The distance of the last entry of the list of ``worst_query`` of the cycle before, or an
        older and larger value of that distance. All bits are 1 while the list is not full.
    busy
        A candidate was accepted and is not in its list yet.
    emit
        Emit all lists; held until ``emitted``. Allowed only while ``busy`` is 0.
    query_last
        The number of the last query.
    o
        The entries of all lists, in order of queries.
    emitted
        The last entry leaves in this cycle.

    Latency: 2 cycles from a candidate to its open list, 3 if that must be opened; 3 cycles from
    ``emit`` to the first entry.
    Throughput: see above; ``nearest + 2`` cycles for each list that is emitted.
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
                "emit": In(1),
                "query_last": In(sizes.query_bits),
                "o": Out(stream.Signature(Neighbour)),
                "emitted": Out(1),
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
        valid, opens, loads = Signal(), Signal(), Signal()
        # The query whose list is open, and whether that list is not yet in memory.
        owner, changed = Signal(self._sizes.query_bits), Signal()
        emitted_query = Signal(self._sizes.query_bits)
        read_query = Mux(self.emit, emitted_query, self.i.p.query)
        shown = self._memory(m, Cat(entries), owner, changed, read_query)
        self._worst(m, entries[-1][self._sizes.index_bits :], owner, changed)

        enters, inserts = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~opens),
            enters.eq(self.i.valid & ~opens),
            inserts.eq(valid & ~opens),
            self.busy.eq(valid | changed),
        ]
        with m.If(~opens):
            m.d.sync += valid.eq(self.i.valid)
        # After a reset the open list is empty, as all lists are. A list is in memory in the cycle
        # after its change. It cannot be opened sooner, because another is opened in between.
        with m.If(enters):
            m.d.sync += [
                candidate.eq(self.i.p),
                opens.eq(self.i.p.query != candidate.query),
            ]
        with m.Elif(opens):
            m.d.sync += opens.eq(0)
        m.d.sync += changed.eq(inserts | self.empty)
        with m.If(inserts):
            m.d.sync += owner.eq(candidate.query)
        with m.Elif(self.empty):
            m.d.sync += owner.eq(self.empty_query)
        self._insert(m, entries, candidate.key, inserts)
        self._emit(m, entries, emitted_query, loads)
        with m.If(opens | loads):
            m.d.sync += Cat(entries).eq(shown)
        with m.If(self.emitted):
            m.d.sync += Cat(entries).eq(-1)
        return m

    def _memory(
        self, m: Module, entries: Value, owner: Signal, changed: Signal, query: Value
    ) -> Signal:
        """Store the open list. Return the list of ``query`` of the cycle before."""
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

    def _insert(self, m: Module, entries: list[Signal], key: Value, inserts: Signal) -> None:
        """Insert ``key`` in front of the first farther entry; all from there on move by one."""
        nearer_before: Value = Const(0)
        before: Value = key
        for rank, entry in enumerate(entries):
            nearer = Signal(name=f"nearer_{rank}")
            m.d.comb += nearer.eq(key < entry)
            with m.If(inserts & nearer):
                m.d.sync += entry.eq(Mux(nearer_before, before, key))
            nearer_before, before = nearer, entry

    def _emit(self, m: Module, entries: list[Signal], emitted_query: Signal, loads: Signal) -> None:
        """Open the lists in turn and emit their entries. ``loads``: a list is opened."""
        following = Signal(range(max(len(entries), 2)))
        key = Signal(len(entries[0]))
        index_bits = self._sizes.index_bits
        distance, index = key[index_bits:], key[:index_bits]
        last = Signal()
        m.d.comb += [
            self.o.p.distance.eq(Mux(distance.all(), -1, distance)),
            self.o.p.index.eq(Mux(distance.all(), -1, index)),
        ]
        # A register, because the path from it to the output is long enough.
        several = len(entries) > 1
        select = [key.eq(Array(entries)[following] if several else entries[0])]
        select += [following.eq(following + several)]
        with m.FSM():
            with m.State("UPDATE"):
                with m.If(self.emit):
                    m.next = "OPEN"
            with m.State("OPEN"):
                m.d.comb += loads.eq(1)
                m.d.sync += [
                    last.eq(emitted_query == self.query_last),
                    emitted_query.eq(emitted_query + 1),
                ]
                m.next = "SELECT"
            with m.State("SELECT"):
                m.d.sync += select
                m.next = "EMIT"
            with m.State("EMIT"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready & (following != 0)):
                    m.d.sync += select
                with m.Elif(self.o.ready):  # the last entry: `following` has wrapped
                    m.next = "OPEN"
                    with m.If(last):
                        m.d.comb += self.emitted.eq(1)
                        m.d.sync += emitted_query.eq(0)
                        m.next = "UPDATE"
