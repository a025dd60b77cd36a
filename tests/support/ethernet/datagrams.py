"""Datagrams between host and board, and the rules of sessions, as `abi.datagrams` describes them.

Written apart from both the circuit and the driver, so that neither checks itself. Slow and plain.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from bitlane_rtl.abi import (
    BUSY,
    DATAGRAM_BYTES,
    DATAGRAM_RECEIVE_BYTES,
    GOODBYE,
    SESSION_SECONDS,
    TAKE_OVER,
    Answer,
    Request,
)
from support.board.model import BoardRules
from support.serial.frames import Reply, asked, reply_in, request, request_bytes, with_crc

_ALONE = (Request.HELLO, GOODBYE)
"""Kinds that are the only frame of their datagram."""

_ROOM = DATAGRAM_BYTES - 8
"""Bytes of answers in a datagram."""


def datagram_of(session: int, contents: Iterable[bytes]) -> bytes:
    """Return the datagram of frames, each of which is whole words."""
    return with_crc(session.to_bytes(4, "little") + b"".join(contents))


def goodbye(number: int) -> bytes:
    return request(number, GOODBYE, 0, 0)


def answers_in(payload: bytes, like: Sequence[Reply] = ()) -> tuple[int, list[Reply]]:
    """Return SESSION and answers of a datagram. Raises ``AssertionError`` if it is not one.

    ``like``: the expected answers, from whose addresses their data's offsets are taken.
    """
    assert 12 <= len(payload) <= DATAGRAM_BYTES, len(payload)
    assert with_crc(payload[:-4]) == payload
    found = []
    addresses = chain((each.address for each in like), repeat(0))
    rest = payload[4:-4]
    while rest:
        answer, rest = reply_in(rest, next(addresses))
        found.append(answer)
    return int.from_bytes(payload[:4], "little"), found


def frames_in(payload: bytes) -> list[bytes] | None:
    """Return the requests of a datagram; ``None`` if it is not one."""
    if (
        len(payload) % 4
        or len(payload) > DATAGRAM_BYTES
        or payload[:4] == bytes(4)
        or with_crc(payload[:-4]) != payload
    ):
        return None
    frames = []
    rest = payload[4:-4]
    while rest:
        length = request_bytes(rest)
        frames.append(rest[:length])
        if len(rest) < length or (rest[1] in _ALONE and asked(rest).size):
            return None
        rest = rest[length:]
    alone = len(frames) == 1 or not any(each[1] in _ALONE for each in frames)
    return frames if frames and alone else None


def _stopped() -> float:
    return 0.0


@dataclass
class NetworkRules(BoardRules):
    """The answers of a board to each datagram, by the contract."""

    receive_bytes: int = DATAGRAM_RECEIVE_BYTES
    accepted: int | None = 0
    clock: Callable[[], float] = _stopped
    """The time in seconds, by which sessions expire."""
    session: int = 0
    """The present session; 0: none since the board was powered."""
    former: int = 0
    """The session before; 0: none."""
    alive_until: float = 0.0
    dropped: int = 0

    @property
    def alive(self) -> bool:
        """Whether the session is alive."""
        return self.session != 0 and self.clock() < self.alive_until

    def datagrams(self, payload: bytes) -> list[bytes]:
        """Return the datagrams that answer ``payload``."""
        session = int.from_bytes(payload[:4], "little")
        return [datagram_of(session, [x.content for x in each]) for each in self.replies(payload)]

    def replies(self, payload: bytes) -> list[list[Reply]]:
        """Return the answers in each datagram that answers ``payload``."""
        requests = frames_in(payload)
        session = int.from_bytes(payload[:4], "little")
        if requests is None or (session != self.session and requests[0][1] != Request.HELLO):
            self.dropped += 1
            return []
        packed: list[list[Reply]] = []
        for answer in self._answers(session, requests):
            if not packed or sum(len(x.content) for x in [*packed[-1], answer]) > _ROOM:
                packed.append([])
            packed[-1].append(answer)
        return packed

    def start(self, session: int) -> None:
        """Start a session."""
        self.former, self.session = self.session, session

    def perform(self, request: bytes, new: bool) -> Reply:
        """Answer a request that is the next one, or a repetition."""
        self.taken_in(new)
        return self.answer(request, new)

    def _answers(self, session: int, requests: list[bytes]) -> Iterator[Reply]:
        first = asked(requests[0])
        if first.kind == Request.HELLO:
            other = self.alive and self.session != session and not first.address >> TAKE_OVER & 1
            if other or session == self.former:
                yield Reply(first.number, BUSY, interrupt=self.device.interrupt)
                return
            if session != self.session:
                self.start(session)
            else:
                # A late copy: it changes no number.
                self.alive_until = self.clock() + SESSION_SECONDS
                yield self.answer(requests[0], True)
                return
        self.alive_until = self.clock() + SESSION_SECONDS
        if first.kind == GOODBYE:
            self.alive_until = 0.0
            yield Reply(first.number, Answer.DONE, interrupt=self.device.interrupt)
            return
        for each in requests:
            new = self.is_new(each)
            if new is None:
                if complaint := self.complaint():
                    yield complaint
                return
            yield self.perform(each, new)
