"""Datagrams of the network link follow the contract, and no bytes from the network raise."""

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bitlane.errors import LinkError
from bitlane.links.arq import Window
from bitlane.links.counts import Counts
from bitlane.links.datagrams import DatagramLine
from bitlane.links.line import LEAST_BATCH, Batch, Fragment, Reply
from bitlane.links.transfer_queue import TransferQueue
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.datagrams import (
    DATAGRAM_BYTES,
    DATAGRAM_RECEIVE_BYTES,
    STORED_HEADER_BYTES,
)
from bitlane_rtl.abi.frames import REPETITIONS, SEQUENCES, Answer, Request
from support.ethernet.datagrams import datagram_of, frames_in
from support.host.replies import Answered, answers_of, packets_of, reply
from support.serial.frames import Reply as ModelReply
from support.serial.frames import asked, head, read, request, write

SESSION = 0x89ABCDEF
LINE = DatagramLine(SESSION)


def window(sequence: int = 0, room: int = DATAGRAM_RECEIVE_BYTES) -> Window:
    return Window(LINE, "board", sequence, room, Counts())


def view(size: int, byte: int = 0) -> memoryview:
    return memoryview(bytearray((byte,)) * size)


def sent(batches: list[Batch]) -> list[list[bytes]]:
    """Return the requests of each datagram."""
    packets = packets_of(batches)
    assert all(packet[:4] == SESSION.to_bytes(4, "little") for packet in packets)
    found = [frames_in(packet) for packet in packets]
    assert all(found)
    return [x for x in found if x]


def encode(sequence: int, *fragments: Fragment) -> bytes:
    """Return the one datagram of ``fragments``."""
    return bytes(LINE.encode(sequence, fragments, 1))


def requests_of(sequence: int, fragment: Fragment) -> list[bytes]:
    """Return the requests in the one datagram of ``fragment``."""
    found = frames_in(encode(sequence, fragment))
    assert found is not None
    return found


def frame(number: int, kind: int, data: bytes = b"", *, interrupt: bool = False) -> bytes:
    """Return an answer."""
    return ModelReply(number, kind, data, interrupt).content


def decode(data: bytes) -> list[Answered] | None:
    """Return the answers of a datagram; None if it is dropped."""
    replies, damaged = LINE.decode(data, len(data) or 1)
    return None if damaged or not data else [x for reply in replies for x in answers_of(reply)]


# --- encoding -------------------------------------------------------------------------------------


@given(
    st.integers(0, SEQUENCES - 1),
    st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 470)), max_size=3),
)
def test_a_packet_is_the_requests_of_its_fragments(
    sequence: int, parts: list[tuple[bool, int, int]]
) -> None:
    fragments, frames = [], []
    for k, (is_write, offset, size) in enumerate(parts):
        content = memoryview(Random(size).randbytes(size))
        address = 1000 * k + offset
        kind = Request.WRITE if is_write else Request.READ
        fragments.append(Fragment(kind, address, content))
        end = address + size if size else address
        first, last = (address - offset, end + -end % 4) if size else (address, end)
        frames.append(
            write(sequence + k, address, bytes(content))
            if is_write
            else read(sequence + k, first, last - first)
        )
    found = frames_in(encode(sequence, *fragments)) or []
    assert [asked(each) for each in found] == [asked(each) for each in frames]
    assert list(map(len, found)) == list(map(len, frames))


@pytest.mark.parametrize("size", [481, 960, 961, 1439, 1440])
def test_a_long_fragment_is_several_frames(size: int) -> None:
    content = bytes(k % 251 for k in range(size))
    first, second, *others = requests_of(
        SEQUENCES - 1, Fragment(Request.WRITE, 16, memoryview(content))
    )
    assert asked(first) == asked(write(SEQUENCES - 1, 16, content[:480]))
    assert asked(second) == asked(write(0, 496, content[480:960]))
    assert [asked(x) for x in others] == [asked(write(1, 976, content[960:]))] * (size > 960)
    reads = requests_of(7, Fragment(Request.READ, 16, memoryview(content)))
    assert [asked(x).size for x in reads] == [len(x) - 8 for x in (first, second, *others)]


