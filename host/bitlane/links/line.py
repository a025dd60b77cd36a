"""The description of a line: limits, and the encoding of requests."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import CONTROL_BASE, WORD_BYTES, Request

# Python 3.11 takes 0.1 us to look up a member of an enumeration.
_READ, _WRITE = Request.READ, Request.WRITE


class FrameSizes(NamedTuple):
    """Bytes of data of a frame. All are whole words, because the control window takes only words.

    ``start``: until the first answer. ``least``, ``most``: the bounds after losses and answers.
    """

    start: int
    least: int
    most: int


def words_bytes(size: int) -> int:
    """Return ``size`` rounded up to whole words."""
    return size + WORD_BYTES - 1 & -WORD_BYTES


class Fragment(NamedTuple):
    """The bytes that consecutive requests move: ``content`` is sent, or receives their answers.

    Each request but the first and the last one moves whole words.
    """

    request: Request
    address: int
    content: memoryview

    @property
    def lead(self) -> int:
        """Return the bytes that precede ``content`` in its first word."""
        return self.address % WORD_BYTES

    @property
    def span(self) -> int:
        """Return the bytes from the start of the first word to the end of ``content``."""
        size = len(self.content)
        return self.address % WORD_BYTES + size if size else 0

    @property
    def access(self) -> tuple[int, int]:
        """Return the ADDRESS and the SIZE of a request that moves all of ``content``.

        A read of the memory covers whole words, so that nothing but SIZE decides where its data
        end.
        """
        address = self.address
        if self.request is not _READ or address >= CONTROL_BASE or not self.content:
            return address, len(self.content)
        return address - self.lead, words_bytes(self.span)

    @property
    def received(self) -> int:
        """Return the bytes of the answer's data from their first word on, as many as its SIZE."""
        if self.request is not _READ:
            return 0
        return self.span if self.address >= CONTROL_BASE else words_bytes(self.span)

    def requests(self, most: int) -> int:
        """Return the number of requests with up to ``most`` bytes of words of data."""
        return -(-self.span // most) or 1

    def part(self, index: int, most: int) -> "Fragment":
        """Return the part that the request at ``index`` moves."""
        request, address, content = self
        end = (index + 1) * most - address % WORD_BYTES
        start = max(0, end - most)
        return Fragment(request, address + start, content[start:end])


LEAST_BATCH: Final = 4
"""Packets from which one NumPy call for all of them takes less time than Python for each."""


class Batch(NamedTuple):
    """Packets of equal size, one behind the other in ``content``; the last one may be shorter."""

    content: bytes | memoryview
    size: int
    """Bytes of a packet, not 0."""

    def packets(self) -> list[memoryview]:
        """Return each packet."""
        content, size = memoryview(self.content), self.size
        return [content[start : start + size] for start in range(0, len(content), size)]


class Reply(NamedTuple):
    """Answers to consecutive requests, equal but for number and data, in packets without damage."""

    sequence: int
    """The number of the first answer."""
    kind: int
    """An ``abi.frames.Answer``, or a number that the contract does not have."""
    interrupt: bool
    content: bytes | memoryview
    """The packets of the answers, one behind the other, of equal size."""
    packets: int
    spans: Sequence[slice]
    """The places of the data of each answer in a packet, at least one."""

    @property
    def answers(self) -> int:
        """Return the number of answers."""
        return self.packets * len(self.spans)

    def packet(self, row: int) -> bytes | memoryview:
        """Return the bytes of a packet."""
        if self.packets == 1:
            return self.content
        size = len(self.content) // self.packets
        return memoryview(self.content)[row * size : (row + 1) * size]

    def rows(self) -> NDArray[np.uint8]:
        """Return the bytes of all packets, one packet in each row."""
        return np.frombuffer(self.content, np.uint8).reshape(self.packets, -1)


class LineCost(NamedTuple):
    """The cost of the requests that move a fragment, in frames and bytes."""

    frames: int
    room: int
    """Bytes that a board buffers of the requests."""
    request_bytes: int
    answer_bytes: int
    """Most bytes on the line of the requests, and of their answers."""


class Line(ABC):
    """A line's limits, and its encoding of requests as packets.

    A packet is the unit that the line carries or loses: one or more frames with consecutive
    numbers. Units: bytes and seconds.
    """

    sizes: FrameSizes
    noisy_packets: int
    """Most packets in flight after a loss: the board drops all that follow a lost one."""
    fragment_frames: int
    """Most frames of a fragment."""
    batch_packets: int
    """Most packets of a batch; of more than one, each carries ``fragment_frames`` full frames."""
    packet_bytes: int
    """Most bytes of a packet's requests, and of their answers; 0 if a packet is one frame."""
    packet_room: int
    """Bytes that a board buffers of a packet, beside its requests."""
    buffer_bytes: int
    """Most bytes that a board of the contract buffers."""
    answers_bytes: int
    """Most bytes of outstanding answers: the operating system buffers them, so that none is lost
    while the host does not read."""
    least_wait: float
    """The shortest retransmission timer: more than the latency of scheduler and line."""
    latency_bytes: int
    """Bytes whose time on the line is the fixed latency of a frame of any size."""
    has_session: bool
    """Whether every packet carries the number of its session: a board that was reset, or that
    another program uses, does not answer in it."""

    def frame_room(self, size: int) -> int:
        """Return the bytes that a board buffers of a packet of one frame with ``size`` bytes."""
        return self.packet_room + self.cost(_WRITE, size).room

    @abstractmethod
    def cost(self, request: Request, span: int) -> LineCost:
        """Return the cost of the requests of a fragment whose `Fragment.span` is ``span``."""

    @abstractmethod
    def encode(
        self, sequence: int, fragments: Sequence[Fragment], packets: int
    ) -> bytes | memoryview:
        """Return the packets of ``fragments``; the first request has number ``sequence``.

        More than one packet have a single fragment, which fills all of them.
        """

    @abstractmethod
    def encode_hello(self, sequence: int, number: int) -> bytes:
        """Return the packet of a HELLO with ``number`` as its address."""
