"""LiteEth's UDP core at the other end of a board's pins, as a program that Verilator compiles."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

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
