"""Datagrams of the network link as bytes: encoding requests, decoding answers.

``bitlane_rtl.abi.datagrams`` specifies them. No bytes from the network raise an error.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from struct import Struct
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import (
    ANSWER_HEADER_BYTES,
    CRC_BYTES,
    DATAGRAM_BYTES,
    DATAGRAM_RECEIVE_BYTES,
    GOODBYE,
    HELLO_BYTES,
    INTERRUPT_BIT,
    REPETITIONS,
    REQUEST_HEADER_BYTES,
    SEQUENCES,
    SESSION_BYTES,
    STORED_HEADER_BYTES,
    Answer,
    Request,
)

from .frames import (
    ANSWER_HEADER,
    KIND_SHIFT,
    SEQUENCE_MASK,
    SIZE_SHIFT,
    answer_bytes,
    decode_header,
    encode_header,
    encode_requests,
    kind_and_interrupt,
    request_bytes,
    word_of,
)
from .line import LEAST_BATCH, Fragment, FrameSizes, Line, LineCost, Reply, words_bytes
from .write_stream import STREAM_PACKETS

# Python 3.11 takes 0.1 us to look up a member of an enumeration.
_READ, _WRITE = Request.READ, Request.WRITE

_CRC: Final = Struct("<I")

_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of any bytes that are followed by their own CRC-32."""

_OLD_VERSION: Final = 1
"""A link version whose answers have a number of a byte, `Answer`, and two zeros as their header."""

_CRC_TABLE: Final = np.array([crc32(bytes((x ^ 0xFF,))) ^ 0xFF << 24 for x in range(256)], "<u4")
"""The CRC-32 register after each byte that is shifted into a register of 0."""

FRAME_BYTES: Final = 480
"""Data of a frame: three frames fill a datagram to its last byte."""


def _consecutive(count: int) -> NDArray[np.uint32]:
    """Return ``count`` consecutive sequence numbers from 0 on."""
    return np.arange(count, dtype=np.uint32) & np.uint32(SEQUENCE_MASK)


_STARTS: Final = np.arange(3 * STREAM_PACKETS, dtype="<u4") * FRAME_BYTES
"""The places of consecutive frames in a fragment."""

