"""A thread keeps the session of an idle link alive, and ends with the link and with Python."""

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import get_context
from random import Random
from time import monotonic, sleep

import pytest

from bitlane.errors import LinkError
from bitlane.links import Batch, DatagramSocket, UdpLink, udp, udp_link
from bitlane_rtl.abi import SESSION_SECONDS
from support.board.line import ModelSocket
from support.host.network import NetworkBoard, network_board
from support.host.transfers import BASE, expect_write

SECONDS = 20.0
"""Seconds within which a busy computer runs a thread."""

SOON = 0.005
"""Seconds between two looks of the thread."""


@pytest.fixture
def board() -> Iterator[NetworkBoard]:
    with network_board() as board:
        yield board


def opened(board: NetworkBoard) -> UdpLink:
    return UdpLink(DatagramSocket(("127.0.0.1", board.port)), description="model board")


def later(seconds: float) -> float:
    """Return a time that is ahead by ``seconds``."""
    return monotonic() + seconds


def keepers() -> list[threading.Thread]:
    """Return the threads that keep a session."""
    return [each for each in threading.enumerate() if each.name == "bitlane keep-alive"]


def kept(link: UdpLink, seconds: float) -> threading.Thread:
    """Keep the session of ``link``; return the thread."""
    before = keepers()
    link.keep_alive(seconds)
    (keeper,) = (each for each in keepers() if each not in before)
    return keeper


def expect_within(seconds: float, condition: object) -> None:
    """Wait until ``condition()`` is true."""
    assert callable(condition)
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end
        sleep(0.001)


# --- what is sent ---------------------------------------------------------------------------------


def test_an_idle_link_asks_for_nothing_once_each_time() -> None:
    line = ModelSocket()
    with line.link() as link:
        link.write(BASE, b"before")
        link.keep()
        served, counts = len(line.sent), link.counts.requests
        for _ in range(300):
            line.now += 0.9 * SESSION_SECONDS
            assert line.board.alive
            link.keep()
        assert len(line.sent) - served == link.counts.requests - counts == 300
        assert link.counts.repeated == 0
        # The numbers of the requests have passed their end.
        expect_write(link, line.board.memory_device, b"after.", 0)
        # A link in use sends nothing more.
        served = len(line.sent)
        link.keep()
        assert len(line.sent) == served


def test_the_thread_keeps_the_session(board: NetworkBoard) -> None:
    with opened(board) as link:
        link.keep_alive(SOON)
        for turn in range(5):
            served = board.served
            expect_within(SECONDS, lambda served=served: board.served > served + 1)
            board.rules.clock = partial(later, (turn + 1) * 0.9 * SESSION_SECONDS)
        assert board.rules.alive
        assert link.counts.repeated == 0


