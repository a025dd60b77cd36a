"""The monitor of the simulated system: times for benchmarks, and rules that end a run."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import register
from bitlane_rtl.bus import Axi4, Axi4Lite

from ..ports import Violation, Where, measured_channels
from .measure import COUNTER_BITS, Channel, ChannelReport
from .rules import ReadRules, WriteRules, watched


class Monitor(wiring.Component):
    """Looks at all buses of the engine.

    Parameters
    ----------
    address_width, data_width : int
    two : bool
        Whether there is a second read port.

    Members
    -------
    axi, axi_b, axil : ``In(watched(...))``
        The buses; ``axi_b`` only with ``two``.
    clear : ``In(1)``
        Forget all measurements, not the cycle and not a violation.
    cycle : ``Out(48)``
        Number of this cycle since reset.
    aw, w, b, ar, r, ar_b, r_b, doorbell : ``Out(ChannelReport())``
        What happened on each channel. ``doorbell`` counts the writes of that register, at their W
        handshake; their address must not come later.
    rung : ``Out(1)``
        DOORBELL is written in this cycle.
    violation, violation_where, violation_cycle : ``Out(Violation)``, ``Out(Where)``, ``Out(48)``
        The first rule that was broken since reset.

    Latency: 1 cycle but for ``rung``.
    """

    axi: Any
    axi_b: Any
    axil: Any
    clear: Signal
    cycle: Signal
    rung: Signal
    violation: Signal
    violation_where: Signal
    violation_cycle: Signal

    def __init__(self, address_width: int, data_width: int, *, two: bool) -> None:
        self._widths = address_width, data_width
        self._two = two
        self.channels = measured_channels(two=two)
        members = {
            "axi": In(watched(Axi4(*self._widths))),
            "axil": In(watched(Axi4Lite())),
            "clear": In(1),
            "cycle": Out(COUNTER_BITS),
            "rung": Out(1),
            "violation": Out(Violation),
            "violation_where": Out(Where),
            "violation_cycle": Out(COUNTER_BITS),
        }
        if two:
            members["axi_b"] = In(watched(Axi4(*self._widths, write=False)))
        members |= {name: Out(ChannelReport()) for name in self.channels}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.cycle.eq(self.cycle + 1)
        self._measure(m)
        self._check(m)
        return m

    def _measure(self, m: Module) -> None:
        axil = self.axil
        address = Signal.like(axil.awaddr)
        with m.If(axil.awvalid & axil.awready):
            m.d.sync += address.eq(axil.awaddr)
        target = Mux(axil.awvalid & axil.awready, axil.awaddr, address)
        m.d.comb += self.rung.eq(
            axil.wvalid & axil.wready & (target == register("DOORBELL").offset)
        )
        for name in self.channels:
            m.submodules[name] = channel = Channel()
            if name == "doorbell":
                valid, ready = self.rung, self.rung
            else:
                bus = self.axi_b if name.endswith("_b") else self.axi
                prefix = name.removesuffix("_b")
                valid, ready = getattr(bus, f"{prefix}valid"), getattr(bus, f"{prefix}ready")
            m.d.comb += [
                channel.now.eq(self.cycle),
                channel.clear.eq(self.clear),
                channel.valid.eq(valid),
                channel.ready.eq(ready),
            ]
            report = getattr(self, name)
            m.d.comb += [
                getattr(report, part).eq(getattr(channel.report, part))
                for part in report.signature.members
            ]

    def _check(self, m: Module) -> None:
        write = WriteRules(Axi4(*self._widths, read=False), self._widths[1])
        rules: list[tuple[Where, Any, Any]] = [(Where.WRITE, write, self.axi)]
        read = Axi4(*self._widths, write=False)
        rules.append((Where.READ_A, ReadRules(read, self._widths[1]), self.axi))
        if self._two:
            rules.append((Where.READ_B, ReadRules(read, self._widths[1]), self.axi_b))
        for where, rule, bus in rules:
            m.submodules[f"rules_{where.name.lower()}"] = rule
            for name in rule.bus.signature.members:
                m.d.comb += getattr(rule.bus, name).eq(getattr(bus, name))
            with m.If((rule.violation != Violation.NONE) & (self.violation == Violation.NONE)):
                m.d.sync += [
                    self.violation.eq(rule.violation),
                    self.violation_where.eq(where),
                    self.violation_cycle.eq(self.cycle),
                ]
