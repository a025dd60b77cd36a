"""The network link: a link to a board over UDP, in a session of its own."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EACCES, ECONNREFUSED, EHOSTUNREACH, EMSGSIZE, ENETUNREACH
from os import getpid
from secrets import randbelow, randbits
from time import monotonic
from typing import Final
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import BUSY, SESSION_SECONDS, TAKE_OVER, Answer

from ..errors import BoardInUseError, LinkError
from .datagram_socket import DatagramSocket
from .datagrams import DatagramLine
from .keep_alive import KEEP_SECONDS, KeepAlive
from .line import Batch, Reply
from .link import BytesLike
from .remote_link import DEFAULT_TIMEOUT, RemoteLink
from .transfer_queue import TransferQueue
from .write_stream import STREAM_PACKETS, WriteStream

_TRIES: Final = 3
_ALONE: Final = 1 / 32
"""Share of the timeout, and most seconds, that a GOODBYE or the HELLO after silence waits for its
answer before it is sent again."""
_LONGEST_ALONE: Final = 0.1

_KEPT_WAIT: Final = 0.05
"""Seconds for which a request that keeps the session waits for its answer. A call waits as long."""

_LEAVING_WAIT: Final = 1.0
"""Most seconds for which the end of Python waits for a call of another thread."""


class UdpLink(RemoteLink):
    """A link over ``socket``. ``RemoteLink`` says more.

    ``take_over``: end the session of another host, if one is alive. Threads may share the link.

    Raises ``BoardInUseError`` if another host's session is alive.
    """

    def __init__(
        self,
        socket: DatagramSocket,
        *,
        description: str = "network",
        take_over: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._socket = socket
        self._take_over = take_over
        self._session = DatagramLine(1 + randbelow((1 << 32) - 1))
        # A HELLO may have started the session even if no answer to it arrives.
        self._started = True
        self._unread: list[Batch] = []
        self._keeper = KeepAlive()
        self._kept_bytes = 0
        finalize(self, _leave, socket, self._session, self._keeper, getpid())
        super().__init__(self._session, description=description, timeout=timeout, clock=clock)

    def exchange(
        self,
        writes: Sequence[tuple[int, BytesLike]],
        reads: Sequence[tuple[int, int]],
    ) -> list[NDArray[np.uint8]]:
        with self._keeper.turn:
            return super().exchange(writes, reads)

    def wait(self, timeout: float) -> bool:
        with self._keeper.turn:
            return super().wait(timeout)

    def close(self) -> None:
        with self._keeper.turn:
            self._keeper.stop()
            super().close()

    def _stream(self, transfers: TransferQueue) -> float | None:
        window, line = self._window, self._session
        last = None
        while (ahead := window.ahead(transfers, STREAM_PACKETS)) is not None:
            pending, room = ahead
            answers = line.answers(pending.first, pending.packets)
            stream = WriteStream(pending, room, answers)
            last = self._flow(stream) or last
            complete = stream.complete
            window.record(pending, stream.sent, stream.answered, transfers)
            if not complete:
                break
        return last

    def _flow(self, stream: WriteStream) -> float | None:
        """Move ``stream`` as long as every answer is the next one, and comes in time.

        What comes instead is read by `_receive`. Returns when the last answer came.
        """
        clock, timer = self._clock, self._timer
        ahead = stream.ahead
        packet_bytes = ahead.request_bytes + ahead.answer_bytes
        wait = timer.seconds(stream.window * packet_bytes)
        last, slowest = None, 0.0
        before = clock()
        while not stream.complete:
            if (batch := stream.batch()) is not None:
                self._send((batch,))
            packets, self._unread = stream.take(self._arrived(wait))
            if packets:
                last = clock()
                # The others would only lower the estimate.
                if last - before > slowest:
                    slowest = last - before
                    timer.measured(slowest, packets * packet_bytes)
                    wait = timer.seconds(stream.window * packet_bytes)
                before = last
            if self._unread or not packets:
                break
        if stream.answered:
            self._interrupt = False
            self.counts.received_bytes += stream.received_bytes
            self.counts.answers += stream.answered * ahead.frames
        return last

    def _arrived(self, seconds: float) -> list[Batch]:
        try:
            return self._socket.receive(seconds)
        except OSError as error:
            raise self._failure(error) from error

    def _send(self, batches: Sequence[Batch]) -> None:
        try:
            self._socket.send(batches)
        except OSError as error:
            raise self._failure(error) from error
        for batch in batches:
            self.counts.sent_bytes += len(batch.content)

    def _receive(self, seconds: float) -> list[Reply]:
        batches = self._unread or self._arrived(seconds)
        self._unread = []
        counts = self.counts
        replies: list[Reply] = []
        for content, size in batches:
            found, damaged = self._session.decode(content, size)
            counts.received_bytes += len(content)
            counts.damaged += damaged
            replies += found
        for reply in replies:
            counts.answers += reply.answers
            self._interrupt = reply.interrupt
        return replies

    def _close_line(self) -> None:
        try:
            with suppress(LinkError):
                if self._started:
                    self._ask_alone(self._session.encode_goodbye(number := randbits(8)), number)
        finally:
            self._socket.close()

    def disown(self) -> None:
        super().disown()
        # The session is the parent's: `close` must not end it. The parent's thread, which this
        # process has not, may hold the lock.
        self._started = False
        self._keeper = KeepAlive()

    # --- the session ------------------------------------------------------------------------------

    def keep_alive(self, seconds: float = KEEP_SECONDS) -> None:
        """Keep the session alive from now on: call `keep` every ``seconds``, in a thread."""
        self._keeper.start(self, seconds)

    def keep(self) -> None:
        """Send a READ of no bytes, unless something was sent since the last call.

        The board drops it if another host has taken it over, or if it was restarted. Without an
        answer, the request stays the oldest one: it is sent again, also by the next call of the
        link, which reports why no answer arrives. Raises nothing.
        """
        used = self.counts.sent_bytes != self._kept_bytes
        if not (used or self.closed):
            window = self._window
            window.on_timeout()
            look = [(0, memoryview(b""))] if window.empty else []
            with suppress(LinkError):
                self._send(window.batches(TransferQueue(reads=look)))
                for reply in self._receive(_KEPT_WAIT):
                    window.take(reply)
        self._kept_bytes = self.counts.sent_bytes

    def _greeting_number(self) -> int:
        return randbits(32) & ~(1 << TAKE_OVER) | self._take_over << TAKE_OVER

    def _hello_room(self, reply: Reply, sequence: int, number: int) -> int | None:
        if reply.kind == BUSY and reply.sequence == sequence:
            self._started = False
            raise BoardInUseError(
                f"{self.description}: another host uses the board; wait until it has closed it, or"
                f" {2 * SESSION_SECONDS} s after it stopped; option takeover=1 takes the board over"
            )
        return super()._hello_room(reply, sequence, number)

    def _ask_alone(self, packet: bytes, sequence: int) -> int | None:
        """Send HELLO or GOODBYE a few times; return the kind of its answer, or None."""
        wait = min(self._timeout * _ALONE, _LONGEST_ALONE)
        for _ in range(_TRIES):
            self._send([Batch(packet, len(packet))])
            until = self._clock() + wait
            while (left := until - self._clock()) > 0:
                for reply in self._receive(left):
                    if reply.sequence == sequence and reply.kind in (Answer.DONE, BUSY):
                        return reply.kind
        return None

    # --- errors -----------------------------------------------------------------------------------

    def _failure(self, error: OSError) -> LinkError:
        return LinkError(f"{self.description}: {reason(error)}")

    def _nobody(self, tries: int) -> str:
        start = f"{self.description}: no answer to {tries} HELLOs within {self._timeout:g} s; "
        if self.counts.answers:
            return start + (
                f"{self.counts.answers} answers came, and none of them answers a HELLO: is a"
                " bitlane board of this version at this address?"
            )
        if self.counts.received_bytes:
            return start + (
                f"{self.counts.damaged} datagrams came that are not answers: is a bitlane board at"
                " this address and port?"
            )
        return start + (
            "nothing came at all: is the board powered and configured, and is this its address?"
        )

    def _advice(self) -> str:
        # The board answers a HELLO of its session anew. BUSY: another host has one, or had one.
        sequence = randbits(8)
        number = randbits(32) & ~(1 << TAKE_OVER)
        try:
            kind = self._ask_alone(self._session.encode_hello(sequence, number), sequence)
        except LinkError as error:
            return str(error)
        if kind == BUSY:
            return "another host has taken the board over; option takeover=1 takes it back"
        if kind is None:
            return "a new greeting has no answer either; check cable and power, then open it again"
        return (
            "the board answers a new greeting: it was restarted, or another host used it in"
            " between; open it again"
        )


def _leave(socket: DatagramSocket, session: DatagramLine, keeper: KeepAlive, process: int) -> None:
    """End the session of a link that is not closed when it is dropped, or when Python ends.

    A child process that drops its copy of the link does not end its parent's session. The socket of
    a link that is closed sends nothing.
    """
    if process == getpid():
        keeper.stop()
        # A request behind the GOODBYE would keep the board busy.
        idle = keeper.turn.acquire(timeout=_LEAVING_WAIT)
        packet = session.encode_goodbye(randbits(8))
        with suppress(OSError):
            socket.send([Batch(packet, len(packet))])
        if idle:
            keeper.turn.release()
    socket.close()


def reason(error: OSError) -> str:
    """Return why the network carries no datagram, and the remedy."""
    if error.errno == ECONNREFUSED:
        return "nothing listens at this address and port; expected a board; check both"
    if error.errno in (EHOSTUNREACH, ENETUNREACH):
        return (
            f"the network has no way to this address: {error.strerror}; check address, cable and"
            " power, and that this computer has an address in the same network"
        )
    if error.errno == EACCES:
        return f"the system refuses this address: {error.strerror}; expected that of one board"
    if error.errno == EMSGSIZE:
        return "the network carries less than 1472 bytes in a datagram; expected an MTU of 1500"
    return f"the network failed: {error}; open it again"
