"""The contract of a link to a board, whatever the line: transfers, requests and waits.

Time is simulated, except on the sockets of the system. The board's model asserts that the host has
no more on the way than the board buffers, and that repetitions are equal.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitlane.errors import LinkError
from bitlane.links import BytesLike, DatagramSocket, RemoteLink, UdpLink
from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, Request
from support.board.line import BYTE_SECONDS, ModelLine, ModelPort, ModelSocket
from support.board.model import MemoryDevice
from support.host.network import network_board
from support.host.transfers import BASE, LINES, RANGES, Make, expect_exchange, expect_transfer, some

KIB = 1024


class Ends(NamedTuple):
    """A link, and the memory at its other end."""

    link: RemoteLink
    device: MemoryDevice


@pytest.fixture(params=[*LINES, "loopback", "loopback, plain datagrams"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    if request.param in LINES:
        line = LINES[request.param]()
        with line.link() as link:
            yield Ends(link, line.board.memory_device)
        return
    with network_board() as served:
        opened = DatagramSocket(("127.0.0.1", served.port), batches=request.param == "loopback")
        with UdpLink(opened, description="model board") as link:
            yield Ends(link, served.rules.memory_device)


# --- transfers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size", [1, 2, 3, 4, 31, 32, 33, 479, 480, 481, 511, 512, 513, 1440, 1441, 4099, 100_001]
)
def test_what_is_written_is_there_and_can_be_read(ends: Ends, size: int) -> None:
    expect_transfer(ends.link, ends.device, some(size), offset=5)
    assert not any(ends.device.memory[:5])
    assert not any(ends.device.memory[5 + size :])
    result = ends.link.read(BASE + 5, size)
    assert (result.dtype, result.shape) == (np.uint8, (size,))
    assert ends.link.counts.damaged == 0


def test_no_byte_beside_a_transfer_changes(ends: Ends) -> None:
    """At each offset in a word; what lies beside the bytes of a read does not come along."""
    memory = ends.device.memory
    memory[:] = Random(4).randbytes(len(memory))
    for offset in range(4):
        for size in (*range(1, 9), 476, 477, 480, 509, 512, 513, 600, 5760 + 1436):
            whole = bytes(memory)
            data = Random(size).randbytes(size)
            end = 64 + offset + size
            ends.link.write(BASE + 64 + offset, data)
            assert memory == whole[: 64 + offset] + data + whole[end:]
            (first, second) = ends.link.exchange(
                [(BASE + end, b"!")], [(BASE + 64 + offset, size), (BASE + end + 1, 1)]
            )
            assert first.tobytes() == data
            assert second.tobytes() == whole[end + 1 : end + 2]
            assert memory == whole[: 64 + offset] + data + b"!" + whole[end + 1 :]


def test_what_was_read_belongs_to_the_caller(ends: Ends) -> None:
    result = ends.link.read(BASE, 100)
    ends.device.memory[:100] = b"\1" * 100
    assert not result.any()
    result[:] = 7
    assert ends.device.memory[0] == 1


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
def test_anything_with_bytes_can_be_written(ends: Ends, data: BytesLike) -> None:
    ends.link.write(BASE, data)
    assert bytes(ends.device.memory[:8]) == b"abcdefgh"


def test_nothing_sends_nothing(ends: Ends) -> None:
    before = ends.link.counts.sent_bytes
    ends.link.write(BASE, b"")
    assert ends.link.read(BASE, 0).shape == (0,)
    assert [x.size for x in ends.link.exchange([(0, b"")], [(0, 0)])] == [0]
    assert ends.link.exchange([], []) == []
    assert ends.link.counts.sent_bytes == before


def test_any_exchange_is_its_writes_and_its_reads(ends: Ends) -> None:
    ends.device.memory[:] = Random(3).randbytes(len(ends.device.memory))

    @settings(deadline=None)
    @given(RANGES, RANGES, st.integers(0, 100))
    def exchange(writes: list[tuple[int, int]], reads: list[tuple[int, int]], seed: int) -> None:
        expect_exchange(ends.link, ends.device, writes, reads, seed)

    exchange()


def test_writes_take_effect_in_their_order(ends: Ends) -> None:
    writes = [(BASE + 64 * (k * 7 % 10), bytes((k,)) * size) for k in range(10) for size in (99, 7)]
    writes += [(CONTROL_BASE + 0x1C, bytes(4)), (BASE + 30, b"last"), (BASE + 32, b"one")]
    expected = bytearray(1000)
    for address, data in writes:
        if address < CONTROL_BASE:
            expected[address - BASE : address - BASE + len(data)] = data
    ends.link.exchange(writes, [(BASE + 0x2000, 2000), (BASE + 0x3000, 0)])
    assert ends.device.memory[:1000] == expected


def test_requests_of_the_control_window_are_whole_words(ends: Ends) -> None:
    data = some(CONTROL_SIZE - 0x2000)
    ends.link.write(CONTROL_BASE + 0x2000, data)
    assert ends.link.read(CONTROL_BASE + 0x2000, len(data)).tobytes() == data


def test_the_interrupt_line_is_seen(ends: Ends) -> None:
    assert ends.link.wait(0) is False
    ends.device.interrupt = True
    assert ends.link.wait(0) is True
    assert ends.link.wait(5) is True
    ends.device.interrupt = False
    assert ends.link.wait(0) is False


@pytest.mark.parametrize(
    ("address", "size"),
    [(0, 4), (BASE - 1, 1), (BASE + (1 << 17), 1), (CONTROL_BASE + 2, 4), (CONTROL_BASE, 3)],
)
def test_what_the_board_refuses_is_an_error_and_the_link_goes_on(
    ends: Ends, address: int, size: int
) -> None:
    with pytest.raises(LinkError, match=f"refused the READ of {size} bytes at {address:#x}"):
        ends.link.read(address, size)
    with pytest.raises(LinkError, match=f"refused the WRITE of {size} bytes at {address:#x}"):
        ends.link.write(address, bytes(size))
    expect_transfer(ends.link, ends.device, b"fine")
    assert not ends.device.window_writes


@pytest.mark.parametrize(("address", "size"), [(-1, 4), (0xFFFF_FFFF, 2), (1 << 32, 1)])
def test_addresses_have_32_bits(ends: Ends, address: int, size: int) -> None:
    with pytest.raises(LinkError, match="outside the board's 32-bit addresses"):
        ends.link.read(address, size)
    with pytest.raises(LinkError, match="outside the board's 32-bit addresses"):
        ends.link.write(address, bytes(size))


def test_a_closed_link_says_so(ends: Ends) -> None:
    link = ends.link
    link.close()
    link.close()
    for call in (lambda: link.read(BASE, 1), lambda: link.write(BASE, b"x"), lambda: link.wait(0)):
        with pytest.raises(LinkError, match="model board: the link is closed"):
            call()


# --- requests on the line -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "costs"),
    [
        (ModelPort, [(8 + 4 + 4 + 2, 4 + 4 + 2), (8 + 4 + 2, 4 + 4 + 4 + 2)]),
        (ModelSocket, [(4 + 8 + 4 + 4, 4 + 4 + 4), (4 + 8 + 4, 4 + 4 + 4 + 4)]),
    ],
)
def test_a_register_costs_one_frame_each_way(make: Make, costs: list[tuple[int, int]]) -> None:
    line = make()
    link = line.link()
    calls: list[Callable[[], object]] = [
        lambda: link.write(CONTROL_BASE + 8, b"\1\2\3\4"),
        lambda: link.read(CONTROL_BASE + 8, 4),
    ]
    for call, cost in zip(calls, costs, strict=True):
        up, down = line.up_bytes, line.down_bytes
        call()
        assert (line.up_bytes - up, line.down_bytes - down) == cost


def test_a_small_call_is_one_datagram_each_way() -> None:
    line = ModelSocket()
    link = line.link()
    before, down = len(line.sent), line.down_bytes
    link.exchange(
        [(BASE, bytes(64)), (CONTROL_BASE + 0x2000, bytes(64)), (CONTROL_BASE + 8, bytes(4))],
        [(CONTROL_BASE + 12, 4)],
    )
    assert len(line.sent) - before == 1
    assert line.down_bytes - down == 8 + 4 * 4 + 4


def test_the_control_window_is_written_behind_what_precedes_it_and_before_all_reads(
    line: ModelLine,
) -> None:
    link = line.link()
    link.exchange(
        [
            (BASE, bytes(5000)),
            (CONTROL_BASE + 0x2000, some(64)),
            (CONTROL_BASE + 0x2040, some(64)),
            (CONTROL_BASE + 0x1C, some(4)),
            (BASE + 5000, bytes(1000)),
        ],
        [(BASE + 8000, 5000), (CONTROL_BASE + 0x1C, 4)],
    )
    device = line.board.memory_device
    assert [offset for offset, _ in device.window_writes] == [0x2000, 0x2040, 0x1C]
    requests = line.requests[1:]
    control = [
        place
        for place, each in enumerate(requests)
        if each.kind == Request.WRITE and each.address >= CONTROL_BASE
    ]
    assert control == list(range(control[0], control[0] + 3))
    before, behind = requests[: control[0]], requests[control[-1] + 1 :]
    assert all(x.kind == Request.WRITE and x.address < BASE + 5000 for x in before)
    assert all(x.kind == Request.READ or x.address >= BASE + 5000 for x in behind)


@pytest.mark.parametrize(("make", "most"), [(ModelPort, 6000), (ModelSocket, 30_000)])
def test_after_a_refusal_nothing_more_of_the_call_is_sent(make: Make, most: int) -> None:
    line = make()
    with pytest.raises(LinkError, match="refused the WRITE"):
        line.link().write(BASE + (1 << 17), bytes(100_000))
    assert line.up_bytes < most


def test_a_refusal_names_the_first_request_of_a_long_read() -> None:
    with pytest.raises(LinkError, match="board refused the READ of 480 bytes at 0x0: not in"):
        ModelSocket().link().read(0, 5000)


SIZE = 64 * KIB


@pytest.mark.parametrize("latency", [0.0, 0.0005])
@pytest.mark.parametrize(("writes", "reads", "least"), [(1, 0, 0.95), (0, 1, 0.95), (1, 1, 0.9)])
def test_64_kib_take_the_whole_serial_line(
    writes: int, reads: int, least: float, latency: float
) -> None:
    line = ModelPort(latency=latency)
    link = line.link()
    line.board.memory_device.memory[:SIZE] = Random(3).randbytes(SIZE)
    up, down, start = line.up_bytes, line.down_bytes, line.now
    link.exchange([(BASE + SIZE, Random(4).randbytes(SIZE))] * writes, [(BASE, SIZE)] * reads)
    assert not writes or SIZE / (line.up_bytes - up) >= least
    assert not reads or SIZE / (line.down_bytes - down) >= least
    assert SIZE * BYTE_SECONDS / (line.now - start) >= least


def test_zeros_cost_the_serial_line_no_more_than_other_bytes() -> None:
    line = ModelPort()
    link = line.link()
    up, down = line.up_bytes, line.down_bytes
    link.write(BASE, bytes(SIZE))
    link.read(BASE, SIZE)
    assert SIZE / (line.up_bytes - up) >= 0.92
    assert SIZE / (line.down_bytes - down) >= 0.95


@pytest.mark.parametrize(
    ("make", "slow", "late"),
    [(ModelPort, slow, 0.0005) for slow in (1, 30, 1000)]
    + [(ModelSocket, 1, 1e-5), (ModelSocket, 30, 1e-5), (ModelSocket, 1, 0.1)],
)
def test_nothing_is_sent_twice_without_a_loss_however_slow_the_board(
    make: Make, slow: int, late: float
) -> None:
    line = make(latency=late)
    line.byte_seconds *= slow
    link = line.link()
    link.read(CONTROL_BASE, 4)
    link.exchange([(BASE, some(8 * KIB))], [(BASE + 8 * KIB, 8 * KIB)])
    link.write(BASE, some(36_000))
    link.read(CONTROL_BASE, 4)
    assert (link.counts.repeated, link.counts.damaged, line.board.watch.repetitions) == (0, 0, 0)
    # The counts tell what went over the line.
    assert (link.counts.sent_bytes, link.counts.received_bytes) == (line.up_bytes, line.down_bytes)
    assert link.counts.answers == link.counts.requests + 1


@pytest.mark.parametrize(
    ("make", "slow", "late"), [(ModelPort, 100, 0.0005), (ModelSocket, 1, 0.1)]
)
def test_a_board_that_becomes_slow_is_waited_for(make: Make, slow: int, late: float) -> None:
    line = make()
    link = line.link()
    link.write(BASE, some(4 * KIB))
    before, fast = line.latency, line.byte_seconds
    line.latency, line.byte_seconds = late, fast * slow
    data = some(2 * KIB if slow > 1 else 36_000)
    link.write(BASE, data)
    line.latency, line.byte_seconds = before, fast
    assert link.read(BASE, len(data)).tobytes() == data
    assert line.board.watch.repetitions < 100


# --- waiting and closing --------------------------------------------------------------------------


def test_waiting_ends_when_the_line_rises_or_the_time_has_passed(line: ModelLine) -> None:
    class Rising(MemoryDevice):
        @property
        def interrupt(self) -> bool:
            return line.now - start > 1.2

        @interrupt.setter
        def interrupt(self, level: bool) -> None:
            pass

    link = line.link()
    start = line.now
    assert link.wait(0.5) is False
    assert 0.5 <= line.now - start < 0.6
    line.board.device = Rising()
    assert link.wait(30) is True
    assert line.now - start < 1.25


def test_waiting_costs_the_line_little(line: ModelLine) -> None:
    link = line.link()
    up = line.up_bytes
    link.wait(10)
    # Once in 16 ms, 16 bytes each, of 3 million that the slowest line could carry.
    assert line.up_bytes - up < 11_000


def test_a_closed_link_leaves_the_board_free(line: ModelLine) -> None:
    for turn in range(300):
        with line.link() as link:
            link.write(BASE + turn, bytes((turn % 256,)))
            assert not line.closed
        assert line.closed
        line = line.again()
    assert bytes(line.board.memory_device.memory[:300]) == bytes(turn % 256 for turn in range(300))
