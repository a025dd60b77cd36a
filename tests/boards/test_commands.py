"""The board commands: their output, their refusals, and the files that they leave behind.

A refusal is one line, and comes before a file or a circuit is made.
"""

import json
import os
import stat
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import pytest

from bitlane_boards import Board, boards
from bitlane_boards.command_line import devices
from bitlane_boards.command_line.devices import connected, url_of
from bitlane_boards.flow import FLOWS
from support.command_line import CommandLine, refusals

MAC = "--mac 02:00:00:00:00:01"
ETHERNET = "simulate colorlight-i5"
COMMANDS = (
    *("area", "bench", "build", "campaign", "check", "completion", "demo", "devices", "export"),
    *("flash", "info", "lower", "run", "simulate", "soak", "validate"),
)
SHARE = "expected a share from 0 to 1"
WAIT = "expected seconds, more than 0 and at most 60"

test_every_command_refuses_an_unknown_option = refusals(
    [(f"{name} --no-such-option", f"bitlane {name}: ") for name in COMMANDS]
)

test_boards_that_are_not_there = refusals(
    [
        *(
            (f"{command} icebraker", f"bitlane {command}: argument BOARD: invalid choice: {words}")
            for command in ("build", "flash", "simulate")
            for words in ("'icebraker'; did you mean icebreaker? (choose from colorlight-5a-75b",)
        ),
        *(
            (f"{command} '{board}'", f"argument BOARD: invalid choice: {board!r}")
            for command in ("build", "flash", "simulate")
            for board in ("icebreaker?seed=2", "hx8k?", "?", "", "hx8k:", "serial:x", "hx9k")
        ),
        ("simulate", "the following arguments are required: BOARD"),
        ("build", "build: expected either the name of a board or --all"),
        ("build hx8k --all", "build: expected either the name of a board or --all"),
    ]
)

test_options_of_a_build = refusals(
    [
        *((f"build hx8k -o new --seed={seed}", seed) for seed in ("-1", "x", "2147483648")),
        ("build hx8k -o new --seeds 4:1", "'4:1': expected FIRST:LAST, like 1:32"),
        ("build hx8k -o new --seeds 4", "'4': expected FIRST:LAST, like 1:32"),
        ("build hx8k -o new --seeds=-1:2", "'-1': expected 0 to 2147483647"),
        ("build hx8k -o new --seeds 1:2 --seed 3", "not allowed with"),
        ("build -o new --seeds 1:2 --all", "--seeds is for one board; expected its name"),
        ("build hx8k -o new --workers 2", "--workers and --cluster share the seeds of --seeds"),
        ("build --all --ip 10.0.0.7", "are for one board"),
        *(
            (f"build litex:terasic_de0nano {words}", f"{words.split()[0]} is for the project's own")
            for words in ("--seed 1", "--seeds 1:3", "--ip 10.0.0.1", "--workers 2")
        ),
        ("flash hx8k", "bitlane build hx8k makes it"),
        ("area --family virtex", "invalid choice: 'virtex'"),
        ("area --seeds 0", "--seeds: 0 is outside 1 to 99"),
        ("area --seeds one", "'one': expected a whole number"),
        ("area --design copy-33", "--design: 'copy-33' is not a design; there are copy-32"),
        ("area --json nowhere/a.json", "expected a folder that is there; nowhere is not"),
    ]
)

test_options_of_a_simulation = refusals(
    [
        ("simulate hx8k --pty", "unrecognized arguments: --pty"),
        ("simulate hx8k --bitstream a --netlist b", "argument --netlist: not allowed with"),
        ("simulate hx8k --deadline 0", "argument --deadline: '0': expected seconds, more than 0"),
        ("simulate hx8k --deadline soon", "--deadline: 'soon': expected seconds, more than 0"),
        ("simulate ecpix5 --cable-seed x", "--cable-seed: 'x': expected a whole number"),
        ("simulate hx8k --lose 0.1", "--lose: hx8k has no Ethernet"),
        ("simulate hx8k --cable-seed 2", "--cable-seed: hx8k has no Ethernet"),
        ("simulate hx8k --pcap x.pcap", "--pcap: hx8k has no Ethernet"),
        ("simulate hx8k --ip 10.0.0.7", "--ip: hx8k has no Ethernet"),
        (f"simulate hx8k {MAC}", "--mac: hx8k has no Ethernet"),
        (f"{ETHERNET} --lose 1.5", f"argument --lose: '1.5': {SHARE}"),
        (f"{ETHERNET} --damage x", f"argument --damage: 'x': {SHARE}"),
        (f"{ETHERNET} --port 0", "argument --port: '0': expected 1 to 65535"),
        (f"{ETHERNET} --ip 10.0.0", "--ip: '10.0.0'; expected an address"),
        (f"{ETHERNET} --ip 224.0.0.1", "--ip: 224.0.0.1 is not the address of one board"),
        (f"{ETHERNET} --mac 02:00", "--mac: '02:00'; expected six bytes"),
        (f"{ETHERNET} --mac 02:00:00:00:00:0g", "expected six bytes"),
        (f"{ETHERNET} --mac 01:00:00:00:00:01", "--mac: 01:00:00:00:00:01 is not"),
    ]
)

