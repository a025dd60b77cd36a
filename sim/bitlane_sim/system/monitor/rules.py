"""Rules of AXI4 that a manager and a subordinate must keep, checked in every cycle."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.bus import BURST_INCR

from ..ports import Violation

_BURSTS = 256


def watched(signature: wiring.Signature) -> wiring.Signature:
    """The members of a bus, all of them inputs of whoever looks."""
    members: Any = signature.members
    return wiring.Signature({name: Out(member.shape) for name, member in members.items()})


def _changed(m: Module, bus: wiring.PureInterface, channel: str, names: tuple[str, ...]) -> Value:
    """Whether a channel broke its promise: valid, once high, stays with its payload until ready."""
    valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
    payload = Cat(getattr(bus, f"{channel}{name}") for name in names)
    waiting = Signal(name=f"{channel}_waiting")
    held = Signal(len(payload), name=f"{channel}_held")
    m.d.sync += [waiting.eq(valid & ~ready), held.eq(payload)]
    return waiting & (~valid | (payload != held))


def _bad_address(
    m: Module, bus: wiring.PureInterface, channel: str, data_width: int
) -> dict[Violation, Value]:
    fire = getattr(bus, f"{channel}valid") & getattr(bus, f"{channel}ready")
    address, length = getattr(bus, f"{channel}addr"), getattr(bus, f"{channel}len")
    size_log2 = (data_width // 8 - 1).bit_length()
    block_log2 = (BEATS_PER_BLOCK - 1).bit_length()
    size, burst = getattr(bus, f"{channel}size"), getattr(bus, f"{channel}burst")
    first = address[size_log2 : size_log2 + block_log2]
    return {
        Violation.BURST: fire & ((size != size_log2) | (burst != BURST_INCR)),
        Violation.ALIGNMENT: fire & (address[:size_log2] != 0),
        Violation.BOUNDARY: fire & (first + length >= BEATS_PER_BLOCK),
    }


def _report(m: Module, violation: Signal, found: dict[Violation, Value]) -> None:
    for number, condition in found.items():
        with m.If(condition):
            m.d.comb += violation.eq(number)


_ADDRESS = ("addr", "len", "size", "burst", "prot", "cache")


class _Rules(wiring.Component):
    """The ports of `WriteRules` and `ReadRules`."""

    bus: Any
    violation: Signal

    def __init__(self, signature: wiring.Signature, data_width: int) -> None:
        self._data_width = data_width
        super().__init__({"bus": In(watched(signature)), "violation": Out(Violation)})


class WriteRules(_Rules):
    """Checks AW, W and B.

    Members
    -------
    bus : ``In(watched(Axi4(address_width, data_width, read=False)))``
    violation : ``Out(Violation)``
        A rule that is broken in this cycle.

    Data may come before its address. Not checked: more than 256 bursts in flight.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        m.submodules.asked = asked = SyncFIFO(width=8, depth=_BURSTS)
        m.submodules.sent = sent = SyncFIFO(width=9, depth=_BURSTS)
        beat = Signal(9)
        w_fire = bus.wvalid & bus.wready
        with m.If(w_fire):
            m.d.sync += beat.eq(beat + 1)
            with m.If(bus.wlast):
                m.d.sync += beat.eq(0)
        # The lengths that AW announced and those that W had meet here, in order.
        both = Signal()
        unanswered = Signal(range(2 * _BURSTS))
        b_fire = Signal()
        m.d.comb += [
            both.eq(asked.r_rdy & sent.r_rdy),
            b_fire.eq(bus.bvalid & bus.bready),
            asked.w_data.eq(bus.awlen),
            asked.w_en.eq(bus.awvalid & bus.awready),
            asked.r_en.eq(both),
            sent.w_data.eq(beat),
            sent.w_en.eq(w_fire & bus.wlast),
            sent.r_en.eq(both),
        ]
        m.d.sync += unanswered.eq(unanswered + both - b_fire)
        _report(
            m,
            self.violation,
            {
                Violation.AW_CHANGED: _changed(m, bus, "aw", _ADDRESS),
                Violation.W_CHANGED: _changed(m, bus, "w", ("data", "strb", "last")),
                Violation.B_CHANGED: _changed(m, bus, "b", ("resp",)),
                **_bad_address(m, bus, "aw", self._data_width),
                # The second catches a burst that goes on past its end.
                Violation.WLAST: (both & (asked.r_data != sent.r_data))
                | (asked.r_rdy & ~sent.r_rdy & (beat > asked.r_data)),
                Violation.EARLY_B: bus.bvalid & (unanswered == 0) & ~both,
            },
        )
        return m


class ReadRules(_Rules):
    """Checks AR and R.

    Members
    -------
    bus : ``In(watched(Axi4(address_width, data_width, write=False)))``
    violation : ``Out(Violation)``
        A rule that is broken in this cycle.

    Not checked: more than 256 bursts in flight.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        m.submodules.asked = asked = SyncFIFO(width=8, depth=_BURSTS)
        beat = Signal(8)
        fire = Signal()
        m.d.comb += [
            fire.eq(bus.rvalid & bus.rready),
            asked.w_data.eq(bus.arlen),
            asked.w_en.eq(bus.arvalid & bus.arready),
            asked.r_en.eq(fire & bus.rlast),
        ]
        with m.If(fire):
            m.d.sync += beat.eq(beat + 1)
            with m.If(bus.rlast):
                m.d.sync += beat.eq(0)
        # What R bears means nothing where there is an error (A3.4.4), but stays all the same.
        _report(
            m,
            self.violation,
            {
                Violation.AR_CHANGED: _changed(m, bus, "ar", _ADDRESS),
                Violation.R_CHANGED: _changed(m, bus, "r", ("data", "resp", "last")),
                **_bad_address(m, bus, "ar", self._data_width),
                Violation.RLAST: fire & (bus.rlast != (beat == asked.r_data)),
                Violation.EARLY_R: bus.rvalid & ~asked.r_rdy,
            },
        )
        return m
