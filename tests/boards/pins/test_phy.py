"""A circuit at the pins of RGMII exchanges frames with a simulated PHY of another clock."""

from collections.abc import Iterator
from typing import Any

import pytest
from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins import CLOCK_ERROR, CircuitModel, PhySimulation, RgmiiPins
from bitlane_boards.pins.rgmii import DOMAINS
from bitlane_rtl.ethernet import Gmii
from cppsim.errors import SimulationError
from support.ethernet.line import answer, arp, datagram, echo, frame, padded, with_fcs
from support.ethernet.verilog import CLOCK_HZ, looped

pytestmark = [pytest.mark.slow, pytest.mark.any_face]


@pytest.fixture
def phy() -> Iterator[PhySimulation]:
    simulation = looped()
    simulation.run(1e-6)
    yield simulation
    simulation.close()


@pytest.mark.parametrize("packet", [arp(), echo(b"ping" * 8), datagram(bytes(range(200)))])
def test_a_packet_is_answered(phy: PhySimulation, packet: Any) -> None:
    sent = frame(bytes(packet))
    phy.send(sent)
    assert phy.wait(1e-3)
    to, back = phy.frames()
    assert (to.sent, to.frame) == (False, sent)
    assert (back.sent, back.frame) == (True, frame(answer(packet)))
    # Preamble, frame and FCS in between.
    assert back.seconds - to.seconds > (8 + len(sent)) * 8e-9
    assert phy.illegal == 0


def test_a_damaged_frame_is_not_answered(phy: PhySimulation) -> None:
    sent = bytearray(frame(bytes(arp())))
    sent[20] ^= 4
    phy.send(bytes(sent))
    assert phy.advance(1e-3, quiet=20e-6)
    assert [each.sent for each in phy.frames()] == [False]


def test_frames_follow_each_other_at_a_gigabit(phy: PhySimulation) -> None:
    packets = [datagram(bytes([number]) * 1472) for number in range(50)]
    for packet in packets:
        phy.send(frame(bytes(packet)))
    phy.run(1e-3)
    back = [each for each in phy.frames() if each.sent]
    assert [each.frame for each in back] == [frame(answer(packet)) for packet in packets]
    assert phy.unsent == phy.illegal == 0
    # 1,538 byte times each, of the slower clock.
    times = [each.seconds for each in back]
    assert times[-1] - times[0] == pytest.approx(49 * 1538 * 8e-9 * (1 + CLOCK_ERROR), rel=1e-4)


def test_the_least_wait_lasts(phy: PhySimulation) -> None:
    """Differences of seconds may be below a femtosecond; a loop up to a deadline must end."""
    before = phy.seconds
    phy.run(1e-18)
    assert phy.seconds > before


def test_the_clocks_have_their_rates(phy: PhySimulation) -> None:
    before = [phy.edges(domain) for domain in DOMAINS]
    phy.run(1e-3)
    rates = [1e3 * (phy.edges(domain) - n) for domain, n in zip(DOMAINS, before, strict=True)]
    assert rates[0] == pytest.approx(125e6 * (1 - CLOCK_ERROR), rel=2e-5)
    assert rates[1] == pytest.approx(125e6, rel=2e-5)
    assert rates[2] == pytest.approx(CLOCK_HZ, rel=2e-5)


class Sender(wiring.Component):
    """Sends ``line``, a byte a cycle; ``None`` is an idle cycle, and "error" a byte with one."""

    received: Any
    sent: Any
    busy: Any

    def __init__(self, line: list[int | None], errors: bool) -> None:
        self._line, self._errors = line, errors
        super().__init__({"received": In(Gmii()), "sent": Out(Gmii()), "busy": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        at = Signal(range(len(self._line) + 1))
        with m.If(at != len(self._line)):
            m.d.tx += at.eq(at + 1)
        words = [0 if byte is None else 0x100 | byte for byte in self._line]
        word = Signal(9)
        m.d.comb += [
            word.eq(Array([*(Const(each, 9) for each in words), Const(0, 9)])[at]),
            self.sent.data.eq(word[:8]),
            self.sent.valid.eq(word[8]),
            self.sent.error.eq(word[8] & self._errors),
        ]
        ignored = Signal()
        m.d.rx += ignored.eq(self.received.valid)
        m.d.sync += self.busy.eq(0)
        return m


FRAME = list(with_fcs(padded(b"content")))
HEAD = [0x55] * 7 + [0xD5]


@pytest.mark.parametrize(
    ("line", "errors", "legal", "illegal"),
    [
        ([None] * 20 + HEAD + FRAME + [None] * 12 + HEAD + FRAME, False, 2, 0),
        ([None] * 20 + HEAD + FRAME + [None] * 11 + HEAD + FRAME, False, 1, 1),
        ([None] * 20 + HEAD[1:] + FRAME, False, 0, 1),
        ([None] * 20 + HEAD[:-1] + FRAME, False, 0, 1),
        ([None] * 20 + HEAD + FRAME, True, 0, 1),
    ],
    ids=["legal", "gap", "preamble", "start", "error"],
)
def test_a_frame_that_breaks_a_rule_is_counted(
    line: list[int | None], errors: bool, legal: int, illegal: int
) -> None:
    phy = PhySimulation(CircuitModel(RgmiiPins(Sender(line, errors))), CLOCK_HZ)
    phy.run(10e-6)
    assert [each.frame for each in phy.frames()] == [bytes(FRAME)] * legal
    assert phy.illegal == illegal
    phy.close()
    with pytest.raises(SimulationError, match="closed"):
        phy.run(1e-6)


def test_a_missing_pin_is_named() -> None:
    with pytest.raises(SimulationError, match="no pin 'rgmii_rx_data_0_rise'"):
        PhySimulation(CircuitModel(Plain()), CLOCK_HZ)


class Plain(wiring.Component):
    busy: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.busy.eq(~self.busy)
        return m


def test_the_status_between_frames_is_settable(phy: PhySimulation) -> None:
    """A status in the middle of a frame waits for its end, and damages nothing."""
    packets = [datagram(bytes(range(200))) for _ in range(4)]
    levels, back = [], []
    for mbits, packet in zip((10, 100, 1000, 100), packets, strict=True):
        phy.send(frame(bytes(packet)))
        phy.run(5e-7)
        phy.report(mbits=mbits)
        assert phy.wait(1e-3)
        phy.run(1e-6)
        back += [each.frame for each in phy.frames() if each.sent]
        levels.append(
            phy.model.get("rgmii_rx_data_0_rise")
            | phy.model.get("rgmii_rx_data_1_rise") << 1
            | phy.model.get("rgmii_rx_data_2_rise") << 2
        )
    assert levels == [0b001, 0b011, 0b101, 0b011]
    assert back == [frame(answer(packet)) for packet in packets]
    phy.report(up=False, full_duplex=False)
    assert phy.model.get("rgmii_rx_data_0_rise") == phy.model.get("rgmii_rx_data_3_rise") == 0
