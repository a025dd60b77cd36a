"""Long writes, which take a quicker way as long as every answer is the next one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from random import Random
from typing import NamedTuple

import pytest

from bitlane.errors import LinkError
from bitlane.links.counts import Counts
from bitlane.links.datagrams import DatagramLine
from bitlane.links.flight import InFlight
from bitlane.links.line import Batch, Fragment, Reply
from bitlane.links.pending import Pending
from bitlane.links.sender import Sender
from bitlane.links.transfer_queue import TransferQueue
from bitlane.links.udp_link import UdpLink
from bitlane.links.write_stream import STREAM_PACKETS, WriteStream
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import SEQUENCES, Answer, Request
from support.board.model import MemoryDevice
from support.ethernet.datagrams import datagram_of
from support.host.network import ServedRules
from support.host.transfers import BASE
from support.serial.frames import Reply as ModelReply

SESSION = 0x12345678
LINE = DatagramLine(SESSION)
FULL = 1440
"""Bytes of data that fill a packet."""

END = BASE + (1 << 17)
"""The end of the board's memory."""


def answer(number: int) -> bytes:
    """Return the answer to the packet of a full write whose first number is ``number``."""
    return datagram_of(SESSION, [ModelReply(number + k, Answer.DONE).content for k in range(3)])


@pytest.mark.parametrize("packets", [1, 19, STREAM_PACKETS])
def test_the_answers_are_those_of_the_contract(packets: int) -> None:
    for number in (0, 1, 2, 250, 255, 5000, *range(SEQUENCES - 9, SEQUENCES)):
        expected = b"".join(answer(number + 3 * k) for k in range(packets))
        assert LINE.answers(number, packets) == expected


def test_the_answers_repeat_when_all_numbers_are_used() -> None:
    found = LINE.answers(7, SEQUENCES + 1)
    assert found == b"".join(answer(7 + 3 * k) for k in range(SEQUENCES + 1))


def stream(sent: int, answered: int = 0) -> WriteStream:
    """Return a stream of 20 packets from number 250 on, with a window of ``sent``."""
    content = memoryview(bytes(20 * FULL))
    pending = Pending(250, 1, 20, [Fragment(Request.WRITE, BASE, content)], frames=3)
    pending.batch = Batch(bytes(20 * 1472), 1472)
    made = WriteStream(pending, sent - answered, LINE.answers(250, 20), answered=answered)
    assert made.batch() is not None
    return made


def test_the_next_answers_are_taken() -> None:
    it = stream(10)
    batches = [Batch(answer(250) + answer(253), 20), Batch(answer(256), 20)]
    assert it.take(batches) == (3, [])
    assert (it.answered, it.sent, it.received_bytes) == (3, 10, 60)
    batch = it.batch()
    assert batch is not None
    assert (len(batch.content), it.sent) == (3 * 1472, 13)


@pytest.mark.parametrize(
    "batch",
    [
        Batch(answer(253), 20),
        Batch(answer(247), 20),
        Batch(answer(250) + answer(256), 20),
        Batch(answer(250) + answer(250), 20),
        Batch(answer(250) + answer(253), 40),
        Batch(answer(250) + answer(253)[:-1], 20),
        Batch(b"".join(answer(250 + 3 * k) for k in range(11)), 20),
        Batch(datagram_of(SESSION + 1, [answer(250)[4:-4]]), 20),
    ],
)
def test_anything_else_is_left(batch: Batch) -> None:
    good = Batch(answer(250), 20)
    assert stream(10).take([batch]) == (0, [batch])
    assert stream(10).take([batch, good]) == (0, [batch, good])


def test_no_flipped_bit_is_taken() -> None:
    sound = answer(250) + answer(253)
    for bit in range(8 * len(sound)):
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        assert stream(10).take([Batch(bytes(flipped), 20)])[0] == 0


Fault = Callable[[list[bytes]], list[bytes]]


