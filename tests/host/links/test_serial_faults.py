"""Silent or faulty boards, pulled cables and interrupted calls raise an error within the deadline.

The same board can be opened again afterwards.
"""

from random import Random
from typing import Any

import pytest

from bitlane.errors import LinkError
from bitlane.links.serial_link import SerialLink
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import REPETITIONS, SEQUENCES, Answer, Request
from support.board.line import ModelPort, connected
from support.board.model import BoardModel
from support.host.transfers import BASE, expect_transfer
from support.serial.frames import Reply, answer_line, asked, frame, read, request_in, write


def expect_well(board: BoardModel) -> None:
    """Expect that a new link to ``board`` works."""
    with connected(ModelPort(board)) as link:
        expect_transfer(link, board.memory_device, Random(9).randbytes(3000))
        assert link.wait(0) is False


def work(link: SerialLink) -> None:
    """Exchange, write and wait for long on ``link``."""
    for turn in range(100):
        link.exchange([(BASE, bytes(3000))], [(BASE + 50_000, 3000)])
        link.write(CONTROL_BASE, turn.to_bytes(4, "little"))
        link.wait(0)


# --- opening --------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [44, 100, 524, 1000, 65535])
def test_boards_of_any_buffer_are_served_within_it(room: int) -> None:
    board = BoardModel(receive_bytes=room)
    expect_well(board)


class Chatter(ModelPort):
    """A board of another make, which sends all the time."""

    text = b"tick 12345\r\n"

    @property
    def in_waiting(self) -> int:
        self.now += 0.001
        return len(self.text)

    def read(self, size: int, /) -> bytes:
        return self.text[:size]


class Zeros(Chatter):
    text = b"\0\3abc\0\1\0\0\xff"


def test_chatter_that_begins_later() -> None:
    port = ModelPort(BoardModel())
    link = connected(port, 1.0)
    link.write(BASE, b"fine")
    port.__class__ = Chatter
    with pytest.raises(LinkError, match="no answer for 1 s to a WRITE of 4 bytes at 0x1000; 18 by"):
        link.write(BASE, b"lost")
    assert port.closed
    expect_well(port.board)


class Strange(BoardModel):
    """A board that sends an answer without a request."""

    def execute(self) -> bytes:
        self._waiting.clear()
        return answer_line(Reply(5, Answer.DONE, bytes(8)).content)


class FirstVersion(BoardModel):
    """A board of link version 1, whose answers have a header of two bytes."""

    def take(self, block: bytes) -> bytes:
        request = request_in(block)
        if request is None or request[1] != Request.HELLO:
            return self.complain()
        return answer_line(bytes((request[0], Answer.DONE, 1, 0, 0, 8)) + request[4:8])

    def complain(self) -> bytes:
        return answer_line(bytes((self.expected, Answer.EXPECTED)))


MUTE = r"model board: no answer to \d HELLOs within 2 s; nothing came at all: is the"
CHATTER = "bytes came, first 74 69 63 6b .*, no sound frame: another baud"
OLD = (
    "the board has version 1 of the link, this bitlane version 2; build the board's bitstream with"
    " this bitlane"
)
NEW = (
    "the board has version 7 of the link, this bitlane version 2; install the bitlane that built it"
    ", or build"
)


@pytest.mark.parametrize(
    ("port", "changes", "board", "message"),
    [
        (ModelPort, {"mute": True}, BoardModel(), MUTE),
        (ModelPort, {"break_after": 1}, BoardModel(), "the port failed"),  # the cable is pulled
        (ModelPort, {}, BoardModel(version=7), NEW),
        (ModelPort, {}, FirstVersion(), OLD),
        (ModelPort, {}, BoardModel(receive_bytes=43), "buffers 43 bytes; expected 44 or more"),
        (Chatter, {}, BoardModel(), CHATTER),
        (Zeros, {}, BoardModel(), "no sound frame: another baud rate, or no bitlane board"),
        (ModelPort, {}, Strange(), "answers to somebody else: does another program use the board"),
    ],
)
def test_a_board_that_cannot_be_opened(
    port: type[ModelPort], changes: dict[str, Any], board: BoardModel, message: str
) -> None:
    opened = port(board)
    vars(opened).update(changes)
    start = opened.now
    with pytest.raises(LinkError, match=message):
        connected(opened, 2.0)
    assert opened.now - start < 3.5
    assert opened.closed


def test_a_hello_that_is_lost_is_sent_again() -> None:
    port = ModelPort(BoardModel())
    lost = []

    def lose_first(data: bytes) -> bytes:
        lost.append(data)
        return b"" if len(lost) < 4 else data

    port.up = lose_first  # type: ignore[assignment]
    with connected(port, 2.0) as link:
        link.write(BASE, b"fine")
    assert port.now < 1


