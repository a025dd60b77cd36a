"""Frames have whole words, in which the bytes of a fragment lie as in the memory; and COBS and CRC.

The models of frames and of the serial line are implementations of their own.
"""

from random import Random
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitlane.links.frames import (
    answer_bytes,
    decode_header,
    encode_header,
    encode_requests,
    request_bytes,
)
from bitlane.links.line import Fragment
from bitlane.links.serial_frames import (
    SERIAL,
    Deframer,
    answer_line_bytes,
    decode_answer,
    decode_backward,
    encode,
    request_line_bytes,
    request_room,
)
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import (
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
from support.host.replies import answers_of
from support.serial import frames
from support.serial.frames import Reply, answer_line, backward_cobs, cobs_decode, head

NUMBERS = st.integers(0, SEQUENCES - 1)
MOST = 480


def requests_of(sequence: int, fragment: Fragment) -> list[frames.Asked]:
    """Return the requests of ``fragment``, taken apart, with nothing between them."""
    content = b"".join(encode_requests(sequence, fragment, MOST))
    found = []
    while content:
        size = frames.request_bytes(content)
        found.append(frames.asked(content[:size]))
        content = content[size:]
    return found


@given(NUMBERS, st.integers(0, 255), st.integers(0, 1023), st.integers(0, (1 << 32) - 1))
def test_a_header_is_the_one_of_the_contract(
    number: int, kind: int, size: int, address: int
) -> None:
    header = encode_header(number, kind, address, size)
    assert header == frames.request(number, kind, address, size)
    assert decode_header(int.from_bytes(header[:4], "little")) == (number, kind, size)


@given(NUMBERS, st.integers(0, 9), st.integers(0, 1500))
def test_writes_carry_every_byte_at_its_offset(sequence: int, address: int, size: int) -> None:
    data = Random(size).randbytes(size)
    fragment = Fragment(Request.WRITE, address, memoryview(data))
    requests = requests_of(sequence, fragment)
    assert len(requests) == fragment.requests(MOST)
    sent = bytearray()
    for k, request in enumerate(requests):
        assert request.number == (sequence + k) % SEQUENCES
        assert request.address == address + len(sent)
        assert request.size == len(request.data) <= MOST
        sent += request.data
        # Only the first one begins within a word, and only the last one ends within one.
        assert k == 0 or request.address % 4 == 0
    assert sent == data


@given(NUMBERS, st.integers(0, 9), st.integers(0, 1500))
def test_reads_cover_whole_words(sequence: int, address: int, size: int) -> None:
    fragment = Fragment(Request.READ, address, memoryview(bytes(size)))
    requests = requests_of(sequence, fragment)
    first, last = requests[0], requests[-1]
    if not size:
        assert requests == [(sequence, Request.READ, 0, address, b"")]
        return
    assert first.address == address - address % 4
    assert 0 <= last.address + last.size - (address + size) < 4
    end = first.address
    for k, request in enumerate(requests):
        assert (request.address, request.size % 4) == (end, 0)
        assert fragment.part(k, MOST).received == request.size
        end += request.size


@given(st.integers(0, 3), st.integers(0, 9))
def test_reads_of_the_control_window_are_sent_as_they_are(offset: int, size: int) -> None:
    """The board refuses those that are not of whole words."""
    fragment = Fragment(Request.READ, CONTROL_BASE + offset, memoryview(bytes(size)))
    assert requests_of(0, fragment) == [(0, Request.READ, size, CONTROL_BASE + offset, b"")]


@given(st.sampled_from(list(Request)[:2]), st.integers(0, 3), st.integers(0, 470))
def test_the_bytes_of_a_request_and_its_answer(kind: Request, offset: int, size: int) -> None:
    fragment = Fragment(kind, offset, memoryview(bytes(size)))
    content = b"".join(encode_requests(0, fragment, MOST))
    assert len(content) == request_bytes(kind, fragment.span)
    data = bytes(fragment.received)
    assert len(frames.Reply(0, 0, data).content) == answer_bytes(kind, fragment.span)


# --- the serial line ------------------------------------------------------------------------------

# Zeros and long runs without any are what COBS is about.
CONTENTS = st.one_of(
    st.binary(max_size=600),
    st.lists(st.sampled_from([b"\0", b"\1" * 253, b"\2" * 254, b"\3" * 255, b"x"])).map(b"".join),
)


def test_codes_are_those_of_boards_already_built() -> None:
    assert {kind.name: int(kind) for kind in Request} == {"READ": 0, "WRITE": 1, "HELLO": 2}
    assert {kind.name: int(kind) for kind in Answer} == {"DONE": 0, "REFUSED": 1, "EXPECTED": 2}


def test_numbers_are_those_of_boards_already_built() -> None:
    numbers = (LINK_VERSION, DELIMITER, SEQUENCES, REPETITIONS, FRAME_DATA_BYTES, RECEIVE_BYTES)
    assert numbers == (2, 0, 1 << 14, 1 << 13, 512, 2048)


@given(CONTENTS)
def test_a_request_comes_out_as_it_went_in(content: bytes) -> None:
    block = encode(content)
    assert 0 not in block
    assert len(block) <= len(content) + len(content) // 254 + 1
    assert cobs_decode(block) == content


@given(CONTENTS)
def test_an_answer_comes_out_as_it_went_in(content: bytes) -> None:
    assert decode_backward(backward_cobs(content)) == content


@pytest.mark.parametrize("size", [0, 1, 2, 253, 254, 255, 256, 507, 508, 509, 762, 1016])
@pytest.mark.parametrize("byte", [0, 1, 255])
def test_runs_as_long_as_a_block(size: int, byte: int) -> None:
    for content in (bytes((byte,)) * size, bytes((byte,)) * size + b"\0", b"\0" + b"\1" * size):
        assert cobs_decode(encode(content)) == content
        assert decode_backward(backward_cobs(content)) == content


def test_a_full_block_at_the_end_needs_no_empty_one_behind_it() -> None:
    assert decode_backward(b"\1" * 254 + b"\xff") == b"\1" * 254
    assert decode_backward(b"\1" * 254 + b"\xff\1") == b"\1" * 254


@given(st.binary(max_size=600))
def test_garbage_raises_nothing(block: bytes) -> None:
    decode_backward(block)
    assert decode_answer(block) is None


@pytest.mark.parametrize("block", [b"", b"\2", b"\1\1\5", b"a\xff", b"\0", b"ab\0\1"])
def test_what_is_no_backward_cobs_is_nothing(block: bytes) -> None:
    assert decode_backward(block) is None


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


@given(
    st.binary(max_size=512),
    st.integers(0, SEQUENCES - 1),
    st.integers(0, 127),
    st.booleans(),
)
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
    block = answer(Reply(1, 0, b"some data\0\0").content)
    for place in range(len(block)):
        for bit in range(8):
            damaged = bytearray(block)
            damaged[place] ^= 1 << bit
            assert decode_answer(bytes(damaged)) is None, (place, bit)


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
