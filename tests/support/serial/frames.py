"""Frames in words, and the serial line byte by byte, as `abi.frames` describes them.

Written apart from both the circuit and the driver, so that neither checks itself. Slow and plain.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import (
    CONTROL_BASE,
    HELLO_BYTES,
    INTERRUPT_BIT,
    LINE_STATUS_OFFSET,
    SEQUENCES,
    Request,
)

DELIMITER = b"\0"

Levels = NDArray[np.uint8]
"""The level of the line, 0 or 1, in every cycle."""


def uart_levels(data: bytes, divider: int, gap: int = 0) -> Levels:
    """Return the levels of consecutive bytes, with ``gap`` idle cycles before each."""
    octets = np.frombuffer(data, np.uint8)
    bits = np.ones((len(octets), 10), np.uint8)
    bits[:, 0] = 0
    bits[:, 1:9] = np.unpackbits(octets[:, None], axis=1, bitorder="little")
    frames = np.repeat(bits, divider, axis=1)
    idle = np.ones((len(octets), gap), np.uint8)
    return np.concatenate([idle, frames], axis=1).ravel()


def uart_bytes(levels: Levels, divider: int) -> tuple[bytes, list[int]]:
    """Return the bytes on a line that is exact to the cycle, and the cycles in which they begin."""
    data = bytearray()
    begins = []
    low = np.flatnonzero(levels == 0)
    cycle = 0
    while (place := np.searchsorted(low, cycle)) < len(low):
        cycle = int(low[place])
        bits = levels[cycle : cycle + 10 * divider].reshape(10, divider)
        assert (bits == bits[:, :1]).all(), f"a bit changes in its middle, near cycle {cycle}"
        assert bits[0, 0] == 0, f"no start bit in cycle {cycle}"
        assert bits[9, 0] == 1, f"no stop bit near cycle {cycle}"
        data.append(int(np.packbits(bits[1:9, 0], bitorder="little")[0]))
        begins.append(cycle)
        cycle += 10 * divider
    return bytes(data), begins


def with_crc(content: bytes) -> bytes:
    return content + crc32(content).to_bytes(4, "little")


def _blocks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield blocks and their codes; the last code is below 255."""
    block = bytearray()
    for byte in data:
        if byte:
            block.append(byte)
        if not byte or len(block) == 254:
            yield bytes(block), len(block) + 1
            block.clear()
    yield bytes(block), len(block) + 1


def cobs_encode(data: bytes, *, shortest: bool = False) -> bytes:
    """Return ``data`` in standard COBS: each code before its block.

    With ``shortest``, a last block of 254 bytes has no empty block behind it.
    """
    blocks = list(_blocks(data))
    if shortest and len(blocks) > 1 and blocks[-1] == (b"", 1) and blocks[-2][1] == 255:
        del blocks[-1]
    return b"".join(bytes([code]) + block for block, code in blocks)


def cobs_decode(line: bytes) -> bytes | None:
    """Return the content of ``line``, without its delimiter; ``None`` if a block is cut short."""
    data = bytearray()
    place = 0
    while place < len(line):
        code = line[place]
        data += line[place + 1 : place + code]
        place += code
        if code < 255 and place < len(line):
            data.append(0)
    return bytes(data) if place == len(line) else None


def frame(content: bytes, *, shortest: bool = False) -> bytes:
    """Return a request as it is on the line, with its delimiter."""
    return cobs_encode(with_crc(content), shortest=shortest) + DELIMITER


def head(number: int, kind: int, size: int) -> bytes:
    """Return the word with which a request or an answer starts."""
    assert 0 <= size < 1024, size
    number %= SEQUENCES
    return (number % 256 | kind << 8 | size << 16 | number >> 8 << 26).to_bytes(4, "little")


def data_words(address: int, size: int) -> int:
    """Return the words of ``size`` bytes of data that have the offset of ``address``."""
    return (address % 4 + size + 3) // 4 if size else 0


def in_words(address: int, data: bytes) -> bytes:
    """Return the words of ``data``, which have the offset of ``address``, between other bytes."""
    if not data:
        return b""
    others = crc32(data).to_bytes(4, "little")
    return others[: address % 4] + data + others[::-1][: -(address + len(data)) % 4]


def request(number: int, kind: int, address: int, size: int, data: bytes = b"") -> bytes:
    """Return a request's header and the words of its data."""
    return head(number, kind, size) + address.to_bytes(4, "little") + in_words(address, data)


class Asked(NamedTuple):
    """A request, taken apart."""

    number: int
    kind: int
    size: int
    address: int
    data: bytes
    """The data of a WRITE, without the bytes beside them."""


def asked(content: bytes) -> Asked:
    """Take the request apart with which ``content`` begins."""
    word, address = (int.from_bytes(content[at : at + 4], "little") for at in (0, 4))
    kind, size = word >> 8 & 0xFF, word >> 16 & 0x3FF
    first = 8 + address % 4
    data = content[first : first + size] if kind == Request.WRITE else b""
    return Asked(word & 0xFF | word >> 26 << 8, kind, size, address, data)


