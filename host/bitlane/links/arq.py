"""The ARQ of serial line and network: a sliding window of requests with go-back-N.

Every request has a sequence number. The board executes requests in order; its EXPECTED answer is a
NAK that names the number it waits for. A request is sent again after a NAK, after a later one has
been answered, or when the retransmission timer expires.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import (
    REPETITIONS,
    REQUEST_HEADER_BYTES,
    SEQUENCES,
    Answer,
    Request,
)

from ..errors import LinkError
from .line import Fragment, Line, LineCost, Reply
from .timing import FrameSizer


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

    def next(self, most: int) -> Fragment | None:
        """Return the next fragment, of ``most`` bytes or less; the same one until `pop`."""
        if self._writes and (self._control or self._lead <= 0 or not self._reads):
            queue, request = self._writes, Request.WRITE
        elif self._reads:
            queue, request = self._reads, Request.READ
        else:
            return None
        address, content = queue[0]
        return Fragment(request, address, content[:most])

    def pop(self, fragment: Fragment, lead: int) -> None:
        """Remove ``fragment``, which `next` returned and which has been sent.

        ``lead``: bytes on the line of its requests, less those of their answers.
        """
        queue = self._reads if fragment.request is Request.READ else self._writes
        address, content = queue[0]
        size = len(fragment.content)
        if size == len(content):
            queue.popleft()
            self._control -= fragment.request is Request.WRITE and address >= CONTROL_BASE
        else:
            queue[0] = (address + size, content[size:])
        self._lead += lead

    def clear(self) -> None:
        """Discard everything that is not sent yet."""
        self._writes.clear()
        self._reads.clear()
        self._control = 0


@dataclass(slots=True)
class Counts:
    """Statistics of a link since it was opened."""

    sent_bytes: int = 0
    received_bytes: int = 0
    requests: int = 0
    repeated: int = 0
    """Retransmissions."""
    answers: int = 0
    """Frames that arrived undamaged."""
    damaged: int = 0


@dataclass(slots=True, eq=False)
class _Pending:
    """A packet until all of its requests have been answered."""

    first: int
    transmission: int
    """The number of the transmission in which this was last sent."""
    fragments: list[Fragment] = field(default_factory=list)
    packet: bytes | bytearray = b""
    count: int = 0
    """The number of requests."""
    answered: set[int] = field(default_factory=set)
    """The numbers of the answered requests, if not all answers came together."""
    room: int = 0
    request_bytes: int = 0
    answer_bytes: int = 0
    reads: int = 0
    repeated: bool = False
    lost: bool = False

    @property
    def line_bytes(self) -> int:
        """Return the bytes on the line of all requests and answers."""
        return self.request_bytes + self.answer_bytes

    def frame(self, number: int, most: int) -> Fragment:
        """Return the part of a fragment that request ``number`` moves, ``most`` bytes or less."""
        index = (number - self.first) % SEQUENCES
        for request, address, content in self.fragments:
            frames = -(-len(content) // most) or 1
            if index < frames:
                start = index * most
                return Fragment(request, address + start, content[start : start + most])
            index -= frames
        raise ValueError(f"expected the number of a request of this packet, got {number}")


class Window:
    """The requests in flight to the board ``name``; the next one has number ``sequence``.

    ``room``: bytes that the board buffers.
    """

    def __init__(self, line: Line, name: str, sequence: int, room: int, counts: Counts) -> None:
        self._line = line
        self._name = name
        self._next = sequence % SEQUENCES
        self._room = min(room, line.buffer_bytes)
        self._counts = counts
        self._sizer = FrameSizer(line, self._room)
        # By the number of the first request, in the order of the numbers.
        self._pending: dict[int, _Pending] = {}
        self._transmissions = 0
        # The last transmission before frames were made smaller: one loss makes them smaller once.
        self._shrunk_at = 0
        self._any_lost = False
        self._used_room = 0
        self._request_bytes = 0
        self._answer_bytes = 0
        self._reads = 0
        self.answered = 0
        """Requests that have been answered."""
        self.spurious = 0
        """Spurious retransmissions: requests repeated after a timeout and answered twice."""
        self._timed_out: int | None = None
        # The number of the last NAK, until it is answered or times out.
        self._last_nak: int | None = None
        self.refused: Fragment | None = None
        """The first fragment that the board refused, until the link resets it."""

    @property
    def empty(self) -> bool:
        """Return whether every request has been answered."""
        return not self._pending

    @property
    def line_bytes(self) -> int:
        """Return the most bytes that pass on the line before the next answer arrives."""
        for pending in self._pending.values():
            return self._request_bytes + pending.answer_bytes
        return 0

    def oldest(self) -> str:
        """Describe the request that waits longest, for people."""
        for pending in self._pending.values():
            fragment = pending.frame(self._oldest(pending), self._line.sizes.most)
            size = len(fragment.content)
            return f"a {fragment.request.name} of {size} bytes at {fragment.address:#x}"
        return "none"

    def packets(self, transfers: TransferQueue) -> list[bytes | bytearray]:
        """Return the packets to send: lost ones, then as much of ``transfers`` as fits."""
        packets = self._repeat() if self._any_lost else []
        while (pending := self._gather(transfers)) is not None:
            packets.append(pending.packet)
        return packets

    def take(self, reply: Reply) -> int:
        """Process an answer.

        Returns the bytes that its request and it had on the line, if the request was sent once
        only; else 0.

        Raises ``LinkError`` if no board of this version answers so.
        """
        sequence, kind, _, data, more = reply
        if kind == Answer.EXPECTED:
            self._go_back_n(sequence)
            return 0
        pending = self._pending.get(sequence)
        if (
            pending is not None
            and pending.count == 1 + len(more)
            and kind == Answer.DONE
            and not pending.answered
        ):
            self._take_packet(pending, (data, *more))
            return 0 if pending.repeated else pending.line_bytes
        line_bytes = self._take_one(sequence, kind, data)
        for k, each in enumerate(more, 1):
            line_bytes += self._take_one((sequence + k) % SEQUENCES, kind, each)
        return line_bytes

    def on_timeout(self) -> None:
        """Mark the oldest packet for retransmission: the timer has expired.

        One is enough: its answer, or EXPECTED, shows which others were lost.
        """
        for pending in self._pending.values():
            self._timed_out = self._oldest(pending)
            self._last_nak = None
            self._lose(pending)
            break

    # --- answers ----------------------------------------------------------------------------------

    def _take_packet(self, pending: _Pending, answers: Sequence[bytes | memoryview]) -> None:
        """Take the answers DONE to all requests of ``pending``."""
        most, number, size = self._line.sizes.most, 0, 0
        for fragment in pending.fragments:
            request, _, content = fragment
            left = len(content)
            size += left
            start = 0
            while True:
                data = answers[number]
                expected = (left if left < most else most) if request is Request.READ else 0
                if len(data) != expected:
                    raise self._broken(pending.first + number, Answer.DONE, data, fragment)
                if expected:
                    content[start : start + expected] = data
                number += 1
                start += most
                left -= most
                if left <= 0:
                    break
        self._finish(pending, pending.first, number, size)
        self._release(pending)

    def _take_one(self, sequence: int, kind: int, data: bytes | memoryview) -> int:
        """Take one answer of a packet; return the bytes that it and its request had."""
        pending = self._find(sequence)
        if pending is None:
            # The request was repeated, and this is its second answer.
            if sequence == self._timed_out:
                self.spurious += 1
            return 0
        fragment = pending.frame(sequence, self._line.sizes.most)
        if kind == Answer.REFUSED:
            self.refused = self.refused or fragment
        elif kind != Answer.DONE or len(data) != fragment.received:
            raise self._broken(sequence, kind, data, fragment)
        elif data:
            fragment.content[:] = data
        pending.answered.add(sequence)
        self._finish(pending, sequence, 1, len(fragment.content))
        if len(pending.answered) == pending.count:
            self._release(pending)
        return 0 if pending.repeated else pending.line_bytes // pending.count

    def _find(self, sequence: int) -> _Pending | None:
        """Return the packet of request ``sequence`` if that has no answer yet."""
        for pending in self._pending.values():
            if (sequence - pending.first) % SEQUENCES < pending.count:
                return None if sequence in pending.answered else pending
        return None

    def _oldest(self, pending: _Pending) -> int:
        """Return the number of the first request of ``pending`` without an answer."""
        number = pending.first
        while number in pending.answered:
            number = (number + 1) % SEQUENCES
        return number

    def _broken(
        self, sequence: int, kind: int, data: bytes | memoryview, fragment: Fragment
    ) -> LinkError:
        return LinkError(
            f"{self._name}: answer of kind {kind} with {len(data)} bytes to"
            f" {fragment.request.name} {sequence % SEQUENCES}; expected kind {Answer.DONE:d} with"
            f" {fragment.received}: the board breaks the link's contract"
        )

    def _finish(self, pending: _Pending, sequence: int, count: int, size: int) -> None:
        """Count the answers to ``count`` requests, which moved ``size`` bytes."""
        if self._last_nak is not None and (self._last_nak - sequence) % SEQUENCES < count:
            self._last_nak = None
        self.answered += count
        self._sizer.on_answer(size)
        # Transmissions are in the order of the numbers until a packet is repeated.
        if pending.repeated or next(iter(self._pending)) != pending.first:
            for other in self._pending.values():
                if other.transmission < pending.transmission:
                    self._lose(other)

    def _release(self, pending: _Pending) -> None:
        """Release a packet after the last answer to its requests."""
        del self._pending[pending.first]
        self._used_room -= pending.room
        self._request_bytes -= pending.request_bytes
        self._answer_bytes -= pending.answer_bytes
        self._reads -= pending.reads

    # --- sending ----------------------------------------------------------------------------------

    def _gather(self, transfers: TransferQueue) -> _Pending | None:
        """Make the next packet of ``transfers``; return None if there is none, or no room."""
        line = self._line
        most = self._sizer.size * line.fragment_frames
        pending = None
        while (fragment := transfers.next(most)) is not None:
            cost = line.cost(fragment.request, len(fragment.content))
            if not self._fits(fragment, cost, pending):
                break
            transfers.pop(fragment, cost.request_bytes - cost.answer_bytes)
            if pending is None:
                self._transmissions += 1
                pending = _Pending(self._next, self._transmissions)
                self._pending[self._next] = pending
            self._add(pending, fragment, cost)
            longest = max(pending.request_bytes, pending.answer_bytes)
            if longest + REQUEST_HEADER_BYTES > line.packet_bytes:
                break
        if pending is not None:
            pending.packet = line.encode(pending.first, pending.fragments)
            pending.room += line.packet_room
            self._used_room += line.packet_room
        return pending

    def _fits(self, fragment: Fragment, cost: LineCost, pending: _Pending | None) -> bool:
        """Return whether ``fragment`` may be sent, in the packet ``pending`` or a new one."""
        if not self._pending:
            return True
        line = self._line
        if pending is None:
            if len(self._pending) >= self._sizer.packets:
                return False
        elif (
            pending.request_bytes + cost.request_bytes > line.packet_bytes
            or pending.answer_bytes + cost.answer_bytes > line.packet_bytes
        ):
            return False
        count = (self._next - next(iter(self._pending))) % SEQUENCES
        return (
            count + cost.frames <= REPETITIONS
            and self._used_room + cost.room + line.packet_room <= self._room
            and self._answer_bytes + cost.answer_bytes <= line.answers_bytes
            and (
                not self._reads
                or fragment.request is Request.READ
                or not self._overlaps_a_read(fragment)
            )
        )

    def _overlaps_a_read(self, write: Fragment) -> bool:
        first, end = write.address, write.address + len(write.content)
        for pending in self._pending.values():
            if not pending.reads:
                continue
            for request, address, content in pending.fragments:
                if request is Request.READ and (
                    first >= CONTROL_BASE or (address < end and first < address + len(content))
                ):
                    return True
        return False

    def _add(self, pending: _Pending, fragment: Fragment, cost: LineCost) -> None:
        frames, room, request_bytes, answer_bytes = cost
        pending.fragments.append(fragment)
        pending.count += frames
        pending.room += room
        pending.request_bytes += request_bytes
        pending.answer_bytes += answer_bytes
        self._next = (self._next + frames) % SEQUENCES
        self._used_room += room
        self._request_bytes += request_bytes
        self._answer_bytes += answer_bytes
        self._counts.requests += frames
        if fragment.request is Request.READ:
            pending.reads += 1
            self._reads += 1

    # --- losses -----------------------------------------------------------------------------------

    def _repeat(self) -> list[bytes | bytearray]:
        packets: list[bytes | bytearray] = []
        self._any_lost = False
        for position, pending in enumerate(self._pending.values()):
            if not pending.lost:
                continue
            if position >= self._sizer.packets:
                self._any_lost = True
                break
            self._transmissions += 1
            pending.transmission = self._transmissions
            pending.repeated = True
            pending.lost = False
            packets.append(pending.packet)
            if position == 0 and self._sizer.noisy:
                # The board sends one NAK only: if this is lost again, only the timer helps.
                packets.append(pending.packet)
        self._counts.repeated += len(packets)
        return packets

    def _go_back_n(self, expected: int) -> None:
        """Mark ``expected`` and all later requests as lost: the board waits for ``expected``."""
        behind = (self._next - expected) % SEQUENCES
        if behind > REPETITIONS:
            raise LinkError(
                f"{self._name}: the board expects request {expected}; the next one is"
                f" {self._next}: it was reset, or another program uses it; open it again"
            )
        if self._find(expected) is None or expected == self._last_nak:
            # No request is missing, or it has been sent again. Sending it once more for each NAK
            # would multiply the repetitions on a noisy line.
            return
        self._last_nak = expected
        for pending in self._pending.values():
            last = pending.first + pending.count - 1
            if (self._next - last) % SEQUENCES <= behind:
                self._lose(pending)

    def _lose(self, pending: _Pending) -> None:
        if pending.transmission > self._shrunk_at:
            self._shrunk_at = self._transmissions
            self._sizer.on_loss()
        pending.lost = True
        self._any_lost = True
