"""Datagrams of the network link follow the contract, and no bytes from the network raise."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitlane.links.arq import Counts, TransferQueue, Window
from bitlane.links.datagrams import DatagramLine
from bitlane.links.line import Fragment, Reply
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.datagrams import (
    DATAGRAM_BYTES,
    DATAGRAM_RECEIVE_BYTES,
    STORED_HEADER_BYTES,
)
from bitlane_rtl.abi.frames import REPETITIONS, Answer, Request
from support.host.network import datagram, header_of, requests_in
from support.serial.frames import read, request, write

SESSION = 0x89ABCDEF
LINE = DatagramLine(SESSION)


def window(sequence: int = 0, room: int = DATAGRAM_RECEIVE_BYTES) -> Window:
    return Window(LINE, "board", sequence, room, Counts())


def view(size: int, byte: int = 0) -> memoryview:
    return memoryview(bytearray((byte,)) * size)


def sent(packets: list[bytes | bytearray]) -> list[list[bytes]]:
    """Return the requests of each datagram."""
    found = [requests_in(bytes(packet)) for packet in packets]
    assert all(found)
    assert {x[0] for x in found if x} == {SESSION}
    return [x[1] for x in found if x]


def decode(data: bytes) -> list[Reply] | None:
    """Return the answers of a datagram, each alone."""
    replies = LINE.decode(memoryview(data))
    if replies is None:
        return None
    found = []
    for number, kind, interrupt, first, more in replies:
        for k, each in enumerate((first, *more)):
            found.append(Reply((number + k) % 256, kind, interrupt, each))
    return found


# --- encoding -------------------------------------------------------------------------------------


@given(st.integers(0, 255), st.lists(st.tuples(st.booleans(), st.integers(0, 480)), min_size=1))
def test_a_packet_is_the_requests_of_its_fragments(
    sequence: int, parts: list[tuple[bool, int]]
) -> None:
    fragments = []
    frames = []
    for k, (is_write, size) in enumerate(parts):
        content = bytes(range(256)) * 2
        kind = Request.WRITE if is_write else Request.READ
        fragments.append(Fragment(kind, 1000 * k, memoryview(content[:size])))
        frame = write(sequence + k, 1000 * k, content[:size])
        frames.append(frame if is_write else read(sequence + k, 1000 * k, size))
    assert LINE.encode(sequence, fragments) == datagram(SESSION, *frames)


@pytest.mark.parametrize("size", [481, 960, 961, 1439, 1440])
def test_a_long_fragment_is_several_frames(size: int) -> None:
    content = bytes(k % 251 for k in range(size))
    packet = LINE.encode(255, [Fragment(Request.WRITE, 16, memoryview(content))])
    ((first, *others),) = sent([packet])
    assert first == write(255, 16, content[:480])
    assert others[0] == write(0, 496, content[480:960])
    assert others[1:] == [write(1, 976, content[960:])] * (size > 960)
    (reads,) = sent([LINE.encode(7, [Fragment(Request.READ, 16, memoryview(content))])])
    assert [int.from_bytes(x[2:4], "little") for x in reads] == [
        len(x) - 8 for x in (first, *others)
    ]


def test_three_frames_fill_a_datagram() -> None:
    assert len(LINE.encode(0, [Fragment(Request.WRITE, 0, view(1440))])) == DATAGRAM_BYTES


def test_greeting_and_farewell_are_alone() -> None:
    assert LINE.encode_hello(9, 77) == datagram(SESSION, request(9, Request.HELLO, 77, 0))
    assert LINE.encode_goodbye(9) == datagram(SESSION, request(9, 3, 0, 0))


# --- decoding -------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 255), st.integers(0, 127), st.booleans(), st.binary(max_size=490))
    )
)
def test_the_answers_of_a_datagram(answers: list[tuple[int, int, bool, bytes]]) -> None:
    data = datagram(
        SESSION, *(header_of(n, kind | line << 7, len(x)) + x for n, kind, line, x in answers)
    )
    assert decode(data) == [Reply(*answer) for answer in answers]


def test_answers_in_a_row_are_told_from_answers_with_a_gap() -> None:
    numbers = (254, 255, 0, 2, 3, 1)
    frames = [header_of(number, Answer.DONE, 0) for number in numbers]
    assert decode(datagram(SESSION, *frames)) == [
        Reply(number, Answer.DONE, False, b"") for number in numbers
    ]


ANSWER = datagram(SESSION, header_of(5, Answer.DONE, 6) + b"123456", header_of(6, Answer.DONE, 0))


def test_every_flipped_bit_is_found() -> None:
    for bit in range(8 * len(ANSWER)):
        damaged = bytearray(ANSWER)
        damaged[bit // 8] ^= 1 << bit % 8
        assert decode(damaged) is None


def test_every_length_but_the_right_one_is_found() -> None:
    for size in range(len(ANSWER)):
        assert decode(ANSWER[:size]) is None
    assert decode(ANSWER + b"\0") is None
    whole = [Reply(5, Answer.DONE, False, b"123456"), Reply(6, Answer.DONE, False, b"")]
    assert decode(ANSWER) == whole


def test_answers_of_another_session_are_none() -> None:
    assert decode(datagram(SESSION + 1, header_of(5, 0, 0))) is None


@pytest.mark.parametrize("size", [1, 4, 65535])
def test_an_answer_longer_than_its_datagram_is_none(size: int) -> None:
    assert decode(datagram(SESSION, header_of(5, Answer.DONE, size))) is None


@given(st.binary(max_size=2000))
def test_bytes_are_whole_answers_or_none(data: bytes) -> None:
    body = SESSION.to_bytes(4, "little") + data
    found = decode(body + zlib.crc32(body).to_bytes(4, "little"))
    parts = [x for reply in found or () for x in (reply.data, *reply.more)]
    assert found is None or sum(4 + -(-len(x) // 4) * 4 for x in parts) == len(data)
    assert decode(data) is None


# --- how much may be in flight --------------------------------------------------------------------


def stored(packets: list[bytes | bytearray]) -> int:
    return sum(len(packet) + STORED_HEADER_BYTES for packet in packets)


@pytest.mark.parametrize("size", [1, 60, 479, 480, 481, 1440, 100_000])
def test_no_more_is_in_flight_than_the_board_buffers(size: int) -> None:
    it = window()
    packets = it.packets(TransferQueue((8 * size * k, view(size)) for k in range(200)))
    assert stored(packets) <= DATAGRAM_RECEIVE_BYTES
    assert all(len(packet) <= DATAGRAM_BYTES for packet in packets)
    assert sum(map(len, sent(packets))) <= REPETITIONS
    # Nothing is held back without need.
    assert stored(packets) > DATAGRAM_RECEIVE_BYTES - 1500 or size < 100


def test_the_answers_to_a_packet_are_one_datagram() -> None:
    it = window()
    packets = it.packets(TransferQueue(reads=[(0, view(20_000)), (1 << 20, view(100))]))
    for requests in sent(packets):
        answers = sum(4 + int.from_bytes(x[2:4], "little") for x in requests)
        assert answers + 8 <= DATAGRAM_BYTES


def test_a_call_of_small_parts_is_one_packet() -> None:
    writes = [(0, view(100)), (CONTROL_BASE + 0x2000, view(64)), (CONTROL_BASE + 8, view(4))]
    reads = [(CONTROL_BASE + 12, view(4)), (0x4000, view(200))]
    (requests,) = sent(window().packets(TransferQueue(writes, reads)))
    assert len(requests) == 5


def test_a_write_does_not_share_a_packet_with_a_read_of_the_same_bytes() -> None:
    it = window()
    it.packets(TransferQueue(reads=[(0x100, view(64))]))
    blocked = TransferQueue([(0x120, view(4))])
    assert not it.packets(blocked)
    it.take(Reply(0, Answer.DONE, False, bytes(64)))
    assert len(it.packets(blocked)) == 1


# --- losses ---------------------------------------------------------------------------------------


def numbers(packets: list[bytes | bytearray]) -> list[int]:
    return [request[0] for requests in sent(packets) for request in requests]


def nine(sequence: int = 0) -> Window:
    it = window(sequence)
    transfers = TransferQueue([(0, view(9 * 480))])
    assert numbers(it.packets(transfers)) == [(sequence + k) % 256 for k in range(9)]
    return it


def test_a_packet_is_repeated_until_all_its_answers_have_come() -> None:
    it = nine()
    it.take(Reply(0, Answer.DONE, False, b""))
    it.on_timeout()
    assert numbers(it.packets(TransferQueue())) == [0, 1, 2]
    for k in (0, 1, 2, 2):
        it.take(Reply(k, Answer.DONE, False, b""))
    # The repetition was sent after these, and its answer has come before theirs.
    assert numbers(it.packets(TransferQueue())) == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("expected", [254, 255, 0, 1, 2])
def test_the_packet_of_the_expected_request_and_all_later_ones_are_repeated(expected: int) -> None:
    it = nine(253)
    it.take(Reply(expected, Answer.EXPECTED, False, b""))
    first = 253 if expected > 250 else 0
    assert numbers(it.packets(TransferQueue()))[0] == first
    assert not it.packets(TransferQueue())


def test_an_answer_to_a_later_packet_repeats_the_earlier_ones() -> None:
    it = nine()
    for k in (3, 4, 5):
        it.take(Reply(k, Answer.DONE, False, b""))
    assert numbers(it.packets(TransferQueue())) == [0, 1, 2]


def test_only_the_first_answer_to_a_frame_counts() -> None:
    it = window()
    target = bytearray(960)
    it.packets(TransferQueue(reads=[(0, memoryview(target))]))
    for byte in b"ab":
        it.take(Reply(0, Answer.DONE, False, bytes((byte,)) * 480))
    assert target == b"a" * 480 + bytes(480)
    assert it.answered == 1
    assert not it.empty


def test_a_refusal_names_the_frame() -> None:
    it = nine()
    it.take(Reply(1, Answer.REFUSED, False, b""))
    assert it.refused is not None
    assert (it.refused.address, len(it.refused.content)) == (480, 480)
