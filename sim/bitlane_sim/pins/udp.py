"""Simulated pins of Ethernet behind a UDP socket of the loopback interface.

Must not use the processor while nothing happens.
"""

import select
import socket
import time
from pathlib import Path

from bitlane_rtl.ethernet.board_addresses import BoardAddresses
from cppsim.errors import SimulationError

from .cable import Cable, CableFaults
from .packets import DATAGRAM_BYTES, HostAddresses, content_of, framed
from .pcap import PcapWriter
from .phy import PhySimulation

__all__ = ["UdpServer"]

_QUEUE_BYTES = 1 << 16
"""Most bytes of frames that wait for the line; further datagrams wait in the kernel."""

_SOCKET_BYTES = 4 << 20
_READ_BYTES = 1 << 16

_TURN_SECONDS = 20e-6
"""Simulated time between two polls of the socket."""

_REST_SECONDS = 100e-6
"""Simulated time in which nothing may move before the time stops."""

_RESOLVES = 100
"""Requests of ARP before the board is given up."""


class UdpServer:
    """Passes datagrams between a socket of 127.0.0.1 and a simulated board.

    A host with one IP address sends them in Ethernet frames, from the ports of the clients, after
    it has found the board's MAC address by ARP. The time runs while frames are on their way, while
    the circuit is busy, and for 100 us more; then it stands still until a client sends.

    Parameters
    ----------
    simulation
        Closed by its owner.
    addresses
        The board's.
    port
        UDP port; 0 chooses a free one.
    faults
        Of the cable, in both directions.
    pcap
        File for the frames at the PHY that have a right FCS, at the simulated time.

    Attributes
    ----------
    url
        For ``--device``.
    sent, received
        Datagrams that went to the board, and that came from it.
    outward, inward
        The cable to the board, and from it.

    Raises ``OSError`` if the port is taken, or the file cannot be written.
    """

    def __init__(
        self,
        simulation: PhySimulation,
        addresses: BoardAddresses,
        *,
        port: int = 0,
        faults: CableFaults | None = None,
        pcap: Path | None = None,
    ) -> None:
        self.simulation = simulation
        self._host = HostAddresses(addresses)
        self.outward, self.inward = (
            Cable(faults or CableFaults(), name) for name in ("to the board", "from the board")
        )
        self._pcap = PcapWriter(pcap) if pcap else None
        self._mac: bytes | None = None
        self._clients: dict[int, tuple[str, int]] = {}
        self.sent = self.received = 0
        self._quiet = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError:
            self.close()
            raise
        self.url = f"udp://127.0.0.1:{self._socket.getsockname()[1]}"

    def warm_up(self) -> None:
        """Run until the circuit is at rest and its MAC address is known.

        Raises ``SimulationError`` if it does not answer.
        """
        self.simulation.advance(1.0, quiet=_REST_SECONDS)
        for _ in range(_RESOLVES):
            self._send(self._host.arp_request())
            while not self._run():
                if self._mac is not None:
                    return
        raise SimulationError(
            f"{self.simulation.model.description}: {self._host.board.ip} does not answer ARP"
        )

    def serve(self, seconds: float | None = None) -> None:
        """Serve for ``seconds``, or until an exception such as ``KeyboardInterrupt``.

        Raises ``SimulationError`` if the circuit breaks a rule, ``OSError`` of the recording.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            patience: float | None = 0
            if self._quiet:
                patience = None if end is None else max(0.0, end - time.monotonic())
            room = self.simulation.unsent < _QUEUE_BYTES
            if room and select.select([self._socket], [], [], patience)[0]:
                self._take()
            if not self._quiet:
                self._run()

    def close(self) -> None:
        """Close socket and file. May be called twice. The simulation stays."""
        self._socket.close()
        if self._pcap:
            self._pcap.close()

    def _take(self) -> None:
        """Send the datagrams of clients to the board."""
        while self.simulation.unsent < _QUEUE_BYTES:
            try:
                data, client = self._socket.recvfrom(_READ_BYTES)
            except BlockingIOError:
                return
            # A board drops fragments.
            if len(data) > DATAGRAM_BYTES or self._mac is None:
                continue
            self._clients[client[1]] = client
            self._send(self._host.datagram(self._mac, client[1], data))
            self.sent += 1

    def _send(self, content: bytes) -> None:
        for frame in self.outward.through(framed(content)):
            self.simulation.send(frame)
        self._quiet = False

    def _run(self) -> bool:
        """Run for one turn, and pass on the frames that have ended; return whether all is quiet."""
        self._quiet = self.simulation.advance(_TURN_SECONDS, quiet=_REST_SECONDS)
        for seconds, sent, frame in self.simulation.frames():
            content = content_of(frame)
            if self._pcap and content is not None:
                self._pcap.write(seconds, content)
            if sent:
                self._receive(self.inward.through(frame))
        if self._quiet:
            if self._pcap:
                self._pcap.flush()
            late = self.outward.release()
            for frame in late:
                self.simulation.send(frame)
            self._receive(self.inward.release())
            self._quiet = not late
        return self._quiet

    def _receive(self, frames: list[bytes]) -> None:
        """Pass what the frames have on to clients."""
        for content in filter(None, map(content_of, frames)):
            self._mac = self._mac or self._host.arp_answer(content)
            found = self._host.datagram_in(content)
            if found and found[0] in self._clients:
                port, data = found
                self.received += 1
                try:
                    self._socket.sendto(data, self._clients[port])
                except BlockingIOError:  # as lost on the way
                    self.received -= 1
