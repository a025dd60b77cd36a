"""The description of a line: limits, and the encoding of requests."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi.frames import Request


class FrameSizes(NamedTuple):
    """Bytes of data of a frame. All are whole words, because the control window takes only words.

    ``start``: until the first answer. ``least``, ``most``: the bounds after losses and answers.
    """

    start: int
    least: int
    most: int


class Fragment(NamedTuple):
    """The bytes that consecutive requests move: ``content`` is sent, or receives their answers."""

    request: Request
    address: int
    content: memoryview

    @property
    def sent(self) -> int:
        """Bytes of data that the requests carry."""
        return len(self.content) if self.request is Request.WRITE else 0

    @property
    def received(self) -> int:
        """Bytes of data that the answers carry."""
        return len(self.content) if self.request is Request.READ else 0


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
        return self.packet_room + self.cost(Request.WRITE, size).room

    @abstractmethod
    def cost(self, request: Request, size: int) -> LineCost:
        """Return the cost of the requests that move ``size`` bytes."""

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
