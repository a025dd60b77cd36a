"""Frames as whole words, which every line carries: requests to bytes, and headers of answers.

``bitlane_rtl.abi.frames`` specifies them. Reads of the memory are reads of whole words, so that the
layout of an answer depends on its header alone; the host takes the bytes that it wants.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final, TypeVar

from numpy.typing import NDArray

from bitlane_rtl.abi import (
    ANSWER_HEADER_BYTES,
    INTERRUPT_BIT,
    REQUEST_HEADER_BYTES,
    SEQUENCES,
    WORD_BYTES,
    Request,
)

from .line import Fragment, words_bytes

# Python 3.11 takes 0.1 us to look up a member of an enumeration.
_WRITE: Final = Request.WRITE

_REQUEST_HEADER: Final = Struct("<II")
ANSWER_HEADER: Final = Struct("<I")

SEQUENCE_MASK: Final = SEQUENCES - 1
KIND_SHIFT: Final = 8
SIZE_SHIFT: Final = 16
_HIGH_SHIFT: Final = 26 - 8
"""Bits 13:8 of a number, shifted by this, are bits 31:26 of a header's word."""

_LOW, _HIGH = 0xFF, SEQUENCE_MASK & ~0xFF
_SIZE: Final = (1 << 26 - SIZE_SHIFT) - 1
_KIND: Final = (1 << INTERRUPT_BIT) - 1

_FILL: Final = tuple(bytes(size) for size in range(WORD_BYTES))


_Numbers = TypeVar("_Numbers", int, NDArray[Any])


def word_of(number: _Numbers) -> _Numbers:
    """Return the bits of a header's word that hold a sequence number, or each of an array."""
    return number & _LOW | (number & _HIGH) << _HIGH_SHIFT


def encode_header(sequence: int, kind: int, address: int, size: int) -> bytes:
    """Return the header of a request."""
    word = word_of(sequence) | kind << KIND_SHIFT | size << SIZE_SHIFT
    return _REQUEST_HEADER.pack(word, address)


def encode_requests(sequence: int, fragment: Fragment, most: int) -> Iterator[bytes | memoryview]:
    """Yield, in parts, the bytes of the requests of ``fragment``, each with up to ``most`` bytes.

    ``sequence``: the number of the first one.
    """
    for index in range(fragment.requests(most)):
        part = fragment.part(index, most)
        yield encode_header(sequence + index & SEQUENCE_MASK, part.request, *part.access)
        if part.request is _WRITE and part.content:
            if lead := part.lead:
                yield _FILL[lead]
            yield part.content
            if rest := -part.span % WORD_BYTES:
                yield _FILL[rest]


def request_bytes(request: Request, span: int) -> int:
    """Return the bytes of a request with ``span`` bytes of data from their first word on."""
    return REQUEST_HEADER_BYTES + (words_bytes(span) if request is _WRITE else 0)


def answer_bytes(request: Request, span: int) -> int:
    """Return the bytes of the answer to it."""
    return ANSWER_HEADER_BYTES + (0 if request is _WRITE else words_bytes(span))


def decode_header(word: int) -> tuple[int, int, int]:
    """Return number, second byte and SIZE of an answer with the header ``word``."""
    number = word & _LOW | word >> _HIGH_SHIFT & _HIGH
    return number, word >> KIND_SHIFT & 0xFF, word >> SIZE_SHIFT & _SIZE


def kind_and_interrupt(second: int) -> tuple[int, bool]:
    """Return the `Answer` and the interrupt line in the second byte of an answer."""
    return second & _KIND, second > _KIND
