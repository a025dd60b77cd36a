"""The arguments that name a board and its addresses, and progress on standard error."""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from bitlane.errors import BitlaneError

from .. import Board, boards

__all__ = ["add_addresses", "add_board", "addressed", "parse_ip", "parse_mac", "progress_of"]


class _Names(list[str]):
    """Names of boards, and with them all that begins with ``prefix``."""

    def __init__(self, names: Iterable[str], prefix: str | None) -> None:
        super().__init__(names)
        self._prefix = prefix

    def __contains__(self, name: object) -> bool:
        wanted = self._prefix is not None and str(name).startswith(self._prefix)
        return wanted or super().__contains__(name)


def add_board(
    parser: argparse.ArgumentParser, nargs: str | None = None, prefix: str | None = None
) -> None:
    """Add the argument ``board``, the name of a board or a name that begins with ``prefix``."""
    names = _Names(sorted(boards()), prefix)
    shown = [*names, f"{prefix}TARGET"] if prefix else names

    def known(name: str) -> str:
        if name not in names:
            close = get_close_matches(name, names, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise argparse.ArgumentTypeError(
                f"invalid choice: {name!r}{hint} (choose from {', '.join(shown)})"
            )
        return name

    parser.add_argument(
        "board", metavar="BOARD", nargs=nargs, type=known, choices=names, help=", ".join(shown)
    )


def add_addresses(parser: argparse._ActionsContainer) -> None:
    """Add the addresses that a board gets on its network."""
    parser.add_argument("--ip", metavar="ADDRESS", help="IPv4 address of a board with Ethernet")
    parser.add_argument(
        "--mac",
        metavar="ADDRESS",
        help="its MAC address, as 02:00:00:00:00:01 (default with --ip: 02:62 and the bytes of the"
        " IPv4 address)",
    )


def addressed(board: Board, arguments: argparse.Namespace) -> Board:
    """Return ``board`` with the addresses of the arguments. Raises ``BitlaneError``.

    An IPv4 address brings a MAC address that no other board of the network has.
    """
    changes: dict[str, Any] = {}
    if arguments.ip is not None:
        changes["ip"] = parse_ip(arguments.ip)
        changes["mac"] = _LOCAL + changes["ip"].packed
    if arguments.mac is not None:
        changes["mac"] = parse_mac(arguments.mac)
    if not changes:
        return board
    if board.ethernet is None:
        raise BitlaneError(f"--{next(iter(changes))}: {board.name} has no Ethernet")
    try:
        addresses = replace(board.ethernet.addresses, **changes)
    except ValueError as error:
        raise BitlaneError(f"--{error}") from error
    return replace(board, ethernet=replace(board.ethernet, addresses=addresses))


_LOCAL = bytes.fromhex("0262")
"""The first bytes of a derived MAC address, with the bit that an administrator chose it."""


def parse_ip(text: str) -> IPv4Address:
    """Return the value of ``--ip``. Raises ``BitlaneError``."""
    try:
        return IPv4Address(text)
    except AddressValueError as error:
        raise BitlaneError(f"--ip: {text!r}; expected an address like 192.168.1.50") from error


def parse_mac(text: str) -> bytes:
    """Return the 6 bytes of the value of ``--mac``. Raises ``BitlaneError``."""
    parts = text.split(":")
    digits = set("0123456789abcdefABCDEF")
    if len(parts) != 6 or any(len(part) != 2 or not set(part) <= digits for part in parts):
        raise BitlaneError(f"--mac: {text!r}; expected six bytes like 02:00:00:00:00:01")
    return bytes.fromhex("".join(parts))


def progress_of(name: str) -> Callable[[str], None]:
    """Return a function that prints a line after ``name`` and a colon, and flushes it."""

    def progress(line: str) -> None:
        print(f"{name}: {line}", file=sys.stderr, flush=True)

    return progress
