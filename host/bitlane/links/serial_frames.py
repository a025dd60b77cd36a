"""Frames on the serial line, with CRC and COBS: encoding requests, decoding answers.

``bitlane_rtl.abi.frames`` specifies them. The only state between frames is the start of an
incomplete one; no bytes from the line raise an error.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final
from zlib import crc32

from bitlane_rtl.abi import (
    ANSWER_HEADER_BYTES,
    CRC_BYTES,
    DELIMITER,
    FRAME_DATA_BYTES,
    HELLO_BYTES,
    RECEIVE_BYTES,
    Request,
)

from .frames import (
    ANSWER_HEADER,
    answer_bytes,
    decode_header,
    encode_header,
    encode_requests,
    kind_and_interrupt,
    request_bytes,
)
from .line import Fragment, FrameSizes, Line, LineCost, Reply, words_bytes

BOUNDARY: Final = bytes((DELIMITER,))
"""The delimiter that ends a frame on the line. Alone it ends any earlier garbage."""

_BLOCK_BYTES: Final = 254
"""Most bytes of a COBS block."""

_FULL_CODE: Final = _BLOCK_BYTES + 1
"""The code of a block that no zero follows."""

_CODES: Final = tuple(bytes((code,)) for code in range(256))

_OLD_VERSION: Final = 1
_OLD_HEADER: Final = Struct("<BB")
"""The header of an answer of that link version."""


def encode(content: bytes) -> bytes:
    """``content`` in COBS, codes before their blocks; no byte is zero."""
    parts: list[bytes] = []
    for run in content.split(b"\0"):
        start = 0
        while len(run) - start >= _BLOCK_BYTES:
            parts += (_CODES[_FULL_CODE], run[start : start + _BLOCK_BYTES])
            start += _BLOCK_BYTES
        parts += (_CODES[len(run) - start + 1], run[start:])
    return b"".join(parts)


def decode_backward(block: bytes) -> bytes | None:
    """Decode ``block``, COBS with the codes after their blocks; return None if it is damaged."""
    content = bytearray(block)
    position = len(content) - 1
    without_zero: list[int] = []
    while position >= 0:
        code = content[position]
        if code == _FULL_CODE:
            without_zero.append(position)
        elif code == 0:
            return None
        content[position] = 0
        position -= code
    if position != -1 or not content:
        return None
    for place in without_zero:
        del content[place]
    if block[-1] != _FULL_CODE:
        del content[-1]
    return bytes(content)


def encode_frame(content: bytes) -> bytes:
    """The bytes on the line of a request with header and data ``content``, with its delimiter."""
    return encode(content + crc32(content).to_bytes(CRC_BYTES, "little")) + BOUNDARY


def decode_answer(block: bytes) -> Reply | None:
    """The answer that came as ``block``, without its delimiter; None if it was damaged.

    The answer of a board of link version 1 to a HELLO is one, too.
    """
    content = decode_backward(block)
    if content is None or len(content) < ANSWER_HEADER_BYTES + CRC_BYTES:
        return None
    body = content[:-CRC_BYTES]
    if crc32(body).to_bytes(CRC_BYTES, "little") != content[-CRC_BYTES:]:
        return None
    start = ANSWER_HEADER_BYTES
    number, second, size = decode_header(*ANSWER_HEADER.unpack_from(body))
    if len(body) == _OLD_HEADER.size + HELLO_BYTES and body[_OLD_HEADER.size] == _OLD_VERSION:
        number, second = _OLD_HEADER.unpack_from(body)
        start, size = _OLD_HEADER.size, HELLO_BYTES
    elif len(body) != start + words_bytes(size):
        return None
    return Reply(number, *kind_and_interrupt(second), body, 1, (slice(start, start + size),))


def request_room(request: Request, span: int) -> int:
    """Bytes that a board buffers of a request with ``span`` bytes from their first word on."""
    return request_bytes(request, span) + CRC_BYTES


def request_line_bytes(request: Request, span: int) -> int:
    """Most bytes on the line of a request with ``span`` bytes from their first word on."""
    return _line_bytes(request_room(request, span))


def answer_line_bytes(request: Request, span: int) -> int:
    """Most bytes on the line of the answer to it."""
    return _line_bytes(answer_bytes(request, span) + CRC_BYTES)


def _line_bytes(content_bytes: int) -> int:
    return content_bytes + content_bytes // _BLOCK_BYTES + 1 + len(BOUNDARY)


class SerialLine(Line):
    """The serial line: each frame is a packet, and noise costs less in small frames."""

    sizes = FrameSizes(start=64, least=32, most=FRAME_DATA_BYTES)
    noisy_packets = 6
    fragment_frames = 1
    batch_packets = 1
    packet_bytes = 0
    packet_room = 0
    buffer_bytes = RECEIVE_BYTES
    answers_bytes = 4000
    least_wait = 0.02
    latency_bytes = 64
    has_session = False

    def cost(self, request: Request, span: int) -> LineCost:
        return LineCost(
            1,
            request_room(request, span),
            request_line_bytes(request, span),
            answer_line_bytes(request, span),
        )

    def encode(self, sequence: int, fragments: Sequence[Fragment], packets: int) -> bytes:
        (fragment,) = fragments
        return encode_frame(b"".join(encode_requests(sequence, fragment, self.sizes.most)))

    def encode_hello(self, sequence: int, number: int) -> bytes:
        # The delimiter ends whatever the line carried before.
        return BOUNDARY + encode_frame(encode_header(sequence, Request.HELLO, number, 0))


SERIAL: Final = SerialLine()

_LONGEST: Final = answer_line_bytes(Request.READ, FRAME_DATA_BYTES)


class Deframer:
    """Splits the bytes from the line into frames, and drops frames longer than any answer."""

    def __init__(self) -> None:
        self._start = b""
        self._overlong = False

    def feed(self, data: bytes) -> tuple[list[bytes], int]:
        """The frames that ``data`` completes, and how many were dropped for their length."""
        *blocks, rest = data.split(BOUNDARY)
        dropped = 0
        frames: list[bytes] = []
        for block in blocks:
            if self._start:
                block = self._start + block
                self._start = b""
            if self._overlong or len(block) >= _LONGEST:
                self._overlong = False
                dropped += 1
            elif block:
                frames.append(block)
        self._start += rest
        if len(self._start) >= _LONGEST:
            self._start = b""
            self._overlong = True
        return frames, dropped
