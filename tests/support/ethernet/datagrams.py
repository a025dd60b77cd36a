"""Datagrams between host and board, and the rules of sessions, as `abi.datagrams` describes them.

Written apart from both the circuit and the driver, so that neither checks itself. Slow and plain.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bitlane_rtl.abi.datagrams import (
    BUSY,
    DATAGRAM_BYTES,
    DATAGRAM_RECEIVE_BYTES,
    GOODBYE,
    TAKE_OVER,
)
from bitlane_rtl.abi.frames import INTERRUPT_BIT, Answer, Request
from support.board.model import BoardRules, MemoryDevice
from support.serial.frames import request, with_crc

_ALONE = (Request.HELLO, GOODBYE)
"""Kinds that are the only frame of their datagram."""

_ROOM = DATAGRAM_BYTES - 8
"""Bytes of answers in a datagram."""


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)


def datagram_of(session: int, contents: Iterable[bytes]) -> bytes:
    """Return the datagram of frames, each of which is a header and data."""
    frames = b"".join(map(padded, contents))
    return with_crc(session.to_bytes(4, "little") + frames)


def goodbye(number: int) -> bytes:
    return request(number, GOODBYE, 0, 0)


@dataclass(frozen=True)
class Answered:
    """An answer of a datagram, taken apart."""

    number: int
    kind: int
    data: bytes = b""
    interrupt: bool = False

    @property
    def frame(self) -> bytes:
        head = bytes([self.number % 256, self.kind | self.interrupt << INTERRUPT_BIT])
        return padded(head + len(self.data).to_bytes(2, "little") + self.data)


def answers_in(payload: bytes) -> tuple[int, list[Answered]]:
    """Return SESSION and answers of a datagram. Raises ``AssertionError`` if it is not one."""
    assert 12 <= len(payload) <= DATAGRAM_BYTES, len(payload)
    assert with_crc(payload[:-4]) == payload
    found = []
    place = 4
    while place < len(payload) - 4:
        number, status = payload[place : place + 2]
        size = int.from_bytes(payload[place + 2 : place + 4], "little")
        data = payload[place + 4 :][:size]
        answer = Answered(number, status & 0x7F, data, bool(status >> INTERRUPT_BIT))
        assert payload[place:].startswith(answer.frame), "SIZE or padding"
        found.append(answer)
        place += len(answer.frame)
    assert place == len(payload) - 4
    return int.from_bytes(payload[:4], "little"), found


def frames_in(payload: bytes) -> list[bytes] | None:
    """Return the requests of a datagram; ``None`` if it is not one."""
    if len(payload) % 4 or payload[:4] == bytes(4) or with_crc(payload[:-4]) != payload:
        return None
    frames = []
    rest = payload[4:-4]
    while rest:
        size = int.from_bytes(rest[2:4], "little")
        length = 8 + (size if rest[1] == Request.WRITE else 0)
        frames.append(rest[:length])
        # The contract lets a board refuse a SIZE above 512, or drop it: this one does both.
        if len(frames[-1]) < length or length >= 8 + 1024 or (rest[1] in _ALONE and size):
            return None
        rest = rest[length + -length % 4 :]
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
        frames = frames_in(payload)
        if frames is None:
            return []
        session = int.from_bytes(payload[:4], "little")
        packed: list[list[Answered]] = []
        for answer in self._answers(session, frames):
            fits = packed and sum(len(x.frame) for x in packed[-1]) + len(answer.frame) <= _ROOM
            if not fits:
                packed.append([])
            packed[-1].append(answer)
        return [
            with_crc(session.to_bytes(4, "little") + b"".join(x.frame for x in answers))
            for answers in packed
        ]

    def _answers(self, session: int, frames: list[bytes]) -> Iterator[Answered]:
        rules, interrupt = self.rules, self.device.interrupt
        if frames[0][1] == Request.HELLO:
            [hello] = frames
            other = self.alive and self.session != session and not hello[4] >> TAKE_OVER & 1
            if other or session == self.former:
                yield Answered(hello[0], BUSY, interrupt=interrupt)
                return
            if session == self.session:
                reply = rules.answer(hello, True)
                yield Answered(reply.number, reply.answer, reply.data, reply.interrupt)
                self.alive = True
                return
            self.former, self.session = self.session, session
        if session != self.session:
            return
        self.alive = True
        if frames[0][1] == GOODBYE:
            self.alive = False
            yield Answered(frames[0][0], Answer.DONE, interrupt=interrupt)
            return
        for each in frames:
            new = rules.is_new(each)
            reply = rules.complaint() if new is None else rules.answer(each, new)
            if new is not None:
                rules.taken_in(new)
            if reply:
                yield Answered(reply.number, reply.answer, reply.data, reply.interrupt)
            if new is None:
                return
