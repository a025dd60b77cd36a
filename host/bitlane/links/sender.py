"""The sending direction of the ARQ: new requests as far as they fit, and retransmissions."""

from bitlane_rtl.abi import REPETITIONS, REQUEST_HEADER_BYTES, SEQUENCES, Request

from .counts import Counts
from .flight import InFlight
from .line import LEAST_BATCH, Batch, Fragment, Line, LineCost
from .pending import Pending
from .timing import FrameSizer
from .transfer_queue import TransferQueue

# Python 3.11 takes 0.1 us to look up a member of an enumeration.
_READ, _WRITE = Request.READ, Request.WRITE


class Sender:
    """Forms the packets to send and puts them into ``flight``.

    ``room``: bytes that the board buffers.
    """

    def __init__(self, line: Line, flight: InFlight, room: int, counts: Counts) -> None:
        self._line = line
        self._flight = flight
        self._counts = counts
        self._room = min(room, line.buffer_bytes)
        self.sizer = FrameSizer(line, self._room)
        self._transmissions = 0
        # The last transmission before frames were made smaller: one loss makes them smaller once.
        self._shrunk_at = 0

    def batches(self, transfers: TransferQueue) -> list[Batch]:
        """Return the packets to send: lost ones, then as much of ``transfers`` as fits."""
        batches = self._repeat()
        while (pending := self._gather(transfers)) is not None:
            batches.append(pending.batch)
            if pending.fragments[-1].lead and self._is_long(transfers):
                # The rest is sent `ahead` when these bytes before its first word are answered.
                break
        return batches

    def lose(self, pending: Pending) -> None:
        """Mark ``pending`` for retransmission."""
        if pending.transmission + pending.packets > self._shrunk_at + 1:
            self._shrunk_at = self._transmissions
            self.sizer.on_loss()
        pending.lost = True

    def ahead(self, transfers: TransferQueue, packets: int) -> tuple[Pending, int] | None:
        """Encode up to ``packets`` packets of the next write, and send and record nothing.

        Returns them, and how many of them may be unanswered; None if the next write does not fill
        some packets, or reads alternate with it, or a request is in flight.
        """
        if self._flight.batches or not self._is_long(transfers):
            return None
        line = self._line
        most = self.sizer.size * line.fragment_frames
        fragment = transfers.next(most, packets)
        assert fragment is not None
        count = len(fragment.content) // most
        cost = line.cost(_WRITE, most)
        pending = Pending(self._flight.next, self._transmissions + 1, count, room=line.packet_room)
        pending.append(fragment, cost)
        pending.batch = self._encoded(pending)
        return pending, self._fitting(fragment, cost)

    def record(self, ahead: Pending, sent: int, answered: int, transfers: TransferQueue) -> None:
        """Record that ``sent`` packets of ``ahead`` were sent, the first ``answered`` answered."""
        if not sent:
            return
        flight = self._flight
        pending = ahead.cut(sent) if sent < ahead.packets else ahead
        self._transmissions += sent
        self._counts.requests += sent * pending.frames
        transfers.pop(pending.fragments[0], sent * (pending.request_bytes - pending.answer_bytes))
        if answered < sent:
            if answered:
                pending.cut(answered)
            flight.next = pending.first
            flight.add(pending)
        else:
            flight.next = (pending.first + sent * pending.frames) % SEQUENCES

    def _is_long(self, transfers: TransferQueue) -> bool:
        """Return whether the next write fills some packets, and no reads alternate with it."""
        most = self.sizer.size * self._line.fragment_frames
        if self._line.batch_packets < LEAST_BATCH or not transfers.fills(LEAST_BATCH * most):
            return False
        fragment = transfers.next(most, LEAST_BATCH)
        return (
            fragment is not None
            and fragment.request is _WRITE
            and len(fragment.content) >= LEAST_BATCH * most
        )

    def _encoded(self, pending: Pending) -> Batch:
        content = self._line.encode(pending.first, pending.fragments, pending.packets)
        return Batch(content, len(content) // pending.packets)

    def _gather(self, transfers: TransferQueue) -> Pending | None:
        """Make the next batch of ``transfers``; return None if there is none, or no room."""
        line = self._line
        most = self.sizer.size * line.fragment_frames
        pending = None
        while (fragment := transfers.next(most)) is not None:
            cost = line.cost(fragment.request, fragment.span)
            if pending is None:
                packets = self._fitting(fragment, cost)
                if packets < 1:
                    break
                if packets > 1:
                    fragment = transfers.next(most, packets) or fragment
                    packets = len(fragment.content) // most or 1
                first = self._flight.next
                pending = Pending(first, self._transmissions + 1, packets, room=line.packet_room)
                self._transmissions += packets
            elif not self._joins(fragment, cost, pending):
                break
            transfers.pop(fragment, pending.packets * (cost.request_bytes - cost.answer_bytes))
            pending.append(fragment, cost)
            longest = max(pending.request_bytes, pending.answer_bytes)
            if pending.packets > 1 or longest + REQUEST_HEADER_BYTES > line.packet_bytes:
                break
        if pending is not None:
            pending.batch = self._encoded(pending)
            self._flight.add(pending)
            self._counts.requests += pending.packets * pending.frames
        return pending

    def _fitting(self, fragment: Fragment, cost: LineCost) -> int:
        """Return how many packets may be sent, each with only a fragment like ``fragment``."""
        line, ledger, first = self._line, self._flight.ledger, not self._flight.batches
        # Whether a packet has room for other requests, too.
        shared = 2 * max(cost.request_bytes, cost.answer_bytes) <= line.packet_bytes
        if first and shared:
            return 1
        is_write = fragment.request is _WRITE
        fitting = min(
            1 if shared or (is_write and ledger.reads) else line.batch_packets,
            self.sizer.packets - ledger.packets,
            (REPETITIONS - self._flight.requests) // cost.frames,
            (self._room - ledger.room) // (cost.room + line.packet_room),
            (line.answers_bytes - ledger.answer_bytes) // cost.answer_bytes,
        )
        if first:
            return max(1, fitting)
        if is_write and fitting > 0 and self._flight.is_read_before(fragment):
            return 0
        return fitting

    def _joins(self, fragment: Fragment, cost: LineCost, pending: Pending) -> bool:
        """Return whether ``fragment`` may be sent in the packet ``pending``, too."""
        line, flight, ledger = self._line, self._flight, self._flight.ledger
        return (
            pending.request_bytes + cost.request_bytes <= line.packet_bytes
            and pending.answer_bytes + cost.answer_bytes <= line.packet_bytes
            and flight.requests + pending.frames + cost.frames <= REPETITIONS
            and ledger.room + pending.room + cost.room <= self._room
            and ledger.answer_bytes + pending.answer_bytes + cost.answer_bytes <= line.answers_bytes
            and (
                fragment.request is _READ
                or not (flight.is_read_before(fragment) or pending.is_read_before(fragment))
            )
        )

    def _repeat(self) -> list[Batch]:
        batches: list[Batch] = []
        position = 0
        for pending in self._flight.batches:
            if pending.lost:
                if position >= self.sizer.packets:
                    break
                pending.transmission = self._transmissions + 1
                self._transmissions += pending.packets
                pending.repeated = True
                pending.lost = False
                # The board sends one NAK only: if this is lost again, only the timer helps.
                copies = 2 if position == 0 and self.sizer.noisy else 1
                batches += [pending.batch] * copies
                self._counts.repeated += copies * pending.packets
            position += pending.packets
        return batches