@given(st.integers(0, SEQUENCES - 1), st.integers(2, 42), st.booleans(), st.integers(0, 1 << 29))
def test_a_batch_is_its_packets_one_behind_the_other(
    sequence: int, packets: int, is_write: bool, word: int
) -> None:
    kind = Request.WRITE if is_write else Request.READ
    address = 4 * word
    content = memoryview(Random(packets).randbytes(1440 * packets + 1))[1:]
    batch = LINE.encode(sequence, [Fragment(kind, address, content)], packets)
    alone = [
        encode(
            (sequence + k // 480) % SEQUENCES, Fragment(kind, address + k, content[k : k + 1440])
        )
        for k in range(0, len(content), 1440)
    ]
    assert bytes(batch) == b"".join(alone)


def test_three_frames_fill_a_datagram() -> None:
    assert len(encode(0, Fragment(Request.WRITE, 0, view(1440)))) == DATAGRAM_BYTES


def test_greeting_and_farewell_are_alone() -> None:
    assert LINE.encode_hello(9, 77) == datagram_of(SESSION, [request(9, Request.HELLO, 77, 0)])
    assert LINE.encode_goodbye(9) == datagram_of(SESSION, [request(9, 3, 0, 0)])


# --- decoding -------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.integers(0, SEQUENCES - 1),
            st.integers(0, 127),
            st.booleans(),
            st.binary(max_size=490),
        )
    )
)
def test_the_answers_of_a_datagram(answers: list[tuple[int, int, bool, bytes]]) -> None:
    data = datagram_of(SESSION, [frame(n, kind, x, interrupt=i) for n, kind, i, x in answers])
    assert decode(data) == answers


def test_answers_in_a_row_are_told_from_answers_with_a_gap() -> None:
    numbers = (SEQUENCES - 2, SEQUENCES - 1, 0, 2, 3, 1)
    frames = [frame(number, Answer.DONE) for number in numbers]
    assert decode(datagram_of(SESSION, frames)) == [
        (number, Answer.DONE, False, b"") for number in numbers
    ]


ANSWER = datagram_of(SESSION, [frame(5, Answer.DONE, b"123456"), frame(6, Answer.DONE)])


