"""A board with Ethernet: its pins, its addresses, and what its options refuse."""

import argparse
import re
from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address
from random import Random
from typing import Any, NoReturn

import pytest
from amaranth.hdl import ClockDomain, Module

from bitlane.errors import BitlaneError
from bitlane_boards import boards
from bitlane_boards.board import Board, EthernetPort
from bitlane_boards.command_line.common import add_addresses, addressed
from bitlane_boards.command_line.devices import url_of
from bitlane_boards.flow.rgmii import RgmiiPort
from bitlane_boards.pins import CircuitModel
from bitlane_boards.pins.rgmii import RgmiiPins
from bitlane_boards.pins.udp import bound_socket
from bitlane_boards.platforms.colorlight_i5 import ColorlightI5Platform
from bitlane_rtl.ethernet.board_addresses import BoardAddresses
from support.command_line import CommandLine
from support.ethernet.looped import Looped

pytestmark = pytest.mark.any_face

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
