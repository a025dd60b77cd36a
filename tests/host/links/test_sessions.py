"""Opening boards that answer, that answer wrongly, and that do not; the sessions of the network."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bitlane.errors import BoardInUseError, LinkError, LinkVersionError
from bitlane_rtl.abi import DATAGRAM_RECEIVE_BYTES, SEQUENCES, SESSION_SECONDS, Answer, Request
from support.board.line import ModelLine, ModelPort, ModelSocket
from support.board.model import BoardModel
from support.ethernet.datagrams import datagram_of
from support.host.network import ServedRules
from support.host.transfers import BASE, Make, expect_well
from support.serial.frames import (
    Reply,
    answer_line,
    asked,
    frame,
    read,
    request_in,
    with_crc,
    write,
)

# --- opening --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "room"),
    [(ModelPort, room) for room in (44, 100, 524, 1000, 65535)]
    + [(ModelSocket, room) for room in (1496, 4000, DATAGRAM_RECEIVE_BYTES, 65535)],
)
def test_boards_of_any_buffer_are_served_within_it(make: Make, room: int) -> None:
    line = make()
    line.board.receive_bytes = room
    expect_well(line)


class Strange(BoardModel):
    """A board that sends an answer without a request."""

    def execute(self) -> list[bytes]:
        self._waiting.clear()
        return [answer_line(Reply(5, Answer.DONE, bytes(8)).content)]


class FirstVersion(BoardModel):
    """A board of link version 1, whose answers have a header of two bytes."""

    def take(self, block: bytes) -> list[bytes]:
        request = request_in(block)
        if request is None or request[1] != Request.HELLO:
            return self.complain()
        return [answer_line(bytes((request[0], Answer.DONE, 1, 0, 0, 8)) + request[4:8])]

    def complain(self) -> list[bytes]:
        return [answer_line(bytes((self.expected, Answer.EXPECTED)))]


class FirstRules(ServedRules):
    """A board on a network of link version 1."""

    def datagrams(self, payload: bytes) -> list[bytes]:
        session, number, nonce = payload[:4], payload[4:5], payload[8:12]
        answer = number + b"\0\0\0" + b"\1\0" + (28_672).to_bytes(2, "little") + nonce
        return [with_crc(session + answer)]


class Mistaken(ServedRules):
    """A board whose answers are sound, and to nobody's HELLO."""

    def datagrams(self, payload: bytes) -> list[bytes]:
        session = int.from_bytes(payload[:4], "little")
        return [datagram_of(session, [Reply(payload[4] + 1, Answer.DONE).content])] * 2


OLD = (
    "the board has version 1 of the link, this bitlane version 2; build the board's bitstream with"
    " this bitlane"
)
NEW = "version 7 of the link, this bitlane version 2; install the bitlane that built it, or build"
NOBODY = r"model board: no answer to \d HELLOs within 2 s; "
BAUD = "no sound frame: another baud rate, or no bitlane board"
PULLED = {ModelPort: "the port failed: .*Input/output", ModelSocket: "the network failed: .*Input"}

# Line, changes to it, changes to its board, and message.
UNUSABLE: list[tuple[Make, dict[str, Any], dict[str, Any], str]] = [
    (ModelPort, {"mute": True}, {}, NOBODY + "nothing came at all: is the board powered and con"),
    (ModelPort, {"break_after": 1}, {}, PULLED[ModelPort]),
    (ModelPort, {}, {"version": 7}, NEW),
    (partial(ModelPort, FirstVersion()), {}, {}, OLD),
    (ModelPort, {}, {"receive_bytes": 43}, "buffers 43 bytes; expected 44 or more"),
    (ModelPort, {"talk": lambda: b"tick 12345\r\n"}, {}, f"came, first 74 69 63 6b .*, {BAUD}"),
    (ModelPort, {"talk": lambda: b"\0\3abc\0\1\0\0\xff"}, {}, BAUD),
    (partial(ModelPort, Strange()), {}, {}, "answers to somebody else: does another program use"),
    (ModelSocket, {"mute": True}, {}, NOBODY + "nothing came at all: is the board powered and c"),
    (ModelSocket, {"break_after": 1}, {}, PULLED[ModelSocket]),
    (ModelSocket, {}, {"version": 1}, OLD),
    (ModelSocket, {}, {"version": 7}, NEW),
    (partial(ModelSocket, FirstRules()), {}, {}, OLD),
    (ModelSocket, {}, {"receive_bytes": 519}, "buffers 519 bytes; expected 520 or more"),
    (
        ModelSocket,
        {"talk": lambda: b"hello, who is there?"},
        {},
        "datagrams came that are not answers: is a bitlane board",
    ),
    (partial(ModelSocket, Mistaken()), {}, {}, NOBODY + r"[1-9]\d* answers came, and none of them"),
]


