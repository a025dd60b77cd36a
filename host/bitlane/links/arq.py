"""The ARQ of the serial line: a sliding window of requests with go-back-N.

Every request has a sequence number. The board executes requests in order; its EXPECTED answer is a
NAK that names the number it waits for. A request is sent again after a NAK, after a later one has
been answered, or when the retransmission timer expires.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import RECEIVE_BYTES, REPETITIONS, SEQUENCES, Answer, Request

from ..errors import LinkError
from .frames import Reply, answer_line_bytes, encode_request, request_line_bytes, request_room
from .timing import FrameSizer


class Fragment(NamedTuple):
    """The bytes that one request moves: ``content`` is sent, or receives the data of the answer."""

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
        # Bytes of the requests so far on the line, less the bytes of their answers.
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

    def pop(self, fragment: Fragment) -> None:
        """Remove ``fragment``, which `next` returned and which has been sent."""
        queue = self._reads if fragment.request is Request.READ else self._writes
        address, content = queue[0]
        size = len(fragment.content)
        if size == len(content):
            queue.popleft()
            self._control -= fragment.request is Request.WRITE and address >= CONTROL_BASE
        else:
            queue[0] = (address + size, content[size:])
        self._lead += request_line_bytes(fragment.sent) - answer_line_bytes(fragment.received)

    def clear(self) -> None:
        """Discard everything that is not sent yet."""
        self._writes.clear()
        self._reads.clear()
        self._control = 0


_ANSWER_BYTES: Final = 4000
"""Most bytes of outstanding answers: Linux buffers them for a terminal, so that none is lost
while the host does not read."""


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
    fragment: Fragment
    frame: bytes
    transmission: int
    """The number of the transmission in which this was last sent."""
    repeated: bool = False
    lost: bool = False

    @property
    def line_bytes(self) -> int:
        return len(self.frame) + answer_line_bytes(self.fragment.received)


class Window:
    """The requests in flight to the board ``name``; the next one has number ``sequence``.

    ``room``: bytes that the board buffers.
    """

    def __init__(self, name: str, sequence: int, room: int, counts: Counts) -> None:
        self._name = name
        self._next = sequence % SEQUENCES
        self._room = min(room, RECEIVE_BYTES)
        self._counts = counts
        self._sizer = FrameSizer(self._room)
        # By sequence number, in the order of the numbers.
        self._pending: dict[int, _Pending] = {}
        self._transmissions = 0
        # The last transmission before frames were made smaller: one loss makes them smaller once.
        self._shrunk_at = 0
        self._any_lost = False
        self._used_room = 0
        self._request_bytes = 0
        self._answer_bytes = 0
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
        first = next(iter(self._pending.values()))
        return self._request_bytes + answer_line_bytes(first.fragment.received)

    def oldest(self) -> str:
        """Describe the request that waits longest, for people."""
        for pending in self._pending.values():
            fragment = pending.fragment
            size = len(fragment.content)
            return f"a {fragment.request.name} of {size} bytes at {fragment.address:#x}"
        return "none"

    def frames(self, transfers: TransferQueue) -> list[bytes]:
        """Return the frames to send: lost requests, then as much of ``transfers`` as fits."""
        frames = self._repeat() if self._any_lost else []
        while (fragment := transfers.next(self._sizer.size)) is not None and self._fits(fragment):
            transfers.pop(fragment)
            frames.append(self._add(fragment))
        return frames

    def take(self, reply: Reply) -> int:
        """Process an answer.

        Returns the bytes that its request and it had on the line, if the request was sent once
        only; else 0.

        Raises ``LinkError`` if no board of this version answers so.
        """
        if reply.kind == Answer.EXPECTED:
            self._go_back_n(reply.sequence)
            return 0
        pending = self._pending.get(reply.sequence)
        if pending is None:
            # The request was repeated, and this is its second answer.
            if reply.sequence == self._timed_out:
                self.spurious += 1
            return 0
        fragment = pending.fragment
        if reply.kind == Answer.REFUSED:
            self.refused = self.refused or fragment
        elif reply.kind != Answer.DONE or len(reply.data) != fragment.received:
            raise LinkError(
                f"{self._name}: answer of kind {reply.kind} with {len(reply.data)} bytes to"
                f" {fragment.request.name} {reply.sequence}; expected kind {Answer.DONE:d} with"
                f" {fragment.received}: the board breaks the link's contract"
            )
        elif reply.data:
            fragment.content[:] = reply.data
        self._remove(reply.sequence)
        self._sizer.on_answer(len(fragment.content))
        for other in self._pending.values():
            if other.transmission < pending.transmission:
                self._lose(other)
        return 0 if pending.repeated else pending.line_bytes

    def on_timeout(self) -> None:
        """Mark the oldest request for retransmission: the timer has expired.

        One is enough: its answer, or EXPECTED, shows which others were lost.
        """
        for sequence, pending in self._pending.items():
            self._timed_out = sequence
            self._last_nak = None
            self._lose(pending)
            break

    def _fits(self, fragment: Fragment) -> bool:
        if not self._pending:
            return True
        count = (self._next - next(iter(self._pending))) % SEQUENCES
        return (
            count < REPETITIONS
            and len(self._pending) < self._sizer.frames
            and self._used_room + request_room(fragment.sent) <= self._room
            and self._answer_bytes + answer_line_bytes(fragment.received) <= _ANSWER_BYTES
            and (fragment.request is Request.READ or not self._overlaps_a_read(fragment))
        )

    def _overlaps_a_read(self, write: Fragment) -> bool:
        first, end = write.address, write.address + len(write.content)
        for pending in self._pending.values():
            fragment = pending.fragment
            if fragment.request is not Request.READ:
                continue
            if first >= CONTROL_BASE or (
                fragment.address < end and first < fragment.address + len(fragment.content)
            ):
                return True
        return False

    def _add(self, fragment: Fragment) -> bytes:
        data = bytes(fragment.content) if fragment.sent else b""
        frame = encode_request(
            fragment.request, self._next, fragment.address, len(fragment.content), data
        )
        self._transmissions += 1
        self._pending[self._next] = _Pending(fragment, frame, self._transmissions)
        self._next = (self._next + 1) % SEQUENCES
        self._used_room += request_room(fragment.sent)
        self._request_bytes += request_line_bytes(fragment.sent)
        self._answer_bytes += answer_line_bytes(fragment.received)
        self._counts.requests += 1
        return frame

    def _remove(self, sequence: int) -> None:
        fragment = self._pending.pop(sequence).fragment
        if sequence == self._last_nak:
            self._last_nak = None
        self._used_room -= request_room(fragment.sent)
        self._request_bytes -= request_line_bytes(fragment.sent)
        self._answer_bytes -= answer_line_bytes(fragment.received)
        self.answered += 1

    def _repeat(self) -> list[bytes]:
        frames: list[bytes] = []
        self._any_lost = False
        for position, pending in enumerate(self._pending.values()):
            if not pending.lost:
                continue
            if position >= self._sizer.frames:
                self._any_lost = True
                break
            self._transmissions += 1
            pending.transmission = self._transmissions
            pending.repeated = True
            pending.lost = False
            frames.append(pending.frame)
            if position == 0 and self._sizer.noisy:
                # The board sends one NAK only: if this is lost again, only the timer helps.
                frames.append(pending.frame)
        self._counts.repeated += len(frames)
        return frames

    def _go_back_n(self, expected: int) -> None:
        """Mark ``expected`` and all later requests as lost: the board waits for ``expected``."""
        behind = (self._next - expected) % SEQUENCES
        if behind > REPETITIONS:
            raise LinkError(
                f"{self._name}: the board expects request {expected}; the next one is"
                f" {self._next}: it was reset, or another program uses it; open it again"
            )
        if expected not in self._pending or expected == self._last_nak:
            # No request is missing, or it has been sent again. Sending it once more for each NAK
            # would multiply the repetitions on a noisy line.
            return
        self._last_nak = expected
        for sequence, pending in self._pending.items():
            if (self._next - sequence) % SEQUENCES <= behind:
                self._lose(pending)

    def _lose(self, pending: _Pending) -> None:
        if pending.transmission > self._shrunk_at:
            self._shrunk_at = self._transmissions
            self._sizer.on_loss()
        pending.lost = True
        self._any_lost = True