test_addresses_of_devices = refusals(
    [
        (
            "devices 192.168.1.0/33",
            "'192.168.1.0/33' is not a network: '33' is not a valid netmask; expected a prefix as",
        ),
        ("devices board:70000", "port is '70000'; expected 1 to 65535"),
        ("devices ''", "no address; expected udp://ADDRESS"),
        (
            "devices '10.0.0.9?timeout=2'",
            "devices: '10.0.0.9?timeout=2' has options; expected HOST or",
        ),
        (
            "devices '10.0.0.0/28?x=1'",
            "devices: '10.0.0.0/28?x=1' has options; expected HOST or HOST:P",
        ),
        ("devices board/28", "devices: 'board/28' is not a network: "),
        ("devices 10.0.0.0/23", "devices: 10.0.0.0/23 has 512 addresses; expected 256 or fewer, a"),
        ("devices 10.0.0.0/24 10.0.1.0/29", "devices: 260 addresses; expected 256 or fewer in one"),
        (f"devices {MAC}", "bitlane: --mac: expected --ip, too: the board, and its new addre"),
        ("devices --ip 10.0.0.9", "bitlane: --ip: expected --mac, too: the board, and its new ad"),
        (
            f"devices {MAC} --ip 10.0.0.9 10.0.0.7",
            "bitlane: --mac: the board is found by its MAC address; expected no '10.0.0.7'",
        ),
        *(
            (f"devices --wait {wait}", f"{wait!r}: {WAIT}")
            for wait in ("0", "-1", "61", "inf", "nan", "soon")
        ),
    ]
)


# --- files and devices ------------------------------------------------------------------------

pytestmark = pytest.mark.any_face


class Port(NamedTuple):
    """A serial port as pyserial lists it."""

    device: str
    vid: int | None = None
    pid: int | None = None
    serial_number: str | None = None
    location: str | None = None
    description: str = "a bridge"


def head(board: Board) -> bytes:
    """Return the first bytes of a bitstream for ``board``: comment, preamble and the chip's ID."""
    return b"// comment" + FLOWS[board.family].preamble + b"\x51\x00" + board.chip + bytes(500)


HX8K = head(boards()["hx8k"])


@pytest.mark.slow  # asks for the tools first
def test_build_in_a_folder_that_cannot_be_made(tmp_path: Path, run: CommandLine) -> None:
    (tmp_path / "file").write_text("")
    ended = run("build", "hx8k", "-o", str(tmp_path / "file" / "folder"))
    assert ended.code == 2
    assert "choose another folder with -o" in ended.err
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_flash_refuses_another_familys_file(tmp_path: Path, run: CommandLine) -> None:
    file = tmp_path / "top.fs"
    file.write_bytes(b"")
    assert "expected a file .bin" in run.refuse("flash", "hx8k", str(file))


@pytest.mark.parametrize("board", list(boards()))
def test_flash_refuses_what_is_no_bitstream(board: str, tmp_path: Path, run: CommandLine) -> None:
    for suffix in ("bin", "bit", "fs"):
        (tmp_path / f"top.{suffix}").write_bytes(bytes(5000))
    suffix = FLOWS[boards()[board].family].bitstream
    file = tmp_path / f"top.{suffix}"
    assert f"{file}: no bitstream of an " in run.refuse("flash", board, str(file))
    assert f"{tmp_path} is a folder; expected a file .{suffix}" in run.refuse(
        "flash", board, str(tmp_path)
    )


DISTINCT = [
    (board.name, other.name)
    for board, other in permutations(boards().values(), 2)
    if board.family is other.family and board.chip != other.chip
]
"""All pairs of boards of one family with different chips."""


