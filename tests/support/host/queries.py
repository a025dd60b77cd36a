"""Boards that answer queries to all stations of the loopback interface, as the contract describes.

Written apart from both the circuit and the host.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from select import select
from threading import Event, Thread
from typing import Self

from bitlane.links.discovery import FoundBoard, Interface, find_boards
from support.board.model import Device
from support.host.network import NetworkBoard, ServedRules

LOOPBACK = Interface("lo", socket.if_nametoindex("lo"), IPv4Address("127.0.0.1"))
NO_MAC = bytes(6)

SHORT = 0.02
"""Seconds in which threads of this process answer, unless the computer is busy."""


def query_of(mac: bytes = NO_MAC, ip: str = "0.0.0.0") -> bytes:
    return b"\0\0\0\0find" + mac + b"\x12\x34" + IPv4Address(ip).packed


@dataclass
class LocalBoard:
    """A board with the addresses ``ip`` and ``mac``, and a memory.

    ``deaf``: the number of queries that it does not hear.
    """

    ip: str
    mac: bytes
    device: Device | None = None
    deaf: int = 0
    heard: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rules = ServedRules(self.device) if self.device else ServedRules()

    def answer(self, query: bytes) -> bytes | None:
        """Return the answer to ``query``, and take the address that it sets."""
        self.heard.append(query)
        if self.deaf:
            self.deaf -= 1
            return None
        if len(query) != 20 or query[:8] != b"\0\0\0\0find":
            return None
        mac, ip = query[8:14], query[16:]
        if mac == self.mac and any(ip):
            self.ip = str(IPv4Address(ip))
        elif any(mac + ip):
            return None
        return query[:8] + self.mac + query[14:]


class LocalNetwork:
    """``boards`` at a port of the loopback interface, served by threads until the block ends.

    ``port``: that of all of them.
    """

    def __init__(self, *boards: LocalBoard) -> None:
        self.boards = boards
        self._all = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._all.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._all.bind(("", 0))
        self.port: int = self._all.getsockname()[1]
        self._ended = Event()
        self._serving = {each.ip: self._served(each) for each in boards}
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._all.close()
        for each in self._serving.values():
            each.close()

    def _served(self, board: LocalBoard) -> NetworkBoard:
        return NetworkBoard(board.rules, at=(board.ip, self.port))

    def _run(self) -> None:
        served = self.boards
        while not self._ended.is_set():
            if select([self._all], [], [], 0.01)[0]:
                query, sender = self._all.recvfrom(2048)
                for board in served:
                    before = board.ip
                    answer = board.answer(query)
                    if board.ip != before:
                        self._serving.pop(before).close()
                        self._serving[board.ip] = self._served(board)
                    if answer:
                        self._serving[board.ip].send(answer, sender)

    def find(
        self, interfaces: Sequence[Interface] = (LOOPBACK,), seconds: float = SHORT
    ) -> list[FoundBoard]:
        """Return what is found; look again until it is all boards, for a busy computer."""
        found: list[FoundBoard] = []
        for _ in range(200):
            found = find_boards(interfaces, seconds, port=self.port)
            if len(found) >= len(self.boards):
                break
        return found
