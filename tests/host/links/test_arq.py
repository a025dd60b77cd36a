"""The window of requests in flight obeys the board's limits, and handles every answer."""

from typing import Any

import pytest

from bitlane.errors import LinkError
from bitlane.links.arq import Window
from bitlane.links.counts import Counts
from bitlane.links.datagrams import DatagramLine
from bitlane.links.line import Batch, Reply
from bitlane.links.serial_frames import SERIAL
from bitlane.links.timing import FrameSizer, RetransmissionTimer
from bitlane.links.transfer_queue import TransferQueue
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import RECEIVE_BYTES, REPETITIONS, SEQUENCES, Answer, Request
from support.host.replies import packets_of, reply
from support.serial.frames import asked, request_in

Sent = tuple[int, Request, int, int]


def window(sequence: int = 0, room: int = RECEIVE_BYTES) -> Window:
    return Window(SERIAL, "board", sequence, room, Counts())


def view(size: int, byte: int = 0) -> memoryview:
    return memoryview(bytearray((byte,)) * size)


def sent(batches: list[Batch]) -> list[Sent]:
    """Return sequence number, kind, address and size of requests."""
    found = []
    for frame in packets_of(batches):
        request = request_in(bytes(frame[:-1]))
        assert request is not None
        number, kind, size, address, _ = asked(request)
        found.append((number, Request(kind), address, size))
    return found


def numbers(batches: list[Batch]) -> list[int]:
    return [x[0] for x in sent(batches)]


def done(sequence: int, data: bytes = b"") -> Reply:
    return reply(sequence, Answer.DONE, data)


def expected(sequence: int) -> Reply:
    return reply(sequence, Answer.EXPECTED)


NOTHING = TransferQueue()
READ, WRITE = Request.READ, Request.WRITE


# --- how much may be on the way -------------------------------------------------------------------


def test_no_more_is_on_the_way_than_the_board_buffers() -> None:
    it = window()
    frames = it.batches(TransferQueue([(0, view(10_000))]))
    assert sum(size + 12 for *_, size in sent(frames)) <= RECEIVE_BYTES
    assert sum(size + 12 for *_, size in sent(frames)) + SERIAL.sizes.start + 12 > RECEIVE_BYTES


def test_a_board_that_buffers_little_gets_small_requests() -> None:
    transfers = TransferQueue([(0, view(1000))])
    it = window(room=100)
    moved = 0
    for _ in range(100):
        frames = sent(it.batches(transfers))
        assert sum(size + 12 for *_, size in frames) <= 100
        for number, _, _, size in frames:
            moved += size
            it.take(done(number))
    assert moved == 1000


def test_only_requests_without_an_answer_count_as_bytes_on_the_line() -> None:
    it, fresh = window(), window(2)
    transfers = TransferQueue(reads=[(0, view(8)), (64, view(8))])
    first, _ = sent(it.batches(transfers))
    it.take(done(first[0], bytes(8)))
    fresh.batches(TransferQueue(reads=[(64, view(8))]))
    assert it.line_bytes == fresh.line_bytes > 0


def test_no_number_is_used_again_before_all_of_8192_ago_are_answered() -> None:
    it = window(SEQUENCES - 200)
    transfers = TransferQueue(reads=[(0x1000, view(64)), *((8 * k, view(4)) for k in range(9000))])
    # The answer to the first one is lost for ever, whatever is sent again.
    other = []
    while batches := it.batches(transfers):
        for number, _, address, size in sent(batches):
            other.append(number)
            if address != 0x1000 or size != 64:
                it.take(done(number, bytes(size)))
    assert len(set(other)) == REPETITIONS
    assert not it.empty


def test_answers_on_the_way_fit_where_a_terminal_keeps_them() -> None:
    it = window()
    transfers = TransferQueue(reads=[(0, view(100_000))])
    for _ in range(20):
        frames = sent(it.batches(transfers))
        for number, _, _, size in frames:
            it.take(done(number, bytes(size)))
    assert sum(size + 10 for *_, size in sent(it.batches(transfers))) <= 4000


# --- hazards --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("address", "size"), [(0x100, 4), (0x13F, 1), (0xF0, 17), (0x0, 512)])
def test_a_write_waits_for_unanswered_reads_of_the_same_bytes(address: int, size: int) -> None:
    it = window()
    assert sent(it.batches(TransferQueue(reads=[(0x100, view(64))]))) == [(0, READ, 0x100, 64)]
    write = TransferQueue([(address, view(size))])
    most = min(size, SERIAL.sizes.start)
    blocked = address + most > 0x100
    assert bool(it.batches(write)) != blocked
    it.take(done(0, bytes(64)))
    while not it.empty or write.next(1):
        frames = it.batches(write)
        assert frames
        for number in numbers(frames):
            it.take(done(number))


