"""Boards on the local networks: queries to all stations, and the answers until a deadline.

``bitlane_rtl.abi.queries`` specifies the datagrams. Only IPv4; of each interface, only its first
address.
"""

import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from secrets import randbelow
from select import select
from struct import pack
from time import monotonic
from typing import Final

from bitlane_rtl.abi import DEFAULT_PORT, QUERY, QUERY_BYTES

from ..errors import LinkError

_ALL: Final = "255.255.255.255"
_NO_MAC: Final = bytes(6)
_NO_IP: Final = IPv4Address(0)

_TRANSMISSIONS: Final = 4
"""Transmissions of a query until the deadline: networks lose datagrams."""

_IP_PKTINFO: Final = 8
"""Linux: the option, and the control message, that choose the interface of a datagram."""

_GET_FLAGS, _GET_ADDRESS = 0x8913, 0x8915
_UP, _BROADCAST, _LOOPBACK = 0x1, 0x2, 0x8
"""Linux: requests for an interface's flags and address, and the flags (netdevice(7))."""

_REQUEST_BYTES: Final = 40
_NAME_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface of this computer: its name, its index and its IPv4 address.

    ``index`` 0: the system chooses the interface.
    """

    name: str
    index: int
    ip: IPv4Address

    def __str__(self) -> str:
        return f"{self.name} ({self.ip})" if self.index else self.name


@dataclass(frozen=True, slots=True)
class FoundBoard:
    """A board that answered a query: its addresses, and the interface that reaches it."""

    ip: IPv4Address
    mac: bytes
    interface: Interface


_ANY_INTERFACE: Final = Interface("the system's own choice of interface", 0, _NO_IP)


def broadcast_interfaces() -> list[Interface]:
    """Return the interfaces that reach other stations: up, with broadcast, and with an address.

    Where the system is not Linux, one that lets the system choose.
    """
    if sys.platform != "linux":
        return [_ANY_INTERFACE]
    from fcntl import ioctl

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for index, name in socket.if_nameindex():
            request = name.encode()[: _NAME_BYTES - 1].ljust(_REQUEST_BYTES, b"\0")
            # One without an address, or that ended just now, is not listed.
            with suppress(OSError):
                flags = int.from_bytes(ioctl(asked, _GET_FLAGS, request)[16:18], sys.byteorder)
                if flags & (_UP | _BROADCAST | _LOOPBACK) == _UP | _BROADCAST:
                    ip = IPv4Address(ioctl(asked, _GET_ADDRESS, request)[20:24])
                    found.append(Interface(name, index, ip))
    return found


def find_boards(
    interfaces: Sequence[Interface], seconds: float, *, port: int = DEFAULT_PORT
) -> list[FoundBoard]:
    """Ask for all boards, and return those that answer within ``seconds``, by address.

    A board that several interfaces reach is returned for the first of them. Raises ``LinkError`` if
    the system sends to none of ``interfaces``.
    """
    found: dict[tuple[IPv4Address, bytes], FoundBoard] = {}
    with _Query(interfaces, port, _NO_MAC, _NO_IP) as query:
        for board in query.answers(seconds):
            found.setdefault((board.ip, board.mac), board)
    return [found[key] for key in sorted(found)]


def set_address(
    interface: Interface, mac: bytes, ip: IPv4Address, seconds: float, *, port: int = DEFAULT_PORT
) -> bool:
    """Give the board with the MAC address ``mac`` the address ``ip``, until it loses power.

    Returns whether it answers from there within ``seconds``. Raises ``LinkError`` if the system
    does not send.
    """
    with _Query([interface], port, mac, ip) as query:
        return any(board.ip == ip for board in query.answers(seconds))


class _Query(ExitStack):
    """Sockets of ``interfaces`` for the query with ``mac`` and ``ip``."""

    def __init__(
        self, interfaces: Sequence[Interface], port: int, mac: bytes, ip: IPv4Address
    ) -> None:
        super().__init__()
        self._port = port
        self._mac = mac
        number = randbelow(1 << 16).to_bytes(2, "little")
        self._packet = QUERY + mac + number + ip.packed
        self._sockets: dict[socket.socket, Interface] = {}
        with ExitStack() as undone:
            for interface in interfaces:
                opened = undone.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                opened.setblocking(False)
                self._sockets[opened] = interface
            self.push(undone.pop_all())

    def answers(self, seconds: float) -> list[FoundBoard]:
        """Send the query several times; return the answers until the deadline, first ones first.

        A query to one board ends with its answer.
        """
        start = monotonic()
        found: list[FoundBoard] = []
        for number in range(_TRANSMISSIONS):
            self._send()
            end = start + seconds * (number + 1) / _TRANSMISSIONS
            while (left := end - monotonic()) > 0:
                for ready in select([*self._sockets], [], [], left)[0]:
                    found += self._arrived(ready)
                if found and self._mac != _NO_MAC:
                    return found
        return found

    def _send(self) -> None:
        errors = []
        for opened, interface in self._sockets.items():
            options = []
            if interface.index:
                # The address of the sender is that of the interface; the system routes nothing.
                chosen = pack("=i4s4s", interface.index, interface.ip.packed, _NO_IP.packed)
                options = [(socket.IPPROTO_IP, _IP_PKTINFO, chosen)]
            try:
                opened.sendmsg([self._packet], options, 0, (_ALL, self._port))
            except OSError as error:
                errors.append(f"{interface}: {error.strerror}")
        if len(errors) == len(self._sockets):
            raise LinkError(
                f"no query for boards can be sent: {'; '.join(errors) or 'no interface is up'};"
                " expected an interface that is up, has an IPv4 address and is not the loopback;"
                " name the board's address instead"
            )

    def _arrived(self, ready: socket.socket) -> list[FoundBoard]:
        """Return the board whose answer has arrived, if it is one."""
        try:
            data, (ip, port) = ready.recvfrom(2 * QUERY_BYTES)
        except OSError:
            return []
        mac = data[8:14]
        answer = QUERY + mac + self._packet[14:]
        asked = self._mac in (_NO_MAC, mac)
        # An echo of the query itself has no MAC address.
        if data != answer or port != self._port or not asked or mac == _NO_MAC:
            return []
        return [FoundBoard(IPv4Address(ip), mac, self._sockets[ready])]