def request_bytes(content: bytes) -> int:
    """Return the bytes of the request whose header ``content`` begins with."""
    _, kind, size, address, _ = asked(content)
    return 8 + 4 * (data_words(address, size) if kind == Request.WRITE else 0)


def request_in(line: bytes) -> bytes | None:
    """Return the request in ``line``, without its delimiter; ``None`` if it is damaged."""
    content = cobs_decode(line)
    if content is None or len(content) < 12 or with_crc(content[:-4]) != content:
        return None
    return content[:-4] if len(content) - 4 == request_bytes(content) else None


def read(number: int, address: int, size: int) -> bytes:
    return request(number, Request.READ, address, size)


def write(number: int, address: int, data: bytes) -> bytes:
    return request(number, Request.WRITE, address, len(data), data)


def hello(number: int, nonce: int) -> bytes:
    return request(number, Request.HELLO, nonce, 0)


def given_out(content: bytes, *, repeated: bool = False) -> bytes:
    """Return the bytes that the receiver passes on for a request."""
    number, kind, size, _, _ = asked(content)
    starts = kind == Request.HELLO and not size
    unknown = kind not in (Request.READ, Request.WRITE) and not starts
    code = (kind == Request.WRITE) | starts << 1 | unknown << 2 | repeated << 3
    return head(number, code, HELLO_BYTES if starts else size) + content[4:]


def lines(contents: Iterable[bytes]) -> bytes:
    return b"".join(map(frame, contents))


def random_request(rng: random.Random, number: int, longest: int = 100) -> bytes:
    """Return a read or a write of memory or control window, usually a legal one."""
    size = rng.choice([0, 1, 4, 8, rng.randrange(longest + 1)])
    if rng.random() < 0.3:
        size -= size % 4
        address = CONTROL_BASE + rng.randrange(0, 0x4010 - size, 4)
        # A board on a network has a word of its own there.
        if address <= CONTROL_BASE + LINE_STATUS_OFFSET < address + size:
            address = CONTROL_BASE
    else:
        address = rng.randrange(0x1_0004 - size)
    if rng.random() < 0.5:
        return read(number, address, size)
    return write(number, address, rng.choice([rng.randbytes(size), bytes(size), b"\xff" * size]))


@dataclass(frozen=True)
class Reply:
    """An answer, taken apart."""

    number: int
    kind: int
    data: bytes = b""
    interrupt: bool = False
    address: int = field(default=0, compare=False)
    """The address of a READ, whose offset the data have in their words."""

    @property
    def content(self) -> bytes:
        """The words of the answer."""
        kind = self.kind | self.interrupt << INTERRUPT_BIT
        return head(self.number, kind, len(self.data)) + in_words(self.address, self.data)


def reply_in(content: bytes, address: int = 0) -> tuple[Reply, bytes]:
    """Return the answer with which ``content`` begins, and the rest of it.

    ``address``: of the READ that it answers; its offset alone matters.
    """
    assert len(content) >= 4, f"short answer: {content.hex()}"
    number, status, size, _, _ = asked(content[:4] + bytes(4))
    end = 4 + 4 * data_words(address, size)
    assert len(content) >= end, f"{size} bytes in {content.hex()}"
    data = content[4 + address % 4 :][:size]
    kind, interrupt = status & (1 << INTERRUPT_BIT) - 1, bool(status >> INTERRUPT_BIT)
    return Reply(number, kind, data, interrupt, address), content[end:]


def backward_cobs(data: bytes) -> bytes:
    """Return ``data`` in COBS with each code behind its block, which needs no buffer to send."""
    return b"".join(block + bytes([code]) for block, code in _blocks(data))


def answer_line(content: bytes) -> bytes:
    """Return an answer as it is on the line, with its delimiter."""
    return backward_cobs(with_crc(content)) + DELIMITER


def answer_content(line: bytes) -> bytes:
    """Return the content of an answer, less its delimiter. Raises ``AssertionError`` on damage."""
    parts: list[bytes] = []
    end = len(line)
    while end:
        code = line[end - 1]
        start = end - code
        assert start >= 0, f"code {code} at {end - 1} of {line.hex()}"
        if parts and code < 255:
            parts.append(DELIMITER)
        parts.append(line[start : end - 1])
        end = start
    content = b"".join(reversed(parts))
    assert len(content) >= 8, f"short answer: {line.hex()}"
    assert with_crc(content[:-4]) == content, f"CRC of {content.hex()}"
    return content[:-4]


def replies(line: bytes, like: Sequence[Reply] = ()) -> list[Reply]:
    """Return all answers in ``line``. Raises ``AssertionError`` if one is damaged or cut short.

    ``like``: answers with the same numbers, from whose addresses their data's offsets are taken.
    """
    *frames, rest = line.split(DELIMITER)
    assert not rest, f"cut short: {rest.hex()}"
    found = []
    addresses = {each.number: each.address for each in like}
    for entry in frames:
        content = answer_content(entry)
        assert answer_line(content) == entry + DELIMITER, "not the way that the contract says"
        number = asked(content[:4] + bytes(4)).number
        answer, behind = reply_in(content, addresses.get(number, 0))
        assert not behind, f"{len(answer.data)} bytes in {content.hex()}"
        found.append(answer)
    return found
