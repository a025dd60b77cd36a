"""The search array: finds the rows of a database that are nearest to each query of a batch.

It must never output a result that depends on a row or a query in error.
"""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..configuration import Configuration
from ..streams import Fifo, SkidBuffer, ToWrite
from .cluster import Cluster
from .feeder import Feeder
from .intake import Intake
from .layouts import Beat, Candidate, Sizes, Tag
from .lists import Lists
from .store import Store

__all__ = ["SearchArray"]


class SearchArray(wiring.Component):
    """Compares all queries of a batch with all rows of a database, and lists the nearest of each.

    A tile of the database is in flip-flops, one row in each unit. All queries stream past it from
    block RAM, one a cycle, each with the distance of the last row in its list. A unit whose row is
    nearer has a hit, which is rare after the first rows. Hits wait in the FIFO of their cluster and
    leave along the chain of clusters to the lists, which compare them once more. While the queries
    stream, the rows of the next tile are written to block RAM::

        queries, rows -> intake -> store -> cluster 0 -> cluster 1 -> ...
                                     ^         |  <- hits
                                  feeder       v
                                              FIFO -> lists -> o

    Parameters
    ----------
    configuration
        With a ``search``. A run is less than ``2**length_bits`` bytes.

    Members
    -------
    queries
        Whole queries, 1 to ``search.queries``, the first bytes first. Accepted before the rows.
    rows
        Whole rows, 1 or more.
    o
        ``search.nearest`` entries for each query, of two 32-bit words, distance and index, sorted
        by both. If there are fewer rows, all bits of the other entries are 1. After the last entry
        the next search may begin. After a beat in error, all output is in error until a reset.

    Latency: ``Cluster.depth + 5`` cycles from the end of the last tile until the first list is
    opened, if no hit is in flight, and 2 more until its first entry is valid.
    Throughput: of ``R`` rows, ``T`` tiles of ``P`` units and ``Q`` queries of ``w`` beats,
    ``Q * w + T * max(Q + P + 1, P * w) + Q * (2 + nearest * 64 / data_width)`` cycles, if the hits
    do not stall it. The lists take ``1.25 * P * Q`` cycles for the hits of the first tile, and
    ``1.25 * R * Q`` for all hits if each row is nearer than all rows before it.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._sizes = sizes = Sizes(configuration)
        beats = In(stream.Signature(Beat(sizes.data_width)))
        super().__init__(
            {
                "queries": beats,
                "rows": beats,
                "o": Out(stream.Signature(ToWrite(sizes.data_width))),
            }
        )
        self._clusters = [Cluster(sizes, number) for number in range(sizes.clusters)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes = self._sizes
        m.submodules.intake = intake = Intake(sizes)
        m.submodules.store = store = Store(sizes)
        m.submodules.feeder = feeder = Feeder(sizes)
        m.submodules.lists = lists = Lists(sizes)
        wiring.connect(m, wiring.flipped(self.queries), intake.queries)
        wiring.connect(m, wiring.flipped(self.rows), intake.rows)
        wiring.connect(m, intake.write, store.write)
        m.d.comb += [
            store.address.eq(feeder.address),
            feeder.stored.eq(intake.stored),
            feeder.ended.eq(intake.ended),
            feeder.query_last.eq(intake.query_last),
            intake.sent.eq(feeder.sent),
            lists.empty.eq(intake.empty),
            lists.empty_query.eq(intake.empty_query),
            lists.query_last.eq(intake.query_last),
            intake.restart.eq(lists.emitted),
            feeder.restart.eq(lists.emitted),
        ]
        room = Signal()
        slot = self._chain(m, feeder, store, lists, room)
        self._queue(m, slot, intake, lists, room)
        self._end(m, slot, feeder, lists)
        self._output(m, intake, lists)
        return m

    def _chain(self, m: Module, feeder: Feeder, store: Store, lists: Lists, room: Signal) -> Any:
        """Connect the chain of clusters. Return the slot that leaves the first cluster."""
        sizes = self._sizes
        tag = feeder.tag
        for stage in range(self._clusters[0].latency):
            later = Signal(Tag(sizes), name=f"tag_{stage}")
            m.d.sync += later.eq(tag)
            tag = later
        compared = Signal(Tag(sizes))
        with_worst = Signal(Tag(sizes))
        m.d.sync += compared.eq(tag)
        m.d.comb += [
            lists.worst_query.eq(tag.query),
            with_worst.eq(compared),
            with_worst.worst.eq(lists.worst),
        ]
        before: tuple[Any, ...] = (store.row, feeder.load, with_worst, room)
        for number, cluster in enumerate(self._clusters):
            m.submodules[f"cluster_{number}"] = cluster
            into = (cluster.bits, cluster.load, cluster.tag, cluster.room)
            m.d.comb += [one.eq(other) for one, other in zip(into, before, strict=True)]
            before = (cluster.bits_on, cluster.load_on, cluster.tag_on, cluster.room_on)
        for near, far in pairwise(self._clusters):
            m.d.comb += [near.slot_on.eq(far.slot), near.full_on.eq(far.full)]
        m.d.comb += feeder.full.eq(self._clusters[0].full)
        return self._clusters[0].slot

    def _queue(self, m: Module, slot: Any, intake: Intake, lists: Lists, room: Signal) -> None:
        """Queue the hits. Drop those of old rows, which units beyond the last tile still hold."""
        sizes = self._sizes
        in_flight = 2 * sizes.clusters + 8
        m.submodules.candidates = candidates = Fifo(
            Candidate(sizes), 2 << ceil_log2(in_flight), block_ram=True
        )
        wiring.connect(m, candidates.o, lists.i)
        valid = Signal()
        query, distance = Signal(sizes.query_bits), Signal(sizes.distance_bits)
        index = Signal(sizes.index_bits + 1)
        m.d.sync += [
            valid.eq(slot.valid),
            query.eq(slot.query),
            distance.eq(slot.distance),
            index.eq(slot.base + slot.position),
        ]
        m.d.comb += [
            candidates.i.valid.eq(valid & (index < intake.count)),
            candidates.i.p.query.eq(query),
            candidates.i.p.key.eq(Cat(index[: sizes.index_bits], distance)),
        ]
        half = len(candidates.level) - 2
        m.d.sync += room.eq(~candidates.level[half:].any())

    def _end(self, m: Module, slot: Any, feeder: Feeder, lists: Lists) -> None:
        """Emit the lists once no hit can be in flight.

        Hits may leave while nothing waits in front of the lists. If any hit exists, one arrives
        within the time of a query to the farthest cluster and back.
        """
        quiet = Signal(range(self._clusters[0].depth + 1))
        begins = ~feeder.over | lists.emitted
        with m.If(begins | slot.valid | lists.i.valid | lists.busy):
            m.d.sync += quiet.eq(0)
        with m.Elif(~quiet[-1]):
            m.d.sync += quiet.eq(quiet + 1)
        m.d.comb += lists.emit.eq(quiet[-1])

    def _output(self, m: Module, intake: Intake, lists: Lists) -> None:
        """Output the entries beat by beat, or errors."""
        width = self._sizes.data_width
        m.submodules.skid = skid = SkidBuffer(ToWrite(width))
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        upper = Signal()
        both = lists.o.p.as_value()
        m.d.comb += [
            skid.i.valid.eq(lists.o.valid | intake.failed),
            skid.i.p.error.eq(intake.failed),
            skid.i.p.data.eq(both if width == 64 else both.word_select(upper, width)),
            lists.o.ready.eq(skid.i.ready & (upper | (width == 64))),
        ]
        with m.If(lists.o.valid & skid.i.ready):
            m.d.sync += upper.eq(~upper)