@pytest.mark.parametrize(("make", "changes", "board", "message"), UNUSABLE)
def test_a_board_that_cannot_be_opened(
    make: Make,
    changes: dict[str, Any],
    board: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A board of version 1 cannot be told from a damaged one by every number.
    monkeypatch.setattr("bitlane.links.udp_link.randbits", lambda bits: 0x12345678 % (1 << bits))
    line = make()
    vars(line).update(changes)
    vars(line.board).update(board)
    start = line.now
    with pytest.raises(LinkError, match=message) as caught:
        line.link(2.0)
    assert isinstance(caught.value, LinkVersionError) == (" version 2; " in message)
    assert line.now - start < 3.5
    assert line.closed
    assert not getattr(line.board, "alive", False)


def test_a_hello_that_is_lost_is_sent_again(line: ModelLine) -> None:
    lost = []

    def lose_first(units: list[bytes]) -> list[bytes]:
        lost.append(units)
        return [] if len(lost) < 4 else units

    line.hit("up", lose_first)
    with line.link(2.0) as link:
        link.write(BASE, b"fine")
    assert line.now < 1


class Late(BoardModel):
    """A board that answers another host's HELLO of the same sequence number before ours."""

    def execute(self) -> list[bytes]:
        request, _ = self._waiting[0]
        if request[1] != Request.HELLO:
            return super().execute()
        other = bytes((request[4] ^ 1,)) + request[5:8]
        stale = Reply(asked(request).number, Answer.DONE, bytes((9, 0, 50, 0)) + other)
        return [answer_line(stale.content), *super().execute()]


def test_the_answer_to_somebody_elses_hello_is_not_ours() -> None:
    expect_well(ModelPort(Late()))


def test_what_a_killed_program_has_left_on_the_serial_line_is_no_harm() -> None:
    line = ModelPort()
    line.link()
    number = line.board.expected
    for k in range(7):
        line.write(frame(read(number + k, BASE, 512)))
    line.write(frame(write(number + 7, BASE, b"left")))
    line.write(frame(write(number + 8, BASE, b"half"))[:-6])
    # The same port, so that the next program gets the answers too.
    with line.link() as link:
        assert link.read(BASE, 6).tobytes() == b"left\0\0"
    assert link.counts.damaged == 0
    # The first HELLO was answered: its delimiter ended the half of a frame.
    assert line.now < 0.3


# --- sessions of the network ----------------------------------------------------------------------


def test_a_board_in_use_is_an_error_that_names_the_option() -> None:
    line = ModelSocket()
    with line.link() as link:
        with pytest.raises(
            BoardInUseError, match=r"board: another host uses the board; .*takeover=1"
        ):
            line.again().link()
        link.write(BASE, b"fine")
    assert not line.board.alive


def test_a_host_that_died_leaves_the_board_free_after_a_while() -> None:
    line = ModelSocket()
    link = line.link()
    with pytest.raises(BoardInUseError):
        line.again(0.9 * SESSION_SECONDS).link()
    line.again(SESSION_SECONDS).link().close()
    assert not link.closed


def test_an_idle_session_goes_on() -> None:
    line = ModelSocket()
    with line.link() as link:
        line.now += 10 * SESSION_SECONDS
        link.write(BASE, b"fine")
        assert link.read(BASE, 4).tobytes() == b"fine"


def test_a_board_that_another_host_has_taken_over() -> None:
    line = ModelSocket()
    link = line.link()
    link.write(BASE, b"mine")
    with line.again().link(take_over=True) as other:
        with pytest.raises(LinkError, match="another host has taken the board over; option takeo"):
            link.write(BASE, b"lost")
        assert other.read(BASE, 4).tobytes() == b"mine"


def lose_power(board: ServedRules) -> None:
    board.restart()


def lose_count(board: ServedRules) -> None:
    board.expected = (board.expected - 100) % SEQUENCES


@pytest.mark.parametrize("lose", [lose_power, lose_count])
def test_a_board_that_has_forgotten_the_session(lose: Callable[[ServedRules], None]) -> None:
    line = ModelSocket()
    link = line.link()
    link.write(BASE, b"before")
    lose(line.board)
    with pytest.raises(LinkError, match="a new greeting: it was restarted, or another host used"):
        link.write(BASE, b"after.")
    assert bytes(line.board.memory_device.memory[:6]) == b"before"
    expect_well(line)


@pytest.mark.parametrize(
    ("sessions", "reason"),
    [
        (1, "another host has taken the board over"),
        (2, "or another host used it in between; open it again"),
    ],
)
def test_a_board_that_another_host_has_used_and_left(sessions: int, reason: str) -> None:
    line = ModelSocket()
    link = line.link()
    other = line
    for _ in range(sessions):
        other = other.again(SESSION_SECONDS)
        expect_well(other)
    with pytest.raises(LinkError, match=reason):
        link.read(BASE, 1)
    expect_well(line)
