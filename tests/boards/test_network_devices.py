"""`bitlane devices ADDRESS` lists boards on the network, and takes no session from anyone."""

import socket
from argparse import Namespace

import pytest

from bitlane.command_line.cli import DONE, UNUSABLE, main
from bitlane.errors import BitlaneError
from bitlane.links.udp import open_link
from bitlane_boards import boards
from bitlane_boards.command_line import network
from bitlane_boards.command_line.common import addressed
from bitlane_boards.command_line.network import expand
from support.board.driver import DriverDevice
from support.host.network import Cable, network_board

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give boards more time to answer, which a busy computer serves late."""
    monkeypatch.setattr(network, "_TIMEOUT", 60)


def test_free_boards_and_boards_in_use_are_listed(capsys: Capture) -> None:
    with (
        network_board(DriverDevice()) as free,
        network_board() as used,
        network_board() as blank,
        open_link(used.url) as link,
    ):
        ports = (free.port, used.port, blank.port)
        assert main(["devices", *(f"127.0.0.1:{port}" for port in ports)]) == DONE
        rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
        assert [url for url, _ in rows] == [free.url, used.url, blank.url]
        states = [state for _, state in rows]
        memory = free.rules.device.memory_bytes
        assert states[0].endswith(f"-bit beats, {memory:,} bytes of memory")
        assert states[0].startswith("free, ")
        assert states[1:] == ["in use by another host", "free, but no bitlane device"]
        # Whoever used a board goes on, and the others are free.
        link.write(0x1000, b"fine")
        assert not free.rules.alive


def test_two_boards_that_were_built_with_ip_alone_are_listed(capsys: Capture) -> None:
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
        assert main(["devices", f"127.0.0.1:{one.port}", f"127.0.0.1:{other.port}"]) == DONE
        rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
        assert rows == [[one.url, "free,"], [other.url, "free,"]]


def test_addresses_without_a_board(capsys: Capture) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert main(["devices", f"localhost:{port}"]) == DONE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("bitlane devices: no board found: network address localh")
    assert "nothing listens at this address and port" in captured.err
    assert main(["devices", f"localhost:{port}", "board.invalid"]) == UNUSABLE
    errors = capsys.readouterr().err.splitlines()
    assert ["nothing listens" in errors[0], "has no IPv4 address" in errors[1]] == [True, True]
    assert main(["devices", "127.0.0.0/28"]) == DONE
    several = "no board found: none of 14 addresses answers"
    assert capsys.readouterr().err == f"bitlane devices: {several}\n"


def test_a_wrong_name_beside_a_board_is_named(capsys: Capture) -> None:
    with network_board() as board:
        words = [f"127.0.0.1:{board.port}", "board.invalid"]
        assert main(["devices", *words]) == UNUSABLE
        captured = capsys.readouterr()
        assert captured.out.startswith(f"{board.url} ")
        assert captured.err.startswith("bitlane devices: device 'udp://board.invalid?")
        assert "'board.invalid' has no IPv4 address" in captured.err
        assert captured.err.count("\n") == 1
        assert main(["devices", words[0], *(f"127.0.0.1:{k}" for k in range(1, 10))]) == DONE
        captured = capsys.readouterr()
        assert captured.err == "bitlane devices: 1 of 10 addresses answer\n"


def test_a_prefix_is_its_addresses() -> None:
    found = expand(["board-a", "192.168.1.16/30", "10.0.0.9:5000", "10.0.0.1/32"])
    assert found == ["board-a", "192.168.1.17", "192.168.1.18", "10.0.0.9:5000", "10.0.0.1"]
    assert len(expand(["192.168.1.0/24"])) == 254


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["192.168.1.0/33"],
            "devices: '192.168.1.0/33' is not a network: .*; expected a prefix as",
        ),
        (["board:70000"], "port is '70000'; expected 1 to 65535"),
        ([""], "no address; expected udp://ADDRESS"),
        (["10.0.0.9?timeout=2"], r"devices: '10.0.0.9\?timeout=2' has options; expected HOST or"),
        (["10.0.0.0/28?x=1"], r"devices: '10.0.0.0/28\?x=1' has options; expected HOST or HOST:P"),
        (["board/28"], "devices: 'board/28' is not a network: "),
        (["10.0.0.0/23"], "devices: 10.0.0.0/23 has 512 addresses; expected 256 or fewer, as of"),
        (["10.0.0.0/24", "10.0.1.0/29"], "devices: 260 addresses; expected 256 or fewer in one"),
    ],
)
def test_what_names_no_addresses(texts: list[str], message: str, capsys: Capture) -> None:
    with pytest.raises(BitlaneError, match=message):
        expand(texts)
    assert main(["devices", *texts]) == UNUSABLE
    assert capsys.readouterr().err.count("\n") == 1
