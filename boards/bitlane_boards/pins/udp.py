"""Simulated pins of Ethernet behind a UDP socket of the loopback interface.

Must not use the processor while nothing happens.
"""

import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from secrets import randbits
from typing import Protocol

from bitlane.links import DatagramLine
from bitlane_rtl.abi import BUSY, INTERRUPT_BIT, SESSION_BYTES, SESSION_SECONDS

_QUEUE_BYTES = 1 << 16
"""Most bytes of frames that wait for the line; further datagrams wait in the kernel."""

_SOCKET_BYTES = 4 << 20
_READ_BYTES = 1 << 16

_GOODBYE_PORT = 1
"""The port from which the server itself ends a session; programs do not have it."""

_KIND_OFFSET = SESSION_BYTES + 1
_KIND_MASK = (1 << INTERRUPT_BIT) - 1
"""Place of the kind of a datagram's first answer, and its bits."""

_TURN_SECONDS = 5e-6
"""Simulated time between two polls of the socket."""


def bound_socket(port: int = 0) -> socket.socket:
    """Return a UDP socket at ``port`` of 127.0.0.1; 0 lets the system choose a free one.

    Raises ``OSError`` if the port is taken.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
        opened.bind(("127.0.0.1", port))
    except OSError:
        opened.close()
        raise
    return opened


class ServedNetwork(Protocol):
    """The part of a `SimulatedNetwork` that a server uses."""

    port: int

    @property
    def quiet(self) -> bool: ...
    @property
    def unsent(self) -> int: ...
    def send(self, port: int, data: bytes | bytearray | memoryview) -> None: ...
    def advance(self, seconds: float) -> list[tuple[int, bytes]]: ...


class UdpServer:
    """Passes datagrams of clients' ports between ``bound``, a `bound_socket`, and ``network``.

    The time runs while frames are on their way, while the circuit is busy, and for 500 us more;
    then it stands still until a client sends. The circuit cannot count a session's seconds that
    way: the server ends the session, SESSION_SECONDS of the computer's time after its last
    datagram. The port of ``bound`` is the board's port to the clients: the board drops a datagram
    that comes from it, and none from the port that the circuit has. The server owns the socket.

    Attributes
    ----------
    url
        For ``--device``.
    """

    def __init__(self, network: ServedNetwork, bound: socket.socket) -> None:
        self.network = network
        self._clients: dict[int, tuple[str, int]] = {}
        self._socket = bound
        # The session that the board serves, and when its last datagram passed.
        self._session = b""
        self._heard = 0.0
        port = bound.getsockname()[1]
        self._swapped = {port: network.port, network.port: port}
        self.url = f"udp://127.0.0.1:{port}"

    def serve(self, seconds: float | None = None) -> None:
        """Serve for ``seconds``, or until an exception such as ``KeyboardInterrupt``.

        Raises ``SimulationError`` if the circuit breaks a rule, and ``OSError`` of the recording.
        """
        serve_all([self], seconds)

    def close(self) -> None:
        """Close the socket. May be called twice. The network stays."""
        self._socket.close()

    @property
    def has_room(self) -> bool:
        """Whether the line has room for datagrams of clients."""
        return self.network.unsent < _QUEUE_BYTES

    def fileno(self) -> int:
        """Return the descriptor of the socket, for `select`."""
        return self._socket.fileno()

    def patience(self, end: float | None) -> float | None:
        """Return the most seconds to wait for a client; None: for ever."""
        expiry = self._heard + SESSION_SECONDS if self._session else None
        times = [x for x in (end, expiry) if x is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def end_session(self) -> None:
        """End the session if its client has sent nothing for SESSION_SECONDS."""
        if self._session and time.monotonic() >= self._heard + SESSION_SECONDS:
            line = DatagramLine(int.from_bytes(self._session, "little"))
            self.network.send(_GOODBYE_PORT, line.encode_goodbye(randbits(8)))
            self._heard = time.monotonic()

    def accept(self) -> None:
        """Send the datagrams of clients to the board."""
        while self.has_room:
            try:
                data, client = self._socket.recvfrom(_READ_BYTES)
            except BlockingIOError:
                return
            port = self._swapped.get(client[1], client[1])
            self._clients[port] = client
            if data[:SESSION_BYTES] == self._session:
                self._heard = time.monotonic()
            self.network.send(port, data)

    def deliver(self) -> None:
        """Run for one turn, and pass on the datagrams that came."""
        for port, data in self.network.advance(_TURN_SECONDS):
            if port == _GOODBYE_PORT:
                # Without this answer, the cable lost it: once more, later.
                self._session = b""
            elif port in self._clients:
                served = len(data) > _KIND_OFFSET and data[_KIND_OFFSET] & _KIND_MASK != BUSY
                # The answer to a query has no session.
                if served and any(data[:SESSION_BYTES]):
                    self._session, self._heard = data[:SESSION_BYTES], time.monotonic()
                # Where the system has no room, it is as lost on the way.
                with suppress(BlockingIOError):
                    self._socket.sendto(data, self._clients[port])


def serve_all(servers: Sequence[UdpServer], seconds: float | None = None) -> None:
    """Serve as `UdpServer.serve`: boards whose time passes together, as on a `SimulatedSwitch`."""
    end = None if seconds is None else time.monotonic() + seconds
    while end is None or time.monotonic() < end:
        quiet = all(server.network.quiet for server in servers)
        waits = [server.patience(end) for server in servers] if quiet else [0.0]
        patience = min((wait for wait in waits if wait is not None), default=None)
        listening = [server for server in servers if server.has_room]
        ready = select.select(listening, [], [], patience)[0]
        for server in ready:
            server.accept()
        if quiet and not ready:
            for server in servers:
                server.end_session()
        for server in servers:
            if not server.network.quiet:
                server.deliver()