class DirectNetwork:
    """A socket to a board; ``up`` and ``down`` change what each call carries. Time is simulated."""

    description = "model"

    def __init__(self, rules: ServedRules) -> None:
        self.rules = rules
        self.up: Fault = list
        self.down: Fault = list
        self.now = 0.0
        self.step = 1e-5
        """Seconds that answers take."""
        self._answers: list[bytes] = []

    def clock(self) -> float:
        """Return the simulated time."""
        return self.now

    def send(self, batches: Sequence[Batch]) -> None:
        """Let the board answer at once."""
        for packet in self.up([bytes(x) for batch in batches for x in batch.packets()]):
            self._answers += self.rules.datagrams(packet)

    def receive(self, seconds: float) -> list[Batch]:
        """Return all answers, or let ``seconds`` pass."""
        answers, self._answers = self.down(self._answers), []
        self.now += self.step if answers else max(0.0, seconds)
        return [Batch(b"".join(x), size) for size, x in groupby(answers, len)]

    def close(self) -> None:
        """Do nothing."""


class Board(NamedTuple):
    """A link, and what is at its other end."""

    link: UdpLink
    network: DirectNetwork
    device: MemoryDevice


@pytest.fixture
def board() -> Board:
    return opened(MemoryDevice())


def opened(device: MemoryDevice) -> Board:
    """Return a link to ``device`` over a network without faults."""
    rules = ServedRules(device)
    network = DirectNetwork(rules)
    rules.clock = network.clock
    rules.in_order = False
    link = UdpLink(network, clock=network.clock)  # type: ignore[arg-type]
    return Board(link, network, device)


def expect_write(board: Board, data: bytes, offset: int = 5) -> None:
    """Write; expect the bytes there, none beside them, and every byte written once."""
    link, _, device = board
    before = bytes(device.memory)
    device.written.clear()
    link.write(BASE + offset, data)
    end = offset + len(data)
    assert bytes(device.memory) == before[:offset] + data + before[end:]
    assert all(count == 1 for count in device.written.values())


PACKETS = 34
"""Packets of a write: three windows and a part."""

DATA = Random(1).randbytes(PACKETS * FULL + 700)


