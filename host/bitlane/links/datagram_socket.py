"""A socket that sends and receives many datagrams with one call of the system, where it can."""

import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from errno import EAGAIN, EINVAL, EIO, ENOBUFS, ENOPROTOOPT, EOPNOTSUPP
from selectors import EVENT_READ, DefaultSelector
from struct import Struct
from typing import Final

from bitlane_rtl.abi.datagrams import DATAGRAM_BYTES

_UDP_SEGMENT: Final = 103
"""Linux 4.18: the system cuts the bytes of one call into datagrams of equal size."""

_UDP_GRO: Final = 104
"""Linux 5.0: one call returns consecutive datagrams of equal size."""

_NOT_SUPPORTED: Final = (EINVAL, EIO, ENOPROTOOPT, EOPNOTSUPP)
"""Errors of UDP_SEGMENT on a network card that cannot compute checksums, among others."""

_MOST_SEGMENTS: Final = 44
"""Datagrams of one call: the system allows 64 of them, and 64 KiB."""

_BUFFER_BYTES: Final = 1 << 16
_SOCKET_BYTES: Final = 1 << 20
"""Bytes that the system buffers: several times the most bytes of outstanding answers."""

_ANCILLARY_BYTES: Final = 64
_IP_MTU_DISCOVER: Final = 10
_IP_PMTUDISC_DO: Final = 2
"""Options of Linux by which it sends no fragments."""

_SIZE: Final = Struct("=H")
_SIZES: Final = Struct("=i")


class DatagramSocket:
    """A UDP socket that is connected to ``address``, an IPv4 address and a port.

    ``batches``: use UDP_SEGMENT and UDP_GRO where the system has them. Raises ``OSError``, as do
    all methods but ``close``.
    """

    def __init__(self, address: tuple[str, int], *, batches: bool = True) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
            self._segments = batches and self._enable(_UDP_SEGMENT, 0)
            self._gro = batches and self._enable(_UDP_GRO, 1)
            # The board drops fragments: a network of smaller packets is an error, not silence.
            if sys.platform == "linux":
                self._socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
            self._socket.setblocking(False)
            self._socket.connect(address)
            self._selector = DefaultSelector()
            self._selector.register(self._socket, EVENT_READ)
        except BaseException:
            self._socket.close()
            raise

    @property
    def description(self) -> str:
        """Return how datagrams pass to and from the system."""
        used = ["UDP_SEGMENT"] * self._segments + ["UDP_GRO"] * self._gro
        return " and ".join(used) or "plain datagrams"

    def send(self, datagrams: Sequence[bytes | bytearray]) -> None:
        """Send ``datagrams`` in their order; lose those for which the system has no room."""
        try:
            for batch in _batches(datagrams):
                if len(batch) == 1 or not self._segments or not self._sent_segments(batch):
                    for datagram in batch:
                        self._socket.send(datagram)
        except OSError as error:
            if error.errno not in (EAGAIN, ENOBUFS):
                raise

    def receive(self, seconds: float) -> list[memoryview]:
        """Return the datagrams that have arrived, waiting up to ``seconds`` for the first one.

        They are valid until the next call.
        """
        found = self._arrived()
        if not found and self._selector.select(max(0.0, seconds)):
            found = self._arrived()
        return found

    def close(self) -> None:
        """Close the socket."""
        self._selector.close()
        self._socket.close()

    def _enable(self, option: int, value: int) -> bool:
        try:
            self._socket.setsockopt(socket.IPPROTO_UDP, option, value)
        except OSError:
            return False
        return True

    def _sent_segments(self, batch: Sequence[bytes | bytearray]) -> bool:
        """Send ``batch`` with one call; return whether the system can."""
        size = _SIZE.pack(len(batch[0]))
        try:
            self._socket.sendmsg(batch, [(socket.IPPROTO_UDP, _UDP_SEGMENT, size)])
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            self._segments = False
            return False
        return True

    def _arrived(self) -> list[memoryview]:
        """Return the datagrams that have arrived; at most a buffer of them."""
        found: list[memoryview] = []
        with suppress(BlockingIOError):
            if self._gro:
                return self._arrived_segments()
            # Without a loop, the window would be served after each datagram.
            rest = self._buffer
            while len(rest) >= DATAGRAM_BYTES:
                size = self._socket.recv_into(rest)
                found.append(rest[:size])
                rest = rest[size:]
        return found

    def _arrived_segments(self) -> list[memoryview]:
        size, ancillary, _, _ = self._socket.recvmsg_into([self._buffer], _ANCILLARY_BYTES)
        whole = self._buffer[:size]
        if not ancillary:
            return [whole]
        (step,) = _SIZES.unpack_from(ancillary[0][2])
        return [whole[start : start + step] for start in range(0, size, step)]


def _batches(
    datagrams: Sequence[bytes | bytearray],
) -> Iterator[Sequence[bytes | bytearray]]:
    """Yield runs of datagrams of equal size; the last one of a run may be shorter."""
    start, size = 0, len(datagrams[0])
    for end in range(1, len(datagrams)):
        if (
            len(datagrams[end]) > size
            or len(datagrams[end - 1]) < size
            or end - start == _MOST_SEGMENTS
        ):
            yield datagrams[start:end]
            start, size = end, len(datagrams[end])
    yield datagrams[start:]