@pytest.mark.parametrize(("address", "size"), [(0xF0, 16), (0x140, 64), (0x8000, 1)])
def test_accesses_elsewhere_do_not_wait(address: int, size: int) -> None:
    it = window()
    it.batches(TransferQueue(reads=[(0x100, view(64))]))
    assert it.batches(TransferQueue([(address, view(size))]))
    assert it.batches(TransferQueue(reads=[(address, view(size)), (CONTROL_BASE, view(4))]))


@pytest.mark.parametrize(("address", "waits"), [(0xFF, 0), (0x100, 1), (0x107, 1), (0x108, 0)])
def test_a_write_waits_for_unanswered_reads_of_the_same_words(address: int, waits: bool) -> None:
    """A read covers whole words, and a repetition must return the same ones."""
    it = window()
    it.batches(TransferQueue(reads=[(0x103, view(2))]))
    assert bool(it.batches(TransferQueue([(address, view(1))]))) != waits


def test_a_write_to_the_control_window_waits_for_every_read() -> None:
    it = window()
    it.batches(TransferQueue(reads=[(0x100, view(64)), (0x1000, view(0))]))
    write = TransferQueue([(CONTROL_BASE + 0x1C, view(4))])
    assert not it.batches(write)
    it.take(done(0, bytes(64)))
    assert not it.batches(write)
    it.take(done(1))
    assert sent(it.batches(write)) == [(2, WRITE, CONTROL_BASE + 0x1C, 4)]


# --- losses ---------------------------------------------------------------------------------------


def five_writes(sequence: int = 0) -> Window:
    it = window(sequence)
    transfers = TransferQueue([(0x1000 * k, view(8)) for k in range(5)])
    assert numbers(it.batches(transfers)) == [(sequence + k) % SEQUENCES for k in range(5)]
    return it


def test_an_answer_that_was_skipped_is_asked_for_again() -> None:
    it = five_writes()
    it.take(done(0))
    it.take(done(2))
    # The first one that is sent again goes out twice.
    assert numbers(it.batches(NOTHING)) == [1, 1]
    it.take(done(3))
    it.take(done(4))
    assert not it.batches(NOTHING)
    it.take(done(1))
    assert it.empty


def test_what_the_board_expects_is_sent_again_with_all_that_followed() -> None:
    it = five_writes(SEQUENCES - 2)
    it.take(expected(0))
    assert numbers(it.batches(NOTHING)) == [0, 1, 2]
    # What was taken before may be answered after EXPECTED.
    for number in (SEQUENCES - 2, SEQUENCES - 1, 0, 1, 2):
        it.take(done(number))
    assert it.empty
    assert not it.batches(NOTHING)


def test_the_same_request_is_not_sent_again_for_each_complaint() -> None:
    it = five_writes()
    it.take(expected(1))
    assert it.batches(NOTHING)
    it.take(expected(1))
    assert not it.batches(NOTHING)
    it.on_timeout()
    assert it.batches(NOTHING)
    it.take(expected(1))
    assert numbers(it.batches(NOTHING)) == [1, 2, 3, 4]


def test_a_complaint_about_nothing_sends_nothing() -> None:
    it = five_writes()
    it.take(expected(5))
    assert not it.batches(NOTHING)
    for number in range(5):
        it.take(done(number))
    it.take(expected(5))
    assert not it.batches(NOTHING)


def test_a_number_that_was_not_sent_is_no_board_of_ours() -> None:
    it = five_writes()
    with pytest.raises(LinkError, match="expects request 9; the next one is 5: it was reset"):
        it.take(expected(9))


def test_silence_sends_the_oldest_one_again() -> None:
    it = five_writes()
    it.take(done(0))
    it.on_timeout()
    assert numbers(it.batches(NOTHING)) == [1, 1]
    it.take(done(1))
    # Its answer came and those behind it did not, so that they are lost.
    assert numbers(it.batches(NOTHING))[-3:] == [2, 3, 4]


