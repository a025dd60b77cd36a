"""A board with Ethernet: its pins, its addresses, and `bitlane devices`.

The command lists boards on the network, takes no session from anyone, and sets addresses.
"""

import argparse
import re
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from random import Random
from typing import Any, NoReturn

import pytest
from amaranth.hdl import ClockDomain, Module

from bitlane.errors import BitlaneError
from bitlane.links import open_link
from bitlane_boards import boards
from bitlane_boards.board import Board, EthernetPort
from bitlane_boards.command_line import add_addresses, addressed, devices, network
from bitlane_boards.command_line.devices import url_of
from bitlane_boards.command_line.network import expand
from bitlane_boards.flow import RgmiiPort
from bitlane_boards.pins import CircuitModel, RgmiiPins, bound_socket
from bitlane_boards.platforms.colorlight_i5 import ColorlightI5Platform
from bitlane_rtl.ethernet import BoardAddresses
from support.board.line import DriverDevice
from support.command_line import CommandLine
from support.ethernet.verilog import Looped
from support.host.network import LOOPBACK, Cable, LocalBoard, LocalNetwork, network_board

BOARD = boards()["colorlight-i5"]


def cells(port: EthernetPort) -> list[tuple[str, int]]:
    """Return the kinds of the cells at the pins of ``port``, and the taps of each delay."""
    m = Module()
    m.domains.rx, m.domains.tx = ClockDomain("rx"), ClockDomain("tx")
    m.submodules.port = RgmiiPort(port)
    platform: Any = ColorlightI5Platform()
    text = platform.prepare(m, "top", emit_src=False).files["top.il"]
    found = []
    for kind, body in re.findall(r"cell \\(\w+) [^\n]*\n(.*?)\n\s*end\n", text, re.DOTALL):
        taps = re.search(r"DEL_VALUE (?:(\d+)$|\d+'(\d+))", body, re.MULTILINE)
        found.append((kind, int(taps[1] or int(taps[2], 2)) if taps else 0))
    return found


@pytest.mark.parametrize(
    ("receive", "transmit", "delays"),
    [(0, 0, []), (2000, 0, [80] * 5), (0, 500, [20]), (1000, 25, [1, *[40] * 5])],
)
def test_pins_have_double_data_rate_and_the_delays_of_the_board(
    receive: int, transmit: int, delays: list[int]
) -> None:
    found = cells(EthernetPort(receive_delay_ps=receive, transmit_delay_ps=transmit))
    kinds = Counter(kind for kind, _ in found)
    assert kinds["IDDRX1F"] == 5
    assert kinds["ODDRX1F"] == 6
    assert sorted(taps for kind, taps in found if kind == "DELAYG") == delays


def test_a_delay_that_no_pin_makes_is_refused() -> None:
    with pytest.raises(ValueError, match="receive_delay_ps: 3200; expected 0 to 3175"):
        EthernetPort(receive_delay_ps=3200)


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_addresses(parser)
    return parser.parse_args(words)


def test_addresses_of_a_build() -> None:
    assert addressed(BOARD, arguments()) == BOARD
    chosen = addressed(BOARD, arguments("--ip", "10.0.0.7", "--mac", "02:00:00:00:AB:01"))
    assert chosen.ethernet is not None
    assert chosen.ethernet.addresses.ip == IPv4Address("10.0.0.7")
    assert chosen.ethernet.addresses.mac == bytes.fromhex("02000000ab01")
    assert url_of("PORT", chosen) == "udp://10.0.0.7:45438"
    assert replace(chosen, ethernet=BOARD.ethernet) == BOARD


def test_boards_with_addresses_of_their_own_have_mac_addresses_of_their_own() -> None:
    """Switches send the frames of one MAC address to one port."""
    random = Random(1)
    ips = {IPv4Address(random.randrange(1, 224) << 24 | random.getrandbits(24)) for _ in range(500)}
    ips -= {ip for ip in ips if ip.is_loopback or ip.is_reserved}
    ips |= {IPv4Address("192.168.1.50") + each for each in range(9)}
    macs = {_port(addressed(BOARD, arguments())).addresses.mac}
    for ip in ips:
        port = _port(addressed(BOARD, arguments("--ip", str(ip))))
        assert port.addresses.mac[0] & 3 == 2, "not a local address of one board"
        assert port.text == f"udp://{ip}:45438, MAC address 02:62:{ip.packed.hex(':')}"
        macs.add(port.addresses.mac)
    assert len(macs) == len(ips) + 1
    other = _port(addressed(BOARD, arguments("--mac", "02:00:00:00:00:01")))
    assert other.addresses.ip == BoardAddresses().ip


def _port(board: Board) -> EthernetPort:
    assert board.ethernet is not None
    return board.ethernet


def test_the_simulated_board_has_the_addresses_of_the_build(
    monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    asked: list[Board] = []

    def compiled(board: Board, *_: object) -> NoReturn:
        asked.append(board)
        raise BitlaneError("enough")

    monkeypatch.setattr("bitlane_boards.readback.netlist.model_of", compiled)
    ended = run("simulate", BOARD.name, "--ip", "10.0.0.7")
    assert (ended.code, ended.err.splitlines()[-1]) == (2, "bitlane: enough")
    assert asked == [addressed(BOARD, arguments("--ip", "10.0.0.7"))]


def test_a_port_that_is_taken_is_reported_before_the_circuit_is_compiled(
    monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    def compiled(*_: object) -> NoReturn:
        pytest.fail("the circuit is compiled")

    monkeypatch.setattr("bitlane_boards.readback.netlist.model_of", compiled)
    with bound_socket() as other:
        port = other.getsockname()[1]
        line = run.refuse("simulate", BOARD.name, "--port", str(port))
    assert line == f"bitlane: --port: {port}: Address already in use; expected a free port"


@pytest.mark.slow  # compiles a circuit
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--lose", "1"), "--lose 1: "),
        (("--damage", "1.0", "--lose", ".5"), "--lose 0.5 --damage 1: "),
    ],
)
def test_a_cable_over_which_no_frame_arrives_is_an_error_that_names_its_options(
    words: tuple[str, ...], shown: str, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    model = CircuitModel(RgmiiPins(Looped()))
    monkeypatch.setattr("bitlane_boards.readback.netlist.model_of", lambda *_: model)
    ended = run("simulate", BOARD.name, *words)
    expected = f"bitlane: {shown}192.168.1.50 does not answer ARP; expected smaller shares"
    assert (ended.code, ended.err.splitlines()[-1]) == (2, expected)


# --- boards at addresses ------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give boards more time to answer, which a busy computer serves late."""
    monkeypatch.setattr(network, "ANSWER_SECONDS", 60)


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
    built = [addressed(BOARD, arguments("--ip", ip)) for ip in ("192.168.1.50", "192.168.1.51")]
    macs = [_port(board).addresses.mac for board in built]
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
            monkeypatch.setattr(network, "DEFAULT_PORT", served.port)
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