def test_every_flipped_bit_is_found() -> None:
    for bit in range(8 * len(ANSWER)):
        damaged = bytearray(ANSWER)
        damaged[bit // 8] ^= 1 << bit % 8
        assert decode(bytes(damaged)) is None


def test_every_length_but_the_right_one_is_found() -> None:
    for size in range(len(ANSWER)):
        assert decode(ANSWER[:size]) is None
    assert decode(ANSWER + b"\0") is None
    whole = [(5, Answer.DONE, False, b"123456"), (6, Answer.DONE, False, b"")]
    assert decode(ANSWER) == whole


def test_answers_of_another_session_are_none() -> None:
    assert decode(datagram_of(SESSION + 1, [frame(5, Answer.DONE)])) is None


@pytest.mark.parametrize("size", [1, 4, 1023])
def test_an_answer_longer_than_its_datagram_is_none(size: int) -> None:
    assert decode(datagram_of(SESSION, [head(5, Answer.DONE, size)])) is None


@given(
    st.lists(st.binary(max_size=20), min_size=1, max_size=6), st.integers(0, 6), st.integers(-9, 9)
)
def test_answers_are_whole_or_none(contents: list[bytes], place: int, wrong: int) -> None:
    """The size in the header at ``place`` differs by ``wrong`` bytes from that of its content."""
    sizes = [len(x) for x in contents]
    if place < len(contents):
        sizes[place] = max(0, sizes[place] + wrong)
    frames = [
        head(number, Answer.DONE, size) + content + bytes(-len(content) % 4)
        for number, (size, content) in enumerate(zip(sizes, contents, strict=True))
    ]
    data = datagram_of(SESSION, frames)
    found = decode(data)
    if sizes == [len(x) for x in contents]:
        assert found is not None
        assert [bytes(x) for *_, x in found] == contents
    elif found is not None:
        assert 4 + sum(4 + -(-len(x) // 4) * 4 for *_, x in found) + 4 == len(data)


@given(st.binary(max_size=2000))
def test_random_bytes_are_no_answer(data: bytes) -> None:
    assert decode(data) is None


# --- batches --------------------------------------------------------------------------------------

FAULTS = ("none", "none", "none", "bit", "session", "number", "kind", "interrupt", "sizes")


def answer(number: int, fault: str, size: int) -> bytes:
    """Return the datagram of three answers, of which the second one is odd."""
    sizes = [size, size + 4, size - 4] if fault == "sizes" and size else [size] * 3
    frames = [
        frame(
            number + k + (fault == "number" and k == 1),
            fault == "kind" and k == 1,
            bytes([k]) * x,
            interrupt=fault == "interrupt" and k == 1,
        )
        for k, x in enumerate(sizes)
    ]
    data = bytearray(datagram_of(SESSION ^ (fault == "session"), frames))
    data[-6] ^= fault == "bit"
    return bytes(data)


@example(9, ["none", "none", "bit", "none"], 480, 480)
@example(9, ["none", "none", "session", "none"], 480, 0)
@example(9, ["none", "none", "number", "none"], 4, 4)
@example(9, ["none", "none", "interrupt", "none"], 0, 0)
@example(9, ["none", "none", "sizes", "none"], 5, 4)
@given(
    st.integers(0, SEQUENCES - 1),
    st.lists(st.sampled_from(FAULTS), min_size=1, max_size=44),
    st.sampled_from([0, 4, 5, 480]),
    st.sampled_from([0, 4, 5, 480]),
)
def test_a_batch_is_decoded_as_its_packets_are(
    number: int, faults: list[str], size: int, last: int
) -> None:
    packets = [answer(number + 3 * k, fault, size) for k, fault in enumerate(faults)]
    packets.append(answer(number + 3 * len(faults), "none", min(last, size)))
    replies, damaged = LINE.decode(b"".join(packets), len(packets[0]))
    alone = [decode(packet) for packet in packets]
    assert [x for reply in replies for x in answers_of(reply)] == [
        x for found in alone for x in found or ()
    ]
    assert damaged == alone.count(None)


@pytest.mark.parametrize("second", [Answer.DONE, Answer.REFUSED, 128])
def test_answers_in_a_row_are_one_reply(second: int) -> None:
    start = SEQUENCES - 6
    frames = [frame(start + k, second, bytes(480)) for k in range(132)]
    packets = [datagram_of(SESSION, frames[k : k + 3]) for k in range(0, 132, 3)]
    ((reply,), damaged) = LINE.decode(b"".join(packets), len(packets[0]))
    assert (reply.sequence, reply.packets, reply.answers, damaged) == (start, 44, 132, 0)


def test_every_flipped_bit_of_a_batch_is_found() -> None:
    batch = b"".join(answer(5 + 3 * k, "none", 4) for k in range(LEAST_BATCH))
    for bit in range(8 * len(batch)):
        flipped = bytearray(batch)
        flipped[bit // 8] ^= 1 << bit % 8
        replies, damaged = LINE.decode(bytes(flipped), len(batch) // LEAST_BATCH)
        assert damaged == 1
        assert sum(reply.answers for reply in replies) == 3 * (LEAST_BATCH - 1)


def done(number: int, packets: int, data: bytes = b"") -> Reply:
    """Return the reply of ``packets`` packets with three answers each, all with equal data."""
    size = len(data)
    spans = [slice(k * size, (k + 1) * size) for k in range(3)]
    return Reply(number, Answer.DONE, False, 3 * packets * data or b"x" * packets, packets, spans)


def test_a_long_transfer_is_one_batch() -> None:
    (batch,) = window().batches(TransferQueue([(0, view(100_000))]))
    assert len(batch.packets()) == 19
    (batch,) = window().batches(TransferQueue(reads=[(0, view(100_000))]))
    assert len(batch.packets()) == 44


def test_a_few_packets_are_not_a_batch() -> None:
    full = (LEAST_BATCH - 1) * 1440
    for transfers in (TransferQueue([(0, view(full + 9))]), TransferQueue((), [(0, view(full))])):
        assert {len(batch.packets()) for batch in window().batches(transfers)} == {1}
    packets = b"".join(answer(3 * k, "none", 4) for k in range(LEAST_BATCH - 1))
    replies, _ = LINE.decode(packets, len(packets) // (LEAST_BATCH - 1))
    assert [reply.packets for reply in replies] == [1] * (LEAST_BATCH - 1)


def test_writes_and_reads_alternate_packet_by_packet() -> None:
    batches = window().batches(TransferQueue([(0, view(5760))], [(1 << 20, view(5760))]))
    assert [len(batch.packets()) for batch in batches] == [1] * 8
    assert [requests[0][1] for requests in sent(batches)][:2] == [1, 0]


def test_writes_before_one_to_the_control_window_are_a_batch() -> None:
    writes = [(0, view(5760)), (CONTROL_BASE, view(4))]
    batches = window().batches(TransferQueue(writes, [(1 << 20, view(64))]))
    assert [len(batch.packets()) for batch in batches] == [4, 1]


@pytest.mark.parametrize("parts", [[10], [4, 6], [1] * 10, [7, 2, 1]])
def test_the_answers_to_a_batch_come_in_parts(parts: list[int]) -> None:
    number = SEQUENCES - 6
    it = window(number)
    target = bytearray(14_400)
    it.batches(TransferQueue(reads=[(0, memoryview(target))]))
    for k, packets in enumerate(parts):
        assert it.take(done(number % SEQUENCES, packets, bytes([k]) * 480)) == packets * (
            32 + 1460 - 16
        )
        number += 3 * packets
    assert target == b"".join(bytes([k]) * 1440 * packets for k, packets in enumerate(parts))
    assert it.empty
    assert it.line_bytes == 0


@pytest.mark.parametrize("number", [0, 300, SEQUENCES - 6])
def test_a_reply_answers_several_batches(number: int) -> None:
    it = window(number)
    batches = it.batches(TransferQueue([(0, view(2880)), (1 << 20, view(7200))]))
    assert [len(batch.packets()) for batch in batches] == [1, 1, 5]
    it.take(done(number, 7))
    assert (it.empty, it.answered) == (True, 21)


def test_the_end_of_a_batch_is_repeated_byte_for_byte() -> None:
    it = window()
    content = bytearray(range(256)) * 56
    first = packets_of(it.batches(TransferQueue([(0, memoryview(content))])))
    content[:] = bytes(len(content))
    it.take(reply(13, Answer.EXPECTED))
    assert packets_of(it.batches(TransferQueue())) == first[4:]
    assert it.take(done(0, 4)) > 0
    assert it.take(done(12, 6)) == 0
    assert it.empty


@pytest.mark.parametrize("ahead", [3, 72, 127, 8190, 8300, 16300])
def test_a_late_expected_changes_nothing(ahead: int) -> None:
    it = window()
    it.batches(TransferQueue(reads=[(0, view(44 * 1440))]))
    it.take(done(0, 44, bytes(480)))
    transfers = TransferQueue([(0, view(100_000))])
    assert len(packets_of(it.batches(transfers))) == 19
    # The next request is 189, and the first unanswered one 132.
    assert it.take(reply((189 + ahead) % SEQUENCES, Answer.EXPECTED)) == 0
    assert not it.batches(transfers)
    assert it.take(done(132, 19)) > 0


def test_silence_repeats_the_first_packet_of_a_batch() -> None:
    it = window()
    first = packets_of(it.batches(TransferQueue([(0, view(14_400))])))
    it.on_timeout()
    assert packets_of(it.batches(TransferQueue())) == first[:1]
    # Its answer came and those behind it did not, so that they are lost.
    it.take(done(0, 1))
    assert packets_of(it.batches(TransferQueue())) == first[1:]


def test_an_answer_from_the_middle_of_a_batch_repeats_what_is_before() -> None:
    it = window()
    first = packets_of(it.batches(TransferQueue([(0, view(14_400))])))
    it.take(done(6, 3))
    assert packets_of(it.batches(TransferQueue())) == first[:2]
    it.take(done(0, 2))
    it.take(done(15, 5))
    assert it.empty


def test_an_answer_within_a_batch_counts_once() -> None:
    it = window()
    it.batches(TransferQueue([(0, view(14_400))]))
    it.take(reply(4, Answer.DONE))
    it.take(done(3, 1))
    it.take(done(3, 1))
    assert it.answered == 3


def test_answers_may_lie_otherwise_in_their_packets_than_the_requests() -> None:
    it = window()
    target = bytearray(14_400)
    it.batches(TransferQueue(reads=[(0, memoryview(target))]))
    it.take(done(1, 9, b"b" * 480))
    it.take(reply(0, Answer.DONE, b"a" * 480))
    it.take(reply(28, Answer.DONE, b"c" * 480))
    it.take(reply(29, Answer.DONE, b"d" * 480))
    assert target == b"a" * 480 + b"b" * 27 * 480 + b"c" * 480 + b"d" * 480
    assert it.empty


def test_answers_of_a_packet_that_come_one_by_one_are_cut_from_their_words() -> None:
    it = window()
    first, second = bytearray(3), bytearray(5)
    targets = [(0x103, memoryview(first)), (0x202, memoryview(second))]
    (requests,) = sent(it.batches(TransferQueue(reads=targets)))
    assert [asked(x)[2:4] for x in requests] == [(8, 0x100), (8, 0x200)]
    it.take(reply(1, Answer.DONE, bytes(range(20, 28))))
    it.take(reply(0, Answer.DONE, bytes(range(10, 18))))
    assert (first, second) == (bytes(range(13, 16)), bytes(range(22, 27)))
    assert it.empty


def test_numbers_within_a_batch_start_again_at_0() -> None:
    it = window(SEQUENCES - 6)
    it.batches(TransferQueue([(0, view(14_400))]))
    it.take(done(SEQUENCES - 6, 3))
    it.on_timeout()
    it.batches(TransferQueue())
    for _ in range(2):
        it.take(done(3, 1))
    assert it.spurious == 1


def test_batches_follow_each_other_at_full_length() -> None:
    number = SEQUENCES - 1000
    it = window(number)
    for _ in range(20):
        (batch,) = it.batches(TransferQueue(reads=[(0, view(44 * 1440))]))
        assert len(batch.packets()) == 44
        it.take(done(number, 44, bytes(480)))
        number = (number + 132) % SEQUENCES
    (batch,) = it.batches(TransferQueue([(0, view(100_000))]))
    assert len(batch.packets()) == 19


def test_no_write_of_a_batch_passes_a_read_of_the_same_bytes() -> None:
    it = window()
    it.batches(TransferQueue(reads=[(8000, view(64))]))
    batches = it.batches(TransferQueue([(0, view(14_400))]))
    assert sum(map(len, sent(batches))) == 15


def test_a_repeated_batch_was_sent_before_later_ones() -> None:
    it = window()
    transfers = TransferQueue([(0, view(54_720))])
    first = packets_of(it.batches(transfers))
    assert len(first) == 19
    it.take(reply(0, Answer.EXPECTED))
    assert packets_of(it.batches(transfers)) == first
    it.take(done(0, 18))
    assert len(packets_of(it.batches(transfers))) == 18
    it.take(done(57, 1))
    assert packets_of(it.batches(TransferQueue())) == first[18:]


def test_a_refusal_within_a_batch_names_its_frame() -> None:
    it = window()
    it.batches(TransferQueue([(0, view(14_400))]))
    it.take(done(0, 2))
    it.take(reply(7, Answer.REFUSED))
    assert it.refused is not None
    assert (it.refused.address, len(it.refused.content)) == (7 * 480, 480)
    it.take(reply(6, Answer.DONE))
    it.take(reply(8, Answer.DONE))
    it.take(done(9, 7))
    assert it.empty


def test_an_answer_of_a_wrong_size_within_a_batch_is_an_error() -> None:
    it = window()
    it.batches(TransferQueue(reads=[(0, view(14_400))]))
    with pytest.raises(LinkError, match="answer of kind 0 with 479 bytes to READ 3; expected kind"):
        it.take(done(3, 2, bytes(479)))


# --- how much may be in flight --------------------------------------------------------------------


def stored(batches: list[Batch]) -> int:
    return sum(len(packet) + STORED_HEADER_BYTES for packet in packets_of(batches))


@pytest.mark.parametrize("size", [1, 60, 479, 480, 481, 1440, 100_000])
def test_no_more_is_in_flight_than_the_board_buffers(size: int) -> None:
    it = window()
    packets = it.batches(TransferQueue((8 * size * k, view(size)) for k in range(200)))
    assert stored(packets) <= DATAGRAM_RECEIVE_BYTES
    assert all(len(packet) <= DATAGRAM_BYTES for packet in packets_of(packets))
    assert sum(map(len, sent(packets))) <= REPETITIONS
    # Nothing is held back without need.
    assert stored(packets) > DATAGRAM_RECEIVE_BYTES - 1500 or size < 100


def test_the_answers_to_a_packet_are_one_datagram() -> None:
    it = window()
    packets = it.batches(TransferQueue(reads=[(0, view(20_000)), (1 << 20, view(100))]))
    for requests in sent(packets):
        answers = sum(4 + asked(x).size for x in requests)
        assert answers + 8 <= DATAGRAM_BYTES


def test_a_call_of_small_parts_is_one_packet() -> None:
    writes = [(0, view(100)), (CONTROL_BASE + 0x2000, view(64)), (CONTROL_BASE + 8, view(4))]
    reads = [(CONTROL_BASE + 12, view(4)), (0x4000, view(200))]
    (requests,) = sent(window().batches(TransferQueue(writes, reads)))
    assert len(requests) == 5


def test_a_write_does_not_share_a_packet_with_a_read_of_the_same_bytes() -> None:
    it = window()
    it.batches(TransferQueue(reads=[(0x100, view(64))]))
    blocked = TransferQueue([(0x120, view(4))])
    assert not it.batches(blocked)
    it.take(reply(0, Answer.DONE, bytes(64)))
    assert len(it.batches(blocked)) == 1


# --- losses ---------------------------------------------------------------------------------------


def numbers(packets: list[Batch]) -> list[int]:
    return [asked(request).number for requests in sent(packets) for request in requests]


def nine(sequence: int = 0) -> Window:
    it = window(sequence)
    transfers = TransferQueue([(0, view(9 * 480))])
    assert numbers(it.batches(transfers)) == [(sequence + k) % SEQUENCES for k in range(9)]
    return it


def test_a_packet_is_repeated_until_all_its_answers_have_come() -> None:
    it = nine()
    it.take(reply(0, Answer.DONE))
    it.on_timeout()
    assert numbers(it.batches(TransferQueue())) == [0, 1, 2]
    for k in (0, 1, 2, 2):
        it.take(reply(k, Answer.DONE))
    # The repetition was sent after these, and its answer has come before theirs.
    assert numbers(it.batches(TransferQueue())) == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("ahead", [1, 2, 3, 4, 5])
def test_the_packet_of_the_expected_request_and_all_later_ones_are_repeated(ahead: int) -> None:
    it = nine(SEQUENCES - 3)
    it.take(reply((SEQUENCES - 3 + ahead) % SEQUENCES, Answer.EXPECTED))
    assert numbers(it.batches(TransferQueue()))[0] == (SEQUENCES - 3 if ahead < 3 else 0)
    assert not it.batches(TransferQueue())


def test_an_answer_to_a_later_packet_repeats_the_earlier_ones() -> None:
    it = nine()
    for k in (3, 4, 5):
        it.take(reply(k, Answer.DONE))
    assert numbers(it.batches(TransferQueue())) == [0, 1, 2]


def test_only_the_first_answer_to_a_frame_counts() -> None:
    it = window()
    target = bytearray(960)
    it.batches(TransferQueue(reads=[(0, memoryview(target))]))
    for byte in b"ab":
        it.take(reply(0, Answer.DONE, bytes((byte,)) * 480))
    assert target == b"a" * 480 + bytes(480)
    assert it.answered == 1
    assert not it.empty


def test_a_refusal_names_the_frame() -> None:
    it = nine()
    it.take(reply(1, Answer.REFUSED))
    assert it.refused is not None
    assert (it.refused.address, len(it.refused.content)) == (480, 480)
