"""What a call transfers and has not sent yet, in the order in which it is sent."""

from collections import deque
from collections.abc import Iterable

from bitlane_rtl.abi import CONTROL_BASE, WORD_BYTES, Request

from .line import LEAST_BATCH, Fragment

_READ, _WRITE = Request.READ, Request.WRITE


class TransferQueue:
    """The ``writes`` and ``reads`` that are not sent yet: addresses, and bytes to send or fill.

    Writes keep their order. Those up to the last one to the control window precede all reads,
    because a write to the control window must wait until no read is unanswered. Then reads and
    writes alternate so that both directions of the line carry equally many bytes.

    A read of no bytes is a request too: its answer has the state of the interrupt line.
    """

    def __init__(
        self,
        writes: Iterable[tuple[int, memoryview]] = (),
        reads: Iterable[tuple[int, memoryview]] = (),
    ) -> None:
        self._writes = deque(writes)
        self._reads = deque(reads)
        # The number of writes to the control window.
        self._control = sum(address >= CONTROL_BASE for address, _ in self._writes)
        # Bytes of the requests so far, less the bytes of their answers.
        self._lead = 0

    def next(self, most: int, packets: int = 1) -> Fragment | None:
        """Return the next fragment, which spans ``most`` bytes or less; the same one until `pop`.

        If it begins with a whole word, and requests of the other kind do not alternate with it, it
        may also be ``LEAST_BATCH`` to ``packets`` times ``most`` bytes.
        """
        if self._writes and (self._control or self._lead <= 0 or not self._reads):
            queue, request = self._writes, _WRITE
            alternates = self._reads and not self._control
        elif self._reads:
            queue, request = self._reads, _READ
            alternates = self._writes
        else:
            return None
        address, content = queue[0]
        if lead := address % WORD_BYTES:
            # What follows begins with a whole word.
            most -= lead
        elif packets >= LEAST_BATCH and not alternates:
            full = min(packets, len(content) // most)
            most *= full if full >= LEAST_BATCH else 1
        return Fragment(request, address, content[:most])

    def fills(self, size: int) -> bool:
        """Return whether the next write has ``size`` bytes or more and begins with a whole word."""
        if not self._writes:
            return False
        address, content = self._writes[0]
        return len(content) >= size and address % WORD_BYTES == 0

    def pop(self, fragment: Fragment, lead: int) -> None:
        """Remove ``fragment``, which `next` returned and which has been sent.

        ``lead``: bytes on the line of its requests, less those of their answers.
        """
        queue = self._reads if fragment.request is _READ else self._writes
        address, content = queue[0]
        size = len(fragment.content)
        if size == len(content):
            queue.popleft()
            self._control -= fragment.request is _WRITE and address >= CONTROL_BASE
        else:
            queue[0] = (address + size, content[size:])
        self._lead += lead

    def clear(self) -> None:
        """Discard everything that is not sent yet."""
        self._writes.clear()
        self._reads.clear()
        self._control = 0
