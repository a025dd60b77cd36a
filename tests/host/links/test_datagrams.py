"""Datagrams of the network link follow the contract, and no bytes from the network raise."""

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bitlane.links.datagrams import DatagramLine
from bitlane.links.line import LEAST_BATCH, Fragment
from bitlane_rtl.abi.datagrams import (
    DATAGRAM_BYTES,
)
from bitlane_rtl.abi.frames import SEQUENCES, Answer, Request
from support.ethernet.datagrams import datagram_of, frames_in
from support.host.replies import Answered, answers_of
from support.serial.frames import Reply as ModelReply
from support.serial.frames import asked, head, read, request, write

SESSION = 0x89ABCDEF
LINE = DatagramLine(SESSION)


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
    assert len(encode(0, Fragment(Request.WRITE, 0, memoryview(bytes(1440))))) == DATAGRAM_BYTES


def test_greeting_and_farewell_are_alone() -> None:
    assert LINE.encode_hello(9, 77) == datagram_of(SESSION, [request(9, Request.HELLO, 77, 0)])
    assert LINE.encode_goodbye(9) == datagram_of(SESSION, [request(9, 3, 0, 0)])


# --- decoding -------------------------------------------------------------------------------------


@example([(number % SEQUENCES, 0, False, b"") for number in (-2, -1, 0, 2, 3, 1)])
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
