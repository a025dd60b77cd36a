"""Prefetches records from the command ring. It does not interpret them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import RECORD_WORDS
from .ring import RingRead

__all__ = ["Fetch"]


class Fetch(wiring.Component):
    """Reads the words of one record, a group at a time, from the first on.

    A group passes three stages: requested, on the ring's output (``arriving``), on ``words``
    (``valid``). All stages advance in each cycle in which ``words`` are free.

    Parameters
    ----------
    slots
        Records in the ring.
    columns
        Words of a group: 1, 2 or 4.

    Members
    -------
    slot
        The record to read.
    again
        Drop all groups. From the next cycle on, read ``slot``, as it is then, from its first group.
    ring
        The read port of the `Ring`.
    words
        The next group.
    position
        Number of the next group; undefined in the cycle after ``again``.
    valid
        ``words`` are valid.
    take
        ``words`` are used in this cycle. Allowed only with ``valid``.
    begun
        A group was taken since ``again``.

    Latency: 3 cycles from ``again`` to ``valid``. Throughput: a group a cycle. Behind a record's
    last group it continues with the first one of the same record.
    """

    def __init__(self, slots: int, columns: int) -> None:
        self._groups = RECORD_WORDS // columns
        super().__init__(
            {
                "slot": In(range(slots)),
                "again": In(1),
                "ring": Out(RingRead(slots, columns)),
                "words": Out(32 * columns),
                "position": Out(range(self._groups)),
                "valid": Out(1),
                "take": In(1),
                "begun": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # `again` arrives late in its cycle. Registers that may be wrong in the next cycle are
        # corrected in that one.
        afresh = Signal()
        group, following = Signal(range(self._groups)), Signal(range(self._groups))
        moves = Signal()
        arriving = Signal()
        words = Signal(len(self.words), reset_less=True)
        m.d.comb += [
            moves.eq(~self.valid | self.take),
            self.ring.enable.eq(moves),
            group.eq(Mux(afresh, 0, following)),
            self.ring.address.eq(Cat(group, self.slot)),
            self.words.eq(words),
        ]
        m.d.sync += [
            afresh.eq(self.again),
            arriving.eq(~self.again & (moves | arriving)),
            self.valid.eq(~self.again & Mux(moves, arriving, self.valid)),
            self.begun.eq(~self.again & (self.begun | self.take)),
        ]
        with m.If(moves):
            m.d.sync += [words.eq(self.ring.words), following.eq(group + 1)]
        with m.If(self.take):
            m.d.sync += self.position.eq(self.position + 1)
        with m.If(afresh):
            m.d.sync += self.position.eq(0)
        return m
