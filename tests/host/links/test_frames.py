"""Frames have whole words, in which bytes lie as in the memory; around them COBS, or datagrams.

The models of frames and of the lines are implementations of their own. No bytes of a line raise.
"""

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from zlib import crc32

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bitlane.links import (
    LEAST_BATCH,
    SERIAL,
    DatagramLine,
    Deframer,
    Fragment,
    answer_bytes,
    answer_line_bytes,
    decode_answer,
    decode_backward,
    encode,
    encode_requests,
    request_bytes,
    request_line_bytes,
    request_room,
)
from bitlane_rtl.abi import (
    CONTROL_BASE,
    DATAGRAM_BYTES,
    DEFAULT_BAUD,
    DELIMITER,
    FRAME_DATA_BYTES,
    LINK_VERSION,
    RECEIVE_BYTES,
    REPETITIONS,
    SEQUENCES,
    Answer,
    Request,
)
from support.ethernet.datagrams import datagram_of, frames_in
from support.host.replies import Answered, answers_of
from support.serial.frames import (
    Asked,
    Reply,
    answer_line,
    asked,
    backward_cobs,
    cobs_decode,
    head,
    request,
)
from support.serial.frames import request_bytes as size_of

NUMBERS = st.integers(0, SEQUENCES - 1)
KINDS = st.sampled_from([Request.READ, Request.WRITE])
MOST = 480


def apart(content: bytes) -> list[Asked]:
    """Return requests, taken apart, with nothing between them."""
    found = []
    while content:
        size = size_of(content)
        found.append(asked(content[:size]))
        content = content[size:]
    return found


def requests_of(number: int, fragment: Fragment) -> list[Asked]:
    """Return the requests of a fragment by the contract: each of 480 bytes of words at most."""
    kind, address, content = fragment
    ends = range(MOST - address % 4, len(content), MOST)
    found = []
    for k, (start, end) in enumerate(pairwise([0, *ends, len(content)])):
        first, last = address + start, address + end
        if kind == Request.READ and content:
            first, last = first - first % 4, last + -last % 4
        data = bytes(content[start:end]) if kind == Request.WRITE else b""
        found.append(Asked((number + k) % SEQUENCES, kind, last - first, first, data))
    return found


@given(NUMBERS, KINDS, st.integers(0, 9), st.integers(0, 1500))
def test_the_requests_of_a_fragment(number: int, kind: Request, address: int, size: int) -> None:
    """Writes carry every byte at its offset, and reads cover whole words."""
    fragment = Fragment(kind, address, memoryview(Random(size).randbytes(size)))
    content = b"".join(encode_requests(number, fragment, MOST))
    found = apart(content)
    assert found == requests_of(number, fragment)
    assert len(found) == fragment.requests(MOST)
    received = [fragment.part(k, MOST).received for k in range(len(found))]
    assert received == [each.size if kind == Request.READ else 0 for each in found]
    if len(found) == 1:
        assert len(content) == request_bytes(kind, fragment.span)
        assert len(Reply(0, 0, bytes(received[0])).content) == answer_bytes(kind, fragment.span)


@given(st.integers(0, 3), st.integers(0, 9))
def test_reads_of_the_control_window_are_sent_as_they_are(offset: int, size: int) -> None:
    """The board refuses those that are not of whole words."""
    fragment = Fragment(Request.READ, CONTROL_BASE + offset, memoryview(bytes(size)))
    found = apart(b"".join(encode_requests(0, fragment, MOST)))
    assert found == [(0, Request.READ, size, CONTROL_BASE + offset, b"")]


def flips(data: bytes) -> Iterator[bytes]:
    """Return ``data`` with each of its bits flipped."""
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


# --- the serial line ------------------------------------------------------------------------------

# Zeros and long runs without any are what COBS is about.
CONTENTS = st.one_of(
    st.binary(max_size=600),
    st.lists(st.sampled_from([b"\0", b"\1" * 253, b"\2" * 254, b"\3" * 255, b"x"])).map(b"".join),
)


def test_codes_and_numbers_are_those_of_boards_already_built() -> None:
    assert {kind.name: int(kind) for kind in Request} == {"READ": 0, "WRITE": 1, "HELLO": 2}
    assert {kind.name: int(kind) for kind in Answer} == {"DONE": 0, "REFUSED": 1, "EXPECTED": 2}
    numbers = (LINK_VERSION, DELIMITER, SEQUENCES, REPETITIONS, FRAME_DATA_BYTES, RECEIVE_BYTES)
    assert numbers == (2, 0, 1 << 14, 1 << 13, 512, 2048)


def expect_cobs(content: bytes) -> None:
    """Expect that a request and an answer come out as they went in."""
    block = encode(content)
    assert 0 not in block
    assert len(block) <= len(content) + len(content) // 254 + 1
    assert cobs_decode(block) == content
    assert decode_backward(backward_cobs(content)) == content


@given(CONTENTS)
def test_contents_come_out_as_they_went_in(content: bytes) -> None:
    expect_cobs(content)


