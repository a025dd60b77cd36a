"""The serial link over a line without noise: frames, their rate, and their order."""

from random import Random

import pytest

from bitlane.errors import LinkError
from bitlane.links.serial_link import SerialLink
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import Request
from support.board.line import BYTE_SECONDS, ModelPort, connected
from support.board.model import BoardModel, MemoryDevice
from support.host.transfers import BASE
from support.serial.frames import request_in

KIB = 1024


def requests_of(port: ModelPort) -> list[tuple[Request, int, int]]:
    """Return kind, address and size of every request that the host has sent."""
    found = []
    for block in bytes(port.sent).split(b"\0"):
        if block:
            request = request_in(block)
            assert request is not None
            size = int.from_bytes(request[2:4], "little")
            found.append((Request(request[1]), int.from_bytes(request[4:8], "little"), size))
    return found


def pair(**options: float) -> tuple[ModelPort, SerialLink]:
    port = ModelPort(BoardModel(), **options)  # type: ignore[arg-type]
    return port, connected(port)


def some(size: int, seed: int = 1) -> bytes:
    """Return bytes of which a quarter are zero, more than in most data."""
    random = Random(seed)
    return bytes(random.randrange(256) * (random.random() > 0.25) for _ in range(size))


# --- frames ---------------------------------------------------------------------------------------


def test_a_register_costs_one_frame_each_way() -> None:
    port, link = pair()
    up, down = port.up_bytes, port.down_bytes
    link.write(CONTROL_BASE + 8, b"\1\2\3\4")
    assert (port.up_bytes - up, port.down_bytes - down) == (8 + 4 + 4 + 2, 4 + 4 + 2)
    up, down = port.up_bytes, port.down_bytes
    assert link.read(CONTROL_BASE + 8, 4).tobytes() == b"\1\2\3\4"
    assert (port.up_bytes - up, port.down_bytes - down) == (8 + 4 + 2, 4 + 4 + 4 + 2)


def test_the_control_window_is_written_behind_what_precedes_it_and_before_all_reads() -> None:
    port, link = pair()
    device = port.board.memory_device
    link.exchange(
        [
            (BASE, bytes(5000)),
            (CONTROL_BASE + 0x2000, some(64)),
            (CONTROL_BASE + 0x2040, some(64, 2)),
            (CONTROL_BASE + 0x1C, some(4)),
            (BASE + 5000, bytes(1000)),
        ],
        [(BASE + 8000, 5000), (CONTROL_BASE + 0x1C, 4)],
    )
    assert [offset for offset, _ in device.window_writes] == [0x2000, 0x2040, 0x1C]
    requests = requests_of(port)[1:]
    control = [
        number
        for number, (kind, address, _) in enumerate(requests)
        if kind is Request.WRITE and address >= CONTROL_BASE
    ]
    assert control == list(range(control[0], control[0] + 3))
    before, behind = requests[: control[0]], requests[control[-1] + 1 :]
    assert all(kind is Request.WRITE and address < BASE + 5000 for kind, address, _ in before)
    assert all(kind is Request.READ or address >= BASE + 5000 for kind, address, _ in behind)


# --- the line's use -------------------------------------------------------------------------------

SIZE = 64 * KIB


@pytest.mark.parametrize("latency", [0.0, 0.0005])
@pytest.mark.parametrize(("writes", "reads", "least"), [(1, 0, 0.95), (0, 1, 0.95), (1, 1, 0.9)])
def test_64_kib_take_the_whole_line(writes: int, reads: int, least: float, latency: float) -> None:
    port, link = pair(latency=latency)
    port.board.memory_device.memory[:SIZE] = Random(3).randbytes(SIZE)
    up, down, start = port.up_bytes, port.down_bytes, port.now
    link.exchange([(BASE + SIZE, Random(4).randbytes(SIZE))] * writes, [(BASE, SIZE)] * reads)
    assert not writes or SIZE / (port.up_bytes - up) >= least
    assert not reads or SIZE / (port.down_bytes - down) >= least
    assert SIZE * BYTE_SECONDS / (port.now - start) >= least


def test_zeros_cost_no_more_than_other_bytes() -> None:
    port, link = pair()
    up, down = port.up_bytes, port.down_bytes
    link.write(BASE, bytes(SIZE))
    link.read(BASE, SIZE)
    assert SIZE / (port.up_bytes - up) >= 0.92
    assert SIZE / (port.down_bytes - down) >= 0.95


@pytest.mark.parametrize("slow", [1, 30, 1000])
def test_nothing_is_sent_twice_without_a_loss_however_slow_the_board(slow: int) -> None:
    port, link = pair(byte_seconds=BYTE_SECONDS * slow)
    link.read(CONTROL_BASE, 4)
    link.exchange([(BASE, some(8 * KIB))], [(BASE + 8 * KIB, 8 * KIB)])
    link.read(CONTROL_BASE, 4)
    assert link.counts.repeated == 0
    assert (link.counts.damaged, port.board.repetitions, port.board.out_of_turn) == (0, 0, 0)


def test_a_board_that_becomes_slow_is_waited_for() -> None:
    port, link = pair()
    link.write(BASE, some(4 * KIB))
    port.byte_seconds *= 100
    data = some(2 * KIB, 2)
    link.write(BASE, data)
    port.byte_seconds /= 100
    assert link.read(BASE, 2 * KIB).tobytes() == data
    assert port.board.repetitions < 100


def test_counts_tell_what_went_over_the_line() -> None:
    port, link = pair()
    link.write(BASE, some(1000))
    assert link.counts.sent_bytes == port.up_bytes
    assert link.counts.received_bytes == port.down_bytes
    assert link.counts.answers == link.counts.requests + 1


# --- waiting --------------------------------------------------------------------------------------


def test_waiting_ends_when_the_line_rises_or_the_time_has_passed() -> None:
    port, link = pair()
    device = port.board.memory_device
    start = port.now
    assert link.wait(0.5) is False
    assert 0.5 <= port.now - start < 0.6

    class Rising(MemoryDevice):
        @property  # type: ignore[override]
        def interrupt(self) -> bool:  # type: ignore[override]
            return port.now - start > 1.2

        @interrupt.setter
        def interrupt(self, level: bool) -> None:
            pass

    port.board.device = Rising()
    assert link.wait(30) is True
    assert port.now - start < 1.25
    port.board.device = device


def test_waiting_costs_the_line_little() -> None:
    port, link = pair()
    up = port.up_bytes
    link.wait(10)
    # Once in 16 ms, 14 bytes each, of 3 million that the line could carry.
    assert port.up_bytes - up < 10_000


# --- refusals -------------------------------------------------------------------------------------


def test_after_a_refusal_nothing_more_of_the_call_is_sent() -> None:
    port, link = pair()
    with pytest.raises(LinkError, match="refused the WRITE"):
        link.write(BASE + (1 << 17), bytes(100_000))
    assert port.up_bytes < 6000


# --- closing --------------------------------------------------------------------------------------


def test_closing_closes_the_port() -> None:
    port, link = pair()
    assert not port.closed
    link.close()
    assert port.closed


def test_a_second_link_takes_the_board_over() -> None:
    board = BoardModel()
    for turn in range(300):
        port = ModelPort(board)
        with connected(port) as link:
            link.write(BASE + turn, b"%c" % (turn % 256))
    device = board.memory_device
    assert bytes(device.memory[:300]) == bytes(turn % 256 for turn in range(300))
