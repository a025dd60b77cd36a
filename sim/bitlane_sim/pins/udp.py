"""Simulated pins of Ethernet behind a UDP socket of the loopback interface.

Must not use the processor while nothing happens.
"""

import select
import socket
import time
from contextlib import suppress

from .network import SimulatedNetwork

_QUEUE_BYTES = 1 << 16
"""Most bytes of frames that wait for the line; further datagrams wait in the kernel."""

_SOCKET_BYTES = 4 << 20
_READ_BYTES = 1 << 16

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


class UdpServer:
    """Passes datagrams of clients' ports between ``bound``, a `bound_socket`, and ``network``.

    The time runs while frames are on their way, while the circuit is busy, and for 500 us more;
    then it stands still until a client sends. The server owns the socket.

    Attributes
    ----------
    url
        For ``--device``.
    """

    def __init__(self, network: SimulatedNetwork, bound: socket.socket) -> None:
        self.network = network
        self._clients: dict[int, tuple[str, int]] = {}
        self._socket = bound
        self.url = f"udp://127.0.0.1:{bound.getsockname()[1]}"

    def serve(self, seconds: float | None = None) -> None:
        """Serve for ``seconds``, or until an exception such as ``KeyboardInterrupt``.

        Raises ``SimulationError`` if the circuit breaks a rule, and ``OSError`` of the recording.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            patience: float | None = 0
            if self.network.quiet:
                patience = None if end is None else max(0.0, end - time.monotonic())
            if self._has_room and select.select([self._socket], [], [], patience)[0]:
                self._send()
            if not self.network.quiet:
                self._receive()

    def close(self) -> None:
        """Close the socket. May be called twice. The network stays."""
        self._socket.close()

    @property
    def _has_room(self) -> bool:
        return self.network.simulation.unsent < _QUEUE_BYTES

    def _send(self) -> None:
        """Send the datagrams of clients to the board."""
        while self._has_room:
            try:
                data, client = self._socket.recvfrom(_READ_BYTES)
            except BlockingIOError:
                return
            self._clients[client[1]] = client
            self.network.send(client[1], data)

    def _receive(self) -> None:
        """Run for one turn, and pass on the datagrams that came."""
        for port, data in self.network.advance(_TURN_SECONDS):
            if port in self._clients:
                # Where the system has no room, it is as lost on the way.
                with suppress(BlockingIOError):
                    self._socket.sendto(data, self._clients[port])