@pytest.mark.parametrize(("offset", "rest"), [(0, 700), (4, 700), (5, 704), (7, 704)])
def test_a_long_write_needs_no_decoding(
    board: Board, monkeypatch: pytest.MonkeyPatch, offset: int, rest: int
) -> None:
    """But of the packet that the rest does not fill, and of one before the first whole word."""
    decoded: list[int] = []
    decode = DatagramLine.decode

    def spy(line: DatagramLine, content: bytes | memoryview, size: int) -> tuple[list[Reply], int]:
        decoded.append(len(content) // size)
        return decode(line, content, size)

    monkeypatch.setattr(DatagramLine, "decode", spy)
    before = replace(board.link.counts)
    expect_write(board, DATA, offset)
    counts = board.link.counts
    assert decoded == [1] * (1 + bool(offset % 4))
    assert counts.requests - before.requests == 3 * PACKETS + 2
    assert counts.answers - before.answers == 3 * PACKETS + 2
    assert counts.received_bytes - before.received_bytes == 20 * PACKETS + 16
    assert counts.sent_bytes - before.sent_bytes == 1472 * PACKETS + rest + 2 * 8 + 8
    assert (counts.repeated, counts.damaged) == (0, 0)


def test_a_write_of_several_streams() -> None:
    it = opened(MemoryDevice(memory_bytes=1 << 20))
    data = Random(2).randbytes(2 * STREAM_PACKETS * FULL + 5 * FULL + 3)
    expect_write(it, data)
    assert it.link.counts.repeated == 0


def nth(position: int, change: Fault) -> Fault:
    """Return a fault that changes the datagrams from the one at ``position`` on, once."""
    passed = 0

    def apply(datagrams: list[bytes]) -> list[bytes]:
        nonlocal passed
        here, passed = position - passed, passed + len(datagrams)
        if not 0 <= here < len(datagrams):
            return datagrams
        return datagrams[:here] + change(datagrams[here:])

    return apply


FAULTS: dict[str, Fault] = {
    "lost": lambda x: x[1:],
    "all lost": lambda x: [],
    "doubled": lambda x: x[:1] + x,
    "behind the next one": lambda x: x[1:2] + x[:1] + x[2:],
    "last": lambda x: x[1:] + x[:1],
    "damaged": lambda x: [x[0][:9] + bytes((x[0][9] ^ 1,)) + x[0][10:], *x[1:]],
    "cut": lambda x: [x[0][:-4], *x[1:]],
    "another session's": lambda x: [datagram_of(1, [x[0][4:-4]]), *x],
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_fault_at_each_packet(board: Board, direction: str, name: str) -> None:
    for position in range(0, PACKETS + 1, 2):
        setattr(board.network, direction, nth(position, FAULTS[name]))
        expect_write(board, Random(position).randbytes(len(DATA)))
    board.network.up = board.network.down = list
    expect_write(board, DATA)


def test_a_write_beyond_the_memory_is_refused_and_the_link_goes_on(board: Board) -> None:
    memory = board.device.memory
    first = END - 12 * FULL - 480
    with pytest.raises(LinkError, match=f"refused the WRITE of 480 bytes at {END:#x}"):
        board.link.write(first, DATA)
    assert bytes(memory[first - BASE :]) == DATA[: END - first]
    assert not any(memory[: first - BASE])
    expect_write(board, DATA)


def test_the_interrupt_line_is_seen_in_a_long_write(board: Board) -> None:
    board.device.interrupt = True
    expect_write(board, DATA)
    assert vars(board.link)["_interrupt"] is True
    board.device.interrupt = False
    expect_write(board, DATA[: 20 * FULL])
    assert vars(board.link)["_interrupt"] is False


def test_reads_wait_for_a_long_write_to_the_control_window(board: Board) -> None:
    data = Random(4).randbytes(20 * FULL)
    link, _, device = board
    (first,) = link.exchange([(BASE, data), (CONTROL_BASE + 0x1000, bytes(4))], [(BASE, len(data))])
    assert first.tobytes() == data
    assert device.window_writes == [(0x1000, bytes(4))]


def test_a_silent_board_is_an_error_in_time(board: Board) -> None:
    link, network, _ = board
    passed = 0

    def pulled(datagrams: list[bytes]) -> list[bytes]:
        nonlocal passed
        passed += len(datagrams)
        return datagrams if passed < 20 else []

    network.down = pulled
    network.step = 0.3
    start = network.now
    with pytest.raises(LinkError, match="no answer for 10 s to a WRITE of 480 bytes"):
        link.write(BASE, DATA)
    # A round, 10 s of silence, and a new greeting and a farewell, each sent three times.
    assert 10.3 <= network.now - start < 11.2


def test_a_loss_after_a_longer_time_than_the_timeout_is_repeated(board: Board) -> None:
    board.network.step = 8.0
    board.network.up = nth(25, FAULTS["all lost"])
    expect_write(board, DATA)


def test_what_follows_the_next_answers_is_read(board: Board) -> None:
    board.network.down = nth(14, FAULTS["cut"])
    expect_write(board, DATA)
    counts = board.link.counts
    assert (counts.damaged, counts.repeated) == (1, 1)


def test_unanswered_packets_are_in_flight_afterwards() -> None:
    flight = InFlight(7)
    sender = Sender(LINE, flight, 1 << 14, Counts())
    transfers = TransferQueue([(BASE, memoryview(bytes(20 * FULL)))])
    ahead = sender.ahead(transfers, STREAM_PACKETS)
    assert ahead is not None
    assert (ahead[0].packets, ahead[1]) == (20, 10)
    sender.record(ahead[0], 10, 4, transfers)
    [left] = flight.batches
    assert (left.first, left.packets, left.transmission) == (7 + 3 * 4, 6, 5)
    assert sender.ahead(transfers, STREAM_PACKETS) is None
    assert len(sender.batches(transfers)) == 1
    later = flight.batches[1]
    assert (later.first, later.packets, later.transmission) == (7 + 3 * 10, 4, 11)