class Late(BoardModel):
    """A board that answers another host's HELLO of the same sequence number before ours."""

    def execute(self) -> bytes:
        request, _ = self._waiting[0]
        if request[1] != Request.HELLO:
            return super().execute()
        other = bytes((request[4] ^ 1,)) + request[5:8]
        stale = Reply(asked(request).number, Answer.DONE, bytes((9, 0, 50, 0)) + other)
        return answer_line(stale.content) + super().execute()


def test_the_answer_to_somebody_elses_hello_is_not_ours() -> None:
    expect_well(Late())


def test_what_a_killed_program_has_left_on_the_line_is_no_harm() -> None:
    board = BoardModel()
    port = ModelPort(board)
    connected(port)
    number = board.expected
    for k in range(7):
        port.write(frame(read(number + k, BASE, 512)))
    port.write(frame(write(number + 7, BASE, b"left")))
    port.write(frame(write(number + 8, BASE, b"half"))[:-6])
    # The same port, so that the next program gets the answers too.
    with connected(port) as link:
        assert link.read(BASE, 6).tobytes() == b"left\0\0"
    assert link.counts.damaged == 0


# --- cables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 20, 100, 1000, 2047, 2500, 5000, 9000, 20_000])
def test_a_cable_that_is_pulled(after: int) -> None:
    board = BoardModel()
    port = ModelPort(board)
    link = connected(port)
    port.break_after = port.up_bytes + after
    with pytest.raises(LinkError, match=r"model board: the port failed: .*Input/output error"):
        work(link)
    assert port.closed
    with pytest.raises(LinkError, match="the link is closed; open it again"):
        link.read(BASE, 1)
    expect_well(board)


def test_a_cable_that_is_pulled_while_waiting() -> None:
    port = ModelPort(BoardModel())
    link = connected(port)
    port.break_after = port.up_bytes + 100
    with pytest.raises(LinkError, match="the port failed"):
        link.wait(1000)


def test_a_board_that_falls_silent() -> None:
    port = ModelPort(BoardModel())
    link = connected(port, 2.0)
    link.write(BASE, bytes(5000))
    port.mute = True
    start = port.now
    with pytest.raises(LinkError) as caught:
        link.read(BASE + 16, 5000)
    assert 1.99 < port.now - start < 3
    message = str(caught.value)
    assert "no answer for 2 s to a READ of 512 bytes at 0x1010;" in message
    assert "and 0 came since the call began" in message
    assert "\n" not in message
    expect_well(port.board)


# --- boards that lose their mind ------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 50, REPETITIONS, REPETITIONS + 1, 12_000, SEQUENCES - 1])
def test_a_board_that_was_reset(step: int) -> None:
    board = BoardModel()
    port = ModelPort(board)
    link = connected(port, 1.0)
    link.write(BASE, b"before")
    board.expected = (board.expected + step) % SEQUENCES
    board._first.clear()
    try:
        with pytest.raises(LinkError, match=r"it was reset, or another|no answer for 1 s"):
            link.write(BASE, b"after.")
    except KeyError:
        # To the model this looks like a repetition, which it has never seen.
        assert step <= REPETITIONS
    expect_well(board)


class Stubborn(BoardModel):
    """A board that complains about every frame and never stops."""

    def take(self, block: bytes) -> bytes:
        if self.taken and block:
            self.complained = False
            return self.complain()
        return super().take(block)


def test_a_board_that_only_ever_complains() -> None:
    port = ModelPort(Stubborn())
    link = connected(port, 1.0)
    start = port.now
    with pytest.raises(LinkError, match="no answer for 1 s to a WRITE of 4 bytes"):
        link.write(BASE, b"more")
    assert port.now - start < 5


# --- interrupts -----------------------------------------------------------------------------------


class Interrupted(ModelPort):
    """A port that raises Control-C at the ``countdown``-th access."""

    countdown = 1 << 30

    def read(self, size: int, /) -> bytes:
        self.countdown -= 1
        if self.countdown == 0:
            raise KeyboardInterrupt
        return super().read(size)


@pytest.mark.parametrize("countdown", [*range(1, 12), *range(12, 100, 9)])
def test_an_interrupted_call_leaves_the_board_usable(countdown: int) -> None:
    board = BoardModel()
    device = board.memory_device
    port = Interrupted(board)
    link = connected(port)
    port.countdown = countdown
    with pytest.raises(KeyboardInterrupt):
        work(link)
    assert port.closed
    # The same line, so that the next one to open it has what is still on its way before it.
    port.closed = False
    data = Random(countdown).randbytes(4000)
    with connected(port) as link:
        link.write(BASE, data)
        assert bytes(device.memory[:4000]) == data
        assert link.read(BASE, 4000).tobytes() == data
