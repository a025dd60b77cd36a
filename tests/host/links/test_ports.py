"""``serial:`` and ``udp:`` URLs on pseudo-terminals and sockets: each mistake is a line."""

import errno
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import numpy as np
import pytest
import serial

import bitlane
from bitlane.errors import BoardInUseError, LinkError
from bitlane.links import Batch, DatagramSocket, open_link, udp
from bitlane.links import serial as serial_module
from bitlane.links.datagram_socket import _calls
from bitlane_rtl.abi import ABI_VERSION, DEFAULT_PORT, IDENTITY
from support.board.line import DriverDevice, Noise, Terminal, terminal
from support.board.model import BoardModel
from support.host.network import NetworkBoard, network_board
from support.host.transfers import BASE

LATE = 60.0
"""Seconds within which a wait that ends by itself has ended on a busy computer."""


@pytest.fixture
def board() -> BoardModel:
    return BoardModel()


@pytest.fixture
def board_terminal(board: BoardModel) -> Iterator[Terminal]:
    with terminal(board.feed) as opened:
        yield opened


def test_a_board_is_reached_through_pyserial(board: BoardModel, board_terminal: Terminal) -> None:
    device = board.memory_device
    data = Random(1).randbytes(20_000)
    with open_link(f"serial:{board_terminal.path}") as link:
        assert link.description == f"serial port {board_terminal.path}, 3000000 baud"
        link.write(BASE, data)
        assert bytes(device.memory[: len(data)]) == data
        assert link.read(BASE, len(data)).tobytes() == data
        assert link.wait(0.05) is False
        device.interrupt = True
        assert link.wait(60) is True


def test_options_reach_the_port(board_terminal: Terminal) -> None:
    url = f"serial:{board_terminal.path}?baud=115200&timeout=3.5"
    with open_link(url) as link:
        assert link.description == f"serial port {board_terminal.path}, 115200 baud"
        assert vars(link)["_timeout"] == 3.5
        port = vars(link)["_port"]
        assert link.byte_seconds == 10 / 115200
        assert (port.baudrate, port.write_timeout, port.exclusive) == (115200, 3.5, True)


def test_noise_on_a_terminal(board: BoardModel) -> None:
    up, down = Noise(1 / 500, 5), Noise(1 / 500, 6)
    data = Random(1).randbytes(4000)
    with terminal(lambda sent: board.feed(up(sent)), down) as opened:
        with open_link(f"serial:{opened.path}") as link:
            link.write(BASE, data)
            assert link.read(BASE, len(data)).tobytes() == data
    assert up.hits + down.hits > 5


def test_the_whole_driver_through_pyserial() -> None:
    board = BoardModel(DriverDevice())
    with terminal(board.feed) as opened, bitlane.open(f"serial:{opened.path}") as device:
        a = np.arange(3000, dtype=np.uint32)
        b = a[::-1] * 77
        np.testing.assert_array_equal(device.bit_xor(a, b), a ^ b)
        assert opened.path in repr(device)


def test_another_contract_version_is_refused() -> None:
    device = DriverDevice()
    device.link.registers["VERSION"] = 99
    board = BoardModel(device)
    with terminal(board.feed) as opened:
        expected = f"register VERSION is 0x63; expected {ABI_VERSION:#x}"
        with pytest.raises(LinkError, match=f"{opened.path}, 3000000 baud: {expected}"):
            bitlane.open(f"serial:{opened.path}")
        del device.link.registers["VERSION"]
        bitlane.open(f"serial:{opened.path}").close()
        device.link.registers["IDENTITY"] = IDENTITY ^ 1
        with pytest.raises(LinkError, match="register IDENTITY is"):
            bitlane.open(f"serial:{opened.path}")


# --- faults of a serial port ----------------------------------------------------------------------


def test_an_echo_is_no_board() -> None:
    with terminal(lambda sent: sent) as opened:
        with pytest.raises(LinkError, match=r"within 0.2 s; \d+ bytes came, first 00 .* no sound"):
            open_link(f"serial:{opened.path}?timeout=0.2")


def test_a_cable_that_is_pulled(board: BoardModel) -> None:
    with terminal(board.feed) as opened:
        link = open_link(f"serial:{opened.path}?timeout=2")
        link.write(BASE, bytes(1000))
        opened.pull()
        with pytest.raises(LinkError, match=r"the port failed: .*still plugged in.* open it again"):
            link.write(BASE, bytes(10_000))


