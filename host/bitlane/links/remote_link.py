"""A link to a board over a line that may lose and damage what it carries.

It greets the board, and then moves requests and answers until all are done or the line has been
silent for too long. Every error of the line becomes a ``LinkError``; every wait has a deadline.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from secrets import randbits
from struct import Struct
from time import monotonic
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import HELLO_BYTES, LINK_VERSION, Answer, Request

from ..errors import LinkError, LinkVersionError
from .arq import Window
from .counts import Counts
from .line import Batch, Line, Reply
from .link import BytesLike, Link
from .timing import RetransmissionTimer
from .transfer_queue import TransferQueue

DEFAULT_TIMEOUT: Final = 10.0

_HELLO: Final = Struct("<BBHI")

_HELLO_BITS: Final = 8
"""Bits of the SEQUENCE of a HELLO: boards of every link version answer it."""

_GREETING: Final = 1 / 32
"""Share of the timeout in which a board must answer the first HELLO."""

_GREETING_GROWTH: Final = 1.5

_FEWEST_TRIES: Final = 4
"""Least number of transmissions of a request before the timeout."""

_UNANSWERED: Final = 3
"""Timeouts that may pass while sound frames come and none of them answers a request."""

WAITS: Final = tuple(4.0**k / 4096 for k in range(7))
"""Seconds for which a line waits for a byte, 0.2 ms to 1 s: few, because a change costs calls."""

_FIRST_PAUSE: Final = WAITS[0]
_LONGEST_PAUSE: Final = WAITS[3]
"""Longest time between two polls of the interrupt line, 16 ms."""

_SPACE: Final = 1 << 32


class _ClosedByErrors:
    """Closes ``link`` if the block raises.

    What is still on its way would be taken for the answer to something else.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self._link.close()


