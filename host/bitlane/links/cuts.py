"""What is to be moved, cut into parts that fit into a frame, in the order that fills the line.

Knows sizes and directions only, nothing of sequence numbers or answers.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import Request

from .frames import answer_line_bytes, request_line_bytes

__all__ = ["Cuts", "Part"]


class Part(NamedTuple):
    """What one request moves: ``content`` is sent, or is where the data of the answer go."""

    request: Request
    address: int
    content: memoryview

    @property
    def sent(self) -> int:
        """Bytes of data that the request carries."""
        return len(self.content) if self.request is Request.WRITE else 0

    @property
    def received(self) -> int:
        """Bytes of data that the answer carries."""
        return len(self.content) if self.request is Request.READ else 0


class Cuts:
    """What is left of ``writes`` and ``reads``: addresses, and bytes to send or to fill.

    Writes keep their order. Up to the last one to the control window they go before all reads:
    none of those may follow a read that is unanswered, so that it would stop the traffic in its
    midst. Then reads and writes take turns such that both directions of the line carry the same.

    A read of no bytes is a request too, which asks for the interrupt line.
    """

    def __init__(
        self,
        writes: Iterable[tuple[int, memoryview]] = (),
        reads: Iterable[tuple[int, memoryview]] = (),
    ) -> None:
        self._writes = deque(writes)
        self._reads = deque(reads)
        # Of the writes, so many are to the control window.
        self._control = sum(address >= CONTROL_BASE for address, _ in self._writes)
        # Bytes that the requests so far put on the line to the board, less those of the answers.
        self._lead = 0

    def next(self, most: int) -> Part | None:
        """The part to be moved next, of ``most`` bytes or less; the same until it is ``taken``."""
        if self._writes and (self._control or self._lead <= 0 or not self._reads):
            queue, request = self._writes, Request.WRITE
        elif self._reads:
            queue, request = self._reads, Request.READ
        else:
            return None
        address, content = queue[0]
        return Part(request, address, content[:most])

    def taken(self, part: Part) -> None:
        """``part``, which ``next`` gave, is on its way."""
        queue = self._reads if part.request is Request.READ else self._writes
        address, content = queue[0]
        size = len(part.content)
        if size == len(content):
            queue.popleft()
            self._control -= part.request is Request.WRITE and address >= CONTROL_BASE
        else:
            queue[0] = (address + size, content[size:])
        self._lead += request_line_bytes(part.sent) - answer_line_bytes(part.received)

    def drop(self) -> None:
        """Forget what is left."""
        self._writes.clear()
        self._reads.clear()
        self._control = 0
