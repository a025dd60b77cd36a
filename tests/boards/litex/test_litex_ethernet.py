"""LiteEth's UDP core at the other end of a board's RGMII pins, in a program of Verilator.

LiteEth makes and reads all frames itself. They are compared with those that scapy builds.
"""

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP

from support.board.model import MemoryDevice
from support.ethernet.datagrams import NetworkRules, answers_in, datagram_of
from support.ethernet.line import BOARD, BOARD_IP, HEAD, answer, arp, datagram, echo, frame, padded
from support.ethernet.verilog import CONFIGURATION
from support.serial.frames import hello, read, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_circuit,
    pytest.mark.any_face,
    pytest.mark.reads("tests/support/boards"),
]

_ROUND_NS = 100_000
"""Simulated time after the messages of a round: 12.5 KB on the line."""


@dataclass(frozen=True)
class Message:
    """Bytes that LiteEth sends to ``address``, or has received from there.

    ``port``: the UDP port at ``address``, or 0 if the bytes are the header and data of ICMP.
    """

    address: str
    data: bytes
    port: int = 0

    @property
    def command(self) -> str:
        kind = "udp" if self.port else "icmp"
        return f"{kind} {int(IPv4Address(self.address))} {self.port} {self.data.hex()}"


@dataclass
class Traffic:
    """Frames of LiteEth and of the board, from preamble to FCS, and messages to LiteEth's user."""

    sent: list[bytes] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


def talk(program: Path, *rounds: Sequence[Message]) -> Traffic:
    """Run ``program``: LiteEth sends the messages of each round, and some time passes after it.

    Fails if LiteEth has received a damaged frame.
    """
    commands = [
        command
        for messages in rounds
        for command in (*(message.command for message in messages), f"run {_ROUND_NS}")
    ]
    done = subprocess.run(
        [program], input="\n".join(commands), capture_output=True, text=True, check=True
    )
    traffic = Traffic()
    *lines, end = done.stdout.splitlines()
    for line in lines:
        match line.split():
            case ["sent", frame]:
                traffic.sent.append(bytes.fromhex(frame))
            case ["received", frame]:
                traffic.received.append(bytes.fromhex(frame))
            case ["udp" | "icmp", address, port, data]:
                message = Message(str(IPv4Address(int(address))), bytes.fromhex(data), int(port))
                traffic.messages.append(message)
            case _:
                raise AssertionError(line)
    assert end == "errors 0", end
    return traffic


def compiled(folder: Path) -> Path:
    """Compile the program in ``folder``, and return it."""
    path = os.pathsep.join(filter(None, sys.path))
    subprocess.run(
        [sys.executable, "-m", "support.boards.liteeth_line", str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    return folder / "simulation" / "Vsoc"


SESSION = 0x12345678


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("liteeth"))


def on_line(content: Any) -> bytes:
    return HEAD + frame(bytes(content))


def asked(address: str = BOARD_IP) -> Any:
    """Return LiteEth's request of ARP for ``address``."""
    return arp(pdst=address, hwdst="ff:ff:ff:ff:ff:ff")


def expect_answers(traffic: Traffic, requests: Sequence[Any], sent: int) -> None:
    """Expect one request of ARP and ``sent`` other frames, and the answers to ``requests``."""
    assert traffic.sent[0] == on_line(asked())
    assert len(traffic.sent) == 1 + sent
    assert traffic.received == [on_line(answer(request)) for request in (asked(), *requests)]


def test_it_finds_the_board_and_pings_it(program: Path) -> None:
    rng = random.Random(1)
    requests = [echo(rng.randbytes(size)) for size in (0, 1, 2, 3, 17, 18, 56, 1472)]
    traffic = talk(program, *([Message(BOARD_IP, bytes(ping[ICMP]))] for ping in requests))
    expect_answers(traffic, requests, len(requests))
    # LiteEth passes the padding of a short frame on.
    replies = [padded(answer(request))[34:] for request in requests]
    assert traffic.messages == [Message(BOARD_IP, reply) for reply in replies]


def test_a_session_over_its_datagrams(program: Path) -> None:
    """Datagrams of all sizes, one by one, and then as fast as LiteEth sends them."""
    rng = random.Random(2)
    rules = NetworkRules(MemoryDevice(CONFIGURATION.memory_base, CONFIGURATION.memory_bytes))
    contents = [[hello(0, 0x1000)]]
    number = 1
    for size in (1, 4, 36, 512, *(rng.randrange(512) for _ in range(20))):
        address = rng.randrange(CONFIGURATION.memory_bytes - size)
        contents.append(
            [write(number, address, rng.randbytes(size)), read(number + 1, address, size)]
        )
        number += 2
    contents.append([read(number + k, 512 * k, 480) for k in range(3)])
    contents.append([write(number + 3, 0, bytes(484))])
    payloads = [datagram_of(SESSION, each) for each in contents]
    messages = [Message(BOARD_IP, payload, BOARD.port) for payload in payloads]
    traffic = talk(program, *([each] for each in messages[:8]), messages[8:])
    answers = [reply for payload in payloads for reply in rules.replies(payload)]
    sent = [message.data for message in traffic.messages]
    expect_answers(traffic, [datagram(each) for each in sent], len(messages))
    assert traffic.messages == [Message(BOARD_IP, each, BOARD.port) for each in sent]
    found = [answers_in(each, like) for each, like in zip(sent, answers, strict=True)]
    assert found == [(SESSION, each) for each in answers]


def test_another_address_is_not_the_boards(program: Path) -> None:
    traffic = talk(program, [Message("192.168.1.51", bytes(4), BOARD.port)])
    assert traffic == Traffic(sent=[on_line(asked("192.168.1.51"))])
