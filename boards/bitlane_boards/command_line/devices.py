"""`bitlane devices`: the boards at serial ports and on the local networks, or at addresses.

`--mac` and `--ip` give a board on a local network another address.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bitlane.command_line import DONE, UNUSABLE, Group, Subparsers
from bitlane.errors import BitlaneError, LinkError
from bitlane.installation import how_to_install
from bitlane.links.discovery import broadcast_interfaces
from bitlane.links.udp import NoAddressError
from bitlane_rtl.abi import DEFAULT_BAUD

from .. import Board, boards
from .common import parse_ip, parse_mac, progress_of
from .network import answers, expand, give_address, local_boards

__all__ = ["add_devices", "connected", "url_of"]

_progress = progress_of("bitlane devices")


def add_devices(subparsers: Subparsers) -> None:
    """Add the subcommand `devices`."""
    parser = subparsers.add_parser(
        "devices",
        help="list the boards that are connected, or give one another address",
        description="List the boards on the local networks of this computer, each with its MAC"
        " address, and serial ports with the USB bridge of a known board; open no port. Other"
        " devices may have the same bridge: bitlane info URL reads the registers of the device"
        " itself. With ADDRESS: list the boards that answer there. The session of another host is"
        " left alone. With --mac and --ip: give a board on a local network another address, which"
        " it has until it loses power.",
        epilog="exit codes: 0 listed, even if there are none, or set; 2 bad input, such as a name"
        " without an address, or a board that cannot be set",
    )
    parser.add_argument(
        "addresses",
        nargs="*",
        metavar="ADDRESS",
        help="an IPv4 address or the name of a host, with :PORT if it is not the board's own;"
        " or a network prefix of at most 256 addresses: 192.168.1.0/28",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=_seconds,
        default=_WAIT,
        help=f"how long to wait for boards on the local networks (default {_WAIT:g})",
    )
    parser.add_argument(
        "--mac", metavar="ADDRESS", help="of the board to set, as 02:62:c0:a8:01:32"
    )
    parser.add_argument("--ip", metavar="ADDRESS", help="IPv4 address that the board gets")
    parser.set_defaults(run=_run, group=Group.BOARDS)


_WAIT = 1.0
_LONGEST_WAIT = 60.0


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= _LONGEST_WAIT:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected seconds, more than 0 and at most {_LONGEST_WAIT:g}"
        )
    return value


def connected(ports: list[Any]) -> list[tuple[str, str, list[Board]]]:
    """Return path, name and possible boards of each of pyserial's ``ports`` that fits a board.

    A bridge with several ports counts only with the port that is the board's link.
    """
    bridges: defaultdict[tuple[object, ...], list[Any]] = defaultdict(list)
    for port in sorted(ports, key=lambda each: str(each.device)):
        if port.vid is not None:
            bridges[port.vid, port.pid, port.serial_number, _place(port)].append(port)
    found = []
    for (vendor, product, *_), group in bridges.items():
        for number, port in enumerate(group):
            fitting = [
                board
                for board in boards().values()
                if (vendor, product) in board.usb_ids
                and (len(group) == 1 or board.usb_interface == number)
            ]
            if fitting:
                found.append((str(port.device), str(port.description), fitting))
    return found


def _place(port: Any) -> str:
    """Return the position of a bridge on the bus, without its interface."""
    return str(port.location or "").partition(":")[0]


def url_of(path: str, board: Board) -> str:
    """Return the value of ``--device`` for ``board``, at the serial port ``path`` if it has one."""
    if board.ethernet:
        return board.ethernet.url
    return f"serial:{path}" + ("" if board.baud == DEFAULT_BAUD else f"?baud={board.baud}")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.mac is not None or arguments.ip is not None:
        return _set_address(arguments)
    if arguments.addresses:
        return _list_network(arguments.addresses)
    found, summary = _list_local(arguments.wait)
    try:
        from serial.tools.list_ports import comports
    except ImportError as error:
        lacking = "the Python package pyserial is not installed"
        cure = f"{how_to_install('serial')} brings it"
        if not found:
            raise BitlaneError(
                f"devices: {summary}; for serial ports, {lacking}: {cure}"
            ) from error
        _progress(summary)
        _progress(f"serial ports are not listed: {lacking}: {cure}")
        return DONE
    _progress(summary)
    _list_ports(list(comports()), found)
    return DONE


def _set_address(arguments: argparse.Namespace) -> int:
    """Give a board an address; return the exit code."""
    for name, other in (("mac", "ip"), ("ip", "mac")):
        if getattr(arguments, other) is None:
            raise BitlaneError(f"--{name}: expected --{other}, too: the board, and its new address")
    if arguments.addresses:
        raise BitlaneError(
            f"--mac: the board is found by its MAC address; expected no {arguments.addresses[0]!r}"
        )
    mac, ip = parse_mac(arguments.mac), parse_ip(arguments.ip)
    url = give_address(broadcast_interfaces(), mac, ip, arguments.wait)
    print(f"{url:40} {mac.hex(':')}")
    _progress(f"the board has {ip} until it loses power")
    return DONE


def _list_local(seconds: float) -> tuple[int, str]:
    """List the boards on the local networks; return their number, and a line for people."""
    interfaces = broadcast_interfaces()
    try:
        found = local_boards(interfaces, seconds)
    except LinkError as error:
        return 0, str(error)
    for url, mac, state in found:
        print(f"{url:40} {mac} {state}")
    number = len(found)
    answer = "no board answers" if not number else "1 board answers" if number == 1 else ""
    where = " and ".join(map(str, interfaces))
    return number, f"{answer or f'{number} boards answer'} on {where} in {seconds:g} s"


_MOST_REASONS = 8
"""Addresses without a board for which the reason is shown."""


def _list_network(texts: Sequence[str]) -> int:
    """List the boards at the addresses that ``texts`` name; return the exit code."""
    addresses = expand(texts)
    found = answers(addresses)
    boards_found = [each for each in found if not isinstance(each, LinkError)]
    for url, state in boards_found:
        print(f"{url:40} {state}")
    names = [each for each in found if isinstance(each, NoAddressError)]
    # The other addresses of a prefix are expected to be silent.
    reasons = [
        error
        for address, error in zip(addresses, found, strict=True)
        if isinstance(error, LinkError) and (address in texts or not boards_found)
    ]
    if len(reasons) > _MOST_REASONS:
        answering = f"{len(boards_found)} of {len(found)} addresses answer"
        none = f"no board found: none of {len(found)} addresses answers"
        _progress(answering if boards_found else none)
        reasons = list(names)
    for error in reasons:
        _progress(str(error) if boards_found else f"no board found: {error}")
    return UNUSABLE if names else DONE


def _list_ports(ports: list[Any], others: int) -> None:
    """List the boards at serial ports, beside ``others`` on the network."""
    found = connected(ports)
    for path, name, fitting in found:
        for board in fitting:
            print(f"{url_of(path, board):40} {board.name:16} {board.title} ({name})")
    if not (found or others):
        _progress(
            f"no board found: none of {len(ports)} serial ports belongs to a known board;"
            " connect one, or name its port yourself: serial:PATH"
        )
