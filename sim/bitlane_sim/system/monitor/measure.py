"""Counts and times the traffic of a bus, in clock cycles. Never influences it."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

COUNTER_BITS = 48


class ChannelReport(wiring.Signature):
    """Counters of a ``Channel`` since ``clear``, seen from it. Cycles are values of ``now``.

    Members
    -------
    count : ``Out(48)``
        Handshakes.
    stalls : ``Out(48)``
        Cycles with valid and without ready.
    first, last : ``Out(48)``
        Cycles of the first and last handshake; 0 without any.
    """

    def __init__(self) -> None:
        names = ("count", "stalls", "first", "last")
        super().__init__({name: Out(COUNTER_BITS) for name in names})


class Channel(wiring.Component):
    """Observes one channel.

    Members
    -------
    now : ``In(48)``
        Number of this cycle.
    clear : ``In(1)``
        Forget all; a handshake in the same cycle does not count.
    valid, ready : ``In(1)``
    report : ``Out(ChannelReport())``

    Latency: 1 cycle.
    """

    now: Signal
    clear: Signal
    valid: Signal
    ready: Signal
    report: Any

    def __init__(self) -> None:
        super().__init__(
            {
                "now": In(COUNTER_BITS),
                "clear": In(1),
                "valid": In(1),
                "ready": In(1),
                "report": Out(ChannelReport()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        report = self.report
        with m.If(self.valid & self.ready):
            m.d.sync += [report.count.eq(report.count + 1), report.last.eq(self.now)]
            with m.If(report.count == 0):
                m.d.sync += report.first.eq(self.now)
        with m.If(self.valid & ~self.ready):
            m.d.sync += report.stalls.eq(report.stalls + 1)
        with m.If(self.clear):
            m.d.sync += [getattr(report, name).eq(0) for name in report.signature.members]
        return m
