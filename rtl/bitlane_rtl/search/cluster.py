"""A few units and the FIFO of their hits. It must never lose a hit."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..streams import Fifo, ForwardRegister
from .layouts import CLUSTER, Hits, Load, Sizes, Slot, Tag
from .unit import Unit

__all__ = ["Cluster"]


class Cluster(wiring.Component):
    """Up to `CLUSTER` units, which share the registers of ``bits`` and a FIFO of hits.

    Clusters form a chain (a systolic array). Every signal passes a cluster through registers, in
    one cycle: ``bits``, ``load``, ``tag`` and ``room`` away from the head of the array, ``slot``
    and ``full`` towards it. Names with ``_on`` are those of the side away from the head.

    Parameters
    ----------
    number
        Number of the cluster. Its units are numbered from ``number * CLUSTER`` on.

    Members
    -------
    bits, bits_on
        A query, or the row of a unit.
    load, load_on
        The unit whose row ``bits`` are in the next cycle.
    tag, tag_on
        The query that ``bits`` were `latency` cycles ago.
    room, room_on
        There is room for hits at the head, so they may leave.
    slot_on, slot
        A hit of a cluster farther from the head; that hit, or one of this cluster.
    full_on, full
        1 while any FIFO of hits from here on is at least half full. The feeder then stops issuing
        queries.

    Latency: ``latency + 5`` cycles from ``bits`` to ``slot``, at the earliest.
    Throughput: a query a cycle, as long as hits leave through ``slot``, one a cycle.
    """

    def __init__(self, sizes: Sizes, number: int) -> None:
        self._sizes = sizes
        self._first = number * CLUSTER
        units = min(CLUSTER, sizes.search.units - self._first)
        self._units = [Unit(sizes.search.row_bits) for _ in range(units)]
        row_bits, load, tag, slot = sizes.search.row_bits, Load(sizes), Tag(sizes), Slot(sizes)
        super().__init__(
            {
                "bits": In(row_bits),
                "bits_on": Out(row_bits),
                "load": In(load),
                "load_on": Out(load),
                "tag": In(tag),
                "tag_on": Out(tag),
                "room": In(1),
                "room_on": Out(1),
                "slot": Out(slot),
                "slot_on": In(slot),
                "full": Out(1),
                "full_on": In(1),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from ``bits`` to their ``tag``."""
        return self._units[0].latency

    @property
    def depth(self) -> int:
        """Entries of the FIFO. Half of them have room for the queries in flight.

        Queries are still sent after one has filled the other half, because ``full`` takes time to
        reach the feeder: the latency of the units, the way through all clusters and back, and a few
        registers.
        """
        return 2 << ceil_log2(self.latency + 2 * self._sizes.clusters + 8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = Signal(len(self.bits), reset_less=True)
        m.d.sync += [
            bits.eq(self.bits),
            self.load_on.eq(self.load),
            self.tag_on.eq(self.tag),
            self.room_on.eq(self.room),
        ]
        m.d.comb += self.bits_on.eq(bits)
        m.submodules.fifo = fifo = Fifo(
            Hits(self._sizes, len(self._units)), self.depth, block_ram=True
        )
        # There is always room: `full` stops the queries long before.
        m.d.comb += [
            fifo.i.p.query.eq(self.tag_on.query),
            fifo.i.p.base.eq(self.tag_on.base),
            fifo.i.valid.eq(fifo.i.p.units.any()),
        ]
        for number, unit in enumerate(self._units):
            m.submodules[f"unit_{number}"] = unit
            load = Signal(name=f"load_{number}")
            m.d.sync += load.eq(
                self.load_on.valid & (self.load_on.position == self._first + number)
            )
            m.d.comb += [
                unit.bits.eq(bits),
                unit.load.eq(load),
                fifo.i.p.distances[number].eq(unit.distance),
                fifo.i.p.units[number].eq(self.tag_on.valid & (unit.distance < self.tag_on.worst)),
            ]
        half = len(fifo.level) - 2
        m.d.sync += self.full.eq(self.full_on | fifo.level[half:].any())
        # The output of a block RAM is too late in its cycle for the logic between it and the slot.
        m.submodules.next = following = ForwardRegister(fifo.o.p.shape())
        wiring.connect(m, fifo.o, following.i)
        self._release(m, following.o)
        return m

    def _release(self, m: Module, waiting: Any) -> None:
        """Fill empty slots with the hits of a query, from the lowest unit on."""
        hits = waiting.p
        units = range(len(self._units))
        released, left, lowest = Signal(len(units)), Signal(len(units)), Signal(units)
        free = self.room_on & ~self.slot_on.valid
        m.d.comb += [
            left.eq(hits.units & ~released),
            waiting.ready.eq(free & ~(left & (left - 1)).any()),
        ]
        for number in reversed(units):
            with m.If(left[number]):
                m.d.comb += lowest.eq(number)
        m.d.sync += self.slot.eq(self.slot_on)
        with m.If(~self.slot_on.valid):
            m.d.sync += [
                self.slot.valid.eq(waiting.valid & self.room_on),
                self.slot.query.eq(hits.query),
                self.slot.base.eq(hits.base),
                self.slot.position.eq(self._first + lowest),
                self.slot.distance.eq(Array(hits.distances)[lowest]),
            ]
        with m.If(waiting.valid & free):
            m.d.sync += released.eq(Cat(released[number] | (lowest == number) for number in units))
            with m.If(waiting.ready):
                m.d.sync += released.eq(0)
