"""A board on the network as the contract of datagrams describes it, in Python, to test the host.

`ServedRules` answer datagrams. `NetworkBoard` serves them on a UDP port of the loopback
interface, behind a `Cable` that loses, doubles, reorders and damages; a `LocalNetwork` of them
answers queries to all stations. Written apart from the driver's own encoding and from the circuit,
so that neither checks itself.
"""

import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from itertools import groupby
from multiprocessing import get_context
from random import Random
from select import select
from threading import Event, Thread
from time import monotonic
from typing import Any, Self

from bitlane.links.discovery import FoundBoard, Interface, find_boards
from bitlane_rtl.abi import STORED_HEADER_BYTES
from bitlane_sim.device import SimulatorLink
from support.board.model import Device, Watch
from support.ethernet.datagrams import NetworkRules
from support.serial.frames import Reply

UDP_SEGMENT, UDP_GRO = 103, 104
"""The system cuts the bytes of one call into datagrams of equal size, and joins them again."""


@dataclass
class ServedRules(NetworkRules):
    """The rules of a board that tests the host, too.

    It asserts that the host has no more on the way than the board buffers, that a repetition equals
    its first request, and that a repeated read of memory returns the same data.
    """

    clock: Callable[[], float] = monotonic
    in_order: bool = True
    """Whether datagrams arrive in order, and once; else a repeated read may return other data, and
    old copies may be on the way."""
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        self._waiting: deque[bytes] = deque()

    def restart(self) -> None:
        """Lose power and come back."""
        self.start(0)
        self.former, self.expected, self.complained, self.accepted = 0, 77, False, 0

    def start(self, session: int) -> None:
        super().start(session)
        self.watch.restart()

    def perform(self, request: bytes, new: bool) -> Reply:
        reply = super().perform(request, new)
        steady = self.device.steady and self.in_order
        self.watch.expect(request, new, reply, steady=steady)
        return reply

    @property
    def busy(self) -> bool:
        """Whether a datagram is waiting to be executed."""
        return bool(self._waiting)

    def take(self, datagram: bytes) -> list[bytes]:
        """Store a datagram, or drop it if the board has no room; return nothing."""
        self._waiting.append(datagram)
        stored = sum(len(each) + STORED_HEADER_BYTES for each in self._waiting)
        if stored > self.receive_bytes:
            self._waiting.pop()
            once = sum(len(each) + STORED_HEADER_BYTES for each in {*self._waiting, datagram})
            full = not self.in_order or once <= self.receive_bytes
            assert full, f"the host has {once} bytes on the way"
        return []

    def execute(self) -> list[bytes]:
        """Execute the oldest datagram; return those of its answers."""
        return self.datagrams(self._waiting.popleft())


