"""A link sends fragments in the right order and size, and waits for their answers.

Long writes take a quicker way as long as every answer is the next one.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from bitlane.errors import LinkError
from bitlane.links import (
    LEAST_BATCH,
    SERIAL,
    STREAM_PACKETS,
    Batch,
    Counts,
    DatagramLine,
    Fragment,
    FrameSizer,
    InFlight,
    Pending,
    Reply,
    RetransmissionTimer,
    Sender,
    TransferQueue,
    WriteStream,
    duration,
)
from bitlane_rtl.abi import CONTROL_BASE, RECEIVE_BYTES, REPETITIONS, SEQUENCES, Answer, Request
from support.board.line import ModelSocket
from support.board.model import MemoryDevice
from support.ethernet.datagrams import datagram_of
from support.host.network import ServedRules
from support.host.replies import view
from support.host.transfers import BASE, expect_write, nth
from support.serial.frames import Reply as ModelReply


def fragments_of(transfers: TransferQueue, most: int) -> list[Fragment]:
    fragments = []
    while (fragment := transfers.next(most)) is not None:
        assert transfers.next(most) == fragment
        cost = SERIAL.cost(fragment.request, fragment.span)
        lead = cost.request_bytes - cost.answer_bytes
        transfers.pop(fragment, lead)
        fragments.append(fragment)
    return fragments


@pytest.mark.parametrize("size", [32, 64, 128, 512])
@pytest.mark.parametrize("read_size", [32, 512])
def test_both_directions_carry_the_same_while_both_have_work(size: int, read_size: int) -> None:
    reads = [(0x8000 + read_size * k, view(read_size)) for k in range(500)]
    fragments = fragments_of(TransferQueue([(0, view(size * 20))], reads), max(size, read_size))
    kinds = "".join(fragment.request.name[0] for fragment in fragments)
    up = down = 0
    for fragment in fragments[: kinds.rindex("W")]:
        cost = SERIAL.cost(fragment.request, fragment.span)
        up += cost.request_bytes
        down += cost.answer_bytes
        assert abs(up - down) <= 530, kinds
    assert set(kinds[kinds.rindex("W") + 1 :]) == {"R"}


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [1, 61, 64, 65, 300])
def test_only_the_first_fragment_begins_within_a_word(offset: int, size: int) -> None:
    fragments = fragments_of(TransferQueue([(offset, view(size))]), 64)
    assert all(fragment.span <= 64 for fragment in fragments)
    assert all(fragment.address % 64 == 0 for fragment in fragments[1:])
    assert len(fragments) == -(-(offset + size) // 64)


def test_a_batch_begins_with_a_whole_word() -> None:
    transfers = TransferQueue([(3, view(1000))])
    assert not transfers.fills(64)
    head = transfers.next(64, 10)
    assert head is not None
    assert len(head.content) == 61
    transfers.pop(head, 0)
    assert transfers.fills(64)
    rest = transfers.next(64, 10)
    assert rest is not None
    assert (rest.address, len(rest.content)) == (64, 640)
    assert len(rest.content) >= LEAST_BATCH * 64


def test_both_directions_are_busy_behind_the_last_write_to_the_control_window() -> None:
    writes = [(0, view(64)), (CONTROL_BASE + 8, view(8)), (64, view(64)), (CONTROL_BASE, view(4))]
    more = [(0x100 + 64 * k, view(64)) for k in range(8)]
    transfers = TransferQueue(writes + more, [(0x8000, view(64)), (CONTROL_BASE + 16, view(4))])
    fragments = fragments_of(transfers, 64)
    assert [(each.request, each.address) for each in fragments[:4]] == [
        (Request.WRITE, address) for address, _ in writes
    ]
    kinds = "".join(each.request.name[0] for each in fragments[4:])
    assert kinds.index("R") < kinds.rindex("W"), kinds


def test_what_is_cleared_is_not_moved() -> None:
    transfers = TransferQueue([(0, view(100)), (CONTROL_BASE, view(8))], [(0x8000, view(100))])
    transfers.clear()
    assert transfers.next(64) is None


# --- frames and waits adapt to the line ----------------------------------------------------------


def sizes_of(sizer: FrameSizer, count: int) -> list[int]:
    found = []
    for _ in range(count):
        found.append(sizer.size)
        sizer.on_answer(sizer.size)
    return found


def test_frames_grow_at_once_on_a_quiet_line_and_slowly_after_losses() -> None:
    sizer = FrameSizer(SERIAL, RECEIVE_BYTES)
    assert sizes_of(sizer, 5) == [64, 128, 256, 512, 512]
    for size in (256, 128, 64, 32, 32):
        sizer.on_loss()
        assert sizer.size == size
        assert sizer.packets == SERIAL.noisy_packets
    assert sizes_of(sizer, 17) == [32] * 8 + [64] * 8 + [128]
    assert sizer.packets == SERIAL.noisy_packets
    sizes_of(sizer, 20)
    assert (sizer.size, sizer.packets) == (512, REPETITIONS)


STEPS: dict[str, Callable[[RetransmissionTimer], None]] = {
    "quick": lambda it: it.measured(0.001, 436),
    "slow": lambda it: it.measured(0.5, 436),
    "endless": lambda it: it.measured(100.0, 436),
    "silence": lambda it: it.back_off(),
    "answer": lambda it: it.reset_backoff(),
    "copy": lambda it: it.spurious(),
}
LEAST = SERIAL.least_wait


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        # The wait starts at a second and ends at the time-out.
        ([], [1]),
        (["endless"], [1, 2.5]),
        # Quick answers shorten it slowly, and a slow one lengthens it at once.
        (["slow", *["quick"] * 100, "slow"], [LEAST, 1]),
        # Each silence doubles it, up to a limit, and an answer ends that.
        (["quick", *["silence"] * 6, "answer"], [LEAST * n for n in (1, 2, 4, 8, 16, 32, 32, 1)]),
        # Answers that come twice double it, until the line is measured again.
        (["slow", "copy"], [1, 2]),
        (["quick", *["copy"] * 99, *["quick"] * 5], [LEAST * n for n in (16, 8, 4, 2, 1, 1)]),
    ],
)
def test_the_wait_for_an_answer_follows_the_line(steps: list[str], waits: list[float]) -> None:
    """``waits`` are the last ones, in seconds."""
    it = RetransmissionTimer(SERIAL, 2.5)
    found = [it.seconds(436)]
    for step in steps:
        STEPS[step](it)
        found.append(it.seconds(436))
    assert found[-len(waits) :] == waits


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 us"),
        (1.234e-6, "1.23 us"),
        (0.0123, "12.3 ms"),
        (59.9, "59.9 s"),
        (60, "1 min"),
        (1470, "24.5 min"),
        (3600, "1 h"),
        (5_000_000, "1,389 h"),
        # Rounded to the next unit's first number, but never with an exponent.
        (999.7e-6, "1,000 us"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


# --- long writes ----------------------------------------------------------------------------------

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


@pytest.fixture
def line() -> ModelSocket:
    line = ModelSocket()
    line.board.in_order = False
    return line


PACKETS = 34
"""Packets of a write: three windows and a part."""

DATA = Random(1).randbytes(PACKETS * FULL + 700)


@pytest.mark.parametrize(("offset", "rest"), [(0, 700), (4, 700), (5, 704), (7, 704)])
def test_a_long_write_needs_no_decoding(
    line: ModelSocket, monkeypatch: pytest.MonkeyPatch, offset: int, rest: int
) -> None:
    """Only a packet that is not full, and one before the first whole word, are decoded."""
    decoded: list[int] = []
    decode = DatagramLine.decode
    link = line.link()

    def spy(line: DatagramLine, content: bytes | memoryview, size: int) -> tuple[list[Reply], int]:
        decoded.append(len(content) // size)
        return decode(line, content, size)

    monkeypatch.setattr(DatagramLine, "decode", spy)
    before = replace(link.counts)
    expect_write(link, line.board.device, DATA, offset)
    counts = link.counts
    assert decoded == [1] * (1 + bool(offset % 4))
    assert counts.requests - before.requests == 3 * PACKETS + 2
    assert counts.answers - before.answers == 3 * PACKETS + 2
    assert counts.received_bytes - before.received_bytes == 20 * PACKETS + 16
    assert counts.sent_bytes - before.sent_bytes == 1472 * PACKETS + rest + 2 * 8 + 8
    assert (counts.repeated, counts.damaged) == (0, 0)


def test_a_write_of_several_streams() -> None:
    line = ModelSocket(ServedRules(MemoryDevice(memory_bytes=1 << 20)))
    link = line.link()
    data = Random(2).randbytes(2 * STREAM_PACKETS * FULL + 5 * FULL + 3)
    expect_write(link, line.board.device, data, 5)
    assert link.counts.repeated == 0


def test_a_write_beyond_the_memory_is_refused_and_the_link_goes_on(line: ModelSocket) -> None:
    link, device = line.link(), line.board.memory_device
    first = END - 12 * FULL - 480
    with pytest.raises(LinkError, match=f"refused the WRITE of 480 bytes at {END:#x}"):
        link.write(first, DATA)
    assert bytes(device.memory[first - BASE :]) == DATA[: END - first]
    assert not any(device.memory[: first - BASE])
    expect_write(link, device, DATA, 5)


def test_the_interrupt_line_is_seen_in_a_long_write(line: ModelSocket) -> None:
    link, device = line.link(), line.board.memory_device
    # The second write has no packet that is decoded.
    for level, data, offset in ((True, DATA, 5), (False, DATA[: 20 * FULL], 4)):
        device.interrupt = level
        expect_write(link, device, data, offset)
        assert vars(link)["_interrupt"] is level


def test_reads_wait_for_a_long_write_to_the_control_window(line: ModelSocket) -> None:
    data = Random(4).randbytes(20 * FULL)
    (first,) = line.link().exchange(
        [(BASE, data), (CONTROL_BASE + 0x1000, bytes(4))], [(BASE, len(data))]
    )
    assert first.tobytes() == data
    assert line.board.memory_device.window_writes == [(0x1000, bytes(4))]


def test_a_silent_board_is_an_error_in_time(line: ModelSocket) -> None:
    passed = 0

    def pulled(datagrams: list[bytes]) -> list[bytes]:
        nonlocal passed
        passed += len(datagrams)
        return datagrams if passed < 20 else []

    link = line.link()
    line.down, line.latency = pulled, 0.15
    start = line.now
    with pytest.raises(LinkError, match="no answer for 10 s to a WRITE of 480 bytes"):
        link.write(BASE, DATA)
    # A round, 10 s of silence, and a new greeting and a farewell, each sent three times.
    assert 10.3 <= line.now - start < 11.2


def test_a_loss_after_a_longer_time_than_the_timeout_is_repeated(line: ModelSocket) -> None:
    link = line.link()
    line.latency = 4.0
    line.up = nth(25, lambda x: [])
    expect_write(link, line.board.device, DATA, 5)


def test_the_answers_of_a_stream_tell_how_long_to_wait(line: ModelSocket) -> None:
    line.now = 1000.0
    link, data = line.link(), DATA[: 20 * FULL]
    expect_write(link, line.board.device, data, 0)
    line.up = nth(19, lambda x: [])
    start = line.now
    expect_write(link, line.board.device, data, 0)
    assert link.counts.repeated == 1
    assert line.now - start < 0.5


def test_what_follows_the_next_answers_is_read(line: ModelSocket) -> None:
    link = line.link()
    line.down = nth(14, lambda x: [x[0][:-4], *x[1:]])
    expect_write(link, line.board.device, DATA, 5)
    assert (link.counts.damaged, link.counts.repeated) == (1, 1)


def test_unanswered_packets_of_a_stream_are_in_flight_afterwards() -> None:
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


def test_a_board_that_buffers_one_packet_has_one_unanswered() -> None:
    sender = Sender(LINE, InFlight(7), 1 << 11, Counts())
    ahead = sender.ahead(TransferQueue([(BASE, memoryview(bytes(20 * FULL)))]), STREAM_PACKETS)
    assert ahead is not None
    assert (ahead[0].packets, ahead[1]) == (20, 1)
