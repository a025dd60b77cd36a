"""The link to a board on the network: ``udp://192.168.1.50?timeout=2``."""

import socket
from typing import Any, Final

from bitlane_rtl.abi import DEFAULT_PORT

from ..errors import LinkError
from .datagram_socket import DatagramSocket
from .remote_link import DEFAULT_TIMEOUT
from .udp_link import UdpLink, reason
from .url import LONGEST_SECONDS, DeviceUrl, Options, parse_seconds, parse_target, printable

FORM: Final = "udp://ADDRESS[:PORT], as udp://192.168.1.50"


class NoAddressError(LinkError):
    """The host name of a URL has no IPv4 address."""


def open_link(url: str) -> UdpLink:
    """Open ``udp://ADDRESS[:PORT][?OPTION=VALUE[&OPTION=VALUE]]``.

    ADDRESS is an IPv4 address or the name of a host. The options are ``timeout``, seconds of
    silence after which the link fails (default 10), ``takeover``, 1 to end another host's session,
    and ``keepalive``, 0 to let the session expire while nothing is called.

    Raises ``LinkError`` for an unknown option or a bad value, and if no board of this link version
    answers; ``NoAddressError`` for a name without an address; ``BoardInUseError`` if another host
    uses the board.
    """
    parsed = DeviceUrl.parse(url)
    values: dict[str, Any] = {"timeout": DEFAULT_TIMEOUT, "takeover": False, "keepalive": True}
    values |= parsed.options(_OPTIONS)
    host, port = parse_target(url, parsed.target, FORM, DEFAULT_PORT)
    address = _resolve(url, host, port)
    name = address if address == host else f"{printable(host)}, {address}"
    try:
        opened = DatagramSocket((address, port))
    except OSError as error:
        raise LinkError(f"device {url!r}: {reason(error)}") from error
    link = UdpLink(
        opened,
        description=f"network address {name}, port {port}, {opened.description}",
        take_over=values["takeover"],
        timeout=values["timeout"],
    )
    if values["keepalive"]:
        link.keep_alive()
    return link


def _resolve(url: str, host: str, port: int) -> str:
    """Return the IPv4 address of ``host``."""
    try:
        found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NoAddressError(
            f"device {url!r}: {host!r} has no IPv4 address: {reason}; expected {FORM}"
        ) from error
    return str(found[0][4][0])


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("expected 0 or 1")
    return text == "1"


_OPTIONS: Final[Options] = {
    "timeout": (
        parse_seconds,
        f"seconds of silence, up to {LONGEST_SECONDS} (default {DEFAULT_TIMEOUT:g})",
    ),
    "takeover": (_flag, "0 or 1, to end another host's session (default 0)"),
    "keepalive": (_flag, "0 or 1, to keep the session while nothing is called (default 1)"),
}
