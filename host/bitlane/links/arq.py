"""The ARQ of serial line and network: a sliding window of requests with go-back-N.

Every request has a sequence number. The board executes requests in order; its EXPECTED answer is a
NAK that names the number it waits for. A request is sent again after a NAK, after a later one has
been answered, or when the retransmission timer expires.
"""

from dataclasses import dataclass

import numpy as np

from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import REPETITIONS, REQUEST_HEADER_BYTES, SEQUENCES, Answer, Request

from ..errors import LinkError
from .line import Batch, Fragment, Line, LineCost, Reply
from .pending import Pending
from .timing import FrameSizer
from .transfer_queue import TransferQueue

# Python 3.11 takes 0.1 us to look up a member of an enumeration.
_READ, _WRITE = Request.READ, Request.WRITE
_DONE, _EXPECTED, _REFUSED = Answer.DONE, Answer.EXPECTED, Answer.REFUSED


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
        # In the order of the numbers.
        self._pending: list[Pending] = []
        self._packets = 0
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
        if not self._pending:
            return 0
        return self._request_bytes + self._pending[0].answer_bytes

    def oldest(self) -> str:
        """Describe the request that waits longest, for people."""
        if not self._pending:
            return "none"
        fragment = self._pending[0].frame(self._oldest(), self._line.sizes.most)
        size = len(fragment.content)
        return f"a {fragment.request.name} of {size} bytes at {fragment.address:#x}"

    def batches(self, transfers: TransferQueue) -> list[Batch]:
        """Return the packets to send: lost ones, then as much of ``transfers`` as fits."""
        batches = self._repeat() if self._any_lost else []
        while (pending := self._gather(transfers)) is not None:
            batches.append(pending.batch)
        return batches

    def take(self, reply: Reply) -> int:
        """Process answers.

        Returns the bytes that their requests and they had on the line, if each request was sent
        once only; else 0.

        Raises ``LinkError`` if no board of this version answers so.
        """
        number, kind, _, _, rows, spans = reply
        if kind == _EXPECTED:
            self._go_back_n(number)
            return 0
        answers, row = len(spans), 0
        once, line_bytes = True, 0
        while row < rows:
            pending = self._find(number)
            if (
                pending is not None
                and kind == _DONE
                and answers == pending.frames
                and not pending.answered
                and (number - pending.first) % SEQUENCES % answers == 0
            ):
                if pending.packets > 1:
                    pending = self._alone(pending, number, rows - row)
                packets = pending.packets
                self._take_packets(pending, reply, row)
                once = once and not pending.repeated
                line_bytes += packets * (pending.request_bytes + pending.answer_bytes)
            else:
                packets = 1
                packet = reply.packet(row)
                for k, span in enumerate(spans):
                    each = (number + k) % SEQUENCES
                    bytes_of_one = self._take_one(each, kind, packet[span])
                    once = once and bytes_of_one > 0
                    line_bytes += bytes_of_one
            row += packets
            number = (number + packets * answers) % SEQUENCES
        return line_bytes if once else 0

    def on_timeout(self) -> None:
        """Mark the oldest packet for retransmission: the timer has expired.

        One is enough: its answer, or EXPECTED, shows which others were lost.
        """
        if self._pending:
            oldest = self._pending[0]
            self._timed_out = self._oldest()
            self._last_nak = None
            self._lose(self._alone(oldest, oldest.first, 1))

    # --- answers ----------------------------------------------------------------------------------

    def _take_packets(self, pending: Pending, reply: Reply, row: int) -> None:
        """Take the answers DONE to all requests of ``pending``, from packet ``row`` on."""
        most, packets, k, moved = self._line.sizes.most, pending.packets, 0, 0
        packet, spans = reply.packet(row), reply.spans
        for fragment in pending.fragments:
            request, _, content = fragment
            moved += len(content)
            size = len(content) // packets
            for start in range(0, size or 1, most):
                span = spans[k]
                expected = min(most, size - start) if request is _READ else 0
                if span.stop - span.start != expected:
                    number = (pending.first + k) % SEQUENCES
                    raise self._broken(number, _DONE, packet[span], pending.frame(number, most))
                if expected and packets == 1:
                    content[start : start + expected] = packet[span]
                elif expected:
                    target = np.frombuffer(content, np.uint8).reshape(packets, size)
                    source = reply.rows()[row : row + packets, span]
                    target[:, start : start + expected] = source
                k += 1
        self._finish(pending, pending.first, packets * k, moved)
        self._release(pending)

    def _take_one(self, number: int, kind: int, data: bytes | memoryview) -> int:
        """Take one answer of a packet; return the bytes that it and its request had."""
        pending = self._find(number)
        if pending is None:
            # The request was repeated, and this is its second answer.
            if number == self._timed_out:
                self.spurious += 1
            return 0
        pending = self._alone(pending, number, 1)
        fragment = pending.frame(number, self._line.sizes.most)
        if kind == _REFUSED:
            self.refused = self.refused or fragment
        elif kind != _DONE or len(data) != fragment.received:
            raise self._broken(number, kind, data, fragment)
        elif data:
            fragment.content[:] = data
        pending.answered.add(number)
        self._finish(pending, number, 1, len(fragment.content))
        if len(pending.answered) == pending.frames:
            self._release(pending)
        return 0 if pending.repeated else pending.line_bytes // pending.frames

    def _find(self, number: int) -> Pending | None:
        """Return the batch of request ``number`` if that has no answer yet."""
        for pending in self._pending:
            if (number - pending.first) % SEQUENCES < pending.packets * pending.frames:
                return None if number in pending.answered else pending
        return None

    def _alone(self, pending: Pending, number: int, most: int) -> Pending:
        """Return a batch of up to ``most`` packets of ``pending``, from that of ``number`` on."""
        before = pending.offset(number) // pending.frames
        if before:
            self._cut(pending, before)
        return self._cut(pending, most) if most < pending.packets else pending

    def _cut(self, pending: Pending, packets: int) -> Pending:
        """Make a batch of the first ``packets`` packets of ``pending``."""
        head = pending.cut(packets)
        self._pending.insert(self._pending.index(pending), head)
        return head

    def _oldest(self) -> int:
        """Return the number of the first request without an answer."""
        pending = self._pending[0]
        number = pending.first
        while number in pending.answered:
            number = (number + 1) % SEQUENCES
        return number

    def _broken(
        self, sequence: int, kind: int, data: bytes | memoryview, fragment: Fragment
    ) -> LinkError:
        return LinkError(
            f"{self._name}: answer of kind {kind} with {len(data)} bytes to"
            f" {fragment.request.name} {sequence}; expected kind {_DONE:d} with"
            f" {fragment.received}: the board breaks the link's contract"
        )

    def _finish(self, pending: Pending, sequence: int, count: int, size: int) -> None:
        """Count the answers to ``count`` requests, which moved ``size`` bytes."""
        if self._last_nak is not None and (self._last_nak - sequence) % SEQUENCES < count:
            self._last_nak = None
        self.answered += count
        self._sizer.on_answer(size)
        # Transmissions are in the order of the numbers until a packet is repeated.
        if pending.repeated or self._pending[0] is not pending:
            for other in self._pending:
                if other.transmission < pending.transmission:
                    self._lose(other)

    def _release(self, pending: Pending) -> None:
        """Release a batch after the last answer to its requests."""
        self._pending.remove(pending)
        packets = pending.packets
        self._packets -= packets
        self._used_room -= packets * pending.room
        self._request_bytes -= packets * pending.request_bytes
        self._answer_bytes -= packets * pending.answer_bytes
        self._reads -= packets * pending.reads

    # --- sending ----------------------------------------------------------------------------------

    def _gather(self, transfers: TransferQueue) -> Pending | None:
        """Make the next batch of ``transfers``; return None if there is none, or no room."""
        line = self._line
        most = self._sizer.size * line.fragment_frames
        pending = None
        while (fragment := transfers.next(most)) is not None:
            cost = line.cost(fragment.request, len(fragment.content))
            if pending is None:
                packets = self._fitting(fragment, cost)
                if packets < 1:
                    break
                if packets > 1:
                    fragment = transfers.next(most, packets) or fragment
                    packets = len(fragment.content) // most or 1
                pending = Pending(self._next, self._transmissions + 1, packets)
                pending.room = line.packet_room
                self._pending.append(pending)
                self._packets += packets
                self._transmissions += packets
                self._used_room += packets * line.packet_room
            elif not self._joins(fragment, cost, pending):
                break
            transfers.pop(fragment, pending.packets * (cost.request_bytes - cost.answer_bytes))
            self._add(pending, fragment, cost)
            longest = max(pending.request_bytes, pending.answer_bytes)
            if pending.packets > 1 or longest + REQUEST_HEADER_BYTES > line.packet_bytes:
                break
        if pending is not None:
            content = line.encode(pending.first, pending.fragments, pending.packets)
            pending.batch = Batch(content, len(content) // pending.packets)
        return pending

    def _fitting(self, fragment: Fragment, cost: LineCost) -> int:
        """Return how many packets may be sent, each with only a fragment like ``fragment``."""
        line, first = self._line, not self._pending
        # Whether a packet has room for other requests, too.
        shared = 2 * max(cost.request_bytes, cost.answer_bytes) <= line.packet_bytes
        if first and shared:
            return 1
        is_write = fragment.request is _WRITE
        in_flight = 0 if first else (self._next - self._pending[0].first) % SEQUENCES
        fitting = min(
            1 if shared or (is_write and self._reads) else line.batch_packets,
            self._sizer.packets - self._packets,
            (REPETITIONS - in_flight) // cost.frames,
            (self._room - self._used_room) // (cost.room + line.packet_room),
            (line.answers_bytes - self._answer_bytes) // cost.answer_bytes,
        )
        if first:
            return max(1, fitting)
        if is_write and self._reads and fitting > 0 and self._overlaps_a_read(fragment):
            return 0
        return fitting

    def _joins(self, fragment: Fragment, cost: LineCost, pending: Pending) -> bool:
        """Return whether ``fragment`` may be sent in the packet ``pending``, too."""
        line = self._line
        in_flight = (self._next - self._pending[0].first) % SEQUENCES
        return (
            pending.request_bytes + cost.request_bytes <= line.packet_bytes
            and pending.answer_bytes + cost.answer_bytes <= line.packet_bytes
            and in_flight + cost.frames <= REPETITIONS
            and self._used_room + cost.room <= self._room
            and self._answer_bytes + cost.answer_bytes <= line.answers_bytes
            and (
                not self._reads or fragment.request is _READ or not self._overlaps_a_read(fragment)
            )
        )

    def _overlaps_a_read(self, write: Fragment) -> bool:
        first, end = write.address, write.address + len(write.content)
        for pending in self._pending:
            if not pending.reads:
                continue
            for request, address, content in pending.fragments:
                if request is _READ and (
                    first >= CONTROL_BASE or (address < end and first < address + len(content))
                ):
                    return True
        return False

    def _add(self, pending: Pending, fragment: Fragment, cost: LineCost) -> None:
        """Add ``fragment`` to the packets of ``pending``; each has ``cost`` for its part of it."""
        packets = pending.packets
        frames, room, request_bytes, answer_bytes = cost
        pending.fragments.append(fragment)
        pending.frames += frames
        pending.room += room
        pending.request_bytes += request_bytes
        pending.answer_bytes += answer_bytes
        self._next = (self._next + packets * frames) % SEQUENCES
        self._used_room += packets * room
        self._request_bytes += packets * request_bytes
        self._answer_bytes += packets * answer_bytes
        self._counts.requests += packets * frames
        if fragment.request is _READ and not pending.reads:
            pending.reads = True
            self._reads += packets

    # --- losses -----------------------------------------------------------------------------------

    def _repeat(self) -> list[Batch]:
        batches: list[Batch] = []
        self._any_lost = False
        position = 0
        for pending in self._pending:
            if pending.lost:
                if position >= self._sizer.packets:
                    self._any_lost = True
                    break
                pending.transmission = self._transmissions + 1
                self._transmissions += pending.packets
                pending.repeated = True
                pending.lost = False
                # The board sends one NAK only: if this is lost again, only the timer helps.
                copies = 2 if position == 0 and self._sizer.noisy else 1
                batches += [pending.batch] * copies
                self._counts.repeated += copies * pending.packets
            position += pending.packets
        return batches

    def _go_back_n(self, expected: int) -> None:
        """Mark ``expected`` and all later requests as lost: the board waits for ``expected``."""
        behind = (self._next - expected) % SEQUENCES
        # In a session, this number is only late.
        if behind > REPETITIONS and not self._line.has_session:
            raise LinkError(
                f"{self._name}: the board expects request {expected}; the next one is"
                f" {self._next}: it was reset, or another program uses it; open it again"
            )
        pending = self._find(expected)
        if pending is None or expected == self._last_nak:
            # No request is missing, or it has been sent again. Sending it once more for each NAK
            # would multiply the repetitions on a noisy line.
            return
        self._last_nak = expected
        first = self._alone(pending, expected, pending.packets)
        for later in self._pending[self._pending.index(first) :]:
            self._lose(later)

    def _lose(self, pending: Pending) -> None:
        if pending.transmission + pending.packets > self._shrunk_at + 1:
            self._shrunk_at = self._transmissions
            self._sizer.on_loss()
        pending.lost = True
        self._any_lost = True
