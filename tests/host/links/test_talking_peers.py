"""Peers that never stop talking, and peers that talk slowly, hold up no call for long.

Time is simulated. Each peer speaks in place of a board that has fallen silent.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from bitlane.errors import LinkError
from bitlane.links.line import Batch
from bitlane.links.remote_link import RemoteLink
from bitlane.links.serial_link import SerialLink
from bitlane.links.udp_link import UdpLink
from bitlane_rtl.abi.frames import Answer
from support.board.model import BoardModel, Reply
from support.ethernet.datagrams import datagram_of
from support.host.network import ServedRules
from support.serial.frames import answer_line, asked

TIMEOUT = 1.0
MOST_TIMEOUTS = 4
"""Timeouts within which every call ends: three without an answered request, and a farewell."""

ADDRESS = 0x1000

_TURN = 0.002
"""Seconds that the host takes for a turn."""

Talk = Callable[[bool, int], bytes]
"""Return what a peer says, on the network or on a serial line, after the answer of a number."""


def complaint(network: bool, number: int) -> bytes:
    return _said(network, number + 1, Answer.EXPECTED)


def old_answer(network: bool, number: int) -> bytes:
    return _said(network, number, Answer.DONE)


def noise(network: bool, number: int) -> bytes:
    return b"tick 12345\r\n"


def _said(network: bool, number: int, kind: Answer) -> bytes:
    answer = Reply(number, kind).content
    return answer if network else answer_line(answer)


class Peer:
    """A board until ``talk`` is set; then the peer. ``pause``: seconds between its words."""

    def __init__(self, pause: float) -> None:
        self.now = 0.0
        self.talk: Talk | None = None
        self.number = 0
        self._pause = pause
        self._next = 0.0
        self._silent = False

    def clock(self) -> float:
        """Return the simulated time in seconds."""
        return self.now

    def spoken(self, seconds: float, text: Callable[[Talk], bytes]) -> bytes:
        """Return what is said within ``seconds``; let the time pass."""
        seconds = max(0.0, seconds)
        if self.talk is None or self.now + seconds < self._next:
            self.now += seconds
            return b""
        self.now = max(self.now + _TURN, self._next)
        assert self.now < 10 * MOST_TIMEOUTS * TIMEOUT, "the call does not end"
        self._next = self.now + self._pause
        return text(self.talk)


class PeerSocket(Peer):
    """The socket of a network link."""

    description = "peer"

    def __init__(self, pause: float) -> None:
        super().__init__(pause)
        self._rules = ServedRules(clock=self.clock)
        self._answers: list[bytes] = []
        self._session = 0

    def send(self, batches: Sequence[Batch]) -> None:
        for packet in (bytes(x) for batch in batches for x in batch.packets()):
            self._session = int.from_bytes(packet[:4], "little")
            if self.talk is None:
                self.number = asked(packet[4:]).number
                self._answers += self._rules.datagrams(packet)

    def receive(self, seconds: float) -> list[Batch]:
        answers, self._answers = self._answers, []
        if not answers and (said := self.spoken(seconds, self._datagram)):
            answers = [said]
        return [Batch(x, len(x)) for x in answers]

    def close(self) -> None:
        """Do nothing."""

    def _datagram(self, talk: Talk) -> bytes:
        said = talk(True, self.number)
        return said if talk is noise else datagram_of(self._session, [said])


class PeerPort(Peer):
    """The port of a serial link; with a pause, its words come byte by byte."""

    timeout: Any = 0.0

    def __init__(self, pause: float) -> None:
        super().__init__(pause)
        self._board = BoardModel()
        self._answers = b""
        self._rest = b""

    @property
    def in_waiting(self) -> int:
        return 100

    def read(self, size: int, /) -> bytes:
        answers, self._answers = self._answers, b""
        return answers or self.spoken(self.timeout, self._part)

    def write(self, data: bytes, /) -> None:
        if self.talk is None:
            self._answers += self._board.feed(data)
            self.number = self._board.expected - 1

    def close(self) -> None:
        """Do nothing."""

    def _part(self, talk: Talk) -> bytes:
        self._rest = self._rest or talk(False, self.number)
        size = 1 if self._pause else len(self._rest)
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def opened(peer: Peer) -> RemoteLink:
    if isinstance(peer, PeerSocket):
        return UdpLink(peer, timeout=TIMEOUT, clock=peer.clock)  # type: ignore[arg-type]
    assert isinstance(peer, PeerPort)
    return SerialLink(peer, timeout=TIMEOUT, clock=peer.clock)


CALLS: dict[str, Callable[[RemoteLink], object]] = {
    "read": lambda link: link.read(ADDRESS, 3000),
    "write": lambda link: link.write(ADDRESS, bytes(3000)),
    "wait": lambda link: link.wait(TIMEOUT / 2),
    "close": lambda link: link.close(),
}


@pytest.mark.parametrize("pause", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("talk", [complaint, old_answer, noise])
@pytest.mark.parametrize("kind", [PeerSocket, PeerPort])
def test_every_call_ends_in_time(kind: type[Peer], talk: Talk, pause: float) -> None:
    peer = kind(pause)
    peer.talk = talk
    with pytest.raises(LinkError) as caught:
        opened(peer)
    assert peer.now <= MOST_TIMEOUTS * TIMEOUT
    assert "\n" not in str(caught.value)
    for name, call in CALLS.items():
        peer = kind(pause)
        link = opened(peer)
        link.write(ADDRESS, b"fine")
        peer.talk = talk
        start = peer.now
        with suppress(LinkError):
            call(link)
            assert name == "close"
        assert peer.now - start <= MOST_TIMEOUTS * TIMEOUT, name
        assert link.closed
