"""Tests of a board at its RGMII pins, with the PHY of cocotbext-eth and the packets of scapy.

cocotb finds them here, pytest does not.
"""

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, with_timeout
from cocotbext.eth import GmiiFrame, RgmiiPhy
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether

from bitlane_rtl.abi import CONTROL_BASE, IDENTITY, Answer
from support.board.model import MemoryDevice
from support.ethernet.datagrams import NetworkRules, answers_in, datagram_of
from support.ethernet.line import HEAD, answer, arp, datagram, echo, padded
from support.ethernet.verilog import CONFIGURATION
from support.serial.frames import Reply, hello, read, write

_SYNC_PS, _LINE_PS = 12_800, 8_001
"""Periods of the board's own clocks. The PHY's clock differs from the second by 125 ppm."""

_GAP_PS = 12 * 8_000
"""The least time between two frames, as the PHY counts it."""

SESSION = 0x12345678


class Board:
    """A board that has been reset, behind the PHY of cocotbext-eth.

    ``rules`` are the answers by the contract, and the memory that the board must have.
    """

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self.phy = RgmiiPhy(
            dut.phy_txd, dut.phy_tx_ctl, dut.phy_txc, dut.phy_rxd, dut.phy_rx_ctl, dut.phy_rxc
        )
        device = MemoryDevice(CONFIGURATION.memory_base, CONFIGURATION.memory_bytes)
        device.window[:4] = IDENTITY.to_bytes(4, "little")
        self.rules = NetworkRules(device)
        self._ended: int | None = None

    async def start(self) -> None:
        dut = self._dut
        dut.rst.value = 1
        Clock(dut.clk, _SYNC_PS, "ps").start()
        Clock(dut.line_clk, _LINE_PS, "ps", period_high=4_000).start()
        await ClockCycles(dut.clk, 10)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 10)

    async def send(self, content: Any, least: int = 60) -> None:
        """Send a frame with a right FCS, filled to ``least`` bytes."""
        await self.phy.rx.send(GmiiFrame.from_payload(bytes(content), least))

    async def received(self) -> bytes:
        """Return the next frame of the board, without FCS. Fails if it is not legal."""
        frame = await with_timeout(self.phy.tx.recv(), 200, "us")
        assert frame.error is None
        assert bytes(frame.get_preamble()) == HEAD
        assert frame.check_fcs()
        content = bytes(frame.get_payload())
        assert len(content) >= 60
        if self._ended is not None:
            assert frame.sim_time_start - self._ended >= _GAP_PS
        self._ended = frame.sim_time_end
        return content

    async def expect(self, content: bytes) -> None:
        """Expect the frame ``content`` to be the next one of the board."""
        assert await self.received() == padded(content)

    async def expect_silence(self) -> None:
        """Expect no frame of the board before it answers a request of ARP."""
        await self.send(arp())
        await self.expect(answer(arp()))

    async def exchange(self, *frames: bytes) -> list[Reply]:
        """Send the requests ``frames`` in a datagram of SESSION; return the answers.

        They must be those of the contract, in one datagram.
        """
        payload = datagram_of(SESSION, frames)
        [want] = self.rules.replies(payload)
        await self.send(datagram(payload))
        content = await self.received()
        udp = Ether(content)[UDP]
        found = bytes(udp.payload)[: udp.len - 8]
        assert content == padded(answer(datagram(found)))
        await self.expect_silence()
        assert answers_in(found, want) == (SESSION, want)
        return want


async def started(dut: Any) -> Board:
    board = Board(dut)
    await board.start()
    return board


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def test_arp_and_ping(dut: Any) -> None:
    board = await started(dut)
    for request in (arp(), echo(b"ping"), echo(random.Random(1).randbytes(1001)), arp()):
        await board.send(request)
        await board.expect(answer(request))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def test_a_session_writes_and_reads(dut: Any) -> None:
    board = await started(dut)
    data = random.Random(2).randbytes(512)
    await board.exchange(hello(255, 0x1000))
    await board.exchange(read(256, CONTROL_BASE, 4))
    await board.exchange(write(257, 1001, data))
    await board.exchange(
        write(258, 0, b"odd"), read(259, 0, 8), read(260, 1000, 512), write(261, 3, b"")
    )
    last = CONFIGURATION.memory_bytes - 4
    answers = await board.exchange(
        write(262, last, b"last"), read(263, last, 4), read(264, last, 8)
    )
    kinds = [each.kind for each in answers]
    assert kinds == [Answer.DONE, Answer.DONE, Answer.REFUSED]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def test_frames_follow_each_other(dut: Any) -> None:
    """The PHY leaves the least gap, and the board loses none of the frames."""
    board = await started(dut)
    rng = random.Random(3)
    requests = [echo(rng.randbytes(rng.randrange(100))) for _ in range(30)]
    for request in requests:
        await board.send(request)
    for request in requests:
        await board.expect(answer(request))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def test_damaged_frames_are_dropped(dut: Any) -> None:
    board = await started(dut)
    await board.exchange(hello(255, 0x1000))
    whole = bytes(datagram(datagram_of(SESSION, [write(256, 64, bytes(range(1, 65)))])))
    for place in (0, 20, 50, 100, len(whole), len(whole) + 3):
        frame = GmiiFrame.from_payload(whole)
        frame.data[len(HEAD) + place] ^= 1
        await board.phy.rx.send(frame)
    frame = GmiiFrame.from_payload(whole)
    frame.error = [number == 70 for number in range(len(frame.data))]
    await board.phy.rx.send(frame)
    await board.expect_silence()
    await board.exchange(read(256, 64, 64))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def test_runts_are_dropped(dut: Any) -> None:
    """Frames of less than 64 bytes whose FCS is right: the same ones with padding are answered."""
    board = await started(dut)
    payload = datagram_of(SESSION, [hello(255, 0x1000)])
    for request in (arp(), echo(b""), datagram(payload)):
        await board.send(request, least=0)
    await board.expect_silence()
    await board.exchange(hello(255, 0x1000))
