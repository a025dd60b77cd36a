"""Two boards at simulated pins on one switch: a pool of them, and the rate of their one cable."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from threading import Condition
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane.links import UdpLink
from bitlane_boards import boards
from bitlane_boards.pins import SimulatedSwitch, UdpServer, bound_socket, serve_all
from bitlane_boards.readback import rtl_model
from bitlane_rtl.abi import DATAGRAM_BYTES
from support.boards.session import SILENCE, networked
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS]

PORT = 50_000


class SwitchHosts:
    """Hosts that use a ``switch`` in a thread each: the time passes while all of them wait."""

    def __init__(self, switch: SimulatedSwitch) -> None:
        self.switch = switch
        self._changed = Condition()
        self._active = self._waiting = self._steps = 0

    def link(self, board: int) -> UdpLink:
        """Return a link to a board, with deadlines in simulated time."""
        socket: Any = _Socket(self, board)
        clock = lambda: self.switch.seconds  # noqa: E731
        return UdpLink(socket, description=f"board {board}", timeout=SILENCE, clock=clock)

    def expect(self, count: int) -> None:
        """Let the time stand still from now on, except while ``count`` threads wait."""
        with self._changed:
            self._active += count

    def leave(self) -> None:
        """The calling thread, one of those that were expected, waits no more."""
        with self._changed:
            self._active -= 1
            self._pass_time()

    def send(self, board: int, batches: Sequence[tuple[bytes | memoryview, int]]) -> None:
        with self._changed:
            for content, size in batches:
                for start in range(0, len(content), size):
                    self.switch.send(board, PORT, content[start : start + size])

    def receive(self, board: int, seconds: float) -> list[tuple[memoryview, int]]:
        with self._changed:
            end = self.switch.seconds + seconds
            while not (found := self.switch.arrived(board)) and self.switch.seconds < end:
                steps = self._steps
                self._waiting += 1
                self._pass_time()
                assert self._changed.wait_for(lambda steps=steps: self._steps != steps, 100)
        return [(memoryview(data), len(data)) for _, data in found]

    def _pass_time(self) -> None:
        """Run a step if everybody waits."""
        if self._waiting and self._waiting >= self._active:
            self.switch.step()
            self._waiting = 0
            self._steps += 1
            self._changed.notify_all()


class _Socket:
    """The part of a `DatagramSocket` that a link uses."""

    description = "simulated switch"

    def __init__(self, hosts: SwitchHosts, board: int) -> None:
        self._hosts, self._board = hosts, board

    def send(self, batches: Sequence[tuple[bytes | memoryview, int]]) -> None:
        self._hosts.send(self._board, batches)

    def receive(self, seconds: float) -> list[tuple[memoryview, int]]:
        return self._hosts.receive(self._board, seconds)

    def close(self) -> None:
        """Do nothing: the switch stays."""


BOARD = boards()["colorlight-i5"]
Record = Callable[[str, object], None]

LINE_RATE = 125e6 * DATAGRAM_BYTES / (DATAGRAM_BYTES + 66)
"""Bytes a second of datagrams on the cable."""

SHARE = 0.93
"""Least share of the rate of the cable, of two boards together."""


@pytest.fixture(scope="module")
def switch() -> Iterator[SimulatedSwitch]:
    """Connect two boards. They have equal addresses, but ports of their own."""
    made = SimulatedSwitch([networked(rtl_model(BOARD), BOARD) for _ in range(2)])
    yield made
    made.close()


@pytest.fixture
def urls(switch: SimulatedSwitch) -> Iterator[list[str]]:
    """Serve the boards at sockets of the system, in a thread."""
    servers = [UdpServer(port, bound_socket()) for port in switch.ports]
    stop = threading.Event()
    errors: list[BaseException] = []

    def serve() -> None:
        try:
            while not stop.is_set():
                serve_all(servers, 0.05)
        except BaseException as error:  # noqa: BLE001, the test's own thread raises it
            errors.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    yield [server.url for server in servers]
    stop.set()
    thread.join()
    for server in servers:
        server.close()
    assert not errors


def test_two_boards_search_as_one(
    switch: SimulatedSwitch, urls: list[str], record_property: Record
) -> None:
    random = np.random.default_rng(1)
    rows = random.integers(0, 256, (2048, 64), np.uint8)
    queries = random.integers(0, 256, (3, 64), np.uint8)
    with bitlane.open("numpy") as device:
        expected = device.search(queries, rows, 5)
    for boards_used in (1, 2):
        with bitlane.Pool(urls[:boards_used]) as pool:
            before = switch.seconds
            answer = pool.search(queries, rows, 5)
            seconds = switch.seconds - before
            assert not pool.lost
        for got, right in zip(answer, expected, strict=True):
            assert np.array_equal(got, right)
        record_property(
            "report",
            f"search of {rows.nbytes >> 10} KiB on one switch, boards: {boards_used}:"
            f" {rows.nbytes / seconds / 1e6:.1f} MB/s of rows, in simulated time",
        )


@pytest.mark.parametrize("way", ["to the boards", "from the boards"])
def test_two_boards_share_the_cable(
    switch: SimulatedSwitch, way: str, record_property: Record
) -> None:
    size = 192 << 10
    data = [np.random.default_rng(n).integers(0, 256, size, np.uint8).tobytes() for n in (1, 2)]
    hosts = SwitchHosts(switch)
    rates = []
    for boards_used in (1, 2):
        with ExitStack() as open_things:
            links = [open_things.enter_context(hosts.link(n)) for n in range(boards_used)]
            found = [b""] * boards_used

            def move(number: int, links: list[UdpLink] = links, found: list[bytes] = found) -> None:
                try:
                    if way == "to the boards":
                        links[number].write(0, data[number])
                    else:
                        found[number] = links[number].read(0, size).tobytes()
                finally:
                    hosts.leave()

            if way == "from the boards":
                for link, content in zip(links, data, strict=False):
                    link.write(0, content)
            threads = [threading.Thread(target=move, args=(n,)) for n in range(boards_used)]
            before = switch.seconds
            hosts.expect(boards_used)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rates.append(boards_used * size / (switch.seconds - before))
            assert not any(link.counts.repeated for link in links)
            if way == "to the boards":
                found = [link.read(0, size).tobytes() for link in links]
            assert found == data[:boards_used]
    one, two = rates
    record_property(
        "report",
        f"{size >> 10} KiB each {way} on one switch: {one / 1e6:.1f} MB/s of one board,"
        f" {two / 1e6:.1f} MB/s of two together, {two / LINE_RATE:.3f} of the cable",
    )
    assert SHARE * LINE_RATE <= two <= LINE_RATE
