"""The sliding window of the serial line: fragments, sequence numbers, go-back-N, and answers."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from bitlane.errors import LinkError
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import RECEIVE_BYTES, REPETITIONS, SEQUENCES, Answer, Request

from .frames import Reply, answer_line_bytes, encode_request, request_line_bytes, request_room
from .timing import Pace


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


_ANSWER_BYTES: Final = 4000
"""Answers on their way at most, in bytes on the line: what Linux holds for a terminal, so that a
host that does not look for a while loses none."""


@dataclass(slots=True)
class Counts:
    """What a link has seen since it was opened."""

    sent_bytes: int = 0
    received_bytes: int = 0
    requests: int = 0
    repeated: int = 0
    """Requests that were sent once more."""
    answers: int = 0
    """Frames that arrived undamaged."""
    damaged: int = 0


@dataclass(slots=True, eq=False)
class _Pending:
    part: Part
    frame: bytes
    transmission: int
    """Counts what was sent; of the last time that this was."""
    repeated: bool = False
    lost: bool = False

    @property
    def line_bytes(self) -> int:
        return len(self.frame) + answer_line_bytes(self.part.received)


class Window:
    """The requests in flight to the board ``name``, whose next sequence number is ``sequence``.

    ``room`` is what the board buffers.
    """

    def __init__(self, name: str, sequence: int, room: int, counts: Counts) -> None:
        self._name = name
        self._next = sequence % SEQUENCES
        self._room = min(room, RECEIVE_BYTES)
        self._counts = counts
        self._pace = Pace(self._room)
        # By sequence number, in the order of the numbers.
        self._pending: dict[int, _Pending] = {}
        self._transmissions = 0
        # A loss among what was sent up to here has been answered by smaller frames.
        self._slowed = 0
        self._any_lost = False
        self._used_room = 0
        self._request_bytes = 0
        self._answer_bytes = 0
        self.answered = 0
        """Requests that have been answered."""
        self.hasty = 0
        """Requests that were sent again after silence, and have been answered twice."""
        self._doubted: int | None = None
        # What the board asked for last, until that is answered or given up.
        self._asked_for: int | None = None
        self.refused: Part | None = None
        """The first part that the board refused, until it is taken away."""

    @property
    def empty(self) -> bool:
        """Whether every request has been answered."""
        return not self._pending

    @property
    def line_bytes(self) -> int:
        """Most bytes that pass on the line before the next answer has come."""
        if not self._pending:
            return 0
        first = next(iter(self._pending.values()))
        return self._request_bytes + answer_line_bytes(first.part.received)

    def oldest(self) -> str:
        """The request that waits longest, for people."""
        for pending in self._pending.values():
            part = pending.part
            return f"a {part.request.name} of {len(part.content)} bytes at {part.address:#x}"
        return "none"

    def frames(self, cuts: Cuts) -> list[bytes]:
        """What to send now: requests that were lost, then as much of ``cuts`` as may go."""
        frames = self._repeat() if self._any_lost else []
        while (part := cuts.next(self._pace.size)) is not None and self._may_go(part):
            cuts.taken(part)
            frames.append(self._add(part))
        return frames

    def take(self, reply: Reply) -> int:
        """Note what an answer tells.

        Returns the bytes that its request and it had on the line, if the request was sent once
        only; else 0.

        Raises ``LinkError`` if no board of this version answers so.
        """
        if reply.kind == Answer.EXPECTED:
            self._go_back(reply.sequence)
            return 0
        pending = self._pending.get(reply.sequence)
        if pending is None:
            # The request had been repeated, and this is the second answer.
            if reply.sequence == self._doubted:
                self.hasty += 1
            return 0
        part = pending.part
        if reply.kind == Answer.REFUSED:
            self.refused = self.refused or part
        elif reply.kind != Answer.DONE or len(reply.data) != part.received:
            raise LinkError(
                f"{self._name}: answer of kind {reply.kind} with {len(reply.data)} bytes to"
                f" {part.request.name} {reply.sequence}; expected kind {Answer.DONE:d} with"
                f" {part.received}: the board breaks the link's contract"
            )
        elif reply.data:
            part.content[:] = reply.data
        self._remove(reply.sequence)
        self._pace.passed(len(part.content))
        for other in self._pending.values():
            if other.transmission < pending.transmission:
                self._lose(other)
        return 0 if pending.repeated else pending.line_bytes

    def doubt(self) -> None:
        """No answer came for long: send the oldest request again.

        One is enough: its answer, or EXPECTED, tells what became of the others.
        """
        for sequence, pending in self._pending.items():
            self._doubted = sequence
            self._asked_for = None
            self._lose(pending)
            break

    def _may_go(self, part: Part) -> bool:
        if not self._pending:
            return True
        count = (self._next - next(iter(self._pending))) % SEQUENCES
        return (
            count < REPETITIONS
            and len(self._pending) < self._pace.frames
            and self._used_room + request_room(part.sent) <= self._room
            and self._answer_bytes + answer_line_bytes(part.received) <= _ANSWER_BYTES
            and (part.request is Request.READ or not self._changes_a_read(part))
        )

    def _changes_a_read(self, write: Part) -> bool:
        first, end = write.address, write.address + len(write.content)
        for pending in self._pending.values():
            part = pending.part
            if part.request is not Request.READ:
                continue
            if first >= CONTROL_BASE or (
                part.address < end and first < part.address + len(part.content)
            ):
                return True
        return False

    def _add(self, part: Part) -> bytes:
        data = bytes(part.content) if part.sent else b""
        frame = encode_request(part.request, self._next, part.address, len(part.content), data)
        self._transmissions += 1
        self._pending[self._next] = _Pending(part, frame, self._transmissions)
        self._next = (self._next + 1) % SEQUENCES
        self._used_room += request_room(part.sent)
        self._request_bytes += request_line_bytes(part.sent)
        self._answer_bytes += answer_line_bytes(part.received)
        self._counts.requests += 1
        return frame

    def _remove(self, sequence: int) -> None:
        part = self._pending.pop(sequence).part
        if sequence == self._asked_for:
            self._asked_for = None
        self._used_room -= request_room(part.sent)
        self._request_bytes -= request_line_bytes(part.sent)
        self._answer_bytes -= answer_line_bytes(part.received)
        self.answered += 1

    def _repeat(self) -> list[bytes]:
        frames: list[bytes] = []
        self._any_lost = False
        for position, pending in enumerate(self._pending.values()):
            if not pending.lost:
                continue
            if position >= self._pace.frames:
                self._any_lost = True
                break
            self._transmissions += 1
            pending.transmission = self._transmissions
            pending.repeated = True
            pending.lost = False
            frames.append(pending.frame)
            if position == 0 and self._pace.noisy:
                # The board asks once only: if this is lost again, silence follows.
                frames.append(pending.frame)
        self._counts.repeated += len(frames)
        return frames

    def _go_back(self, expected: int) -> None:
        """The board waits for ``expected``: neither that nor what followed has been taken."""
        behind = (self._next - expected) % SEQUENCES
        if behind > REPETITIONS:
            raise LinkError(
                f"{self._name}: the board expects request {expected}; the next one is"
                f" {self._next}: it was reset, or another program uses it; open it again"
            )
        if expected not in self._pending or expected == self._asked_for:
            # Nothing is missing, or it has been sent again meanwhile: were that not believed to
            # arrive, each damaged repetition would bring more of them.
            return
        self._asked_for = expected
        for sequence, pending in self._pending.items():
            if (self._next - sequence) % SEQUENCES <= behind:
                self._lose(pending)

    def _lose(self, pending: _Pending) -> None:
        if pending.transmission > self._slowed:
            self._slowed = self._transmissions
            self._pace.lost()
        pending.lost = True
        self._any_lost = True
