"""The boards that answer at addresses on the network, for `bitlane devices`."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network
from typing import Final

from bitlane.driver.control import Control
from bitlane.errors import BitlaneError, BoardInUseError, LinkError
from bitlane.links.udp import FORM, open_link
from bitlane.links.url import parse_target
from bitlane_rtl import abi
from bitlane_rtl.abi.datagrams import DEFAULT_PORT

__all__ = ["answers", "expand"]

_MOST_ADDRESSES: Final = 256
_AT_ONCE: Final = 64
_TIMEOUT: Final = 1
"""Seconds in which a board must answer."""


def expand(texts: Sequence[str]) -> list[str]:
    """Return the addresses that ``texts`` name: ``HOST[:PORT]``, or a prefix as 192.168.1.0/28.

    Raises ``BitlaneError`` for a text that is neither, and for more than 256 addresses.
    """
    found: list[str] = []
    for text in texts:
        if "?" in text:
            raise BitlaneError(f"devices: {text!r} has options; expected HOST or HOST:PORT alone")
        if "/" not in text:
            parse_target(f"udp://{text}", f"//{text}", FORM, DEFAULT_PORT)
            found.append(text)
            continue
        try:
            network = IPv4Network(text, strict=False)
        except ValueError as error:
            raise BitlaneError(
                f"devices: {text!r} is not a network: {error}; expected a prefix as 192.168.1.0/28"
            ) from error
        if network.num_addresses > _MOST_ADDRESSES:
            raise BitlaneError(
                f"devices: {text} has {network.num_addresses} addresses; expected"
                f" {_MOST_ADDRESSES} or fewer, as of a prefix /24"
            )
        found += map(str, network.hosts())
    if len(found) > _MOST_ADDRESSES:
        raise BitlaneError(
            f"devices: {len(found)} addresses; expected {_MOST_ADDRESSES} or fewer in one call"
        )
    return found


def answers(addresses: Sequence[str]) -> list[tuple[str, str] | LinkError]:
    """Return the URL and the state of each board, or the error at its address.

    A free board is greeted, read and left again. A board in use is only greeted: its session goes
    on.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_answer, addresses))


def _answer(address: str) -> tuple[str, str] | LinkError:
    url = f"udp://{address}"
    try:
        with open_link(f"{url}?timeout={_TIMEOUT}") as link:
            control = Control(link)
            if control.read("IDENTITY") != abi.IDENTITY:
                return url, "free, but no bitlane device"
            geometry = control.geometry()
    except BoardInUseError:
        return url, "in use by another host"
    except LinkError as error:
        return error
    memory = geometry.memory_bytes
    return url, f"free, {8 * geometry.data_bytes}-bit beats, {memory:,} bytes of memory"
