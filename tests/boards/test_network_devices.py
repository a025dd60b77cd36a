"""`bitlane devices` lists boards on the network, takes no session from anyone, sets addresses."""

import socket
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import pytest

from bitlane.links.udp import open_link
from bitlane_boards import boards
from bitlane_boards.command_line import devices, network
from bitlane_boards.command_line.common import addressed
from bitlane_boards.command_line.network import expand
from support.board.driver import DriverDevice
from support.command_line import CommandLine
from support.host.network import Cable, network_board
from support.host.queries import LOOPBACK, LocalBoard, LocalNetwork


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give boards more time to answer, which a busy computer serves late."""
    monkeypatch.setattr(network, "_TIMEOUT", 60)


def test_free_boards_and_boards_in_use_are_listed(run: CommandLine) -> None:
    with (
        network_board(DriverDevice()) as free,
        network_board() as used,
        network_board() as blank,
        open_link(used.url) as link,
    ):
        ports = (free.port, used.port, blank.port)
        ended = run("devices", *(f"127.0.0.1:{port}" for port in ports))
        rows = [line.split(maxsplit=1) for line in ended.out.splitlines()]
        assert ended.code == 0
        assert [url for url, _ in rows] == [free.url, used.url, blank.url]
        states = [state for _, state in rows]
        memory = free.rules.device.memory_bytes
        assert states[0].endswith(f"-bit beats, {memory:,} bytes of memory")
        assert states[0].startswith("free, ")
        assert states[1:] == ["in use by another host", "free, but no bitlane device"]
        # Whoever used a board goes on, and the others are free.
        link.write(0x1000, b"fine")
        assert not free.rules.alive


def test_a_board_of_another_version_is_listed(run: CommandLine) -> None:
    """Among silent addresses, too."""
    with network_board() as old:
        old.rules.version = 1
        silent = [f"127.0.0.1:{port}" for port in range(1, 12)]
        ended = run("devices", f"127.0.0.1:{old.port}", *silent)
    assert ended.code == 0
    [line] = ended.out.splitlines()
    url, state = line.split(maxsplit=1)
    assert url == old.url
    assert state == "version 1 of the link; build its bitstream with this bitlane"


def test_two_boards_that_were_built_with_ip_alone_are_listed(run: CommandLine) -> None:
    """Their switch sends frames to the port at which it saw their MAC address last."""
    macs = []
    for ip in ("192.168.1.50", "192.168.1.51"):
        port = addressed(boards()["colorlight-i5"], Namespace(ip=ip, mac=None)).ethernet
        assert port is not None
        macs.append(port.addresses.mac)
    seen = {mac: number for number, mac in enumerate(macs)}
    cables = [Cable(pulled=seen[mac] != number) for number, mac in enumerate(macs)]
    with (
        network_board(DriverDevice(), cables[0]) as one,
        network_board(DriverDevice(), cables[1]) as other,
    ):
        ended = run("devices", f"127.0.0.1:{one.port}", f"127.0.0.1:{other.port}")
        rows = [line.split()[:2] for line in ended.out.splitlines()]
        assert rows == [[one.url, "free,"], [other.url, "free,"]]


def test_addresses_without_a_board(run: CommandLine) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    line = run.refuse("devices", f"localhost:{port}", code=0)
    assert line.startswith("bitlane devices: no board found: network address localh")
    assert "nothing listens at this address and port" in line
    ended = run("devices", f"localhost:{port}", "board.invalid")
    errors = ended.err.splitlines()
    assert ["nothing listens" in errors[0], "has no IPv4 address" in errors[1]] == [True, True]
    assert ended.code == 2
    line = run.refuse("devices", "127.0.0.0/28", code=0)
    assert line == "bitlane devices: no board found: none of 14 addresses answers"


def test_a_wrong_name_beside_a_board_is_named(run: CommandLine) -> None:
    with network_board() as board:
        words = [f"127.0.0.1:{board.port}", "board.invalid"]
        code, out, err = run("devices", *words)
        assert code == 2
        assert out.startswith(f"{board.url} ")
        assert err.startswith("bitlane devices: device 'udp://board.invalid?")
        assert "'board.invalid' has no IPv4 address" in err
        assert err.count("\n") == 1
        ended = run("devices", words[0], *(f"127.0.0.1:{k}" for k in range(1, 10)))
        assert ended.code == 0
        assert ended.err == "bitlane devices: 1 of 10 addresses answer\n"


def test_a_prefix_is_its_addresses() -> None:
    found = expand(["board-a", "192.168.1.16/30", "10.0.0.9:5000", "10.0.0.1/32"])
    assert found == ["board-a", "192.168.1.17", "192.168.1.18", "10.0.0.9:5000", "10.0.0.1"]
    assert len(expand(["192.168.1.0/24"])) == 254


def test_an_address_is_asked_once() -> None:
    found = expand(["10.0.0.2", "board-a", "10.0.0.0/30", "board-a"])
    assert found == ["10.0.0.2", "board-a", "10.0.0.1"]


# --- boards on the local networks -----------------------------------------------------------------


MACS = [bytes.fromhex(f"02626974{number:04x}") for number in range(3)]


LocalNetworks = Callable[..., AbstractContextManager[LocalNetwork]]


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> LocalNetworks:
    """Return a function that serves boards on the loopback interface, the only one found."""

    @contextmanager
    def serve(*boards: LocalBoard) -> Iterator[LocalNetwork]:
        with LocalNetwork(*boards) as served:
            monkeypatch.setattr(network, "_PORT", served.port)
            monkeypatch.setattr(devices, "broadcast_interfaces", lambda: [LOOPBACK])
            monkeypatch.setattr("serial.tools.list_ports.comports", list)
            monkeypatch.setattr(network, "find_boards", lambda found, _, port: served.find(found))
            # The addresses of the loopback interface are not those of stations.
            monkeypatch.setattr(network, "is_settable", lambda ip: ip[0] in (127, 192))
            yield served

    return serve


def two_boards(macs: Sequence[bytes] = MACS) -> list[LocalBoard]:
    return [LocalBoard(f"127.0.0.{7 + number}", macs[number]) for number in range(2)]


WAIT = ("devices", "--wait", "0.1")


def test_boards_on_the_local_networks_are_listed(local: LocalNetworks, run: CommandLine) -> None:
    free = LocalBoard("127.0.0.7", MACS[0], DriverDevice())
    used = LocalBoard("127.0.0.6", MACS[1])
    with local(free, used) as served, open_link(f"udp://127.0.0.6:{served.port}") as link:
        ended = run(*WAIT)
        first, second = ended.out.splitlines()
        assert first.split() == f"{link_url(used, served)} 02:62:69:74:00:01 {IN_USE}".split()
        assert second.split()[:3] == [link_url(free, served), "02:62:69:74:00:00", "free,"]
        assert ended.err == "bitlane devices: 2 boards answer on lo (127.0.0.1) in 0.1 s\n"
        # Whoever used a board goes on, and the other one is free.
        link.write(0x1000, b"fine")
        assert not free.rules.alive


IN_USE = "in use by another host"


def link_url(board: LocalBoard, served: LocalNetwork) -> str:
    return f"udp://{board.ip}:{served.port}"


def test_nothing_on_the_local_networks(local: LocalNetworks, run: CommandLine) -> None:
    with local():
        lines = run("devices", "--wait", "0.01").err.splitlines()
    assert lines[0] == "bitlane devices: no board answers on lo (127.0.0.1) in 0.01 s"
    assert lines[1].startswith("bitlane devices: no board found: none of 0 serial ports")
    assert len(lines) == 2


def test_serial_ports_need_pyserial_and_boards_on_the_network_do_not(
    local: LocalNetworks, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    board = LocalBoard("127.0.0.7", MACS[0])
    with local(board) as served:
        monkeypatch.setitem(sys.modules, "serial.tools.list_ports", None)
        code, out, err = run(*WAIT)
        assert code == 0
        assert out.split()[0] == link_url(board, served)
        assert "serial ports are not listed: the Python package pyserial is not" in err
        monkeypatch.setattr(devices, "broadcast_interfaces", list)
        line = run.refuse(*WAIT)
        assert line.startswith("bitlane: devices: no query for boards can be sent: no in")
        assert "; for serial ports, the Python package pyserial is not installed: " in line


def test_boards_with_one_address_are_both_shown(local: LocalNetworks, run: CommandLine) -> None:
    boards = [LocalBoard("127.0.0.7", mac) for mac in MACS[:2]]
    with local(*boards):
        rows = run(*WAIT).out.splitlines()
        assert len(rows) == 2
        assert all("the address of several boards; set others with --mac and" in x for x in rows)


def set_words(mac: bytes, ip: str, wait: float = 20) -> list[str]:
    return ["devices", "--mac", mac.hex(":"), "--ip", ip, "--wait", str(wait)]


def test_a_board_gets_another_address(local: LocalNetworks, run: CommandLine) -> None:
    boards = two_boards()
    with local(*boards) as served:
        code, out, err = run(*set_words(MACS[1], "127.0.0.99"))
        url = f"udp://127.0.0.99:{served.port}"
        assert (code, out.split()) == (0, [url, "02:62:69:74:00:01"])
        assert err == "bitlane devices: the board has 127.0.0.99 until it loses power\n"
        assert [board.ip for board in boards] == ["127.0.0.7", "127.0.0.99"]
        with open_link(url) as link:
            link.write(0x1000, b"fine")


NEW = "127.0.0.99"


@pytest.mark.parametrize(
    ("mac", "ip", "message"),
    [
        (MACS[2], NEW, "--mac: no board with the MAC address 02:62:69:74:00:02 answers on"),
        (MACS[0], "127.0.0.8", "--ip: the board with the MAC address 02:62:69:74:00:01 has 127.0."),
        (MACS[0], "224.0.0.1", "--ip: 224.0.0.1 is not the address of one board; expected one li"),
        (MACS[0], "1.2.3", "--ip: '1.2.3'; expected an address like 192.168.1.50"),
        (MACS[0][:5], NEW, "--mac: '02:62:69:74:00'; expected six bytes like 02:00:00:0"),
        (MACS[1], NEW, f"--mac: the board with the MAC address 02:62:69:74:00:01 is {IN_USE}"),
    ],
)
def test_an_address_that_cannot_be_set(
    mac: bytes, ip: str, message: str, local: LocalNetworks, run: CommandLine
) -> None:
    boards = two_boards()
    with local(*boards) as served, open_link(link_url(boards[1], served)) as link:
        assert run.refuse(*set_words(mac, ip)).startswith(f"bitlane: {message}")
        assert [board.ip for board in boards] == ["127.0.0.7", "127.0.0.8"]
        link.write(0x1000, b"fine")


def test_two_boards_with_one_mac_address_are_not_set(
    local: LocalNetworks, run: CommandLine
) -> None:
    boards = two_boards(MACS[:1] * 2)
    with local(*boards):
        line = run.refuse(*set_words(MACS[0], "127.0.0.99"))
    assert "--mac: the boards at 127.0.0.7 and 127.0.0.8 have the MAC address 02:62:69" in line
    assert [board.ip for board in boards] == ["127.0.0.7", "127.0.0.8"]


def test_a_board_that_does_not_take_the_address(local: LocalNetworks, run: CommandLine) -> None:
    class Old(LocalBoard):
        def answer(self, query: bytes) -> bytes | None:
            return None if any(query[16:]) else super().answer(query)

    with local(Old("127.0.0.7", MACS[0])):
        line = run.refuse(*set_words(MACS[0], "127.0.0.99", 0.05))
    assert "does not answer from 127.0.0.99; it answered from 127.0.0.7; try again" in line
