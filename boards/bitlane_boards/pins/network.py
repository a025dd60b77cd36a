"""A simulated board on a network with one host, and the socket of a link, in simulated time."""

from collections.abc import Sequence
from dataclasses import replace
from errno import EBADF
from ipaddress import IPv4Address
from pathlib import Path

from bitlane_rtl.ethernet import PREAMBLE_BYTES, BoardAddresses
from cppsim.errors import SimulationError

from .cable import Cable, CableFaults
from .packets import (
    BROADCAST_IP,
    BROADCAST_MAC,
    DATAGRAM_BYTES,
    HostAddresses,
    PcapWriter,
    content_of,
    framed,
)
from .phy import LINE_HZ, PhySimulation

_REST_SECONDS = 500e-6
"""Simulated time in which nothing may move before all is quiet: many times what a board takes to
answer a datagram."""

_RESOLVES = 100
"""The most requests of ARP that a board may leave without an answer."""


class NoAnswerError(SimulationError):
    """The board does not answer ARP."""


class SimulatedNetwork:
    """Passes datagrams between a host and a board at whose pins is a PHY with a cable.

    The host sends them in Ethernet frames, after it has found the board's MAC address by ARP. The
    time stands still between the calls.

    Parameters
    ----------
    simulation
        Closed with the network.
    addresses
        The board's.
    faults
        Of the cable, in both directions.
    pcap
        File for the frames at the PHY that have a right FCS, at the simulated time.

    Attributes
    ----------
    sent, received
        Datagrams that went to the board, and that came from it.
    outward, inward
        The cable to the board, and from it.
    port
        The board's UDP port.
    quiet
        Whether nothing has moved for 500 us.

    Raises ``OSError`` if the file cannot be written, also from `advance`.
    """

    def __init__(
        self,
        simulation: PhySimulation,
        addresses: BoardAddresses,
        *,
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
        self.port = addresses.port
        self.sent = self.received = 0
        self.quiet = False

    @property
    def unsent(self) -> int:
        """Bytes of frames that wait for the cable to the board."""
        return self.simulation.unsent

    def move(self, ip: IPv4Address) -> None:
        """Send to the board's address ``ip`` from now on, after `resolve`."""
        self._host = HostAddresses(replace(self._host.board, ip=ip))
        self._mac = None

    def resolve(self, requests: int = _RESOLVES) -> None:
        """Run until the circuit is at rest and has answered ARP.

        Raises ``NoAnswerError`` if it answers none of the ``requests``.
        """
        self.simulation.advance(1.0, quiet=_REST_SECONDS)
        for _ in range(requests):
            self.send_frame(framed(self._host.arp_request()))
            while not self.quiet:
                self.advance(1.0)
                if self._mac is not None:
                    return
        raise NoAnswerError(f"{self._host.board.ip} does not answer ARP")

    def send(self, port: int, data: bytes | bytearray | memoryview) -> None:
        """Send a datagram from the host's ``port``, after `resolve`.

        One that would come in fragments is dropped, as by a board.
        """
        frame = self.frame_of(port, data)
        if frame:
            self.send_frame(frame)

    def send_to_all(self, port: int, data: bytes) -> None:
        """Send a datagram from the host's ``port`` to all stations of the network."""
        self.sent += 1
        self.send_frame(framed(self._host.datagram(BROADCAST_MAC, port, data, BROADCAST_IP)))

    def frame_of(self, port: int, data: bytes | bytearray | memoryview) -> bytes | None:
        """Return the frame of a datagram to send; None if it would come in fragments."""
        assert self._mac is not None
        if len(data) > DATAGRAM_BYTES:
            return None
        self.sent += 1
        return framed(self._host.datagram(self._mac, port, bytes(data)))

    def send_frame(self, frame: bytes) -> None:
        """Send a frame with its FCS over the cable to the board."""
        for each in self.outward.through(frame):
            self.simulation.send(each)
        self.quiet = False

    def advance(self, seconds: float) -> list[tuple[int, bytes]]:
        """Run until a frame of the board has ended or all is quiet, for ``seconds`` at most.

        Returns the datagrams that came, each with the port that it is for.
        """
        return self.datagrams_in([frame for _, frame in self._ended(seconds)])

    def run(self, seconds: float) -> list[tuple[float, bytes]]:
        """Run for ``seconds``, or until all is quiet.

        Returns the frames that came, each with the seconds from the call until it ended.
        """
        start = self.simulation.seconds
        found: list[tuple[float, bytes]] = []
        while not self.quiet and (left := start + seconds - self.simulation.seconds) > 0:
            found += self._ended(left)
        return [(end - start, frame) for end, frame in found]

    def datagrams_in(self, frames: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """Return the datagrams to the host in ``frames``, and learn from answers of ARP."""
        found = []
        for content in filter(None, map(content_of, frames)):
            self._mac = self._mac or self._host.arp_answer(content)
            datagram = self._host.datagram_in(content)
            if datagram:
                self.received += 1
                found.append(datagram)
        return found

    def close(self) -> None:
        """Close simulation and file. May be called twice."""
        self.simulation.close()
        if self._pcap:
            self._pcap.close()

    def _ended(self, seconds: float) -> list[tuple[float, bytes]]:
        """Run as `advance`. Return the frames that came, each with the time of its end."""
        self.quiet = self.simulation.advance(seconds, quiet=_REST_SECONDS)
        found = []
        for time, sent, frame in self.simulation.frames():
            content = content_of(frame)
            if self._pcap and content is not None:
                self._pcap.write(time, content)
            if sent:
                end = time + (len(frame) + PREAMBLE_BYTES + 1) / LINE_HZ
                found += [(end, each) for each in self.inward.through(frame)]
        if self.quiet:
            if self._pcap:
                self._pcap.flush()
            late = self.outward.release()
            for frame in late:
                self.simulation.send(frame)
            self.quiet = not late
            found += [(self.simulation.seconds, each) for each in self.inward.release()]
        return found


class SimulatedSocket:
    """The part of a `DatagramSocket` that the host link uses, in simulated time.

    The time passes only while ``receive`` waits; nothing else of the host takes any. A closed
    socket raises ``OSError``, as the system's does.
    """

    description = "simulated pins"

    def __init__(self, network: SimulatedNetwork, port: int = 50_000) -> None:
        self.network = network
        self._port = port
        self._closed = False

    @property
    def seconds(self) -> float:
        """Simulated time since power-on."""
        return self.network.simulation.seconds

    def send(self, batches: Sequence[tuple[bytes | bytearray | memoryview, int]]) -> None:
        """Queue the datagrams of each batch: their bytes, and the size of one."""
        self._expect_open()
        for content, size in batches:
            for start in range(0, len(content), size):
                self.network.send(self._port, content[start : start + size])

    def receive(self, seconds: float) -> list[tuple[memoryview, int]]:
        """Return the datagrams that have arrived, after at most ``seconds`` for the first one.

        Each one is a batch: its bytes, and their number.
        """
        self._expect_open()
        end = self.seconds + seconds
        found: list[tuple[memoryview, int]] = []
        while not found:
            left = end - self.seconds
            arrived = self.network.advance(max(left, 0.0))
            found = [(memoryview(data), len(data)) for _, data in arrived if data]
            if left <= 0:
                break
            if self.network.quiet and not found:
                self.network.simulation.wait(max(end - self.seconds, 0.0))
        return found

    def close(self) -> None:
        """Send and receive no more. The network stays."""
        self._closed = True

    def _expect_open(self) -> None:
        if self._closed:
            raise OSError(EBADF, "this simulated socket is closed")
