"""Datagrams between host and board, and the rules of sessions, as `abi.datagrams` describes them.

Written apart from both the circuit and the driver, so that neither checks itself. Slow and plain.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from bitlane_rtl.abi.datagrams import (
    BUSY,
    DATAGRAM_BYTES,
    DATAGRAM_RECEIVE_BYTES,
    GOODBYE,
    TAKE_OVER,
)
from bitlane_rtl.abi.frames import Answer, Request
from support.board.model import BoardRules, MemoryDevice
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
    if len(payload) % 4 or payload[:4] == bytes(4) or with_crc(payload[:-4]) != payload:
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


@dataclass
class NetworkRules:
    """The answers of a board to each datagram, by the contract."""

    device: MemoryDevice
    session: int | None = None
    former: int | None = None
    """The session before."""
    alive: bool = False

    def __post_init__(self) -> None:
        self.rules = BoardRules(self.device, receive_bytes=DATAGRAM_RECEIVE_BYTES, accepted=0)

    def answers(self, payload: bytes) -> list[bytes]:
        """Return the datagrams that answer ``payload``."""
        session = int.from_bytes(payload[:4], "little")
        return [datagram_of(session, [x.content for x in each]) for each in self.replies(payload)]

    def replies(self, payload: bytes) -> list[list[Reply]]:
        """Return the answers in each datagram that answers ``payload``."""
        frames = frames_in(payload)
        if frames is None:
            return []
        packed: list[list[Reply]] = []
        for answer in self._answers(int.from_bytes(payload[:4], "little"), frames):
            if not packed or sum(len(x.content) for x in [*packed[-1], answer]) > _ROOM:
                packed.append([])
            packed[-1].append(answer)
        return packed

    def _answers(self, session: int, frames: list[bytes]) -> Iterator[Reply]:
        rules, interrupt = self.rules, self.device.interrupt
        first = asked(frames[0])
        if first.kind == Request.HELLO:
            other = self.alive and self.session != session and not first.address >> TAKE_OVER & 1
            if other or session == self.former:
                yield Reply(first.number, BUSY, interrupt=interrupt)
                return
            if session == self.session:
                yield rules.answer(frames[0], True)
                self.alive = True
                return
            self.former, self.session = self.session, session
        if session != self.session:
            return
        self.alive = True
        if first.kind == GOODBYE:
            self.alive = False
            yield Reply(first.number, Answer.DONE, interrupt=interrupt)
            return
        for each in frames:
            new = rules.is_new(each)
            reply = rules.complaint() if new is None else rules.answer(each, new)
            if new is not None:
                rules.taken_in(new)
            if reply:
                yield reply
            if new is None:
                return
