"""The host's processor time of the network link, as a share of bare sockets: printed ratios.

Both sides of the loopback interface are processes, so that only this thread's time counts. Not part
of `make test`, because a test that runs at the same time makes every figure worse.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from multiprocessing import get_context
from select import select
from time import perf_counter, thread_time
from zlib import crc32

import pytest

from benchmarks.timing import fastest
from bitlane.links import udp
from bitlane_rtl.abi import DATAGRAM_BYTES, Answer, Request
from support.ethernet.datagrams import datagram_of, frames_in
from support.host.network import (
    UDP_GRO,
    Cable,
    ServedRules,
    board_process,
    received,
    send_batch,
)
from support.serial.frames import Reply, asked

pytestmark = pytest.mark.slow

BASE = 0x1000
SIZE = 729 * 1440
"""Bytes of a transfer: whole datagrams, 1 MiB and a little more."""

LOSSY_SIZE = 72 * 1440
"""Bytes of a transfer over a cable that loses datagrams."""

ROUNDS = 100
WINDOW = 19
"""Datagrams of a write that a board buffers."""

SEGMENTS = 44
"""Datagrams that the system joins: 64 KiB."""

PEERS = 3
"""Processes, because the system lets some answer in small parts, which take more calls."""


Parts = tuple[bytes, ...]
"""A datagram, in parts."""

Answering = Callable[[bytes], Parts]
"""Returns the datagram that answers one."""

ZEROS = bytes(480)


@contextmanager
def peer_process(answer: Answering) -> Iterator[int]:
    """Answer each datagram in a process; yield its port."""
    context = get_context("fork")
    here, there = context.Pipe()

    def serve() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            port.bind(("127.0.0.1", 0))
            port.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
            there.send(port.getsockname()[1])
            while True:
                datagrams, sender = received(port)
                for start in range(0, len(datagrams), SEGMENTS):
                    answers = [answer(x) for x in datagrams[start : start + SEGMENTS]]
                    size = sum(map(len, answers[0]))
                    send_batch(port, list(chain.from_iterable(answers)), size, sender)

    process = context.Process(target=serve, daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


class ZeroBoard:
    """A board full of zeros that executes nothing, so that the host hardly waits for it.

    It computes an answer once for all datagrams with the same session, number, kind and size. All
    answers share their zeros, so that they stay in the processor's cache.
    """

    def __init__(self) -> None:
        self._answers: dict[bytes, Parts] = {}

    def __call__(self, data: bytes) -> Parts:
        answer = self._answers.get(data[:8])
        if answer is None:
            answer = self._answers[data[:8]] = self._answer(data)
        return answer

    @staticmethod
    def _answer(data: bytes) -> Parts:
        requests = frames_in(data)
        assert requests is not None
        if requests[0][1] == Request.HELLO:
            return tuple(ServedRules().datagrams(data))
        answers = []
        for request in map(asked, requests):
            size = request.size if request.kind == Request.READ else 0
            answers.append(Reply(request.number, Answer.DONE, bytes(size)).content)
        whole = datagram_of(int.from_bytes(data[:4], "little"), answers)
        *heads, crc = whole.split(ZEROS)
        return *(part for head in heads for part in (head, ZEROS)), crc


class BareHost:
    """A loop of `sendmsg` and `recvmsg_into` that moves as many datagrams, and reads none.

    ``batches``: many datagrams with each call. ``crc``: compute the CRC-32 of each datagram, which
    the contract demands.
    """

    def __init__(
        self, port: int, request: int, answer: int, *, batches: bool, crc: bool = False
    ) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        if batches:
            self._socket.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._buffer = memoryview(bytearray(1 << 16))
        self._request, self._answer = bytes(request), answer
        self._batches, self._crc = batches, crc

    def transfer(self) -> None:
        for start in range(0, SIZE // 1440, WINDOW):
            count = min(WINDOW, SIZE // 1440 - start)
            if self._crc:
                for _ in range(count):
                    crc32(self._request)
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
        if not self._batches:
            return self._socket.recv_into(self._buffer)
        size = self._socket.recvmsg_into([self._buffer], 64)[0]
        if self._crc:
            for start in range(0, size, self._answer):
                crc32(self._buffer[start : start + self._answer])
        return size

    def close(self) -> None:
        self._socket.close()


def bare(request: int, answer: int, **options: bool) -> float:
    """Return the processor time of a bare loop."""
    answers = (bytes(answer),)
    best = []
    for _ in range(PEERS):
        with peer_process(lambda _: answers) as port:
            host = BareHost(port, request, answer, **options)
            best.append(fastest(host.transfer, ROUNDS, thread_time))
            host.close()
    return min(best)


def linked(name: str) -> tuple[float, str]:
    """Return the processor time of the link, and how it moves datagrams."""
    data = bytes(SIZE)
    best = []
    for _ in range(PEERS):
        with peer_process(ZeroBoard()) as port, udp.open_link(f"udp://127.0.0.1:{port}") as link:
            if name == "write":
                best.append(fastest(lambda: link.write(BASE, data), ROUNDS, thread_time))
            else:
                best.append(fastest(lambda: link.read(BASE, SIZE), ROUNDS, thread_time))
            way = link.description.split(", ")[-1]
    return min(best), way


@pytest.mark.parametrize(("name", "least"), [("write", 0.3), ("read", 0.2)])
def test_processor_time(
    name: str, least: float, record_property: Callable[[str, object], None]
) -> None:
    """``least``: share of a bare loop with segments that the link reaches."""
    request, answer = (DATAGRAM_BYTES, 20) if name == "write" else (32, 1460)
    cpu, way = linked(name)
    plain, segments = (bare(request, answer, batches=batches) for batches in (False, True))
    bound = bare(request, answer, batches=True, crc=True)
    record_property(
        "report",
        f"network {name}, {way}: {SIZE / cpu / 1e6:.0f} MB a second of processor time;"
        f" {segments / cpu:.2f} of a bare loop with segments ({SIZE / segments / 1e6:.0f} MB/s),"
        f" which has {segments / bound:.2f} of its rate if it computes CRCs;"
        f" {plain / cpu:.2f} of one with plain datagrams ({SIZE / plain / 1e6:.0f} MB/s)",
    )
    assert segments / cpu > least
    assert plain / cpu > 0.4


def test_one_datagram_in_a_hundred_is_lost(record_property: Callable[[str, object], None]) -> None:
    data = bytes(range(256)) * (LOSSY_SIZE // 256)
    seconds = []
    for loss in (0.0, 0.01):
        cables = Cable(loss=loss, seed=1), Cable(loss=loss, seed=2)
        with board_process(*cables) as url, udp.open_link(url) as link:
            started = perf_counter()
            for _ in range(ROUNDS):
                link.write(BASE, data)
                assert link.read(BASE, len(data)).tobytes() == data
            seconds.append(perf_counter() - started)
    ratio = seconds[0] / seconds[1]
    record_property("report", f"network, 1% of datagrams lost each way: {ratio:.2f} of the rate")
    assert ratio > 0.2