class RemoteLink(Link):
    """A link over a line, which it owns and closes in the end, also if the constructor raises.

    After ``LinkError`` the link is closed, unless only an access was refused; after an interrupt
    (``KeyboardInterrupt``) too. The board can then be opened again.

    Parameters
    ----------
    line : Line
        The line's limits and encoding.
    description : str
        The link's name in errors.
    timeout : float
        Seconds of silence after which an exchange fails.
    clock : Callable
        The time in seconds by which the line waits.

    Attributes
    ----------
    counts : Counts
        Statistics since the link was opened: bytes, requests, answers, damaged frames.

    Raises
    ------
    LinkError
        No board answers.
    LinkVersionError
        A board of another link version answers.
    """

    remote = True

    def __init__(
        self,
        line: Line,
        *,
        description: str,
        timeout: float = DEFAULT_TIMEOUT,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._line = line
        self.description = description
        self.counts = Counts()
        self._timeout = timeout
        self._clock = clock
        self._timer = RetransmissionTimer(line, timeout / _FEWEST_TRIES)
        self._interrupt = False
        with _ClosedByErrors(self):
            self._window = self._greet()

    # --- the line ---------------------------------------------------------------------------------

    @abstractmethod
    def _send(self, batches: Sequence[Batch]) -> None:
        """Send packets of requests. Raises ``LinkError`` if the line fails."""

    def _stream(self, transfers: TransferQueue) -> float | None:
        """Move long writes in a quicker way than `Window`, if the line has one.

        Returns when the last answer came; None if none came.
        """
        return None

    @abstractmethod
    def _receive(self, seconds: float) -> list[Reply]:
        """Return the answers that come, waiting for the first byte for up to ``seconds``."""

    @abstractmethod
    def _close_line(self) -> None:
        """Close the line. Raises nothing."""

    @abstractmethod
    def _nobody(self, tries: int) -> str:
        """Return the error after ``tries`` HELLOs without an answer."""

    @abstractmethod
    def _advice(self) -> str:
        """Return the end of the error when a board has fallen silent: likely causes, remedy."""

    @property
    def statistics(self) -> Counts:
        return self.counts

    # --- what a link does -------------------------------------------------------------------------

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        return self.exchange((), [(address, size)])[0]

    def write(self, address: int, data: BytesLike) -> None:
        self.exchange([(address, data)], ())

    def exchange(
        self,
        writes: Sequence[tuple[int, BytesLike]],
        reads: Sequence[tuple[int, int]],
    ) -> list[NDArray[np.uint8]]:
        sources = [(address, np.frombuffer(data, np.uint8).data) for address, data in writes]
        results = [np.empty(size, np.uint8) for _, size in reads]
        targets = [(reads[i][0], result.data) for i, result in enumerate(results)]
        for address, content in (*sources, *targets):
            self._expect_in_space(address, len(content))
        self._run(
            TransferQueue((x for x in sources if len(x[1])), (x for x in targets if len(x[1])))
        )
        return results

    def wait(self, timeout: float) -> bool:
        deadline = self._clock() + timeout
        pause = _FIRST_PAUSE
        while True:
            self._run(TransferQueue(reads=[(0, memoryview(b""))]))
            left = deadline - self._clock()
            if self._interrupt or left <= 0:
                return self._interrupt
            with _ClosedByErrors(self):
                # The port's own wait: on a simulated port no other makes time pass.
                for reply in self._receive(min(pause, left)):
                    self._window.take(reply)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._close_line()

    # --- requests and answers ---------------------------------------------------------------------

    def _run(self, transfers: TransferQueue) -> None:
        """Send all of ``transfers`` and wait for their answers."""
        if self.closed:
            raise LinkError(f"{self.description}: the link is closed; open it again")
        with _ClosedByErrors(self):
            self._converse(transfers)
        refused, self._window.refused = self._window.refused, None
        if refused:
            raise LinkError(
                f"{self.description}: the board refused the {refused.request.name} of"
                f" {len(refused.content)} bytes at {refused.address:#x}: not in its memory, nor"
                " whole words of its control window"
            )

    def _converse(self, transfers: TransferQueue) -> None:
        window, clock = self._window, self._clock
        before = self.counts.sent_bytes, self.counts.received_bytes
        # When the board last showed life, a sound frame came, and a request was answered.
        alive = heard = answered = clock()
        while True:
            if window.empty and (last := self._stream(transfers)) is not None:
                alive = heard = answered = last
            batches = window.batches(transfers)
            if batches:
                self._send(batches)
            elif window.empty:
                return
            due = alive + self._timer.seconds(window.line_bytes)
            received = self.counts.received_bytes
            replies = self._receive(min(due, self._given_up(heard, answered)) - clock())
            now = clock()
            if replies:
                done, spurious = window.answered, window.spurious
                line_bytes = [window.take(reply) for reply in replies]
                if all(line_bytes):
                    self._timer.measured(now - heard, sum(line_bytes))
                if window.spurious != spurious:
                    self._timer.spurious()
                if window.answered != done:
                    self._timer.reset_backoff()
                    answered = now
                heard = now
                if window.refused:
                    transfers.clear()
            if now >= self._given_up(heard, answered):
                raise LinkError(self._silence(before))
            if self.counts.received_bytes != received:
                alive = now
            elif now >= due:
                window.on_timeout()
                self._timer.back_off()
                alive = now

    def _given_up(self, heard: float, answered: float) -> float:
        """Return when an exchange fails, by its last sound frame and its last answered request."""
        return min(heard + self._timeout, answered + _UNANSWERED * self._timeout)

    # --- the greeting -----------------------------------------------------------------------------

    def _greet(self) -> Window:
        sequence = randbits(_HELLO_BITS)
        number = self._greeting_number()
        hello = self._line.encode_hello(sequence, number)
        start = self._clock()
        wait = self._timeout * _GREETING
        tries = 0
        while (now := self._clock()) < start + self._timeout:
            self._send([Batch(hello, len(hello))])
            tries += 1
            until = min(now + wait, start + self._timeout)
            wait *= _GREETING_GROWTH
            while (left := until - self._clock()) > 0:
                for reply in self._receive(left):
                    room = self._hello_room(reply, sequence, number)
                    if room is None:
                        continue
                    if tries == 1:
                        line_bytes = (
                            len(hello) + self._line.cost(Request.READ, HELLO_BYTES).answer_bytes
                        )
                        self._timer.measured(self._clock() - start, line_bytes)
                    return Window(self._line, self.description, sequence + 1, room, self.counts)
        raise LinkError(self._nobody(tries))

    def _hello_room(self, reply: Reply, sequence: int, number: int) -> int | None:
        """Return the bytes that the board buffers if this answers our HELLO, else None."""
        data = reply.packet(0)[reply.spans[0]]
        if reply.kind != Answer.DONE or reply.sequence != sequence or len(data) < HELLO_BYTES:
            return None
        version, _, room, echo = _HELLO.unpack_from(data)
        if echo != number:
            return None
        if version != LINK_VERSION:
            newer = "" if version < LINK_VERSION else "install the bitlane that built it, or "
            error = LinkVersionError(
                f"{self.description}: the board has version {version} of the link, this bitlane"
                f" version {LINK_VERSION}; {newer}build the board's bitstream with this bitlane"
            )
            error.version = version
            raise error
        least = self._line.frame_room(self._line.sizes.least)
        if room < least:
            raise LinkError(
                f"{self.description}: the board buffers {room} bytes; expected {least} or more;"
                " build its bitstream with this version of bitlane"
            )
        return int(room)

    def _greeting_number(self) -> int:
        """Return the number in a HELLO, by which its answer is recognised."""
        return randbits(32)

    # --- errors -----------------------------------------------------------------------------------

    def _expect_in_space(self, address: int, size: int) -> None:
        if address < 0 or address + size > _SPACE:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are outside the board's 32-bit"
                " addresses"
            )

    def _silence(self, before: tuple[int, int]) -> str:
        sent = self.counts.sent_bytes - before[0]
        came = self.counts.received_bytes - before[1]
        return (
            f"{self.description}: no answer for {self._timeout:g} s to {self._window.oldest()};"
            f" {sent} bytes were sent and {came} came since the call began, {self.counts.damaged}"
            f" frames were damaged since the link was opened; {self._advice()}"
        )
