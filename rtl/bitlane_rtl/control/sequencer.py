"""Fetches records from the command ring, checks them, and starts commands in order.

It starts a command only if its record has been submitted, has a valid seal and can be executed. It
reports a bad record after every earlier command has retired, and starts nothing after it.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..command import CheckedCommand, LoopRegisters
from ..configuration import Configuration
from .decoder import Decoder
from .fetch import Fetch
from .refusals import Refusals
from .ring import RingRead
from .search_sizes import SearchSizes

__all__ = ["Sequencer", "ring_columns"]


def ring_columns(configuration: Configuration) -> int:
    """Words that are read from the ring at once, so that a short command is fetched in no more
    cycles than its 64 bytes take on the data path."""
    return min(configuration.data_width, 128) // 32


class Sequencer(wiring.Component):
    """Turns the ring's records into commands.

    A record passes three states. It may be fetched and checked before it is submitted:

    ======  ==========================================  ==========================================
    State   What happens                                Next
    ======  ==========================================  ==========================================
    TAKE    groups of its words are sent to decoder     DECODE after its last group
            and refusals, as `Fetch` reads them
    DECODE  the command and its status are computed     HOLD
    HOLD    once submitted, it is started or refused    TAKE, of the next slot, when it is started
    ======  ==========================================  ==========================================

    If the record is not submitted, a write to the ring leads back to TAKE, from its first word. If
    it is submitted, such a write only makes the next record be fetched again.

    Members
    -------
    doorbell
        Records submitted since reset.
    doorbell_write, doorbell_data
        ``doorbell`` will be ``doorbell_data`` in the next cycle.
    ring_write
        The host writes to the ring in this cycle: prefetched words are fetched again.
    ring
        The read port of the `Ring`.
    walking
        The loop registers are in use.
    idle
        Every command that was started has retired. It may be asserted late.
    loops
        The loop registers of the command that is decoded.
    o
        Commands, in order.
    interrupt
        The command on ``o`` requests an interrupt when it retires.
    refused
        The next command cannot be executed, and all before it have retired.
    code
        The `Status` of the refused command.

    Latency: doorbell to command 0 cycles if the record was fetched ahead; a fetch takes
    ``4 + ceil(words / columns)`` cycles. Throughput: a command of 6 (8 with B) words every
    ``2 + ceil(words / columns)`` cycles; a record with loops waits until ``walking`` is 0.
    Bound of the clock: a write to DOORBELL into ``submitted``, and ``take`` into `Refusals`.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._columns = ring_columns(configuration)
        super().__init__(
            {
                "doorbell": In(16),
                "doorbell_write": In(1),
                "doorbell_data": In(16),
                "ring_write": In(1),
                "ring": Out(RingRead(configuration.slots, self._columns)),
                "walking": In(1),
                "idle": In(1),
                "loops": Out(LoopRegisters(configuration)),
                "o": Out(stream.Signature(CheckedCommand(configuration))),
                "interrupt": Out(1),
                "refused": Out(1),
                "code": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, columns = self._configuration, self._columns
        m.submodules.fetch = fetch = Fetch(config.slots, columns)
        m.submodules.decoder = decoder = Decoder(config, columns)
        m.submodules.refusals = refusals = Refusals(config, columns)
        start = Signal()
        m.d.comb += start.eq(self.o.valid & self.o.ready)
        started, submitted, early = self._submissions(m, start)

        restart = Signal()
        slot = Signal(range(config.slots))
        # The next group is a loop's, and the loop registers are in use. This is a cycle late, but
        # long before the next command can deliver such a group.
        held = Signal()
        m.d.sync += held.eq(self.walking & (fetch.position + fetch.take >= 8 // columns))
        m.d.comb += [
            # The host may still be writing what was fetched ahead of the doorbell.
            restart.eq(self.ring_write & early),
            fetch.again.eq(restart | (self.ring_write & ~fetch.begun & ~fetch.take)),
            fetch.slot.eq(slot),
            refusals.clear.eq(restart | decoder.decode),
        ]
        self._connect(m, fetch, decoder, refusals)

        good = Signal()
        # In HOLD, and it can be executed. A register, because a start has much logic behind it.
        offers = Signal()
        fenced = decoder.control.fence & ~self.idle
        m.d.comb += self.o.valid.eq(submitted & offers & ~fenced)
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += fetch.take.eq(fetch.valid & ~held)
                with m.If(fetch.take & decoder.last):
                    # Drop the words fetched beyond the record, and fetch the next record.
                    m.d.comb += fetch.again.eq(1)
                    m.d.sync += slot.eq(slot + 1)
                    m.next = "DECODE"
                with m.If(restart):
                    m.next = "TAKE"
            with m.State("DECODE"):
                m.d.comb += decoder.decode.eq(1)
                m.d.sync += [
                    self.code.eq(refusals.code),
                    good.eq(refusals.good),
                    offers.eq(refusals.good & ~restart),
                ]
                m.next = "HOLD"
                with m.If(restart):
                    m.next = "TAKE"
            with m.State("HOLD"):
                m.d.comb += self.refused.eq(submitted & ~good & self.idle)
                with m.If(start | restart):
                    m.d.sync += offers.eq(0)
                    m.next = "TAKE"
        with m.If(restart):
            m.d.sync += slot.eq(started)
        return m

    def _connect(self, m: Module, fetch: Fetch, decoder: Decoder, refusals: Refusals) -> None:
        wiring.connect(m, fetch.ring, wiring.flipped(self.ring))
        m.d.comb += [
            refusals.used.eq(decoder.used),
            refusals.control.eq(decoder.control),
            self.loops.eq(decoder.loops),
            self.o.payload.eq(decoder.command),
            self.interrupt.eq(decoder.control.interrupt),
        ]
        units: list[Any] = [decoder, refusals]
        if search := self._configuration.search:
            m.submodules.sizes = sizes = SearchSizes(self._configuration, search, self._columns)
            units.append(sizes)
            m.d.comb += [
                decoder.b_extent.eq(sizes.b_extent),
                decoder.y_extent.eq(sizes.y_extent),
                refusals.bad_search.eq(sizes.wrong),
            ]
        for each in units:
            m.d.comb += [
                each.group.words.eq(fetch.words),
                each.group.position.eq(fetch.position),
                each.group.take.eq(fetch.take),
            ]

    def _submissions(self, m: Module, start: Signal) -> tuple[Signal, Signal, Signal]:
        """Count the commands that ``start``.

        Return their number; whether the next one has been submitted (undefined in the cycle after
        ``start``); and whether it may be too early to read it.
        """
        # DOORBELL is at most ``slots`` ahead, so one bit more than a slot's number is enough.
        started = Signal(range(2 * self._configuration.slots))
        submitted = Signal()
        just_started = Signal()
        early = Signal()
        ahead, later_ahead = (
            count[: len(started)] != started for count in (self.doorbell, self.doorbell_data)
        )
        with m.If(start):
            m.d.sync += started.eq(started + 1)
        # Two comparisons a cycle ahead, because a write to the doorbell arrives late. The start of
        # a command arrives late, too: `submitted` follows it after a cycle.
        m.d.sync += [
            just_started.eq(start),
            submitted.eq(Mux(self.doorbell_write, later_ahead, ahead)),
        ]
        m.d.comb += early.eq(~submitted | just_started)
        return started, submitted, early