def test_a_cable_that_is_pulled_in_the_midst_of_a_transfer(board: BoardModel) -> None:
    seen = 0

    def serve(sent: bytes) -> bytes:
        nonlocal seen
        seen += len(sent)
        if seen > 30_000:
            opened._end.set()
            os.close(opened._slave)
            os.close(opened._master)
            return b""
        return board.feed(sent)

    opened = Terminal(serve, Noise(0, 0))
    link = open_link(f"serial:{opened.path}?timeout=2")
    with pytest.raises(LinkError, match="the port failed"):
        link.write(BASE, bytes(100_000))
    with terminal(board.feed) as again, open_link(f"serial:{again.path}") as link:
        assert link.read(BASE, 10).tobytes() == bytes(10)


def test_a_port_that_does_not_exist() -> None:
    with pytest.raises(LinkError, match=r"no such port; serial ports found: ") as caught:
        open_link("serial:/dev/ttyNoSuchPort")
    assert str(caught.value).startswith("device 'serial:/dev/ttyNoSuchPort': ")


def test_a_port_in_use(board_terminal: Terminal) -> None:
    url = f"serial:{board_terminal.path}"
    with open_link(url) as link:
        with pytest.raises(LinkError, match="the port is in use by another program; close that"):
            open_link(url)
        link.write(BASE, b"not disturbed")
    open_link(url).close()


def test_a_failed_opening_leaves_the_port_free(board: BoardModel) -> None:
    silent = True
    with terminal(lambda sent: b"" if silent else board.feed(sent)) as opened:
        url = f"serial:{opened.path}"
        with pytest.raises(LinkError, match=r"within 0\.3 s; nothing came at all"):
            open_link(f"{url}?timeout=0.3")
        silent = False
        open_link(url).close()


def test_a_file_that_is_no_port(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    for path in (file, tmp_path, "/dev/null"):
        with pytest.raises(LinkError, match=r"cannot be opened: .*; is it a serial port"):
            open_link(f"serial:{path}")
    assert file.read_text() == "text"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EACCES, "no permission to open the port; on Linux: sudo usermod -aG dialout"),
        (errno.EPERM, "no permission"),
        (errno.EBUSY, "in use by another program"),
        (errno.ENXIO, "nothing is plugged in there"),
        (errno.ENODEV, "nothing is plugged in there"),
        (errno.EIO, "cannot be opened: .*could not open port"),
        (None, "cannot be opened: .*could not open port"),
    ],
)
def test_unusable_ports(number: int | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        if number is None:
            raise serial.SerialException("could not open port")
        raise serial.SerialException(number, "could not open port")

    monkeypatch.setattr(serial, "Serial", fail)
    with pytest.raises(LinkError, match=message) as caught:
        open_link("serial:/dev/ttyUSB0")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("baud", [99_999_999_999_999, 1 << 40])
def test_a_baud_rate_that_the_port_refuses(baud: int, board_terminal: Terminal) -> None:
    with pytest.raises(LinkError, match=f"baud is {baud}, which the port refuses"):
        open_link(f"serial:{board_terminal.path}?baud={baud}&timeout=0.3")


def test_without_pyserial(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "serial" not in vars(serial_module), "it is loaded when a port is opened"
    for name in [x for x in sys.modules if x == "serial" or x.startswith("serial.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(
        LinkError, match=r"pyserial cannot be loaded: .*pip install 'bitlane\[serial\]'"
    ):
        open_link("serial:/dev/ttyUSB0")
    with pytest.raises(LinkError, match="serial:/dev/ttyUSB1 is an example"):
        open_link("serial:")


# --- the network ----------------------------------------------------------------------------------


@pytest.fixture
def network() -> Iterator[NetworkBoard]:
    with network_board() as board:
        yield board


def test_the_default_port_and_the_name_reach_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    class Recorder(DatagramSocket):
        def __init__(self, address: tuple[str, int]) -> None:
            found.append(address)
            raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(udp, "DatagramSocket", Recorder)
    with pytest.raises(LinkError, match="no way to this address: Network is unreachable; check a"):
        open_link("udp://localhost")
    assert found == [("127.0.0.1", DEFAULT_PORT)]


def test_a_port_where_nothing_listens() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LinkError) as caught:
        open_link(f"udp://127.0.0.1:{port}")
    message = str(caught.value)
    assert message.startswith(f"network address 127.0.0.1, port {port}, ")
    assert message.endswith(
        "nothing listens at this address and port; expected a board; check both"
    )


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EHOSTUNREACH, "the network has no way to this address: .*; check address, cable an"),
        (errno.ENETUNREACH, "the network has no way to this address: .*; check address, cable an"),
        (errno.EMSGSIZE, "the network carries less than 1472 bytes in a datagram; expected an MTU"),
        (errno.EACCES, "the system refuses this address: .*; expected that of one board"),
        (errno.EPERM, "the network failed: .*Operation not permitted; open it again"),
    ],
)
def test_errors_of_the_network_under_way(
    number: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, errno.errorcode[number] + " Operation not permitted")

    with network_board() as board:
        with open_link(board.url) as link:
            monkeypatch.setattr(DatagramSocket, "send", fail)
            with pytest.raises(LinkError, match=message):
                link.write(BASE, b"lost")
        monkeypatch.undo()
        with open_link(f"{board.url}?takeover=1") as link:
            link.write(BASE, b"fine")