@pytest.mark.parametrize("size", [0, 1, 2, 253, 254, 255, 256, 507, 508, 509, 762, 1016])
@pytest.mark.parametrize("byte", [0, 1, 255])
def test_runs_as_long_as_a_block(size: int, byte: int) -> None:
    for content in (bytes((byte,)) * size, bytes((byte,)) * size + b"\0", b"\0" + b"\1" * size):
        expect_cobs(content)


@given(st.binary(max_size=600))
def test_garbage_raises_nothing(block: bytes) -> None:
    decode_backward(block)
    assert decode_answer(block) is None


def test_cobs_of_a_wrong_form_has_no_content_and_a_full_last_block_has() -> None:
    for block in (b"", b"\2", b"\1\1\5", b"a\xff", b"\0", b"ab\0\1"):
        assert decode_backward(block) is None
    # A full block at the end needs no empty one behind it.
    for behind in (b"", b"\1"):
        assert decode_backward(b"\1" * 254 + b"\xff" + behind) == b"\1" * 254


def line_of(sequence: int, fragment: Fragment) -> bytes:
    """Return the bytes on the line of the one request of ``fragment``, without the delimiter."""
    line = SERIAL.encode(sequence, [fragment], 1)
    assert line.endswith(b"\0")
    return line[:-1]


def test_a_request_is_header_data_and_crc() -> None:
    data = memoryview(b"\0xyz")
    content = cobs_decode(line_of(0x2A12, Fragment(Request.WRITE, 0xAABBCC03, data)))
    assert content is not None
    assert content[:-4] == bytes.fromhex("12 01 04 a8 03 cc bb aa 00 00 00 00 78 79 7a 00")
    assert content[-4:] == crc32(content[:-4]).to_bytes(4, "little")


def answer(content: bytes) -> bytes:
    return answer_line(content)[:-1]


@given(st.binary(max_size=512), NUMBERS, st.integers(0, 127), st.booleans())
def test_answers_have_header_and_data(
    data: bytes, sequence: int, kind: int, interrupt: bool
) -> None:
    reply = decode_answer(answer(Reply(sequence, kind, data, interrupt).content))
    assert reply is not None
    assert answers_of(reply) == [(sequence, kind, interrupt, data)]


@pytest.mark.parametrize("size", [1, 4, 6, 8, 9, 10])
def test_what_is_not_its_header_and_its_words_is_no_answer(size: int) -> None:
    """But of 10 bytes, an answer to HELLO with version 1."""
    whole = Reply(5, Answer.DONE, b"12345").content
    assert decode_answer(answer(whole)) is not None
    assert decode_answer(answer(whole.ljust(16, b"\0"))) is None
    assert decode_answer(answer(whole[:size])) is None


def test_every_flipped_bit_of_an_answer_is_noticed() -> None:
    for damaged in flips(answer(Reply(1, 0, b"some data\0\0").content)):
        assert decode_answer(damaged) is None


@pytest.mark.parametrize("size", [0, 1, 4, 32, 240, 246, 250, 512])
def test_lines_carry_no_more_than_is_counted(size: int) -> None:
    worst = memoryview(b"\1" * size)
    line = line_of(0x101, Fragment(Request.WRITE, 0x01010100, worst))
    assert len(line) + 1 <= request_line_bytes(Request.WRITE, size)
    content = head(0x101, 1, size) + worst
    assert len(answer(content)) + 1 <= answer_line_bytes(Request.READ, size)
    assert request_room(Request.WRITE, size) == 12 + size + -size % 4
    assert request_room(Request.READ, size) == 12


@given(
    st.lists(st.binary(min_size=1, max_size=40).map(lambda x: x.replace(b"\0", b"\1"))), st.data()
)
def test_frames_are_found_however_the_line_is_cut(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame + b"\0" * data.draw(st.integers(1, 3)) for frame in frames)
    deframer = Deframer()
    found: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        blocks, dropped = deframer.feed(stream[:size])
        assert dropped == 0
        found += blocks
        stream = stream[size:]
    assert found == frames


@pytest.mark.parametrize("step", [1, 7, 100, 100_000])
def test_what_is_longer_than_any_answer_is_dropped_and_takes_no_memory(step: int) -> None:
    stream = b"first\0" + b"x" * 5000 + b"\0second\0" + b"y" * 524 + b"\0third\0"
    deframer = Deframer()
    found: list[bytes] = []
    dropped = 0
    for start in range(0, len(stream), step):
        blocks, more = deframer.feed(stream[start : start + step])
        found += blocks
        dropped += more
        assert len(deframer._start) < 600
    assert found == [b"first", b"second", b"third"]
    assert dropped == 2


def test_the_longest_answer_is_not_too_long() -> None:
    content = b"\1\1\1\1" + Random(5).randbytes(512).replace(b"\0", b"\1")
    blocks, dropped = Deframer().feed(answer(content) + b"\0")
    assert (len(blocks), dropped) == (1, 0)


def test_bridges_make_the_usual_baud_exactly() -> None:
    """FTDI's divide 12 MHz."""
    assert 12_000_000 % DEFAULT_BAUD == 0


# --- datagrams ------------------------------------------------------------------------------------

