"""Transfers that the serial link and the network link make alike, over a line without faults."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitlane.errors import LinkError
from bitlane.links.datagram_socket import DatagramSocket
from bitlane.links.link import BytesLike
from bitlane.links.serial_link import SerialLink
from bitlane.links.udp_link import UdpLink
from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE
from support.board.line import ModelPort, connected
from support.board.model import BoardModel, MemoryDevice
from support.host.network import network_board
from support.host.transfers import BASE, RANGES, expect_exchange, expect_transfer


@dataclass
class Line:
    """A link, and the memory at its other end."""

    link: SerialLink | UdpLink
    device: MemoryDevice


@pytest.fixture(params=["serial", "network", "network, plain datagrams"])
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    if request.param == "serial":
        board = BoardModel()
        with connected(ModelPort(board)) as link:
            yield Line(link, board.memory_device)
        return
    with network_board() as served:
        opened = DatagramSocket(("127.0.0.1", served.port), batches=request.param == "network")
        with UdpLink(opened, description="model board") as link:
            yield Line(link, served.rules.memory_device)


def some(size: int) -> bytes:
    """Return bytes of which a quarter are zero, more than in most data."""
    random = Random(size)
    return bytes(random.randrange(256) * (random.random() > 0.25) for _ in range(size))


@pytest.mark.parametrize(
    "size",
    [1, 2, 3, 4, 31, 32, 33, 479, 480, 481, 511, 512, 513, 1440, 1441, 4099, 100_001],
)
def test_what_is_written_is_there_and_can_be_read(line: Line, size: int) -> None:
    expect_transfer(line.link, line.device, some(size), offset=5)
    assert not any(line.device.memory[:5])
    assert not any(line.device.memory[5 + size :])
    result = line.link.read(BASE + 5, size)
    assert (result.dtype, result.shape) == (np.uint8, (size,))
    assert line.link.counts.damaged == 0


def test_no_byte_beside_a_transfer_changes(line: Line) -> None:
    """At each offset in a word; what lies beside the bytes of a read does not come along."""
    memory = line.device.memory
    memory[:] = Random(4).randbytes(len(memory))
    for offset in range(4):
        for size in (*range(1, 9), 476, 477, 480, 509, 512, 513, 600, 5760 + 1436):
            whole = bytes(memory)
            data = Random(size).randbytes(size)
            end = 64 + offset + size
            line.link.write(BASE + 64 + offset, data)
            assert memory == whole[: 64 + offset] + data + whole[end:]
            (first, second) = line.link.exchange(
                [(BASE + end, b"!")], [(BASE + 64 + offset, size), (BASE + end + 1, 1)]
            )
            assert first.tobytes() == data
            assert second.tobytes() == whole[end + 1 : end + 2]
            assert memory == whole[: 64 + offset] + data + b"!" + whole[end + 1 :]


def test_what_was_read_belongs_to_the_caller(line: Line) -> None:
    result = line.link.read(BASE, 100)
    line.device.memory[:100] = b"\1" * 100
    assert not result.any()
    result[:] = 7
    assert line.device.memory[0] == 1


@pytest.mark.parametrize(
    "data",
    [
        b"abcdefgh",
        bytearray(b"abcdefgh"),
        memoryview(b"abcdefgh"),
        np.frombuffer(b"abcdefgh", "<u4"),
        np.frombuffer(b"abcdefgh", np.uint8).reshape(2, 2, 2),
    ],
)
def test_anything_with_bytes_can_be_written(line: Line, data: BytesLike) -> None:
    line.link.write(BASE, data)
    assert bytes(line.device.memory[:8]) == b"abcdefgh"


def test_nothing_sends_nothing(line: Line) -> None:
    before = line.link.counts.sent_bytes
    line.link.write(BASE, b"")
    assert line.link.read(BASE, 0).shape == (0,)
    assert [x.size for x in line.link.exchange([(0, b"")], [(0, 0)])] == [0]
    assert line.link.exchange([], []) == []
    assert line.link.counts.sent_bytes == before


def test_any_exchange_is_its_writes_and_its_reads(line: Line) -> None:
    line.device.memory[:] = Random(3).randbytes(len(line.device.memory))

    @settings(deadline=None)
    @given(RANGES, RANGES, st.integers(0, 100))
    def exchange(writes: list[tuple[int, int]], reads: list[tuple[int, int]], seed: int) -> None:
        expect_exchange(line.link, line.device, writes, reads, seed)

    exchange()


def test_requests_of_the_control_window_are_whole_words(line: Line) -> None:
    data = some(CONTROL_SIZE - 0x2000)
    line.link.write(CONTROL_BASE + 0x2000, data)
    assert line.link.read(CONTROL_BASE + 0x2000, len(data)).tobytes() == data


def test_the_interrupt_line_is_seen(line: Line) -> None:
    assert line.link.wait(0) is False
    line.device.interrupt = True
    assert line.link.wait(0) is True
    assert line.link.wait(5) is True
    line.device.interrupt = False
    assert line.link.wait(0) is False


@pytest.mark.parametrize(
    ("address", "size"),
    [(0, 4), (BASE - 1, 1), (BASE + (1 << 17), 1), (CONTROL_BASE + 2, 4), (CONTROL_BASE, 3)],
)
def test_what_the_board_refuses_is_an_error_and_the_link_goes_on(
    line: Line, address: int, size: int
) -> None:
    with pytest.raises(LinkError, match=f"refused the READ of {size} bytes at {address:#x}"):
        line.link.read(address, size)
    with pytest.raises(LinkError, match=f"refused the WRITE of {size} bytes at {address:#x}"):
        line.link.write(address, bytes(size))
    expect_transfer(line.link, line.device, b"fine")
    assert not line.device.window_writes


@pytest.mark.parametrize(("address", "size"), [(-1, 4), (0xFFFF_FFFF, 2), (1 << 32, 1)])
def test_addresses_have_32_bits(line: Line, address: int, size: int) -> None:
    with pytest.raises(LinkError, match="outside the board's 32-bit addresses"):
        line.link.read(address, size)
    with pytest.raises(LinkError, match="outside the board's 32-bit addresses"):
        line.link.write(address, bytes(size))


def test_a_closed_link_says_so(line: Line) -> None:
    link = line.link
    link.close()
    link.close()
    for call in (lambda: link.read(BASE, 1), lambda: link.write(BASE, b"x"), lambda: link.wait(0)):
        with pytest.raises(LinkError, match="model board: the link is closed"):
            call()
