"""A recorder of the buses, in a RAM outside of the circuit, and an engine that shows its events.

Neither influences the simulated system.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import Status
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.engine import Engine

from ..ports import AXI_CHANNELS, EVENTS_BIT, RECORD

_LAYOUT = data.StructLayout(dict(RECORD))
_COUNT_BITS = 32


class RecordStorage(wiring.Signature):
    """Write port of the RAM, seen from the recorder."""

    def __init__(self) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(_COUNT_BITS),
                "data": Out(_LAYOUT.size),
                "mask": Out(_LAYOUT.size // 8),
            }
        )


class Recorder(wiring.Component):
    """Writes a record in each cycle in which something has changed or an address is taken.

    Members
    -------
    traffic : ``In(StructLayout(RECORD))``
        What there is in this cycle.
    limit : ``In(32)``
        How many records the RAM has room for.
    count : ``Out(32)``
        How many it has.
    cut : ``Out(1)``
        It had no room for more.
    storage : ``Out(RecordStorage())``

    Throughput: a record a cycle.
    """

    traffic: Any
    limit: Signal
    count: Signal
    cut: Signal
    storage: Any

    def __init__(self) -> None:
        super().__init__(
            {
                "traffic": In(_LAYOUT),
                "limit": In(_COUNT_BITS),
                "count": Out(_COUNT_BITS),
                "cut": Out(1),
                "storage": Out(RecordStorage()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        flags = self.traffic.flags
        before = Signal.like(flags)
        taken = [
            flags[2 * number : 2 * number + 2].all()
            for number, name in enumerate(AXI_CHANNELS)
            if name.startswith("a")
        ]
        wanted = Signal()
        room = Signal()
        m.d.comb += [
            wanted.eq((flags != before) | flags[EVENTS_BIT:].any() | Cat(taken).any()),
            room.eq(self.count != self.limit),
            self.storage.enable.eq(wanted & room),
            self.storage.address.eq(self.count),
            self.storage.data.eq(self.traffic.as_value()),
            self.storage.mask.eq(~0),
        ]
        m.d.sync += [
            before.eq(flags),
            self.count.eq(self.count + self.storage.enable),
            self.cut.eq(self.cut | (wanted & ~room)),
        ]
        return m


class WatchedEngine(Engine):
    """An `Engine` into which others of the same circuit may look.

    Attributes
    ----------
    events : list of Signal
        In this cycle a command goes to the data path; RETIRED changes; FAULT changes.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.events = [Signal(name=name) for name in ("started", "retired", "faulted")]

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        commands, completions = m.submodules.sequencer.o, m.submodules.completions
        started, retired, faulted = self.events
        m.d.comb += [
            started.eq(commands.valid & commands.ready),
            retired.eq(completions.write & (completions.status == Status.OK)),
            faulted.eq(completions.write & (completions.status != Status.OK)),
        ]
        return m