SESSION = 0x89ABCDEF
LINE = DatagramLine(SESSION)


def datagram(sequence: int, *fragments: Fragment) -> bytes:
    """Return the one datagram of ``fragments``."""
    return bytes(LINE.encode(sequence, fragments, 1))


def frame(number: int, kind: int, data: bytes = b"", *, interrupt: bool = False) -> bytes:
    """Return an answer."""
    return Reply(number, kind, data, interrupt).content


def decode(data: bytes) -> list[Answered] | None:
    """Return the answers of a datagram; None if it is dropped."""
    replies, damaged = LINE.decode(data, len(data) or 1)
    return None if damaged or not data else [x for reply in replies for x in answers_of(reply)]


def parts(count: int, most: int) -> st.SearchStrategy[list[tuple[Request, int, int]]]:
    """Return kinds, offsets and sizes of up to ``count`` fragments."""
    part = st.tuples(KINDS, st.integers(0, 3), st.integers(0, most))
    return st.lists(part, min_size=1, max_size=count)


@example(SEQUENCES - 2, [(Request.WRITE, 1, 700), (Request.READ, 0, 700)])
@given(NUMBERS, parts(3, 470) | parts(1, 1437))
def test_a_packet_is_the_requests_of_its_fragments(
    number: int, parts: list[tuple[Request, int, int]]
) -> None:
    fragments, wanted = [], list[Asked]()
    for kind, offset, size in parts:
        content = memoryview(Random(size).randbytes(size))
        fragments.append(Fragment(kind, 1000 * len(fragments) + offset, content))
        wanted += requests_of(number + len(wanted), fragments[-1])
    found = frames_in(datagram(number, *fragments))
    assert found is not None
    assert apart(b"".join(found)) == wanted


@given(NUMBERS, st.integers(2, 42), st.booleans(), st.integers(0, 1 << 29))
def test_a_batch_is_its_packets_one_behind_the_other(
    sequence: int, packets: int, is_write: bool, word: int
) -> None:
    kind = Request.WRITE if is_write else Request.READ
    address = 4 * word
    content = memoryview(Random(packets).randbytes(1440 * packets + 1))[1:]
    batch = LINE.encode(sequence, [Fragment(kind, address, content)], packets)
    alone = [
        datagram(
            (sequence + k // 480) % SEQUENCES, Fragment(kind, address + k, content[k : k + 1440])
        )
        for k in range(0, len(content), 1440)
    ]
    assert bytes(batch) == b"".join(alone)


def test_three_frames_fill_a_datagram() -> None:
    assert len(datagram(0, Fragment(Request.WRITE, 0, memoryview(bytes(1440))))) == DATAGRAM_BYTES


def test_greeting_and_farewell_are_alone() -> None:
    assert LINE.encode_hello(9, 77) == datagram_of(SESSION, [request(9, Request.HELLO, 77, 0)])
    assert LINE.encode_goodbye(9) == datagram_of(SESSION, [request(9, 3, 0, 0)])


@example([(number % SEQUENCES, 0, False, b"") for number in (-2, -1, 0, 2, 3, 1)])
@given(st.lists(st.tuples(NUMBERS, st.integers(0, 127), st.booleans(), st.binary(max_size=490))))
def test_the_answers_of_a_datagram(answers: list[tuple[int, int, bool, bytes]]) -> None:
    data = datagram_of(SESSION, [frame(n, kind, x, interrupt=i) for n, kind, i, x in answers])
    assert decode(data) == answers


ANSWER = datagram_of(SESSION, [frame(5, Answer.DONE, b"123456"), frame(6, Answer.DONE)])


def test_every_flipped_bit_and_every_other_length_is_found() -> None:
    for damaged in (*flips(ANSWER), *(ANSWER[:size] for size in range(len(ANSWER)))):
        assert decode(damaged) is None
    assert decode(ANSWER + b"\0") is None
    whole = [(5, Answer.DONE, False, b"123456"), (6, Answer.DONE, False, b"")]
    assert decode(ANSWER) == whole
    for size in (1, 4, 1023):
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


FAULTS = ("none", "none", "none", "bit", "session", "number", "kind", "interrupt", "sizes")


def odd_answer(number: int, fault: str, size: int) -> bytes:
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
    NUMBERS,
    st.lists(st.sampled_from(FAULTS), min_size=1, max_size=44),
    st.sampled_from([0, 4, 5, 480]),
    st.sampled_from([0, 4, 5, 480]),
)
def test_a_batch_is_decoded_as_its_packets_are(
    number: int, faults: list[str], size: int, last: int
) -> None:
    packets = [odd_answer(number + 3 * k, fault, size) for k, fault in enumerate(faults)]
    packets.append(odd_answer(number + 3 * len(faults), "none", min(last, size)))
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
    batch = b"".join(odd_answer(5 + 3 * k, "none", 4) for k in range(LEAST_BATCH))
    for flipped in flips(batch):
        replies, damaged = LINE.decode(flipped, len(batch) // LEAST_BATCH)
        assert damaged == 1
        assert sum(reply.answers for reply in replies) == 3 * (LEAST_BATCH - 1)