@dataclass
class Cable:
    """One direction of a cable. Each rate is the share of datagrams that it hits."""

    loss: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    damage: float = 0.0
    seed: int = 0
    pulled: bool = False
    """Everything is lost."""
    hits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._late: list[bytes] = []

    def __call__(self, datagrams: list[bytes]) -> list[bytes]:
        """Return the datagrams that arrive; one that is overtaken arrives behind the next one."""
        if self.pulled:
            return []
        if not (self.loss or self.double or self.reorder or self.damage):
            return datagrams
        arrived: list[bytes] = []
        for each in datagrams:
            late, self._late = self._late, []
            if self._hit(self.loss):
                copies = []
            else:
                copies = [self._damaged(each)] * (1 + self._hit(self.double))
            if self._hit(self.reorder):
                self._late = copies
                copies = []
            arrived += copies + late
        return arrived

    def _hit(self, rate: float) -> bool:
        hit = self._random.random() < rate
        self.hits += hit
        return hit

    def _damaged(self, data: bytes) -> bytes:
        if not self._hit(self.damage):
            return data
        damaged = bytearray(data)
        how = self._random.randrange(3)
        if how == 0:
            damaged[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        elif how == 1:
            del damaged[self._random.randrange(len(data)) :]
        else:
            damaged += self._random.randbytes(1 + self._random.randrange(8))
        return bytes(damaged)


def received(port: socket.socket) -> tuple[list[bytes], Any]:
    """Return the datagrams that the system coalesced, and their sender."""
    data, options, _, sender = port.recvmsg(1 << 16, 64)
    size = int.from_bytes(options[0][2], sys.byteorder) if options else len(data) or 1
    return [data[start : start + size] for start in range(0, len(data), size)], sender


def send_batch(port: socket.socket, datagrams: Sequence[bytes], size: int, *to: Any) -> None:
    """Send datagrams of ``size`` bytes, the last one perhaps shorter, with one call."""
    option = [(socket.IPPROTO_UDP, UDP_SEGMENT, size.to_bytes(2, sys.byteorder))]
    port.sendmsg(datagrams, option if datagrams[1:] else [], 0, *to)


class NetworkBoard:
    """A board at the UDP port ``port`` of the loopback interface, served by a thread.

    ``at``: its address and port; 0 lets the system choose the port.
    """

    def __init__(
        self,
        rules: ServedRules,
        up: Cable | None = None,
        down: Cable | None = None,
        *,
        at: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.rules = rules
        self.up, self.down = up or Cable(), down or Cable()
        self.error: BaseException | None = None
        self.served = 0
        """Datagrams that have arrived."""
        self.different = set[bytes]()
        """Those that differ: on a busy machine a host repeats some."""
        self._end = Event()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Beside sockets for the datagrams to all.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, at[1] != 0)
        self._socket.bind(at)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"udp://{at[0]}:{self.port}"
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def pull(self) -> None:
        """Pull the cable."""
        self.up.pulled = self.down.pulled = True

    def close(self) -> None:
        """Close the port, so that the system refuses what is sent to it. Raises its error."""
        self._end.set()
        self._thread.join()
        self._socket.close()
        if self.error is not None:
            raise self.error

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        """Send a datagram from the board's address."""
        self._socket.sendto(data, to)

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                if select([self._socket], [], [], 0.01)[0]:
                    self.serve()
        except BaseException as error:  # noqa: BLE001, the test's own thread raises it
            self.error = error

    def serve(self) -> None:
        """Answer the datagrams that have arrived."""
        answers: list[bytes] = []
        host = None
        with suppress(BlockingIOError):
            while len(answers) < 64:
                datagrams, sender = received(self._socket)
                if sender[1] == self.port:
                    continue
                if sender != host:
                    self._send(answers, host)
                    answers, host = [], sender
                self.served += len(datagrams)
                self.different |= set(datagrams)
                for arrived in self.up(datagrams):
                    answers += self.down(self.rules.datagrams(arrived))
        self._send(answers, host)

    def _send(self, answers: list[bytes], host: tuple[str, int] | None) -> None:
        """Send ``answers``, those of equal size with one call, as a network card coalesces them."""
        for size, group in groupby(answers, len):
            batch = list(group)
            while batch:
                send_batch(self._socket, batch[:40], size, host)
                batch = batch[40:]


@contextmanager
def network_board(
    device: Device | None = None, up: Cable | None = None, down: Cable | None = None
) -> Iterator[NetworkBoard]:
    """Serve ``device`` in a thread; raise its errors in the end."""
    board = NetworkBoard(ServedRules(device) if device else ServedRules(), up, down)
    try:
        yield board
    finally:
        board.close()


@contextmanager
def board_process(up: Cable, down: Cable) -> Iterator[str]:
    """Serve a memory in a process of its own; yield its URL."""
    context = get_context("fork")
    here, there = context.Pipe()

    def serve() -> None:
        there.send(NetworkBoard(ServedRules(), up, down).url)
        Event().wait()

    process = context.Process(target=serve, daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


class SimulatedDevice:
    """A simulated device behind a board's network. Its clock runs while requests are answered."""

    steady = False
    cycles = 200
    """Clock cycles of each request."""

    def __init__(self, link: SimulatorLink) -> None:
        configuration = link.simulator.configuration
        self.link = link
        self.memory_base = configuration.memory_base
        self.memory_bytes = configuration.memory_bytes

    @property
    def interrupt(self) -> bool:
        """Return whether the interrupt line is high within the cycles of this request."""
        evaluator = self.link.simulator.evaluator
        return bool(evaluator.get("irq") or evaluator.until("irq", self.cycles))

    def read(self, address: int, size: int) -> bytes:
        return self.link.read(address, size).tobytes()

    def write(self, address: int, data: bytes) -> None:
        self.link.write(address, data)


# --- queries to all stations, on the loopback interface -------------------------------------------

LOOPBACK = next(
    Interface(name, number, IPv4Address("127.0.0.1"))
    for number, name in socket.if_nameindex()
    if name.startswith("lo")
)
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
