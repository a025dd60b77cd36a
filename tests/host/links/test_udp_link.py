"""The network link over the loopback interface: datagrams, sessions, and cables with faults."""

import socket
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from time import monotonic, sleep

import numpy as np
import pytest

import bitlane
from bitlane.errors import BitlaneError, BoardInUseError, LinkError, LinkVersionError
from bitlane.links import udp_link
from bitlane.links.datagram_socket import DatagramSocket
from bitlane.links.line import Batch
from bitlane.links.udp import open_link
from bitlane.links.udp_link import UdpLink
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.datagrams import DATAGRAM_RECEIVE_BYTES, SESSION_SECONDS
from bitlane_rtl.abi.frames import SEQUENCES, Answer
from support.board.driver import DriverDevice
from support.ethernet.datagrams import datagram_of
from support.host.network import Cable, NetworkBoard, ServedRules, network_board
from support.host.transfers import BASE, expect_exchange, expect_transfer
from support.serial.frames import Reply, with_crc

SIZE = 1 << 17


@pytest.fixture
def board() -> Iterator[NetworkBoard]:
    with network_board() as board:
        yield board


def later(seconds: float) -> float:
    """Return a time that is ahead by ``seconds``."""
    return monotonic() + seconds


LATE = 60.0
"""Seconds within which a wait that ends by itself has ended on a busy computer."""


def opened(board: NetworkBoard, timeout: float = 10.0) -> UdpLink:
    opened_socket = DatagramSocket(("127.0.0.1", board.port))
    return UdpLink(opened_socket, description="model board", timeout=timeout)


