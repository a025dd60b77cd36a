"""`bitlane devices [ADDRESS ...]`: the boards at serial ports, or at addresses on the network."""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bitlane.command_line.cli import DONE, UNUSABLE, Group, Subparsers
from bitlane.errors import BitlaneError, LinkError
from bitlane.installation import how_to_install
from bitlane.links.udp import NoAddressError
from bitlane_rtl.abi.frames import DEFAULT_BAUD

from .. import Board, boards
from .common import progress_of
from .network import answers, expand

__all__ = ["add_devices", "connected", "url_of"]

_progress = progress_of("bitlane devices")


def add_devices(subparsers: Subparsers) -> None:
    """Add the subcommand `devices`."""
    parser = subparsers.add_parser(
        "devices",
        help="list the boards that are connected",
        description="List serial ports with the USB bridge of a known board, and open none. Other"
        " devices may have the same bridge: bitlane info URL reads the registers of the device"
        " itself. With ADDRESS: list the boards that answer there on the network, and leave the"
        " session of another host alone.",
        epilog="exit codes: 0 listed, even if there are none; 2 bad input, such as a name without"
        " an address",
    )
    parser.add_argument(
        "addresses",
        nargs="*",
        metavar="ADDRESS",
        help="an IPv4 address or the name of a host, with :PORT if it is not the board's own;"
        " or a network prefix of at most 256 addresses: 192.168.1.0/28",
    )
    parser.set_defaults(run=_run, group=Group.BOARDS)


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
    if arguments.addresses:
        return _list_network(arguments.addresses)
    _list_ports()
    return DONE


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


def _list_ports() -> None:
    try:
        from serial.tools.list_ports import comports
    except ImportError as error:
        raise BitlaneError(
            "devices: the Python package pyserial is not installed:"
            f" {how_to_install('serial')} brings it"
        ) from error
    ports = list(comports())
    found = connected(ports)
    for path, name, fitting in found:
        for board in fitting:
            print(f"{url_of(path, board):40} {board.name:16} {board.title} ({name})")
    if not found:
        _progress(
            f"no board found: none of {len(ports)} serial ports belongs to a known board;"
            " connect one, or name its port yourself: serial:PATH"
        )