def test_datagrams_for_which_the_system_has_no_room_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = [errno.ENOBUFS, errno.EAGAIN, errno.EPERM]

    class Full(socket.socket):
        def send(self, *_: object) -> int:
            raise OSError(numbers.pop(0), "no room")

    with network_board() as board:
        monkeypatch.setattr(socket, "socket", Full)
        opened = DatagramSocket(("127.0.0.1", board.port))
        for _ in range(2):
            opened.send([Batch(b"lost", 4)])
        with pytest.raises(PermissionError):
            opened.send([Batch(b"lost", 4)])
        opened.close()
    assert not numbers


@pytest.mark.parametrize(
    ("batches", "calls"),
    [
        ([(30, 10), (20, 10)], [50]),
        ([(30, 10), (25, 10), (10, 10)], [55, 10]),
        ([(1472, 1472), (32, 32), (1472, 1472), (32, 32)], [1504, 1504]),
        ([(32, 32), (1472, 1472)], [32, 1472]),
        ([(20, 10), (8, 4)], [20, 8]),
        ([(400, 10), (40, 10), (10, 10)], [440, 10]),
    ],
)
def test_a_call_has_datagrams_of_equal_size_but_the_last(
    batches: list[tuple[int, int]], calls: list[int]
) -> None:
    """``batches``: bytes, and bytes of a datagram; ``calls``: bytes."""
    assert [sum(map(len, x)) for x, _ in _calls([Batch(bytes(n), k) for n, k in batches])] == calls


def test_no_fragments_are_sent_on_linux() -> None:
    opened = DatagramSocket(("127.0.0.1", 9))
    discover, do = 10, 2
    assert sys.platform != "linux" or opened._socket.getsockopt(socket.IPPROTO_IP, discover) == do
    opened.close()


def test_the_hosts_port_is_never_the_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board drops what comes from its own port, which the system may choose for a host, too."""
    chosen = iter([True, True, False])

    class Unlucky(socket.socket):
        def connect(self, address: Any) -> None:
            if next(chosen):
                self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.bind(("127.0.0.2", address[1]))
            super().connect(address)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as board:
        board.bind(("127.0.0.1", 0))
        monkeypatch.setattr(socket, "socket", Unlucky)
        opened = DatagramSocket(board.getsockname())
        assert next(chosen, None) is None
        assert opened._socket.getsockname()[1] != board.getsockname()[1]
        opened.close()


def test_a_board_in_use_is_an_error_that_names_the_address(network: NetworkBoard) -> None:
    with open_link(network.url) as link:
        with pytest.raises(
            BoardInUseError, match=f"^network address 127.0.0.1, port {network.port}"
        ):
            open_link(network.url)
        link.write(BASE, b"fine")


def test_options_reach_the_link_and_the_host_may_be_a_name() -> None:
    with (
        network_board() as board,
        open_link(f"udp://localhost:{board.port}?timeout=3.5&takeover=1") as link,
    ):
        start = f"network address localhost, 127.0.0.1, port {board.port}, "
        assert link.description.startswith(start)
        assert vars(link)["_timeout"] == 3.5


# --- how datagrams pass to and from the system ----------------------------------------------------


def test_the_way_of_datagrams_is_shown(network: NetworkBoard) -> None:
    with open_link(network.url) as link:
        assert link.description.split(", ")[2] in (
            "UDP_SEGMENT and UDP_GRO",
            "UDP_SEGMENT",
            "plain datagrams",
        )
    plain = DatagramSocket(("127.0.0.1", network.port), batches=False)
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


def test_a_card_that_cannot_cut_gets_plain_datagrams(network: NetworkBoard) -> None:
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
    with open_link(network.url) as link:
        opened: DatagramSocket = vars(link)["_socket"]
        vars(opened).update(_socket=Card(opened._socket), _segments=True)
        link.write(BASE, data)
        assert "UDP_SEGMENT" not in opened.description
    assert bytes(network.rules.memory_device.memory[:50_000]) == data
    assert len(tried) == 1
