"""Lists hold the nearest candidates, sorted, whatever the order in which these are offered."""

from amaranth.hdl import Assert, Assume, Cat, Module, Signal

from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.search import Lists, Sizes
from support.formal.proof import Claim, Contract, Reached, before, proofs, taken

NEAREST = 2


class Tiny(Sizes):
    """Two queries, distances 0 to 2, indices 0 to 3; lists only compare and move entries."""

    distance_bits = 2  # type: ignore[assignment]
    index_bits = 2  # type: ignore[assignment]


class KeepsTheNearest(Contract):
    """All rows of a query below any key leave its list first, or as many of them as the list holds.

    Batches follow each other: each empties the lists, offers candidates, and reads the lists.
    """

    def claim(self, m: Module) -> None:
        search = Search(units=1, queries=2, nearest=NEAREST)
        m.submodules.lists = lists = Lists(Tiny(Configuration(search=search)))
        query, key = self.something(m, 1, "query"), self.something(m, 4, "key")
        below = Signal(range(NEAREST + 1))
        offers = self._batches(m, lists, below)

        candidate = lists.i.p
        m.d.comb += [
            lists.i.valid.eq(offers),
            candidate.query.eq(self.anything(1, "whose")),
            candidate.key.eq(self.anything(4, "offered_key")),
            Assume(candidate.key[2:] != 3),
        ]
        is_below = taken(lists.i) & (candidate.query == query) & (candidate.key < key)
        with m.If(is_below & (below != NEAREST)):
            m.d.sync += below.eq(below + 1)

        # A row farther than ``worst`` would not enter the list.
        m.d.comb += lists.worst_query.eq(self.anything(1, "asked"))
        asked = before(m, lists.worst_query == query) & before(m, offers)
        with m.If(asked & (lists.worst < key[2:])):
            m.d.comb += Assert(below == NEAREST)
        self._leave(m, lists, query, key, below)

    def _batches(self, m: Module, lists: Lists, below: Signal) -> Signal:
        """Empty the lists, offer candidates, read the lists. Return the candidates' ``valid``."""
        offers = Signal()
        wants = self.anything(1, "wants")
        m.d.comb += lists.query_last.eq(self.something(m, 1, "last"))
        with m.FSM():
            for number in range(2):
                with m.State(f"EMPTY {number}"):
                    m.d.comb += [lists.empty.eq(1), lists.empty_query.eq(number)]
                    m.next = f"EMPTY {number + 1}"
            with m.State("EMPTY 2"):  # the last clear is still in the pipeline
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += offers.eq(wants)
                with m.If(~wants & ~lists.busy & self.anything(1, "ends")):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += lists.emit.eq(1)
                with m.If(lists.emitted):
                    m.d.sync += below.eq(0)
                    m.next = "EMPTY 0"
        # A candidate stays valid until the lists accept it.
        m.d.comb += Assume(~before(m, lists.i.valid & ~lists.i.ready) | wants)
        return offers

    def _leave(self, m: Module, lists: Lists, query: Signal, key: Signal, below: Signal) -> None:
        self.takes(m, lists.o)
        entry = lists.o.p
        rank, whose = Signal(range(NEAREST)), Signal()
        found = Cat(entry.index[:2], entry.distance[:2])
        none = entry.distance.all() & entry.index.all()
        with m.If(lists.o.valid):
            m.d.comb += Assert(none | ((entry.distance < 3) & (entry.index < 4)))
        with m.If(lists.o.valid & (whose == query)):
            m.d.comb += Assert((~none & (found < key)) == (rank < below))
        with m.If(taken(lists.o)):
            m.d.sync += rank.eq(rank + 1)
            with m.If(rank == NEAREST - 1):
                m.d.sync += whose.eq(whose + 1)
        with m.If(lists.emitted):
            m.d.comb += Assert((rank == NEAREST - 1) & (whose == lists.query_last))
            m.d.sync += whose.eq(0)


BUGS = {
    "the list before stays open": ("opens.eq(self.i.p.query != candidate.query)", "opens.eq(0)"),
    "only the distance counts": (
        "nearer.eq(key < entry)",
        "nearer.eq(key[self._sizes.index_bits :] < entry[self._sizes.index_bits :])",
    ),
    "a list is stored only when another is opened": (
        "changed.eq(inserts | self.empty)",
        "changed.eq((inserts & ~enters) | self.empty)",
    ),
    "an old list stays open": ("m.d.sync += Cat(entries).eq(-1)", "pass"),
    "the last list is left out": (
        "last.eq(emitted_query == self.query_last)",
        "last.eq(emitted_query + 1 >= self.query_last)",
    ),
}


test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(KeepsTheNearest, Reached, module="search.lists", bugs=BUGS, within=24),
)
