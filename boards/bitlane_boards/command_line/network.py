"""Boards on the network, for `bitlane devices`: at given addresses, or on the local networks."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from bitlane.driver import Control
from bitlane.errors import BitlaneError, BoardInUseError, LinkError, LinkVersionError
from bitlane.links import parse_target
from bitlane.links.discovery import FoundBoard, Interface, find_boards, set_address
from bitlane.links.udp import FORM, open_link
from bitlane_rtl import abi
from bitlane_rtl.abi import DEFAULT_PORT, is_settable

__all__ = ["answers", "expand", "give_address", "local_boards"]

_MOST_ADDRESSES: Final = 256
_AT_ONCE: Final = 64
ANSWER_SECONDS: Final = 1
"""Seconds in which a board must answer."""

_IN_USE: Final = "in use by another host"


def expand(texts: Sequence[str]) -> list[str]:
    """Return the addresses that ``texts`` name: ``HOST[:PORT]``, or a prefix as 192.168.1.0/28.

    Each is returned once: two questions at a time would find the board in use by each other.

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
    found = list(dict.fromkeys(found))
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
        with open_link(f"{url}?timeout={ANSWER_SECONDS}&keepalive=0") as link:
            control = Control(link)
            if control.read("IDENTITY") != abi.IDENTITY:
                return url, "free, but no bitlane device"
            geometry = control.geometry()
    except BoardInUseError:
        return url, _IN_USE
    except LinkVersionError as error:
        return url, f"version {error.version} of the link; build its bitstream with this bitlane"
    except LinkError as error:
        return error
    memory = geometry.memory_bytes
    return url, f"free, {8 * geometry.data_bytes}-bit beats, {memory:,} bytes of memory"


def local_boards(interfaces: Sequence[Interface], seconds: float) -> list[tuple[str, str, str]]:
    """Return URL, MAC address and state of each board that answers within ``seconds``.

    Raises ``LinkError`` if none of ``interfaces`` can be asked.
    """
    found = find_boards(interfaces, seconds, port=DEFAULT_PORT)
    addresses = [f"{board.ip}:{DEFAULT_PORT}" for board in found]
    boards_at = Counter(addresses)
    rows = []
    for board, address, answer in zip(found, addresses, answers(addresses), strict=True):
        if boards_at[address] > 1:
            state = "the address of several boards; set others with --mac and --ip"
        elif isinstance(answer, LinkError):
            # The board may be in another network than the computer.
            state = f"out of reach: {answer}"
        else:
            state = answer[1]
        rows.append((f"udp://{address}", board.mac.hex(":"), state))
    return rows


def give_address(
    interfaces: Sequence[Interface], mac: bytes, ip: IPv4Address, seconds: float
) -> str:
    """Give the board with the MAC address ``mac`` the address ``ip``; return its URL.

    It has the address until it loses power. ``seconds``: those to find it, and those to set it.

    Raises ``BitlaneError`` for an address that no board takes, if no board or another one has the
    addresses, if another host uses the board, and if it does not answer from ``ip``; ``LinkError``
    if none of ``interfaces`` can be asked.
    """
    if not is_settable(ip.packed):
        raise BitlaneError(
            f"--ip: {ip} is not the address of one board; expected one like 192.168.1.50"
        )
    found = find_boards(interfaces, seconds, port=DEFAULT_PORT)
    board = _with_mac(found, mac, interfaces)
    for other in found:
        if other.ip == ip and other.mac != mac:
            raise BitlaneError(
                f"--ip: the board with the MAC address {other.mac.hex(':')} has {ip}; expected an"
                " address that nobody has"
            )
    if board.ip != ip:
        (answer,) = answers([f"{board.ip}:{DEFAULT_PORT}"])
        if not isinstance(answer, LinkError) and answer[1] == _IN_USE:
            raise BitlaneError(
                f"--mac: the board with the MAC address {mac.hex(':')} is {_IN_USE}, at {board.ip};"
                " wait until it is free"
            )
    if not set_address(board.interface, mac, ip, seconds, port=DEFAULT_PORT):
        raise BitlaneError(
            f"--mac: the board with the MAC address {mac.hex(':')} does not answer from {ip}; it"
            f" answered from {board.ip}; try again"
        )
    return f"udp://{ip}:{DEFAULT_PORT}"


def _with_mac(
    found: Sequence[FoundBoard], mac: bytes, interfaces: Sequence[Interface]
) -> FoundBoard:
    """Return the only board with ``mac``. Raises ``BitlaneError``."""
    fitting = [board for board in found if board.mac == mac]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        addresses = " and ".join(str(board.ip) for board in fitting)
        raise BitlaneError(
            f"--mac: the boards at {addresses} have the MAC address {mac.hex(':')}; expected one:"
            " connect them one after the other, or build one with another --mac"
        )
    others = ", ".join(board.mac.hex(":") for board in found) or "none"
    raise BitlaneError(
        f"--mac: no board with the MAC address {mac.hex(':')} answers on"
        f" {' and '.join(map(str, interfaces))}; these do: {others}"
    )
