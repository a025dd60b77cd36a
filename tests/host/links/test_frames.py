"""Frames have whole words, and the bytes of a fragment lie in them as in the memory."""

from random import Random

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
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import SEQUENCES, Request
from support.serial import frames

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
