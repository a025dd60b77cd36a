"""The search array: which rows of a database are nearest to each query of a batch.

Must never offer a result that a row or a query in error has part in.
"""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..configuration import Configuration
from ..streams.beats import ToWrite
from ..streams.fifo import Fifo
from ..streams.register_slices import SkidBuffer
from .cluster import Cluster
from .feeder import Feeder
from .intake import Intake
from .layouts import Beat, Candidate, Sizes, Tag
from .lists import Lists
from .store import Store

__all__ = ["SearchArray"]


class SearchArray(wiring.Component):
    """Compares all queries of a batch with all rows of a database, and keeps the nearest of each.

    A tile of the database, a row a unit, lies in flip-flops; all queries stream past it from block
    RAM, a query a cycle, each with the distance of the last row in its list. A unit whose row is
    nearer has a hit, which is rare but for the first rows. Hits of a cluster of units wait in a
    queue and leave along the chain of clusters for the lists, which judge them again. While the
    queries pass, the rows of the next tile come into block RAM.

    Parameters
    ----------
    configuration
        With a ``search``. A run is less than ``2**length_bits`` bytes.

    Members
    -------
    queries : ``In(stream.Signature(Beat(data_width)))``
        Whole queries, 1 to ``search.queries``, the first bytes first, taken before the rows.
    rows : ``In(stream.Signature(Beat(data_width)))``
        Whole rows, 1 or more.
    o : ``Out(stream.Signature(ToWrite(data_width)))``
        ``search.nearest`` entries for each query, of two 32-bit words, distance and index, sorted
        by both. Where there are fewer rows all bits are 1. After the last entry the next search may
        begin. A beat in error makes it offer errors until it is reset, whatever comes.

    Throughput: of ``R`` rows, ``T`` tiles of ``P`` units and ``Q`` queries of ``w`` beats,
    ``Q * w + T * max(Q + P + 1, P * w) + Q * (2 + nearest * 64 / data_width)`` cycles, where the
    first tile's hits, ``1.25 * P * Q`` cycles in the lists, and those of others do not hold it up.
    Each row nearer than all before makes that ``1.25 * R * Q``.
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
        m.d.comb += [
            store.write.eq(intake.write),
            store.write_address.eq(intake.write_address),
            store.write_word.eq(intake.write_word),
            store.write_data.eq(intake.write_data),
            store.address.eq(feeder.address),
            feeder.stored.eq(intake.stored),
            feeder.ended.eq(intake.ended),
            feeder.query_last.eq(intake.query_last),
            intake.sent.eq(feeder.sent),
            lists.empty.eq(intake.empty),
            lists.empty_query.eq(intake.empty_query),
            lists.query_last.eq(intake.query_last),
            intake.again.eq(lists.given),
            feeder.again.eq(lists.given),
        ]
        go = Signal()
        slot = self._chain(m, feeder, store, lists, go)
        self._judge(m, slot, intake, lists, go)
        self._end(m, slot, feeder, lists)
        self._offer(m, intake, lists)
        return m

    def _chain(self, m: Module, feeder: Feeder, store: Store, lists: Lists, go: Signal) -> Any:
        """Chain the clusters. What comes out of the nearest is a hit."""
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
        before: tuple[Any, ...] = (store.row, feeder.load, with_worst, go)
        for number, cluster in enumerate(self._clusters):
            m.submodules[f"cluster_{number}"] = cluster
            into = (cluster.bits, cluster.load, cluster.tag, cluster.go)
            m.d.comb += [one.eq(other) for one, other in zip(into, before, strict=True)]
            before = (cluster.bits_on, cluster.load_on, cluster.tag_on, cluster.go_on)
        for near, far in pairwise(self._clusters):
            m.d.comb += [near.slot_on.eq(far.slot), near.full_on.eq(far.full)]
        m.d.comb += feeder.full.eq(self._clusters[0].full)
        return self._clusters[0].slot

    def _judge(self, m: Module, slot: Any, intake: Intake, lists: Lists, go: Signal) -> None:
        """Queue the hits of rows that there are: units of the last tile may hold earlier ones."""
        sizes = self._sizes
        on_their_way = 2 * sizes.clusters + 8
        m.submodules.queue = queue = Fifo(
            Candidate(sizes), 2 << (on_their_way - 1).bit_length(), block_ram=True
        )
        wiring.connect(m, queue.o, lists.i)
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
            queue.i.valid.eq(valid & (index < intake.count)),
            queue.i.p.query.eq(query),
            queue.i.p.key.eq(Cat(index[: sizes.index_bits], distance)),
        ]
        half = len(queue.level) - 2
        m.d.sync += go.eq(~queue.level[half:].any())

    def _end(self, m: Module, slot: Any, feeder: Feeder, lists: Lists) -> None:
        """Hand out the lists when no hit can be on its way any more.

        With nothing waiting before the lists, hits may leave, and one that is anywhere arrives, or
        another before it, within the time that a query takes to the farthest cluster and back.
        """
        quiet = Signal(range(self._clusters[0].depth + 1))
        begins = ~feeder.over | lists.given
        with m.If(begins | slot.valid | lists.i.valid | lists.busy):
            m.d.sync += quiet.eq(0)
        with m.Elif(~quiet[-1]):
            m.d.sync += quiet.eq(quiet + 1)
        m.d.comb += lists.give.eq(quiet[-1])

    def _offer(self, m: Module, intake: Intake, lists: Lists) -> None:
        """Hand out entries a beat at a time, or errors."""
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
