"""The host's processor time of the network link, as a share of bare sockets: printed ratios.

Both sides of the loopback interface are processes, so that only this thread's time counts. Not part
of `make test`, because a test that runs at the same time makes every figure worse.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from select import select
from time import perf_counter, thread_time

import pytest

from bitlane.links.udp import open_link
from bitlane_rtl.abi.datagrams import DATAGRAM_BYTES
from support.host.network import UDP_GRO, Cable, board_process, received, send_batch

pytestmark = pytest.mark.slow

BASE = 0x1000
SIZE = 72 * 1440
"""Bytes of a transfer: whole datagrams."""

ROUNDS = 20
WINDOW = 10
"""Datagrams of a write that a board buffers."""

Times = tuple[float, float]
"""Seconds of this thread's processor time, and of a clock."""


def fastest(call: Callable[[], object]) -> Times:
    """Return the least seconds of a call, because noise only adds time."""
    best = (float("inf"), float("inf"))
    for _ in range(ROUNDS):
        cpu, clock = thread_time(), perf_counter()
        call()
        best = min(best[0], thread_time() - cpu), min(best[1], perf_counter() - clock)
    return best


@contextmanager
def echo_process(answer: int) -> Iterator[int]:
    """Answer each datagram with ``answer`` bytes in a process; yield its port."""
    context = get_context("fork")
    here, there = context.Pipe()

    def serve() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            port.bind(("127.0.0.1", 0))
            port.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
            there.send(port.getsockname()[1])
            while True:
                datagrams, sender = received(port)
                for start in range(0, len(datagrams), 40):
                    send_batch(
                        port, [bytes(answer)] * len(datagrams[start : start + 40]), answer, sender
                    )

    process = context.Process(target=serve, daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


class BareHost:
    """A loop of `sendmsg` and `recvmsg_into` that moves as many datagrams, and looks at none."""

    def __init__(self, port: int, request: int, answer: int, *, batches: bool) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        if batches:
            self._socket.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._buffer = bytearray(1 << 16)
        self._request, self._answer, self._batches = bytes(request), answer, batches

    def transfer(self) -> None:
        for start in range(0, SIZE // 1440, WINDOW):
            count = min(WINDOW, SIZE // 1440 - start)
            if self._batches:
                send_batch(self._socket, [self._request] * count, len(self._request))
            else:
                for _ in range(count):
                    self._socket.send(self._request)
            left = count * self._answer
            while left:
                select([self._socket], [], [], 10)
                with suppress(BlockingIOError):
                    while left:
                        left -= self._receive()

    def _receive(self) -> int:
        if self._batches:
            return self._socket.recvmsg_into([self._buffer], 64)[0]
        return self._socket.recv_into(self._buffer)

    def close(self) -> None:
        self._socket.close()


def bare(request: int, answer: int, *, batches: bool) -> float:
    """Return the processor time of a bare loop."""
    with echo_process(answer) as port:
        host = BareHost(port, request, answer, batches=batches)
        best = fastest(host.transfer)
        host.close()
    return best[0]


@pytest.mark.parametrize("name", ["write", "read"])
def test_processor_time(name: str, record_property: Callable[[str, object], None]) -> None:
    request, answer = (DATAGRAM_BYTES, 20) if name == "write" else (32, DATAGRAM_BYTES)
    data = bytes(SIZE)
    with board_process(Cable(), Cable()) as url, open_link(url) as link:
        if name == "write":
            cpu, _ = fastest(lambda: link.write(BASE, data))
        else:
            cpu, _ = fastest(lambda: link.read(BASE, SIZE))
        way = link.description.split(", ")[-1]
    plain, segments = (bare(request, answer, batches=batches) for batches in (False, True))
    record_property(
        "report",
        f"network {name}, {way}: {SIZE / cpu / 1e6:.0f} MB a second of processor time;"
        f" {plain / cpu:.2f} of a bare loop of plain datagrams ({SIZE / plain / 1e6:.0f} MB/s),"
        f" {segments / cpu:.2f} of one with segments ({SIZE / segments / 1e6:.0f} MB/s)",
    )
    assert plain / cpu > 0.25


def test_one_datagram_in_a_hundred_is_lost(record_property: Callable[[str, object], None]) -> None:
    data = bytes(range(256)) * (SIZE // 256)
    seconds = []
    for loss in (0.0, 0.01):
        cables = Cable(loss=loss, seed=1), Cable(loss=loss, seed=2)
        with board_process(*cables) as url, open_link(url) as link:
            started = perf_counter()
            for _ in range(ROUNDS):
                link.write(BASE, data)
                assert link.read(BASE, len(data)).tobytes() == data
            seconds.append(perf_counter() - started)
    ratio = seconds[0] / seconds[1]
    record_property("report", f"network, 1% of datagrams lost each way: {ratio:.2f} of the rate")
    assert ratio > 0.2