@pytest.fixture
def patient_greeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a greeting after silence wait for a board that a busy computer serves late.

    Three waits of a hundredth of a second each would be enough on an idle one.
    """
    monkeypatch.setattr(udp_link, "_ALONE", LATE)
    monkeypatch.setattr(udp_link, "_LONGEST_ALONE", 0.5)


def lose_patience(link: UdpLink, seconds: float = 0.3) -> None:
    """Let ``link`` give up after ``seconds`` of silence from now on."""
    vars(link)["_timeout"] = seconds


def expect_well(board: NetworkBoard) -> None:
    """Expect that a new link to ``board`` works."""
    with open_link(board.url) as link:
        expect_transfer(link, board.rules.memory_device, Random(9).randbytes(5000))


# --- calls ----------------------------------------------------------------------------------------


def test_a_small_call_is_one_datagram_each_way(board: NetworkBoard) -> None:
    with opened(board) as link:
        before, received = board.served, link.counts.received_bytes
        link.exchange(
            [(BASE, bytes(64)), (CONTROL_BASE + 0x2000, bytes(64)), (CONTROL_BASE + 8, bytes(4))],
            [(CONTROL_BASE + 12, 4)],
        )
        assert board.served - before == 1
        assert link.counts.received_bytes - received == 8 + 4 * 4 + 4


def test_waiting_ends_when_the_line_rises_or_the_time_has_passed(board: NetworkBoard) -> None:
    with opened(board) as link:
        start = monotonic()
        assert link.wait(0.2) is False
        assert 0.2 <= monotonic() - start < LATE
        board.rules.memory_device.interrupt = True
        assert link.wait(LATE) is True


def test_a_refusal_names_the_first_request_of_a_long_read(board: NetworkBoard) -> None:
    refused = "board refused the READ of 480 bytes at 0x0: not in"
    with opened(board) as link, pytest.raises(LinkError, match=refused):
        link.read(0, 5000)


def test_operators_run_over_the_network() -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 256, (3, 1000), np.uint8) for _ in range(2))
    with network_board(DriverDevice()) as board, bitlane.open(board.url) as device:
        assert device.description.startswith(f"network address 127.0.0.1, port {board.port}, ")
        np.testing.assert_array_equal(device.bit_xor(a, b), a ^ b)
        np.testing.assert_array_equal(device.bit_count(a), np.bitwise_count(a))


# --- how datagrams pass to and from the system ----------------------------------------------------


def test_the_way_of_datagrams_is_shown(board: NetworkBoard) -> None:
    with open_link(board.url) as link:
        assert link.description.split(", ")[2] in (
            "UDP_SEGMENT and UDP_GRO",
            "UDP_SEGMENT",
            "plain datagrams",
        )
    plain = DatagramSocket(("127.0.0.1", board.port), batches=False)
    assert plain.description == "plain datagrams"
    plain.close()


@pytest.mark.parametrize("batches", [True, False])
def test_datagrams_of_any_sizes_arrive_one_by_one(batches: bool) -> None:
    sizes = [20, 20, 8, 8, 8, 1472, 20]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        opened_socket = DatagramSocket(peer.getsockname(), batches=batches)
        opened_socket.send([Batch(b"hello", 5)])
        _, sender = peer.recvfrom(10)
        sent = [bytes([k]) * size for k, size in enumerate(sizes)]
        for each in sent:
            peer.sendto(each, sender)
        arrived: list[bytes] = []
        start = monotonic()
        while len(arrived) < len(sent) and monotonic() - start < LATE:
            arrived += [bytes(x) for batch in opened_socket.receive(LATE) for x in batch.packets()]
        assert arrived == sent
        # Nobody waits for datagrams that are there.
        assert monotonic() - start < LATE
        for seconds in (0.0, 0.05, 0.0, 0.1):
            start = monotonic()
            assert opened_socket.receive(seconds) == [], "no datagram is left"
            assert monotonic() - start >= 0.9 * seconds
        opened_socket.close()


def test_empty_datagrams_do_not_hold_a_call() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        plain = DatagramSocket(peer.getsockname(), batches=False)
        plain.send([Batch(b"hello", 5)])
        _, sender = peer.recvfrom(10)
        for each in (b"", b"", b"first", b"", b"second"):
            peer.sendto(each, sender)
        calls = [[bytes(batch.content) for batch in plain.receive(1.0)] for _ in range(4)]
        plain.close()
    # Each call ends with an empty one, however many there are.
    assert calls == [[], [], [b"first"], [b"second"]]


def test_a_card_that_cannot_cut_gets_plain_datagrams(board: NetworkBoard) -> None:
    tried = []

    class Card:
        """A socket on a network card that cannot compute checksums."""

        def __init__(self, real: socket.socket) -> None:
            self._real = real

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

        def sendmsg(self, *arguments: object) -> int:
            tried.append(arguments)
            raise OSError(5, "Input/output error")

    data = Random(2).randbytes(50_000)
    with opened(board) as link:
        vars(link._socket).update(_socket=Card(link._socket._socket), _segments=True)
        link.write(BASE, data)
        assert "UDP_SEGMENT" not in link._socket.description
    assert bytes(board.rules.memory_device.memory[:50_000]) == data
    assert len(tried) == 1


# --- sessions -------------------------------------------------------------------------------------


def test_a_board_in_use_is_an_error_that_names_the_address_and_the_option(
    board: NetworkBoard,
) -> None:
    with open_link(board.url) as link:
        with pytest.raises(BoardInUseError) as caught:
            open_link(board.url)
        message = str(caught.value)
        assert message.startswith(f"network address 127.0.0.1, port {board.port}, ")
        assert "another host uses the board;" in message
        assert "takeover=1" in message
        link.write(BASE, b"fine")
    expect_well(board)


def test_a_closed_link_leaves_the_board_free(board: NetworkBoard) -> None:
    for turn in range(20):
        with open_link(board.url) as link:
            link.write(BASE + turn, bytes((turn,)))
    assert not board.rules.alive


def test_a_host_that_died_leaves_the_board_free_after_a_while(board: NetworkBoard) -> None:
    link = open_link(board.url)
    link._socket.close()
    with pytest.raises(BoardInUseError):
        open_link(board.url)
    board.rules.clock = partial(later, SESSION_SECONDS)
    expect_well(board)


def test_an_idle_session_goes_on(board: NetworkBoard) -> None:
    with opened(board) as link:
        board.rules.clock = partial(later, 10 * SESSION_SECONDS)
        link.write(BASE, b"fine")
        assert link.read(BASE, 4).tobytes() == b"fine"


@pytest.mark.usefixtures("patient_greeting")
def test_a_board_that_another_host_has_taken_over(board: NetworkBoard) -> None:
    link = opened(board)
    link.write(BASE, b"mine")
    lose_patience(link)
    with open_link(f"{board.url}?takeover=1") as other:
        with pytest.raises(LinkError, match="another host has taken the board over; option takeo"):
            link.write(BASE, b"lost")
        assert other.read(BASE, 4).tobytes() == b"mine"
    expect_well(board)


@pytest.mark.usefixtures("patient_greeting")
def test_a_board_that_lost_power_and_came_back(board: NetworkBoard) -> None:
    link = opened(board)
    link.write(BASE, b"before")
    lose_patience(link)
    board.rules.restart()
    with pytest.raises(LinkError, match="a new greeting: it was restarted, or another host used"):
        link.write(BASE, b"after.")
    assert bytes(board.rules.memory_device.memory[:6]) == b"before"
    expect_well(board)


@pytest.mark.usefixtures("patient_greeting")
def test_a_board_that_lost_count_within_the_session(board: NetworkBoard) -> None:
    link = opened(board)
    link.write(BASE, b"before")
    lose_patience(link)
    board.rules.expected = (board.rules.expected - 100) % SEQUENCES
    start = monotonic()
    with pytest.raises(LinkError, match="the board answers a new greeting: it was restarted"):
        link.write(BASE, b"after.")
    assert monotonic() - start < LATE
    expect_well(board)


@pytest.mark.parametrize(
    ("sessions", "reason"),
    [
        (1, "another host has taken the board over"),
        (2, "or another host used it in between; open it again"),
    ],
)
@pytest.mark.usefixtures("patient_greeting")
def test_a_board_that_another_host_has_used_and_left(
    board: NetworkBoard, sessions: int, reason: str
) -> None:
    link = opened(board)
    lose_patience(link)
    board.rules.clock = partial(later, SESSION_SECONDS)
    for _ in range(sessions):
        expect_well(board)
    with pytest.raises(LinkError, match=reason):
        link.read(BASE, 1)
    expect_well(board)


# --- cables with faults ---------------------------------------------------------------------------

FAULTS = {
    "lost": {"loss": 0.1},
    "doubled": {"double": 0.2},
    "reordered": {"reorder": 0.2},
    "damaged": {"damage": 0.1},
    "all": {"loss": 0.03, "double": 0.03, "reorder": 0.03, "damage": 0.03},
}


def attempt(board: NetworkBoard, seed: int) -> str:
    """Exchange random bytes; return the error, or an empty string if all bytes were right."""
    random = Random(seed)
    started = monotonic()
    try:
        with opened(board, 2.0) as link:
            for _ in range(8):
                writes, reads = (
                    [(random.randrange(3000), random.randrange(3000)) for _ in range(6)]
                    for _ in range(2)
                )
                expect_exchange(
                    link, board.rules.memory_device, writes, reads, random.randrange(100)
                )
    except BitlaneError as error:
        return str(error)
    finally:
        assert monotonic() - started < LATE
    return ""


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("direction", ["up", "down", "both"])
def test_faults_of_the_cable(
    name: str, direction: str, record_property: Callable[[str, object], None]
) -> None:
    up = Cable(seed=1, **FAULTS[name] if direction != "down" else {})
    down = Cable(seed=2, **FAULTS[name] if direction != "up" else {})
    errors = []
    with network_board(up=up, down=down) as board:
        board.rules.in_order = not (up.double or up.reorder)
        board.rules.memory_device.memory[:] = Random(3).randbytes(SIZE)
        for seed in range(5):
            errors.append(attempt(board, seed))
            # A datagram that arrives behind the farewell may keep the session alive.
            board.rules.clock = partial(later, 10 * (seed + 1))
            assert "\n" not in errors[-1]
        hits = up.hits + down.hits
        vars(board).update(up=Cable(), down=Cable())
        expect_well(board)
    assert hits > 20
    right = errors.count("")
    line = f"network link, {name} {direction}: {hits} hits, {right} of 5 sessions right"
    record_property("report", line)
    assert right >= 3, errors


@pytest.mark.parametrize("name", FAULTS)
def test_long_transfers_over_a_cable_with_faults(name: str) -> None:
    up, down = (Cable(seed=seed, **FAULTS[name]) for seed in (1, 2))
    with network_board(up=up, down=down) as board, opened(board) as link:
        board.rules.in_order = not (up.double or up.reorder)
        for seed in range(4):
            data = Random(seed).randbytes(100_000)
            link.write(BASE + seed, data)
            assert link.read(BASE + seed, len(data)).tobytes() == data
        assert up.hits + down.hits > 20
        assert link.counts.repeated > 10 or name == "doubled"
        assert link.counts.damaged > 0 or not down.damage


class Slow(Cable):
    """A board at a thousandth of a gigabit, such as a simulated one."""

    def __call__(self, datagrams: list[bytes]) -> list[bytes]:
        sleep(sum(map(len, datagrams)) * 8e-6)
        return datagrams


def test_a_slow_board_is_waited_for() -> None:
    data = Random(5).randbytes(36_000)
    with network_board(up=Slow()) as board, opened(board) as link:
        link.write(BASE, data)
        assert link.read(BASE, len(data)).tobytes() == data
        packets = len(data) / 1440 * 2
        assert link.counts.repeated < packets / 2


def test_a_pulled_cable_is_an_error_in_time(board: NetworkBoard) -> None:
    link = opened(board)
    link.write(BASE, bytes(5000))
    lose_patience(link, 0.4)
    board.pull()
    start = monotonic()
    with pytest.raises(LinkError, match="a new greeting has no answer either; check cable and"):
        link.read(BASE + 16, 5000)
    assert 0.4 <= monotonic() - start < LATE
    with pytest.raises(LinkError, match="the link is closed; open it again"):
        link.read(BASE, 1)
    vars(board).update(up=Cable(), down=Cable())
    board.rules.clock = partial(later, SESSION_SECONDS)
    expect_well(board)


def test_a_board_that_is_silent_from_the_start(board: NetworkBoard) -> None:
    board.pull()
    start = monotonic()
    with pytest.raises(LinkError, match=r"no answer to \d HELLOs within 0.3 s; nothing came at"):
        opened(board, 0.3)
    assert monotonic() - start < LATE


def test_a_port_that_is_closed_under_way() -> None:
    with network_board() as board:
        link = opened(board)
    with pytest.raises(LinkError, match="nothing listens at this address and port; expected a"):
        link.write(BASE, bytes(5000))


class Interrupted(DatagramSocket):
    """A socket that raises Control-C at the ``countdown``-th receipt."""

    countdown = 1 << 30

    def receive(self, seconds: float) -> list[Batch]:
        self.countdown -= 1
        if self.countdown == 0:
            raise KeyboardInterrupt
        return super().receive(seconds)


@pytest.mark.parametrize("countdown", [1, 2, 3, 5, 9])
def test_an_interrupted_call_leaves_the_board_free(board: NetworkBoard, countdown: int) -> None:
    interrupted = Interrupted(("127.0.0.1", board.port))
    link = UdpLink(interrupted, description="model board")
    interrupted.countdown = countdown
    with pytest.raises(KeyboardInterrupt):
        link.exchange([(BASE, bytes(60_000))], [(BASE + 60_000, 60_000)])
    expect_well(board)


# --- boards that break the contract ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"version": 1},
            "the board has version 1 of the link, this bitlane version 2; build the board's",
        ),
        ({"version": 3}, "has version 3 .* version 2; install the bitlane that built it, or build"),
        ({"receive_bytes": 519}, "buffers 519 bytes; expected 520 or more"),
    ],
)
def test_a_board_of_another_version(
    board: NetworkBoard, changes: dict[str, int], message: str
) -> None:
    vars(board.rules).update(changes)
    with pytest.raises(LinkError, match=message):
        opened(board)
    assert not board.rules.alive


class OldRules(ServedRules):
    """A board of link version 1."""

    def datagrams(self, payload: bytes) -> list[bytes]:
        session, number, nonce = payload[:4], payload[4:5], payload[8:12]
        answer = number + b"\0\0\0" + b"\1\0" + (28_672).to_bytes(2, "little") + nonce
        return [with_crc(session + answer)]


def test_a_board_of_version_1(board: NetworkBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    board.rules = OldRules()
    monkeypatch.setattr(UdpLink, "_greeting_number", lambda _: 0x12345678)
    with pytest.raises(LinkVersionError, match="the board has version 1 of the link, this bitlan"):
        opened(board)


class Chatter(ServedRules):
    """A service of another make at the board's port."""

    def datagrams(self, payload: bytes) -> list[bytes]:
        return [b"hello, who is there?"]


def test_a_service_that_is_no_board(board: NetworkBoard) -> None:
    board.rules = Chatter()
    with pytest.raises(LinkError, match="datagrams came that are not answers: is a bitlane board"):
        opened(board, 0.3)


class Mistaken(ServedRules):
    """A board whose answers are sound, and to nobody's HELLO."""

    def datagrams(self, payload: bytes) -> list[bytes]:
        session = int.from_bytes(payload[:4], "little")
        return [datagram_of(session, [Reply(payload[4] + 1, Answer.DONE).content])] * 2


def test_sound_answers_to_no_hello_are_counted(board: NetworkBoard) -> None:
    board.rules = Mistaken()
    with pytest.raises(
        LinkError, match=r"within 0.3 s; [1-9]\d* answers came, and none of them an"
    ):
        opened(board, 0.3)


@pytest.mark.parametrize("room", [1496, 4000, DATAGRAM_RECEIVE_BYTES, 65535])
def test_boards_of_any_buffer_are_served(board: NetworkBoard, room: int) -> None:
    board.rules.receive_bytes = room
    expect_well(board)
