"""The window of requests in flight, on each line: the board's limits, losses and answers.

Exact numbers; `test_faults` has any order of faults. A packet of the serial line is a frame, and a
full one of the network has three.
"""

import pytest

from bitlane.errors import LinkError
from bitlane.links import LEAST_BATCH, SERIAL, Batch, Line, Reply, TransferQueue, Window
from bitlane_rtl.abi import (
    CONTROL_BASE,
    DATAGRAM_BYTES,
    REPETITIONS,
    SEQUENCES,
    STORED_HEADER_BYTES,
    Answer,
    Request,
)
from support.host.replies import (
    NETWORK,
    ROOM,
    answered,
    done,
    expected,
    numbers,
    packets_of,
    reply,
    requests,
    sent,
    view,
    window,
)

LINES = pytest.mark.parametrize("line", [SERIAL, NETWORK], ids=["serial", "network"])
NOTHING = TransferQueue()


# --- how much may be on the way -------------------------------------------------------------------


def stored(batches: list[Batch]) -> int:
    """Return the bytes that the board buffers of ``batches``."""
    packets = packets_of(batches)
    if packets[0].endswith(b"\0"):
        return sum(8 + 4 + -(-x.size // 4) * 4 for x in requests(batches))
    assert all(len(packet) <= DATAGRAM_BYTES for packet in packets)
    return sum(len(packet) + STORED_HEADER_BYTES for packet in packets)


@pytest.mark.parametrize("size", [1, 60, 479, 480, 481, 1440, 100_000])
@LINES
def test_no_more_is_in_flight_than_the_board_buffers(line: Line, size: int) -> None:
    batches = window(line).batches(TransferQueue((8 * size * k, view(size)) for k in range(200)))
    assert stored(batches) <= ROOM[line]
    assert len(requests(batches)) <= REPETITIONS
    # Nothing is held back without need.
    least = SERIAL.sizes.start + 12 if line is SERIAL else 1500
    assert stored(batches) > ROOM[line] - least or (size < 100 and line is NETWORK)


@LINES
def test_only_requests_without_an_answer_count_as_bytes_on_the_line(line: Line) -> None:
    it, fresh = window(line), window(line, 2)
    it.batches(TransferQueue(reads=[(0, view(8))]))
    it.batches(TransferQueue(reads=[(64, view(8))]))
    it.take(answered(0, bytes(8)))
    fresh.batches(TransferQueue(reads=[(64, view(8))]))
    assert it.line_bytes == fresh.line_bytes > 0


def test_no_number_is_used_again_before_all_of_8192_ago_are_answered() -> None:
    it = window(SERIAL, SEQUENCES - 200)
    transfers = TransferQueue(reads=[(0x1000, view(64)), *((8 * k, view(4)) for k in range(9000))])
    # The answer to the first one is lost for ever, whatever is sent again.
    other = []
    while batches := it.batches(transfers):
        for number, _, size, address, _ in requests(batches):
            other.append(number)
            if address != 0x1000 or size != 64:
                it.take(answered(number, bytes(size)))
    assert len(set(other)) == REPETITIONS
    assert not it.empty


def test_answers_on_the_way_fit_where_a_terminal_keeps_them() -> None:
    it = window(SERIAL)
    transfers = TransferQueue(reads=[(0, view(100_000))])
    for _ in range(20):
        for request in requests(it.batches(transfers)):
            it.take(answered(request.number, bytes(request.size)))
    assert sum(x.size + 10 for x in requests(it.batches(transfers))) <= 4000


def test_the_answers_to_a_packet_are_one_datagram() -> None:
    it = window(NETWORK)
    packets = sent(it.batches(TransferQueue(reads=[(0, view(20_000)), (1 << 20, view(100))])))
    assert all(sum(4 + x.size for x in packet) + 8 <= DATAGRAM_BYTES for packet in packets)


@pytest.mark.parametrize(
    ("writes", "reads", "packets"),
    [
        ([100_000], 0, [19]),
        ([], 100_000, [44]),
        # A few packets are not a batch, and one direction alternates with the other.
        ([(LEAST_BATCH - 1) * 1440 + 9], 0, [1] * LEAST_BATCH),
        ([], (LEAST_BATCH - 1) * 1440, [1] * (LEAST_BATCH - 1)),
        ([5760], 5760, [1] * 8),
        # Writes before one to the control window do not alternate with reads.
        ([5760, 4], 64, [4, 1]),
    ],
)
def test_batches_of_full_packets(writes: list[int], reads: int, packets: list[int]) -> None:
    given = [(CONTROL_BASE * place, view(size)) for place, size in enumerate(writes)]
    batches = window(NETWORK).batches(TransferQueue(given, [(1 << 20, view(reads))][: reads > 0]))
    assert [len(batch.packets()) for batch in batches] == packets
    if len(packets) == 8:
        assert [packet[0].kind for packet in sent(batches)][:2] == [Request.WRITE, Request.READ]


def test_batches_follow_each_other_at_full_length() -> None:
    number = SEQUENCES - 1000
    it = window(NETWORK, number)
    for turn in range(20):
        (batch,) = it.batches(TransferQueue(reads=[(0, view(44 * 1440))]))
        assert len(batch.packets()) == 44
        it.take(done(number + 132 * turn, 44, bytes(480)))
    (batch,) = it.batches(TransferQueue([(0, view(100_000))]))
    assert len(batch.packets()) == 19


# --- hazards --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "write", "waits"),
    [
        ((0x100, 64), (0x100, 4), True),
        ((0x100, 64), (0x13F, 1), True),
        ((0x100, 64), (0xF0, 17), True),
        ((0x100, 64), (0xF0, 16), False),
        ((0x100, 64), (0x140, 64), False),
        ((0x100, 64), (0x8000, 1), False),
        # A read covers whole words, and a repetition must return the same ones.
        ((0x103, 2), (0xFF, 1), False),
        ((0x103, 2), (0x100, 1), True),
        ((0x103, 2), (0x107, 1), True),
        ((0x103, 2), (0x108, 1), False),
        # A write to the control window waits for every read.
        ((0x100, 64), (CONTROL_BASE + 0x1C, 4), True),
        ((0x100, 0), (CONTROL_BASE + 0x1C, 4), True),
    ],
)
@LINES
def test_a_write_waits_for_unanswered_reads_of_the_same_words(
    line: Line, read: tuple[int, int], write: tuple[int, int], waits: bool
) -> None:
    it = window(line)
    (asked_for,) = requests(it.batches(TransferQueue(reads=[(read[0], view(read[1]))])))
    blocked = TransferQueue([(write[0], view(write[1]))])
    assert bool(it.batches(blocked)) != waits
    assert it.batches(TransferQueue(reads=[(0x8000, view(8)), (CONTROL_BASE, view(4))]))
    it.take(answered(0, bytes(asked_for.size)))
    if waits and write[0] < CONTROL_BASE:
        (request,) = requests(it.batches(blocked))
        assert (request.kind, request.address, request.size) == (Request.WRITE, *write)


@pytest.mark.parametrize(("line", "write", "packets"), [(SERIAL, 512, 4), (NETWORK, 14_400, 5)])
def test_no_long_write_passes_a_read_of_the_same_bytes(
    line: Line, write: int, packets: int
) -> None:
    """It is sent up to the read."""
    it = window(line)
    it.batches(TransferQueue(reads=[(0x100 if line is SERIAL else 8000, view(64))]))
    assert len(sent(it.batches(TransferQueue([(0, view(write))])))) == packets


# --- losses ---------------------------------------------------------------------------------------

FIVE, NINE, TEN = (SERIAL, [8] * 5), (NETWORK, [9 * 480]), (NETWORK, [14_400])
"""Five frames, nine frames in three packets, and a batch of ten packets."""

LOSSES: dict[str, tuple[tuple[Line, list[int]], str]] = {
    # The first repeated request on a noisy line is sent twice.
    "a request whose answer was skipped is sent again": (FIVE, "0 2 > 1 1; 3 4 >; 1 >"),
    # Requests that the board took before may be answered after EXPECTED.
    "the expected request is sent again with all later ones": (FIVE, "E2 > 2-4; 0-4 >"),
    "not for each complaint": (FIVE, "E1 > 1-4; E1 >; T > 0 0; E1 > 1-4; 0-4 >"),
    "a complaint about nothing sends nothing": (FIVE, "E5 >; 0-4 >; E5 >"),
    # Its answer came and those behind it did not, so that they are lost.
    "silence sends the oldest one again": (FIVE, "0 T > 1 1; 1 > 2 2-4"),
    # On a noisy line six are in flight; the others are lost, too.
    "more than fit are repeated in turn": ((SERIAL, [8] * 10), "E0 > 0 0-5; 0-5 > 6 6-9; 6-9 >"),
    # The repetition was sent after the others, and its answer has come before theirs.
    "a packet is repeated until all its answers have come": (NINE, "0 T > 0-2; 0 1 2 2 > 3-8"),
    "the packet of the expected request and all later ones": (NINE, "E1 > 0-8;>"),
    "the packet of its last request": (NINE, "E2 > 0-8;>"),
    "the packet of the next request": (NINE, "E3 > 3-8;>"),
    "the packet of the request behind it": (NINE, "E4 > 3-8;>"),
    "an answer to a later packet repeats the earlier ones": (NINE, "3-5 > 0-2"),
    "silence repeats the first packet of a batch": (TEN, "T > 0-2; 0x1 > 3-29"),
    "an answer from the middle repeats all earlier packets": (TEN, "6x3 > 0-5; 0x2 15x5 >"),
    "a complaint repeats the end of a batch": (TEN, "E13 > 12-29; 0x4 12x6 >"),
}
"""Requests, and steps: answers and numbers that are then sent. ``E``: EXPECTED, ``T``: silence,
``6x3``: three packets from 6 on, ``1-4``: 1, 2, 3 and 4. Numbers count from the first request."""


def numbers_in(text: str) -> list[int]:
    ends = [[int(end) for end in token.split("-")] for token in text.split()]
    return [number for each in ends for number in range(each[0], each[-1] + 1)]


def take(it: Window, first: int, token: str) -> None:
    """Let the window take the answers that ``token`` describes."""
    if token == "T":
        it.on_timeout()
    elif token.startswith("E"):
        it.take(expected(first + int(token[1:])))
    elif "x" in token:
        number, packets = map(int, token.split("x"))
        it.take(done(first + number, packets))
    else:
        for number in numbers_in(token):
            it.take(answered(first + number))


@pytest.mark.parametrize("first", [0, SEQUENCES - 3])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, first: int) -> None:
    """Repetitions are equal byte for byte, although the caller's bytes have changed since."""
    (line, sizes), steps = LOSSES[name]
    it = window(line, first)
    contents = [bytearray(range(256)) * (-(-size // 256)) for size in sizes]
    writes = [
        (0x10000 * k, memoryview(content)[:size])
        for k, (content, size) in enumerate(zip(contents, sizes, strict=True))
    ]
    batches = it.batches(TransferQueue(writes))
    sent_first = packets_of(batches)
    for content in contents:
        content[:] = bytes(len(content))
    for step in steps.split(";"):
        answers, again = step.split(">")
        for token in answers.split():
            take(it, first, token)
        repeated = it.batches(NOTHING)
        assert numbers(repeated) == [(first + k) % SEQUENCES for k in numbers_in(again)], step
        assert {*packets_of(repeated)} <= {*sent_first}, step
    assert it.empty == steps.endswith(" >")


def test_a_repeated_batch_was_sent_before_later_ones() -> None:
    it = window(NETWORK)
    transfers = TransferQueue([(0, view(54_720))])
    first = packets_of(it.batches(transfers))
    assert len(first) == 19
    it.take(expected(0))
    assert packets_of(it.batches(transfers)) == first
    it.take(done(0, 18))
    assert len(packets_of(it.batches(transfers))) == 18
    it.take(done(57))
    assert packets_of(it.batches(NOTHING)) == first[18:]


def five_writes() -> Window:
    it = window(SERIAL, 0)
    it.batches(TransferQueue([(0x1000 * k, view(8)) for k in range(5)]))
    return it


def test_a_number_that_was_not_sent_is_no_board_of_ours() -> None:
    with pytest.raises(LinkError, match="expects request 9; the next one is 5: it was reset"):
        five_writes().take(expected(9))


@pytest.mark.parametrize("ahead", [3, 72, 127, 8190, 8300, 16300])
def test_a_late_expected_changes_nothing_in_a_session(ahead: int) -> None:
    it = window(NETWORK)
    it.batches(TransferQueue(reads=[(0, view(44 * 1440))]))
    it.take(done(0, 44, bytes(480)))
    transfers = TransferQueue([(0, view(100_000))])
    assert len(packets_of(it.batches(transfers))) == 19
    # The next request is 189, and the first unanswered one 132.
    assert it.take(expected(189 + ahead)) == 0
    assert not it.batches(transfers)
    assert it.take(done(132, 19)) > 0


def test_second_answers_are_ignored_and_tell_of_haste() -> None:
    it = five_writes()
    it.on_timeout()
    it.batches(NOTHING)
    for number in range(5):
        it.take(answered(number))
    assert it.empty
    assert it.take(answered(0)) == 0
    assert it.spurious == 1
    # Of the first one alone; and a network may copy an answer any number of times.
    it.take(answered(3))
    it.take(answered(0))
    assert it.spurious == 1


def test_the_oldest_request_is_the_first_without_an_answer() -> None:
    it = window(NETWORK)
    it.batches(TransferQueue([(0, view(9 * 480))]))
    it.take(answered(0))
    assert it.oldest() == "a WRITE of 480 bytes at 0x1e0"
    it.on_timeout()
    for number in (1, 2, 0, 1):
        it.take(answered(number))
    assert it.spurious == 1


def test_what_was_sent_once_tells_the_time_that_it_took() -> None:
    it = five_writes()
    assert it.take(answered(0)) > 20
    it.take(expected(1))
    it.batches(NOTHING)
    assert it.take(answered(1)) == 0


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [[10], [4, 6], [1] * 10, [7, 2, 1]])
def test_the_answers_to_a_batch_come_in_parts(parts: list[int]) -> None:
    number = SEQUENCES - 6
    it = window(NETWORK, number)
    target = bytearray(14_400)
    it.batches(TransferQueue(reads=[(0, memoryview(target))]))
    for k, packets in enumerate(parts):
        assert it.take(done(number, packets, bytes([k]) * 480)) == packets * (32 + 1460 - 16)
        number += 3 * packets
    assert target == b"".join(bytes([k]) * 1440 * packets for k, packets in enumerate(parts))
    assert it.empty
    assert it.line_bytes == 0


@pytest.mark.parametrize("number", [0, 300, SEQUENCES - 6])
def test_a_reply_answers_several_batches(number: int) -> None:
    it = window(NETWORK, number)
    batches = it.batches(TransferQueue([(0, view(2880)), (1 << 20, view(7200))]))
    assert [len(batch.packets()) for batch in batches] == [1, 1, 5]
    it.take(done(number, 7))
    assert (it.empty, it.answered) == (True, 21)


def test_only_the_first_answer_to_a_request_counts() -> None:
    it = window(NETWORK)
    target = bytearray(960)
    it.batches(TransferQueue(reads=[(0, memoryview(target))]))
    for byte in b"ab":
        it.take(answered(0, bytes((byte,)) * 480))
    assert target == b"a" * 480 + bytes(480)
    assert (it.answered, it.empty) == (1, False)
    it = window(NETWORK)
    it.batches(TransferQueue([(0, view(14_400))]))
    for each in (answered(4), done(3), done(3)):
        it.take(each)
    assert it.answered == 3


def test_answers_may_lie_otherwise_in_their_packets_than_the_requests() -> None:
    it = window(NETWORK)
    target = bytearray(14_400)
    it.batches(TransferQueue(reads=[(0, memoryview(target))]))
    it.take(done(1, 9, b"b" * 480))
    for number, data in ((0, b"a"), (28, b"c"), (29, b"d")):
        it.take(answered(number, data * 480))
    assert target == b"a" * 480 + b"b" * 27 * 480 + b"c" * 480 + b"d" * 480
    assert it.empty


def test_answers_of_a_packet_that_come_one_by_one_are_cut_from_their_words() -> None:
    it = window(NETWORK)
    first, second = bytearray(3), bytearray(5)
    targets = [(0x103, memoryview(first)), (0x202, memoryview(second))]
    (packet,) = sent(it.batches(TransferQueue(reads=targets)))
    assert [(x.size, x.address) for x in packet] == [(8, 0x100), (8, 0x200)]
    it.take(answered(1, bytes(range(20, 28))))
    it.take(answered(0, bytes(range(10, 18))))
    assert (first, second) == (bytes(range(13, 16)), bytes(range(22, 27)))
    assert it.empty


def test_numbers_within_a_batch_start_again_at_0() -> None:
    it = window(NETWORK, SEQUENCES - 6)
    it.batches(TransferQueue([(0, view(14_400))]))
    it.take(done(SEQUENCES - 6, 3))
    it.on_timeout()
    it.batches(NOTHING)
    for _ in range(2):
        it.take(done(3))
    assert it.spurious == 1


@pytest.mark.parametrize(
    ("line", "before", "refused", "fragment"),
    [
        (SERIAL, [], [1, 2], (64, 64)),
        (NETWORK, [], [1], (480, 480)),
        (NETWORK, [done(0, 2)], [7], (7 * 480, 480)),
    ],
)
def test_the_first_refusal_names_its_frame(
    line: Line, before: list[Reply], refused: list[int], fragment: tuple[int, int]
) -> None:
    it = window(line)
    count = len(requests(it.batches(TransferQueue([(0, view(320 if line is SERIAL else 14_400))]))))
    for each in (*before, *(reply(number, Answer.REFUSED) for number in refused)):
        it.take(each)
    assert it.refused is not None
    assert (it.refused.address, len(it.refused.content)) == fragment
    for number in {*range(6 if before else 0, count)} - {*refused}:
        it.take(answered(number))
    assert it.empty


@pytest.mark.parametrize(
    ("kind", "data"), [(Answer.DONE, b""), (Answer.DONE, bytes(5)), (3, bytes(4)), (127, b"")]
)
def test_an_answer_that_no_board_gives_is_an_error(kind: int, data: bytes) -> None:
    it = window(SERIAL)
    it.batches(TransferQueue(reads=[(0, view(4))]))
    with pytest.raises(
        LinkError, match=f"answer of kind {kind:d} with {len(data)} bytes to READ 0"
    ):
        it.take(reply(0, kind, data))


def test_a_strange_answer_within_a_packet_names_its_frame() -> None:
    it = window(NETWORK, 224)
    assert it.batches(TransferQueue(reads=[(0, view(1440))]))
    spans = (slice(0, 480), slice(480, 959), slice(960, 1440))
    with pytest.raises(
        LinkError, match="kind 0 with 479 bytes to READ 225; expected kind 0 with 480: the board"
    ):
        it.take(Reply(224, Answer.DONE, False, bytes(1440), 1, spans))
    it = window(NETWORK)
    it.batches(TransferQueue(reads=[(0, view(14_400))]))
    with pytest.raises(LinkError, match="answer of kind 0 with 479 bytes to READ 3; expected kind"):
        it.take(done(3, 2, bytes(479)))