@pytest.mark.parametrize(("name", "other"), DISTINCT)
def test_flash_refuses_another_chip_of_the_family(
    name: str, other: str, tmp_path: Path, run: CommandLine
) -> None:
    board = boards()[name]
    file = tmp_path / f"top.{FLOWS[board.family].bitstream}"
    # Only the first bytes count: the data behind them may look like another chip's ID.
    file.write_bytes(head(boards()[other]) + board.chip)
    line = run.refuse("flash", name, str(file))
    assert f"{file}: for another {board.family.value} than that of {board.title}" in line
    assert f"bitlane build {name} makes one" in line


def test_flash_refuses_what_was_built_for_another_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    """The two boards have the same chip, but different pins or memories."""
    monkeypatch.setenv("PATH", "")
    file = tmp_path / "top.bin"
    file.write_bytes(head(boards()["icebreaker"]))
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"board": "icebreaker-bram", "bitstream": "elsewhere/top.bin"}))
    line = run.refuse("flash", "icebreaker", str(file))
    assert f"{file}: was built for icebreaker-bram, not for icebreaker" in line
    for other in ('{"board": "ulx3s", "bitstream": "other.bin"}', '{"board": 1}', "[]", "no JSON"):
        report.write_text(other)
        assert "openFPGALoader is not on PATH" in run.refuse("flash", "icebreaker", str(file))


def test_flash_without_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    file = tmp_path / "top.bin"
    file.write_bytes(HX8K)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "openFPGALoader is not on PATH" in run.refuse("flash", "hx8k", str(file))


@pytest.mark.parametrize("status", [0, 1])
def test_flash_calls_the_loader_and_believes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine, status: int
) -> None:
    file = tmp_path / "top.bin"
    file.write_bytes(HX8K)
    loader = tmp_path / "openFPGALoader"
    loader.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\nexit {status}\n')
    loader.chmod(loader.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ended = run("flash", "hx8k", str(file), "--permanent")
    assert ended.code == status
    assert (tmp_path / "called").read_text() == f"-b ice40_generic -f {file}\n"
    assert ("bitlane validate" in ended.out) == (status == 0)
    assert ("exit code 1" in ended.err) == (status == 1)


def test_devices_finds_the_port_of_a_bridge_that_has_the_link() -> None:
    ports = [
        Port("/dev/ttyS0"),
        Port("/dev/ttyUSB0", 0x0403, 0x6010, "A1", "1-2:1.0"),
        Port("/dev/ttyUSB1", 0x0403, 0x6010, "A1", "1-2:1.1"),
        Port("/dev/ttyUSB2", 0x1234, 0x5678, "B", "1-3:1.0"),
    ]
    found = connected(ports)
    assert [path for path, _, _ in found] == ["/dev/ttyUSB1"]
    assert {"icebreaker", "hx8k"} <= {board.name for board in found[0][2]}


def test_devices_with_nothing_connected(monkeypatch: pytest.MonkeyPatch, run: CommandLine) -> None:
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [Port("/dev/ttyS0")])
    monkeypatch.setattr(devices, "broadcast_interfaces", list)
    ended = run("devices")
    assert ended.code == 0
    on_networks, at_ports = ended.err.splitlines()
    assert "no query for boards can be sent: no interface is up; expected an" in on_networks
    assert "no board found: none of 1 serial ports" in at_ports


def test_the_url_says_the_rate_only_where_it_is_not_the_usual() -> None:
    board = boards()["icebreaker"]
    assert url_of("/dev/ttyUSB1", board) == "serial:/dev/ttyUSB1"
    slow = replace(board, baud=1_000_000)
    assert url_of("/dev/ttyUSB1", slow) == "serial:/dev/ttyUSB1?baud=1000000"


@pytest.mark.slow  # asks for the tools first
def test_a_clock_that_no_pll_makes_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: CommandLine
) -> None:
    board = replace(boards()["ulx3s"], clock_hz=60_000_000)
    monkeypatch.setattr("bitlane_boards.command_line.build.boards", lambda: {"ulx3s": board})
    ended = run("build", "ulx3s", "-o", str(tmp_path / "out"))
    line = "bitlane: clock_hz: no setting of the PLL makes 60000000 Hz of 25000000 Hz\n"
    assert (ended.code, ended.err) == (2, line)
    assert not (tmp_path / "out").exists()
