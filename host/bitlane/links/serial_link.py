"""The serial link: a link to a board over a port like pyserial's."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Protocol

from ..errors import LinkError
from .line import Batch, Reply
from .remote_link import DEFAULT_TIMEOUT, WAITS, RemoteLink
from .serial_frames import SERIAL, Deframer, decode_answer

_SAMPLE_BYTES: Final = 16


class Port(Protocol):
    """The part of pyserial's ``Serial`` that the link uses. Methods may raise ``OSError``."""

    timeout: Any
    """Seconds after which ``read`` returns the bytes received so far, perhaps none."""

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read at once."""
        ...

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes."""
        ...

    def write(self, data: bytes, /) -> object:
        """Send all of ``data``."""
        ...

    def close(self) -> None: ...


class SerialLink(RemoteLink):
    """A link over ``port``, which carries bytes unchanged and is open. ``RemoteLink`` says more."""

    def __init__(
        self,
        port: Port,
        *,
        description: str = "serial port",
        timeout: float = DEFAULT_TIMEOUT,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._port = port
        self._port_wait = 0.0
        self._deframer = Deframer()
        # The first bytes that came, for people.
        self._sample = b""
        super().__init__(SERIAL, description=description, timeout=timeout, clock=clock)

    def _close_line(self) -> None:
        with suppress(OSError):
            self._port.close()

    def _send(self, batches: Sequence[Batch]) -> None:
        data = b"".join(batch.content for batch in batches)
        try:
            self._port.write(data)
        except OSError as error:
            raise self._failure(error) from error
        self.counts.sent_bytes += len(data)

    def _receive(self, seconds: float) -> list[Reply]:
        port = self._port
        wait = next((x for x in reversed(WAITS) if x <= seconds), WAITS[0])
        try:
            if wait != self._port_wait:
                self._port_wait = port.timeout = wait
            data = port.read(max(1, port.in_waiting))
        except OSError as error:
            raise self._failure(error) from error
        if not data:
            return []
        if len(self._sample) < _SAMPLE_BYTES:
            self._sample += data[: _SAMPLE_BYTES - len(self._sample)]
        self.counts.received_bytes += len(data)
        blocks, dropped = self._deframer.feed(data)
        replies = [reply for block in blocks if (reply := decode_answer(block)) is not None]
        self.counts.answers += len(replies)
        self.counts.damaged += dropped + len(blocks) - len(replies)
        if replies:
            self._interrupt = replies[-1].interrupt
        return replies

    def _failure(self, error: OSError) -> LinkError:
        return LinkError(
            f"{self.description}: the port failed: {error}; is the board still plugged in?"
            " open it again"
        )

    def _nobody(self, tries: int) -> str:
        start = f"{self.description}: no answer to {tries} HELLOs within {self._timeout:g} s; "
        counts = self.counts
        if counts.received_bytes == 0:
            return start + (
                "nothing came at all: is the board powered and configured, and is this its port?"
            )
        came = f"{counts.received_bytes} bytes came, first {self._sample.hex(' ')}, "
        if counts.answers:
            return start + came + "answers to somebody else: does another program use the board?"
        return start + came + "no sound frame: another baud rate, or no bitlane board"

    def _advice(self) -> str:
        return "check cable and power, then open it again"
