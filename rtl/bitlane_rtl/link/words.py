"""The words of requests and answers between a line and the executor. Layouts only."""

from amaranth.hdl import Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import FRAME_DATA_BYTES, SEQUENCES, WORD_BYTES

__all__ = [
    "NUMBER_BITS",
    "SIZE_BITS",
    "AnswerWord",
    "DataTransfer",
    "Kind",
    "Mark",
    "RequestHead",
    "RequestWord",
    "WriteWord",
    "words_behind",
]

SIZE_BITS = FRAME_DATA_BYTES.bit_length()
"""Bits of SIZE in the first word of a frame."""

NUMBER_BITS = exact_log2(SEQUENCES)

_WORD_BITS = exact_log2(WORD_BYTES)


class Mark(enum.Enum, shape=2):
    """The meaning of a word. The executor passes on all but words of requests, in their order."""

    WORD = 0
    """A word of a request, or of the data of an answer."""
    ANSWER = 1
    """The first word of an answer."""
    HEADER = 2
    """A word of the header to send with all answers behind it."""
    END = 3
    """No word: all requests with the same header have been answered."""


class RequestWord(data.Struct):
    """A word to the executor."""

    data: 32
    mark: Mark


class AnswerWord(data.Struct):
    """A word from the executor."""

    data: 32
    mark: Mark
    last: 1
    """The answer ends with this word."""
    left: SIZE_BITS - 1
    """Unless ``last``: the number of words behind the next one, up to the answer's end."""


class Kind(data.Struct):
    """The byte that replaces `Request` in the first word of a request to the executor."""

    write: 1
    hello: 1
    """Never with ``write``. SIZE is HELLO_BYTES, which the answer has."""
    unknown: 1
    """The request must be refused. Never with ``hello``."""
    repeated: 1
    """The request is a repetition. Undefined with ``hello``."""
    unused: 4


class RequestHead(data.Struct):
    """The first word of a request to the executor."""

    number_low: 8
    kind: Kind
    size: SIZE_BITS
    number_high: NUMBER_BITS - 8


class WriteWord(data.Struct):
    """A word to write; bit ``i`` of ``strobe`` enables byte ``i``."""

    data: 32
    strobe: WORD_BYTES
    last: 1
    """The last word of the transfer."""


class DataTransfer(wiring.Signature):
    """Signature of transfers of a request's data from or to memory, from the executor's side.

    Members
    -------
    start
        A transfer starts: the other outputs are valid, and are held until its last word. All words
        of the transfer before are read, or written and ``done``.
    write
        The transfer writes.
    address
        With ``start`` the first byte. With each word, bits 31:2 are those of its address.
    size_less_1
        The number of bytes less one.
    words
        The words to write.
    read
        The words that are read. ``ready`` stays 1 until a word is transferred.
    done
        All words that were transferred to ``words`` are written.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "start": Out(1),
                "write": Out(1),
                "address": Out(address_width),
                "size_less_1": Out(SIZE_BITS),
                "words": Out(stream.Signature(WriteWord)),
                "read": In(stream.Signature(32)),
                "done": In(1),
            }
        )


def words_behind(offset: Value, size_less_1: Value) -> Value:
    """Return the number of words behind the first one of data at ``offset`` of a word."""
    return (offset + size_less_1)[_WORD_BITS : SIZE_BITS + 1]