_NUMBERS: Final = word_of(_consecutive(SEQUENCES + (1 << 16) // ANSWER_HEADER_BYTES))
"""The numbers of consecutive frames, as in their headers: as many as fill a buffer of 64 KiB, from
any number on."""


class DatagramLine(Line):
    """The datagrams of the session ``number``, which is not 0.

    A datagram's requests are limited so that their answers are one datagram, too.
    """

    # Ethernet drops a damaged datagram as a whole: smaller frames would lose nothing less.
    sizes = FrameSizes(start=FRAME_BYTES, least=FRAME_BYTES, most=FRAME_BYTES)
    noisy_packets = REPETITIONS
    fragment_frames = 3
    batch_packets = STREAM_PACKETS
    packet_bytes = DATAGRAM_BYTES - SESSION_BYTES - CRC_BYTES
    packet_room = SESSION_BYTES + CRC_BYTES + STORED_HEADER_BYTES
    buffer_bytes = DATAGRAM_RECEIVE_BYTES
    # One call of the system returns 64 KiB: 44 datagrams.
    answers_bytes = (1 << 16) // DATAGRAM_BYTES * packet_bytes
    least_wait = 0.002
    latency_bytes = 4_000
    has_session = True

    def __init__(self, number: int) -> None:
        self._number = number
        self._session = number.to_bytes(SESSION_BYTES, "little")

    def cost(self, request: Request, span: int) -> LineCost:
        return _cost(request, span)

    def encode(
        self, sequence: int, fragments: Sequence[Fragment], packets: int
    ) -> bytes | memoryview:
        if packets > 1:
            return self._encode_full(sequence, fragments[0], packets)
        parts: list[bytes | memoryview] = [self._session]
        for fragment in fragments:
            parts += encode_requests(sequence, fragment, FRAME_BYTES)
            sequence = sequence + fragment.requests(FRAME_BYTES) & SEQUENCE_MASK
        return _with_crc(b"".join(parts))

    def _encode_full(self, sequence: int, fragment: Fragment, packets: int) -> memoryview:
        """Return ``packets`` packets that ``fragment`` fills."""
        request, address, content = fragment
        shape = packets, self.fragment_frames
        count = packets * self.fragment_frames
        header = request << KIND_SHIFT | FRAME_BYTES << SIZE_SHIFT
        frame_words = REQUEST_HEADER_BYTES // 4
        if request is _WRITE:
            frame_words += FRAME_BYTES // 4
        words = np.empty((packets, 2 + self.fragment_frames * frame_words), "<u4")
        words[:, 0] = self._number
        frames = words[:, 1:-1].reshape(*shape, frame_words)
        frames[:, :, 0] = (_NUMBERS[sequence : sequence + count] | header).reshape(shape)
        frames[:, :, 1] = (_STARTS[:count] + address).reshape(shape)
        if request is _WRITE:
            frames[:, :, 2:] = np.frombuffer(content, "<u4").reshape(*shape, -1)
        words[:, -1] = list(map(crc32, words.view(np.uint8)[:, :-CRC_BYTES]))
        return words.reshape(-1).view(np.uint8).data

    def answers(self, sequence: int, packets: int) -> bytes:
        """Return the answers to as many packets of full writes, from number ``sequence`` on.

        All requests are executed, and the interrupt line is low.
        """
        frames = self.fragment_frames
        start = sequence * pow(frames, -1, SEQUENCES) % SEQUENCES
        every = self._every_answer
        size = len(every) // SEQUENCES
        end = start + packets
        return (every * (-(-end // SEQUENCES)))[start * size : end * size]

    @cached_property
    def _every_answer(self) -> bytes:
        """The answers to consecutive packets of full writes, from number 0 on until they repeat."""
        frames = self.fragment_frames
        words = np.empty((SEQUENCES, 2 + frames), "<u4")
        words[:, 0] = self._number
        headers = word_of(_consecutive(SEQUENCES * frames)) | Answer.DONE << KIND_SHIFT
        words[:, 1:-1] = headers.reshape(SEQUENCES, frames)
        words[:, -1] = _crcs(words[:, :-1])
        return words.tobytes()

    def encode_hello(self, sequence: int, number: int) -> bytes:
        return self._encode_alone(sequence, Request.HELLO, number)

    def encode_goodbye(self, sequence: int) -> bytes:
        """Return the datagram of a GOODBYE."""
        return self._encode_alone(sequence, GOODBYE, 0)

    def _encode_alone(self, sequence: int, kind: int, address: int) -> bytes:
        return _with_crc(self._session + encode_header(sequence, kind, address, 0))

    def decode(self, content: bytes | memoryview, size: int) -> tuple[list[Reply], int]:
        """Return the answers of packets, and how many are damaged or another session's.

        ``content``, ``size``: as of a `Batch`. The answers refer to ``content``.
        """
        rest = memoryview(content)
        replies: list[Reply] = []
        damaged = 0
        while rest:
            packets, answered = 1, rest[:size]
            found = self._replies(answered)
            if found and len(rest) >= LEAST_BATCH * size and len(found) == 1:
                packets = self._alike(rest, size, found[0])
                answered = rest[: packets * size]
                while packets > 1 and crc32(answered) != _sound_crc(size, packets):
                    packets //= 2
                    answered = rest[: packets * size]
                found = [found[0]._replace(content=answered, packets=packets)]
            if found is not None and (packets > 1 or crc32(answered) == _RESIDUE):
                replies += found
            elif found is None and (old := self._old_reply(answered)) is not None:
                replies.append(old)
            else:
                damaged += 1
            rest = rest[packets * size :]
        return replies, damaged

    def _replies(self, packet: memoryview) -> list[Reply] | None:
        """Return the answers of a packet, which may be damaged.

        Returns None if they are not whole, or another session's.
        """
        if packet[:SESSION_BYTES] != self._session:
            return None
        replies: list[Reply] = []
        spans: list[slice] = []
        following, before = -1, -1
        place, end = SESSION_BYTES, len(packet) - CRC_BYTES
        while place + ANSWER_HEADER_BYTES <= end:
            number, second, size = decode_header(*ANSWER_HEADER.unpack_from(packet, place))
            place += ANSWER_HEADER_BYTES
            if number != following or second != before:
                spans = []
                replies.append(Reply(number, *kind_and_interrupt(second), packet, 1, spans))
            spans.append(slice(place, place + size))
            place += words_bytes(size)
            following, before = number + 1 & SEQUENCE_MASK, second
        return replies if place == end else None

    def _old_reply(self, packet: memoryview) -> Reply | None:
        """Return the answer of a board of link version 1 to a HELLO, if ``packet`` is one."""
        start = SESSION_BYTES + ANSWER_HEADER_BYTES
        end = start + HELLO_BYTES
        if (
            len(packet) != end + CRC_BYTES
            or packet[:SESSION_BYTES] != self._session
            or packet[start] != _OLD_VERSION
            or crc32(packet) != _RESIDUE
        ):
            return None
        number, second = packet[SESSION_BYTES : SESSION_BYTES + 2]
        return Reply(number, *kind_and_interrupt(second), packet, 1, (slice(start, end),))

    def _alike(self, rest: memoryview, size: int, first: Reply) -> int:
        """Return how many packets of ``rest`` continue ``first``, the reply of the first one.

        They have the same session and the same sizes of answers, and consecutive numbers.
        """
        packets, answers = len(rest) // size, len(first.spans)
        sizes = {span.stop - span.start for span in first.spans}
        if len(sizes) > 1:
            return 1
        second = first.kind | first.interrupt << INTERRUPT_BIT
        header = second << KIND_SHIFT | sizes.pop() << SIZE_SHIFT
        step = (size - SESSION_BYTES - CRC_BYTES) // answers
        words = np.frombuffer(rest[: packets * size], "<u4").reshape(packets, -1)
        headers = words[:, SESSION_BYTES // 4 : -1 : step // 4]
        start = first.sequence
        numbers = _NUMBERS[start : start + packets * answers].reshape(packets, answers)
        others = (words[:, 0] != self._number).tobytes().find(True)
        wrong = (headers != (numbers | header)).tobytes().find(True)
        return min(packets if others < 0 else others, packets if wrong < 0 else wrong // answers)


@lru_cache(1024)
def _sound_crc(size: int, packets: int) -> int:
    """Return the CRC-32 of ``packets`` sound packets of ``size`` bytes.

    All sound packets of a size leave a CRC register in the same state, so that the CRC of many in a
    row is a constant, too. It finds damage in one packet as that packet's own CRC does.
    """
    return crc32(_with_crc(bytes(size - CRC_BYTES)) * packets)


@lru_cache(4096)
def _cost(request: Request, span: int) -> LineCost:
    """Return the cost of a fragment: all of its headers, and one row of words of data."""
    frames = -(-span // FRAME_BYTES) or 1
    sent = (frames - 1) * REQUEST_HEADER_BYTES + request_bytes(request, span)
    received = (frames - 1) * ANSWER_HEADER_BYTES + answer_bytes(request, span)
    return LineCost(frames, sent, sent, received)


def _crcs(rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the CRC-32 of the bytes of each row of ``rows``, whose words are little-endian."""
    state = np.full(len(rows), 0xFFFF_FFFF, np.uint32)
    for column in rows.T:
        state ^= column
        for _ in range(column.itemsize):
            state = _CRC_TABLE[state & 0xFF] ^ state >> 8
    return ~state


def _with_crc(body: bytes) -> bytes:
    return body + _CRC.pack(crc32(body))
