"""Ethernet frames between a simulated network's only host and a board, and recordings of them."""

import struct
import sys
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from zlib import crc32

from bitlane_rtl.board_addresses import BoardAddresses

DATAGRAM_BYTES = 1472
"""The most bytes of a datagram without fragments."""

_ARP, _IPV4, _UDP = 0x0806, 0x0800, 17
BROADCAST_MAC = b"\xff" * 6
BROADCAST_IP = IPv4Address("255.255.255.255")
_DO_NOT_FRAGMENT = 0x4000
_LEAST_BYTES = 60


@dataclass(frozen=True)
class HostAddresses:
    """The addresses of a host that exchanges packets with ``board``."""

    board: BoardAddresses
    mac: bytes = bytes.fromhex("02686f737401")

    @property
    def ip(self) -> IPv4Address:
        """The neighbour of the board's address."""
        return IPv4Address(int(self.board.ip) ^ 1)

    def arp_request(self) -> bytes:
        """Return a request for the board's MAC address, without padding and FCS."""
        head = struct.pack(">HHBBH", 1, _IPV4, 6, 4, 1)
        asked = self.mac + self.ip.packed + bytes(6) + self.board.ip.packed
        return BROADCAST_MAC + self.mac + struct.pack(">H", _ARP) + head + asked

    def arp_answer(self, frame: bytes) -> bytes | None:
        """Return the board's MAC address if ``frame``, without FCS, answers the request."""
        if frame[:6] != self.mac or frame[12:14] != struct.pack(">H", _ARP):
            return None
        answers = frame[20:22] == b"\0\2" and frame[28:32] == self.board.ip.packed
        return frame[22:28] if answers else None

    def datagram(self, mac: bytes, port: int, data: bytes, to: IPv4Address | None = None) -> bytes:
        """Return a datagram from the host's ``port`` to the MAC address ``mac``.

        ``to``: its IPv4 address, by default the board's. Without padding and FCS.
        """
        size = 8 + len(data)
        addresses = self.ip.packed + (to or self.board.ip).packed
        pseudo = addresses + struct.pack(">HH", _UDP, size)
        udp = struct.pack(">HHH", port, self.board.port, size)
        # A sum of 0 would mean that there is none.
        check = _checksum(pseudo + udp + data) or 0xFFFF
        ip = struct.pack(">BBHHHBB", 0x45, 0, 20 + size, 0, _DO_NOT_FRAGMENT, 64, _UDP)
        ip += struct.pack(">H", _checksum(ip + addresses)) + addresses
        return (
            mac + self.mac + struct.pack(">H", _IPV4) + ip + udp + struct.pack(">H", check) + data
        )

    def datagram_in(self, frame: bytes) -> tuple[int, bytes] | None:
        """Return port and data of the datagram to this host in ``frame``, without FCS, if any."""
        if frame[:6] != self.mac or frame[12:15] != struct.pack(">HB", _IPV4, 0x45):
            return None
        ip, total = frame[14:34], int.from_bytes(frame[16:18], "big")
        if ip[9] != _UDP or _checksum(ip) or ip[16:20] != self.ip.packed:
            return None
        udp = frame[34 : 14 + total]
        _, port, size, check = struct.unpack_from(">HHHH", udp)
        pseudo = ip[12:20] + struct.pack(">HH", _UDP, size)
        if size != len(udp) or (check and _checksum(pseudo + udp)):
            return None
        return port, udp[8:]


def framed(content: bytes) -> bytes:
    """Return the frame of ``content``, with padding and FCS."""
    padded = content.ljust(_LEAST_BYTES, b"\0")
    return padded + crc32(padded).to_bytes(4, "little")


def content_of(frame: bytes) -> bytes | None:
    """Return ``frame`` without its FCS, or None if that is wrong."""
    content, fcs = frame[:-4], frame[-4:]
    return content if crc32(content).to_bytes(4, "little") == fcs else None


def _checksum(data: bytes) -> int:
    """Return the checksum of RFC 1071; 0 if ``data`` has a right one."""
    total = sum(memoryview(data + bytes(len(data) % 2)).cast("H"))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    # The sum of swapped bytes is the swapped sum (RFC 1071, 2.B).
    return int.from_bytes((~total & 0xFFFF).to_bytes(2, sys.byteorder), "big")


_MAGIC, _VERSION, _ETHERNET = 0xA1B23C4D, (2, 4), 1
_MOST_BYTES = 1 << 16
"""Numbers in the header of a pcap file with nanoseconds, and the most bytes of a frame there."""


class PcapWriter:
    """Writes frames to the file ``path``, which Wireshark and tcpdump open. Raises ``OSError``."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(struct.pack("<IHHiIII", _MAGIC, *_VERSION, 0, 0, _MOST_BYTES, _ETHERNET))

    def write(self, seconds: float, content: bytes) -> None:
        """Record a frame without its FCS, at ``seconds``."""
        whole, nanoseconds = divmod(round(seconds * 1e9), 10**9)
        size = len(content)
        self._file.write(struct.pack("<IIII", whole, nanoseconds, size, size) + content)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """May be called twice."""
        self._file.close()
