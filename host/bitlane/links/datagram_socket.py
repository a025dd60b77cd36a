"""A socket that sends and receives many datagrams with one call of the system, where it can."""

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from errno import EAGAIN, EINVAL, EIO, ENOBUFS, ENOPROTOOPT, EOPNOTSUPP
from struct import Struct
from typing import Final

from bitlane_rtl.abi import DATAGRAM_BYTES

from .line import Batch

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

    Its own port is another one: a board drops datagrams that come from its port.
    ``batches``: use UDP_SEGMENT and UDP_GRO where the system has them. Raises ``OSError``, as do
    all methods but ``close``.
    """

    def __init__(self, address: tuple[str, int], *, batches: bool = True) -> None:
        self._socket = _connected(address)
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
            self._segments = batches and self._enable(_UDP_SEGMENT, 0)
            self._gro = batches and self._enable(_UDP_GRO, 1)
            # The board drops fragments: a network of smaller packets is an error, not silence.
            if sys.platform == "linux":
                self._socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
            self._seconds = -1.0
            self._wait(0.0)
        except BaseException:
            self._socket.close()
            raise

    @property
    def description(self) -> str:
        """Return how datagrams pass to and from the system."""
        used = ["UDP_SEGMENT"] * self._segments + ["UDP_GRO"] * self._gro
        return " and ".join(used) or "plain datagrams"

    def send(self, batches: Sequence[Batch]) -> None:
        """Send ``batches`` in their order; lose the datagrams for which the system has no room."""
        try:
            for contents, size in _calls(batches):
                if len(contents) == 1 and len(contents[0]) <= size:
                    self._socket.send(contents[0])
                elif not self._segments or not self._sent_segments(contents, size):
                    for content in contents:
                        for datagram in Batch(content, size).packets():
                            self._socket.send(datagram)
        except OSError as error:
            if error.errno not in (EAGAIN, ENOBUFS) and not isinstance(error, TimeoutError):
                raise

    def receive(self, seconds: float) -> list[Batch]:
        """Return the datagrams that have arrived, waiting up to ``seconds`` for the first one.

        They are valid until the next call.
        """
        try:
            # The system's own wait: a wait by `select` takes two calls more, and a new time one.
            self._wait(max(0.0, seconds))
            return self._arrived_segments() if self._gro else self._arrived()
        except (BlockingIOError, TimeoutError):
            return []

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _wait(self, seconds: float) -> None:
        """Let calls of the socket wait up to ``seconds``."""
        if seconds != self._seconds:
            self._seconds = seconds
            self._socket.settimeout(seconds)

    def _enable(self, option: int, value: int) -> bool:
        try:
            self._socket.setsockopt(socket.IPPROTO_UDP, option, value)
        except OSError:
            return False
        return True

    def _sent_segments(self, contents: Sequence[bytes | memoryview], size: int) -> bool:
        """Send datagrams of ``size`` bytes with one call; return whether the system can."""
        option = socket.IPPROTO_UDP, _UDP_SEGMENT, _SIZE.pack(size)
        try:
            self._socket.sendmsg(contents, (option,))
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            self._segments = False
            return False
        return True

    def _arrived_segments(self) -> list[Batch]:
        """Return the datagrams that the system has joined."""
        size, ancillary, _, _ = self._socket.recvmsg_into((self._buffer,), _ANCILLARY_BYTES)
        step = _SIZES.unpack_from(ancillary[0][2])[0] if ancillary else size
        return [Batch(self._buffer[:size], step)] if size else []

    def _arrived(self) -> list[Batch]:
        """Return the datagrams that have arrived; at most a buffer of them."""
        found: list[Batch] = []
        start, end = 0, self._socket.recv_into(self._buffer)
        step = end
        self._wait(0.0)
        # Without a loop, the window would be served after each datagram. An empty one ends it: they
        # never fill the buffer, so that a peer that sends them could hold it for ever.
        with suppress(BlockingIOError):
            while step and end + DATAGRAM_BYTES <= _BUFFER_BYTES:
                size = self._socket.recv_into(self._buffer[end:])
                if size != step:
                    found.append(Batch(self._buffer[start:end], step))
                    start, step = end, size
                end += size
        if end > start:
            found.append(Batch(self._buffer[start:end], step))
        return found


def _connected(address: tuple[str, int]) -> socket.socket:
    """Return a UDP socket that is connected to ``address`` from another port than that one."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.connect(address)
        if opened.getsockname()[1] != address[1]:
            return opened
        # Until the next one has a port, this socket holds its own.
        following = _connected(address)
    except BaseException:
        opened.close()
        raise
    opened.close()
    return following


def _calls(batches: Sequence[Batch]) -> Sequence[tuple[Sequence[bytes | memoryview], int]]:
    """Join batches to datagrams of equal size; the last one may be shorter.

    Returns the contents for each call of the system, and the size of a datagram.
    """
    if len(batches) == 1:
        return [((batches[0].content,), batches[0].size)]
    calls: list[tuple[list[bytes | memoryview], int]] = []
    step = packets = 0
    for content, size in batches:
        count = -(-len(content) // size)
        packets += count
        if (size == step or (size < step and count == 1)) and packets <= _MOST_SEGMENTS:
            calls[-1][0].append(content)
        else:
            calls.append(([content], size))
            step, packets = size, count
        if len(content) != count * step:
            # A shorter datagram is a call's last one.
            step = 0
    return calls