def test_second_answers_are_ignored_and_tell_of_haste() -> None:
    it = five_writes()
    it.on_timeout()
    it.batches(NOTHING)
    for number in range(5):
        it.take(done(number))
    assert it.empty
    assert it.take(done(0)) == 0
    assert it.spurious == 1
    it.take(done(3))
    assert it.spurious == 1
    # A network may copy an answer any number of times.
    it.take(done(0))
    assert it.spurious == 1


def test_a_repetition_is_the_same_byte_for_byte() -> None:
    it = window()
    content = bytearray(b"before..")
    first = it.batches(TransferQueue([(0, memoryview(content))]))
    content[:] = b"later..."
    it.on_timeout()
    assert set(packets_of(it.batches(NOTHING))) == set(packets_of(first))


def test_what_was_sent_once_tells_the_time_that_it_took() -> None:
    it = five_writes()
    assert it.take(done(0)) > 20
    it.take(expected(1))
    it.batches(NOTHING)
    assert it.take(done(1)) == 0


# --- answers --------------------------------------------------------------------------------------


def test_what_is_read_is_stored_where_it_belongs() -> None:
    it = window()
    target = bytearray(96)
    frames = sent(it.batches(TransferQueue(reads=[(0x100, memoryview(target))])))
    for number, _, address, size in frames:
        it.take(done(number, bytes(range(address - 0x100, address - 0x100 + size))))
    assert target == bytes(range(96))


def test_a_refusal_is_kept() -> None:
    it = five_writes()
    it.take(reply(1, Answer.REFUSED))
    it.take(reply(2, Answer.REFUSED))
    assert it.refused is not None
    assert it.refused.address == 0x1000


@pytest.mark.parametrize(
    ("kind", "data"), [(Answer.DONE, b""), (Answer.DONE, bytes(5)), (3, bytes(4)), (127, b"")]
)
def test_an_answer_that_no_board_gives_is_an_error(kind: int, data: bytes) -> None:
    it = window()
    it.batches(TransferQueue(reads=[(0, view(4))]))
    with pytest.raises(
        LinkError, match=f"answer of kind {kind:d} with {len(data)} bytes to READ 0"
    ):
        it.take(reply(0, kind, data))


def test_a_strange_answer_names_the_frame_and_not_its_fragment() -> None:
    it = Window(DatagramLine(1), "board", 224, 1 << 14, Counts())
    assert it.batches(TransferQueue(reads=[(0, view(1440))]))
    data = bytes(1440)
    spans = (slice(0, 480), slice(480, 959), slice(960, 1440))
    with pytest.raises(
        LinkError, match="kind 0 with 479 bytes to READ 225; expected kind 0 with 480: the board"
    ):
        it.take(Reply(224, Answer.DONE, False, data, 1, spans))


# --- sizer and timer ----------------------------------------------------------------------------


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


def timer(*measured: tuple[float, int], **options: Any) -> RetransmissionTimer:
    it = RetransmissionTimer(SERIAL, 2.5)
    for seconds, line_bytes in measured:
        it.measured(seconds, line_bytes)
    return it


def test_patience_starts_at_a_second_and_ends_at_what_was_allowed() -> None:
    assert timer().seconds(500) == 1
    it = timer((100.0, 500))
    assert it.seconds(500) == 2.5


def test_patience_follows_the_line() -> None:
    it = timer((0.5, 436))
    assert it.seconds(436) == 1
    for _ in range(100):
        it.measured(0.001, 436)
    assert it.seconds(436) == SERIAL.least_wait
    it.measured(0.5, 436)
    assert it.seconds(436) == 1


def test_patience_doubles_with_each_silence_and_recovers() -> None:
    it = timer((0.001, 100))
    waits = []
    for _ in range(7):
        waits.append(round(it.seconds(100) / SERIAL.least_wait))
        it.back_off()
    assert waits == [1, 2, 4, 8, 16, 32, 32]
    it.reset_backoff()
    assert it.seconds(100) == SERIAL.least_wait


def test_answers_that_come_twice_double_patience() -> None:
    it = timer((0.1, 100))
    before = it.seconds(100)
    it.spurious()
    assert it.seconds(100) == pytest.approx(2 * before)


def test_copies_of_answers_stretch_the_wait_only_until_it_is_measured() -> None:
    it = timer((0.001, 100))
    for _ in range(100):
        it.spurious()
    assert it.seconds(100) == 16 * SERIAL.least_wait
    waits = []
    for _ in range(5):
        it.measured(0.001, 100)
        waits.append(round(it.seconds(100) / SERIAL.least_wait))
    assert waits == [8, 4, 2, 1, 1]
