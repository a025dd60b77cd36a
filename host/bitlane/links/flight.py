"""The requests in flight, and the bytes and packets that they take of the board and the line."""

from dataclasses import dataclass

from bitlane_rtl.abi import SEQUENCES

from .line import Fragment
from .pending import Pending


@dataclass(slots=True)
class Ledger:
    """Sums over the batches in flight."""

    packets: int = 0
    room: int = 0
    """Bytes that the board buffers."""
    request_bytes: int = 0
    answer_bytes: int = 0
    reads: int = 0
    """Packets with a read."""

    def add(self, pending: Pending) -> None:
        """Count the packets of ``pending``, which are about to be sent."""
        self._change(pending, pending.packets)

    def remove(self, pending: Pending) -> None:
        """Discount the packets of ``pending``, which have been answered."""
        self._change(pending, -pending.packets)

    def _change(self, pending: Pending, packets: int) -> None:
        self.packets += packets
        self.room += packets * pending.room
        self.request_bytes += packets * pending.request_bytes
        self.answer_bytes += packets * pending.answer_bytes
        self.reads += packets * pending.reads


class InFlight:
    """The batches in flight, in the order of their numbers; the next request has ``sequence``."""

    def __init__(self, sequence: int) -> None:
        self.next = sequence % SEQUENCES
        """The number of the next request."""
        self.batches: list[Pending] = []
        self.ledger = Ledger()

    @property
    def requests(self) -> int:
        """Return the distance from the first request without an answer to the next request."""
        return (self.next - self.batches[0].first) % SEQUENCES if self.batches else 0

    @property
    def line_bytes(self) -> int:
        """Return the most bytes that pass on the line before the next answer arrives."""
        if not self.batches:
            return 0
        return self.ledger.request_bytes + self.batches[0].answer_bytes

    def add(self, pending: Pending) -> None:
        """Append a batch, whose first request has the next number."""
        self.batches.append(pending)
        self.ledger.add(pending)
        self.next = (self.next + pending.packets * pending.frames) % SEQUENCES

    def remove(self, pending: Pending) -> None:
        """Release a batch after the last answer to its requests."""
        self.batches.remove(pending)
        self.ledger.remove(pending)

    def find(self, number: int) -> Pending | None:
        """Return the batch of request ``number`` if that has no answer yet."""
        for pending in self.batches:
            if (number - pending.first) % SEQUENCES < pending.packets * pending.frames:
                return None if number in pending.answered else pending
        return None

    def isolate(self, pending: Pending, number: int, most: int) -> Pending:
        """Return a batch of up to ``most`` packets of ``pending``, from that of ``number`` on."""
        before = pending.offset(number) // pending.frames
        if before:
            self._cut(pending, before)
        return self._cut(pending, most) if most < pending.packets else pending

    def _cut(self, pending: Pending, packets: int) -> Pending:
        """Make a batch of the first ``packets`` packets of ``pending``."""
        head = pending.cut(packets)
        self.batches.insert(self.batches.index(pending), head)
        return head

    def first_unanswered(self) -> int:
        """Return the number of the first request without an answer. Some batch is in flight."""
        pending = self.batches[0]
        number = pending.first
        while number in pending.answered:
            number = (number + 1) % SEQUENCES
        return number

    def is_read_before(self, write: Fragment) -> bool:
        """Return whether a read in flight must be answered before ``write`` is sent."""
        return self.ledger.reads > 0 and any(each.is_read_before(write) for each in self.batches)
