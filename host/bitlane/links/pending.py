"""A batch of packets in flight: what it moves, what it takes of the line, what is answered."""

from dataclasses import dataclass, field, replace

from bitlane_rtl.abi import CONTROL_BASE, SEQUENCES, Request

from .line import Batch, Fragment, LineCost

# Python 3.11 takes 0.1 us to look up a member of an enumeration.
_READ = Request.READ
_NOT_ENCODED = Batch(b"", 1)


@dataclass(slots=True, eq=False)
class Pending:
    """A batch of packets until all of its requests have been answered.

    A batch of more than one packet has one fragment, and no request of it has been answered.
    """

    first: int
    transmission: int
    """The number of the transmission in which the first packet was last sent; each of the others
    has the next one."""
    packets: int
    fragments: list[Fragment] = field(default_factory=list)
    batch: Batch = _NOT_ENCODED
    frames: int = 0
    """Requests of a packet; the costs are a packet's, too."""
    room: int = 0
    request_bytes: int = 0
    answer_bytes: int = 0
    answered: set[int] = field(default_factory=set)
    """The numbers of the answered requests, if not all answers came together."""
    reads: bool = False
    repeated: bool = False
    lost: bool = False

    @property
    def line_bytes(self) -> int:
        """Return the bytes on the line of all requests and answers."""
        return self.packets * (self.request_bytes + self.answer_bytes)

    def offset(self, number: int) -> int:
        """Return the position of request ``number`` in the batch."""
        return (number - self.first) % SEQUENCES

    def frame(self, number: int, most: int) -> Fragment:
        """Return the part of a fragment that request ``number`` moves, ``most`` bytes or less."""
        index = self.offset(number)
        for fragment in self.fragments:
            if index < (requests := fragment.requests(most)):
                return fragment.part(index, most)
            index -= requests
        raise ValueError(f"expected the number of a request of this batch, got {number}")

    def append(self, fragment: Fragment, cost: LineCost) -> None:
        """Add ``fragment``; each packet has ``cost`` for its part of it."""
        frames, room, request_bytes, answer_bytes = cost
        self.fragments.append(fragment)
        self.frames += frames
        self.room += room
        self.request_bytes += request_bytes
        self.answer_bytes += answer_bytes
        self.reads = self.reads or fragment.request is _READ

    def is_read_before(self, write: Fragment) -> bool:
        """Return whether a read of the batch must be answered before ``write`` is sent.

        It does if both share a word, and always before a write to the control window.
        """
        if not self.reads:
            return False
        first, end = write.address - write.lead, write.address + len(write.content)
        return any(
            each.request is _READ
            and (
                first >= CONTROL_BASE
                or (each.address - each.lead < end and first < each.address + len(each.content))
            )
            for each in self.fragments
        )

    def cut(self, packets: int) -> "Pending":
        """Remove the first ``packets`` packets, less than all, and return them."""
        ((request, address, content),) = self.fragments
        size = packets * (len(content) // self.packets)
        sent, packet_bytes = memoryview(self.batch.content), self.batch.size
        head = replace(
            self,
            packets=packets,
            fragments=[Fragment(request, address, content[:size])],
            batch=Batch(sent[: packets * packet_bytes], packet_bytes),
            answered=set(),
        )
        self.first = (self.first + packets * self.frames) % SEQUENCES
        self.transmission += packets
        self.packets -= packets
        self.fragments = [Fragment(request, address + size, content[size:])]
        self.batch = Batch(sent[packets * packet_bytes :], packet_bytes)
        return head