def test_a_url_has_the_option(board: NetworkBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(UdpLink, "keep_alive", lambda link: started.append(link.description))
    for option, expected in (("", 1), ("?keepalive=0", 1), ("?keepalive=1", 2)):
        udp.open_link(board.url + option).close()
        assert len(started) == expected


# --- boards that are gone -------------------------------------------------------------------------


def test_a_board_that_was_taken_over_is_not_stolen_back() -> None:
    line = ModelSocket()
    mine = line.link(0.3)
    mine.write(BASE, b"mine")
    mine.keep()
    for turn in range(3):
        other = line.again().link(take_over=True)
        other.write(BASE, b"other %d" % turn)
        session = line.board.session
        for _ in range(20):
            mine.keep()
        assert line.board.session == session
        assert other.read(BASE, 7).tobytes() == b"other %d" % turn
        if turn:
            # Nor when nobody uses it any more.
            other.close()
            mine.keep()
            assert (line.board.session, line.board.alive) == (session, False)
    with pytest.raises(LinkError, match=r"taken the board over|another host used it in between"):
        mine.read(BASE, 4)


def test_a_board_that_lost_power_is_left_alone() -> None:
    line = ModelSocket()
    link = line.link()
    link.write(BASE, b"before")
    link.keep()
    line.board.restart()
    for _ in range(20):
        link.keep()
    assert (line.board.session, line.board.alive) == (0, False)


def test_a_cable_that_was_pulled_for_a_while_costs_nothing() -> None:
    line = ModelSocket()
    data = Random(1).randbytes(60_000)
    with line.link() as link:
        link.write(BASE, data)
        link.keep()
        for way in ("up", "down"):
            setattr(line, way, lambda datagrams: [])
            for _ in range(100):
                link.keep()
            setattr(line, way, list)
            line.now += 10 * SESSION_SECONDS
            assert not line.board.alive
            link.keep()
            assert line.board.alive
            assert link.read(BASE, len(data)).tobytes() == data
            link.keep()
            link.keep()
        expect_write(link, line.board.memory_device, data[::-1], 0)


def test_a_board_that_is_gone_is_reported_by_the_next_call() -> None:
    with network_board() as board:
        link = opened(board)
    for _ in range(3):
        link.keep()
    assert not link.closed
    with pytest.raises(LinkError, match="nothing listens at this address and port; expected a"):
        link.read(BASE, 4)
    link.keep()


# --- threads and processes ------------------------------------------------------------------------


def test_calls_and_the_thread_take_turns(board: NetworkBoard) -> None:
    data = [Random(seed).randbytes(3_000) for seed in range(4)]
    errors: list[object] = []
    with opened(board) as link:
        link.keep_alive(1e-5)

        def use(number: int) -> None:
            try:
                for _ in range(60):
                    link.write(BASE + 4_000 * number, data[number])
                    got = link.read(BASE + 4_000 * number, len(data[number])).tobytes()
                    assert got == data[number]
                    sleep(0.0005)
            except BaseException as error:  # noqa: BLE001, the test's own thread raises it
                errors.append(error)

        users = [threading.Thread(target=use, args=(number,)) for number in range(4)]
        for each in users:
            each.start()
        for each in users:
            each.join(SECONDS)
        assert not errors
        assert link.counts.damaged == 0


def test_the_thread_finds_a_link_in_use(board: NetworkBoard) -> None:
    """Each wait of a call for the board tries to take the turn, as the thread does."""
    taken: list[bool] = []

    class Watching(DatagramSocket):
        link: UdpLink | None = None

        def receive(self, seconds: float) -> list[Batch]:
            if self.link:
                turn = self.link._keeper.turn
                thread = threading.Thread(target=lambda: taken.append(turn.acquire(blocking=False)))
                thread.start()
                thread.join()
            return super().receive(seconds)

    watching = Watching(("127.0.0.1", board.port))
    with UdpLink(watching, description="model board") as link:
        watching.link = link
        calls: list[Callable[[], object]] = [
            lambda: link.exchange([(BASE, b"fine")], [(BASE + 8, 4)]),
            lambda: link.read(BASE, 4),
            lambda: link.write(BASE, b"fine"),
            lambda: link.wait(0.0),
            link.close,
        ]
        for call in calls:
            before = len(taken)
            call()
            assert taken[before:]
        assert not any(taken)


def leave(links: list[UdpLink]) -> None:
    """End the session as Python does at its end, while the link is referenced."""
    (link,) = links
    udp_link._leave(link._socket, link._session, link._keeper, os.getpid())


def drop(links: list[UdpLink]) -> None:
    """Drop the last reference, which is in a cycle."""
    cycle: list[object] = [links.pop()]
    cycle.append(cycle)
    del cycle
    gc.collect()


@pytest.mark.parametrize("end", [leave, drop, lambda links: links[0].close()])
def test_nothing_follows_the_end_of_the_session(
    board: NetworkBoard, end: Callable[[list[UdpLink]], object]
) -> None:
    links = [opened(board)]
    keeper = kept(links[0], 1e-4)
    served = board.served
    expect_within(SECONDS, lambda: board.served > served)
    end(links)
    keeper.join(SECONDS)
    assert not keeper.is_alive()
    expect_within(SECONDS, lambda: not board.rules.alive)


_UNCLOSED = """
import sys, time
from bitlane.links.udp import open_link
link = open_link(sys.argv[1])
link._keeper.start(link, 1e-4)
link.write(0x1000, b"last")
time.sleep(0.05)
"""


@pytest.mark.slow
def test_a_program_that_closes_nothing_ends_and_leaves_the_board_free(board: NetworkBoard) -> None:
    """A request behind its GOODBYE would keep the session alive."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _UNCLOSED, board.url],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        expect_within(SECONDS, lambda: not board.rules.alive)
    assert bytes(board.rules.memory_device.memory[:4]) == b"last"


def test_a_forked_process_keeps_nothing(board: NetworkBoard) -> None:
    """It has no such thread, and is not stopped by a lock that another thread held in the fork."""
    held, forked = threading.Event(), threading.Event()
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)

    def hold() -> None:
        with link._keeper.turn:
            held.set()
            forked.wait(SECONDS)

    def child() -> None:
        signal.alarm(int(SECONDS))
        threads = len(keepers())
        link.close()
        there.send(threads)

    with opened(board) as link:
        keeper = kept(link, SOON)
        link.write(BASE, b"mine")
        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(SECONDS)
        process = context.Process(target=child)
        process.start()
        assert here.poll(SECONDS)
        assert here.recv() == 0
        process.join(SECONDS)
        assert process.exitcode == 0
        forked.set()
        assert board.rules.alive
        assert link.read(BASE, 4).tobytes() == b"mine"
        assert keeper.is_alive()
