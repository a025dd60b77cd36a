"""Validate a board's model at its simulated pins, within the process. No tests here."""

import re
from contextlib import ExitStack
from typing import Any

from bitlane.driver import Driver
from bitlane.errors import BitlaneError
from bitlane.links.remote_link import RemoteLink
from bitlane.links.serial_link import SerialLink
from bitlane.links.udp_link import UdpLink
from bitlane.validate.report import validate
from bitlane.validate.session import Session
from bitlane_boards.board import Board
from bitlane_boards.pins import (
    PhySimulation,
    PinModel,
    PinSimulation,
    SimulatedNetwork,
    SimulatedPort,
    SimulatedSocket,
)

SILENCE = 0.05
"""Simulated seconds that a board may be silent; a sound one needs less than a tenth of them."""


class Recorder(SimulatedPort):
    """A port that records the bytes written to it."""

    writes: list[bytes]

    def write(self, data: bytes | bytearray | memoryview) -> int:
        self.__dict__.setdefault("writes", []).append(bytes(data))
        return super().write(data)


def opened(model: PinModel, board: Board) -> Recorder:
    """Return the board's port, after power-on and reset."""
    simulation = PinSimulation(model, board.clock_hz / board.baud)
    simulation.run(round(100e-6 * board.clock_hz))
    return Recorder(simulation, board.clock_hz)


def networked(model: PinModel, board: Board, **options: Any) -> SimulatedNetwork:
    """Return the board's network, after power-on and reset."""
    assert board.ethernet is not None
    simulation = PhySimulation(model, board.clock_hz)
    network = SimulatedNetwork(simulation, board.ethernet.addresses, **options)
    network.resolve()
    return network


def connect_network(network: SimulatedNetwork, name: str) -> UdpLink:
    """Return a link with deadlines in simulated time."""
    socket: Any = SimulatedSocket(network)
    return UdpLink(socket, description=name, timeout=SILENCE, clock=lambda: socket.seconds)


def connect(port: SimulatedPort, name: str) -> SerialLink:
    """Return a link with deadlines in simulated time, which a slow simulation does not miss."""
    return SerialLink(port, description=name, timeout=SILENCE, clock=lambda: port.seconds)


class _Failed(Exception):
    """Error for a failed step, which ends the validation."""


def validated(model: PinModel, board: Board, memory_bytes: int | None = None) -> str:
    """Return the first failure of ``bitlane validate --quick`` on the board, or ""."""

    def expect_pass(line: str) -> None:
        if re.search(r"\bFAIL\b|^Stopped", line):
            raise _Failed(line)

    with ExitStack() as open_things:
        try:
            link: RemoteLink
            if board.ethernet:
                network = networked(model, board)
                open_things.callback(network.close)
                link = connect_network(network, board.name)
            else:
                port = opened(model, board)
                open_things.callback(port.close)
                link = connect(port, board.name)
            with link, Driver(link, timeout=SILENCE) as driver:
                session = Session(driver, seed=1, quick=True, memory_bytes=memory_bytes)
                assert validate(session, expect_pass)
        except (BitlaneError, _Failed) as error:
            return str(error)
    return ""
