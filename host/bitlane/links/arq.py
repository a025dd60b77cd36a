"""The ARQ of serial line and network: a sliding window of requests with go-back-N.

Every request has a sequence number. The board executes requests in order; its EXPECTED answer is a
NAK that names the number it waits for. A request is sent again after a NAK, after a later one has
been answered, or when the retransmission timer expires.
"""

import numpy as np

from bitlane_rtl.abi import REPETITIONS, SEQUENCES, Answer, Request

from ..errors import LinkError
from .counts import Counts
from .flight import InFlight
from .line import Batch, Fragment, Line, Reply
from .pending import Pending
from .sender import Sender
from .transfer_queue import TransferQueue

# Python 3.11 takes 0.1 us to look up a member of an enumeration.
_READ = Request.READ
_DONE, _EXPECTED, _REFUSED = Answer.DONE, Answer.EXPECTED, Answer.REFUSED


class Window:
    """The window of the board ``name``: sends by a `Sender`, and takes the answers.

    The next request has the number ``sequence``. ``room``: bytes that the board buffers.
    """

    def __init__(self, line: Line, name: str, sequence: int, room: int, counts: Counts) -> None:
        self._line = line
        self._name = name
        self._flight = InFlight(sequence)
        self._sender = Sender(line, self._flight, room, counts)
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
        return not self._flight.batches

    @property
    def line_bytes(self) -> int:
        """Return the most bytes that pass on the line before the next answer arrives."""
        return self._flight.line_bytes

    def oldest(self) -> str:
        """Describe the request that waits longest, for people."""
        if self.empty:
            return "none"
        number = self._flight.first_unanswered()
        fragment = self._flight.batches[0].frame(number, self._line.sizes.most)
        size = len(fragment.content)
        return f"a {fragment.request.name} of {size} bytes at {fragment.address:#x}"

    def batches(self, transfers: TransferQueue) -> list[Batch]:
        """Return the packets to send: lost ones, then as much of ``transfers`` as fits."""
        return self._sender.batches(transfers)

    def ahead(self, transfers: TransferQueue, packets: int) -> tuple[Pending, int] | None:
        """Encode up to ``packets`` packets of the next write; `Sender.ahead` says more."""
        return self._sender.ahead(transfers, packets)

    def record(self, ahead: Pending, sent: int, answered: int, transfers: TransferQueue) -> None:
        """Record that ``sent`` packets of ``ahead`` were sent, the first ``answered`` answered."""
        self.answered += answered * ahead.frames
        self._sender.record(ahead, sent, answered, transfers)

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
            pending = self._flight.find(number)
            if (
                pending is not None
                and kind == _DONE
                and answers == pending.frames
                and not pending.answered
                and (number - pending.first) % SEQUENCES % answers == 0
            ):
                if pending.packets > 1:
                    pending = self._flight.isolate(pending, number, rows - row)
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
        if not self.empty:
            oldest = self._flight.batches[0]
            self._timed_out = self._flight.first_unanswered()
            self._last_nak = None
            self._sender.lose(self._flight.isolate(oldest, oldest.first, 1))

    # --- answers ----------------------------------------------------------------------------------

    def _take_packets(self, pending: Pending, reply: Reply, row: int) -> None:
        """Take the answers DONE to all requests of ``pending``, from packet ``row`` on."""
        most, packets, k, moved = self._line.sizes.most, pending.packets, 0, 0
        packet, spans = reply.packet(row), reply.spans
        for fragment in pending.fragments:
            request, address, content = fragment
            size = len(content) // packets
            moved += len(content)
            one = fragment if packets == 1 else Fragment(request, address, content[:size])
            for index in range(one.requests(most)):
                part, span = one.part(index, most), spans[k]
                received, start = span.stop - span.start, span.start + part.lead
                if received != part.received:
                    number = (pending.first + k) % SEQUENCES
                    raise self._broken(number, _DONE, received, part)
                if received and packets == 1:
                    part.content[:] = packet[start : start + len(part.content)]
                elif received:
                    target = np.frombuffer(content, np.uint8).reshape(packets, size)
                    source = reply.rows()[row : row + packets, span]
                    target[:, index * most : index * most + received] = source
                k += 1
        self._finish(pending, pending.first, packets * k, moved)
        self._flight.remove(pending)

    def _take_one(self, number: int, kind: int, data: bytes | memoryview) -> int:
        """Take one answer of a packet; return the bytes that it and its request had."""
        pending = self._flight.find(number)
        if pending is None:
            # The request was repeated, and this is its second answer.
            if number == self._timed_out:
                self.spurious += 1
                # Further answers are copies that the network made.
                self._timed_out = None
            return 0
        pending = self._flight.isolate(pending, number, 1)
        fragment = pending.frame(number, self._line.sizes.most)
        if kind == _REFUSED:
            self.refused = self.refused or fragment
        elif kind != _DONE or len(data) != fragment.received:
            raise self._broken(number, kind, len(data), fragment)
        elif data:
            fragment.content[:] = data[fragment.lead :][: len(fragment.content)]
        pending.answered.add(number)
        self._finish(pending, number, 1, len(fragment.content))
        if len(pending.answered) == pending.frames:
            self._flight.remove(pending)
        return 0 if pending.repeated else pending.line_bytes // pending.frames

    def _broken(self, sequence: int, kind: int, size: int, fragment: Fragment) -> LinkError:
        return LinkError(
            f"{self._name}: answer of kind {kind} with {size} bytes to"
            f" {fragment.request.name} {sequence}; expected kind {_DONE:d} with"
            f" {fragment.received}: the board breaks the link's contract"
        )

    def _finish(self, pending: Pending, sequence: int, count: int, size: int) -> None:
        """Count the answers to ``count`` requests, which moved ``size`` bytes."""
        if self._last_nak is not None and (self._last_nak - sequence) % SEQUENCES < count:
            self._last_nak = None
        self.answered += count
        self._sender.sizer.on_answer(size)
        # Transmissions are in the order of the numbers until a packet is repeated.
        if pending.repeated or self._flight.batches[0] is not pending:
            for other in self._flight.batches:
                if other.transmission < pending.transmission:
                    self._sender.lose(other)

    def _go_back_n(self, expected: int) -> None:
        """Mark ``expected`` and all later requests as lost: the board waits for ``expected``."""
        behind = (self._flight.next - expected) % SEQUENCES
        # In a session, this number is only late.
        if behind > REPETITIONS and not self._line.has_session:
            raise LinkError(
                f"{self._name}: the board expects request {expected}; the next one is"
                f" {self._flight.next}: it was reset, or another program uses it; open it again"
            )
        pending = self._flight.find(expected)
        if pending is None or expected == self._last_nak:
            # No request is missing, or it has been sent again. Sending it once more for each NAK
            # would multiply the repetitions on a noisy line.
            return
        self._last_nak = expected
        first = self._flight.isolate(pending, expected, pending.packets)
        for later in self._flight.batches[self._flight.batches.index(first) :]:
            self._sender.lose(later)
