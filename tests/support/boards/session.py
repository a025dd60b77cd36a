"""Validates models of boards at their simulated pins, and compares built ones with their RTL.

All of it within the process. No tests here. The netlist of a built board is read from the bitstream
file (iCE40), after routing (ECP5) or synthesis (Gowin).
"""

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from bitlane import Device
from bitlane.driver import Driver
from bitlane.errors import BitlaneError
from bitlane.links import RemoteLink, SerialLink, UdpLink
from bitlane.validate import Session, validate
from bitlane_boards import boards
from bitlane_boards.board import Board, Family
from bitlane_boards.pins import (
    PhySimulation,
    PinModel,
    PinSimulation,
    SdramModel,
    SimulatedNetwork,
    SimulatedPort,
    SimulatedSocket,
)
from bitlane_boards.readback import rtl_model
from support.boards.board_builds import readback

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


SLOW = {"icesugar-pro", "colorlight-i5-uart", "ulx3s-search"}
"""Boards that are not built. The line of icesugar-pro and colorlight-i5-uart takes 29 times as long
as others, and so would their simulation. Apart from line and pins, the former equals the Icepi
Zero; `tests/boards/test_sdram.py` runs the RTL of the latter on a faster line. ulx3s-search takes
15 minutes to place and route its array; `test_routed_unit` tests one routed unit of it."""

NETWORK = {name for name, board in boards().items() if board.ethernet}
"""Boards with Ethernet; of these, only `NETWORK_BUILT` is built."""

NETWORK_BUILT = "colorlight-i5"

BUILT = sorted(set(boards()) - {"icebreaker-bram"} - SLOW - NETWORK)
"""Boards whose netlists are compared."""


def built_boards(family: Family) -> list[str]:
    """Return the boards of ``family`` in `BUILT`."""
    return [name for name in BUILT if boards()[name].family is family]


def expect_validated(name: str, record_property: Callable[[str, object], None]) -> None:
    """Expect that the netlist of a board passes the driver's validation.

    A chip of SDRAM is outside of the netlist, so the march covers 1 KiB of it.
    """
    board, model = boards()[name], readback(name)
    assert validated(model, board, 1024 if board.sdram else None) == ""
    record_property("report", f"{model.description}: validated")


def expect_computed_over_its_network(name: str) -> None:
    """Expect that the netlist of a board with Ethernet gives right results of two operators."""
    board = boards()[name]
    network = networked(readback(name), board)
    a, b = (np.random.default_rng(seed).integers(0, 256, 100, np.uint8) for seed in range(2))
    link = connect_network(network, name)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        assert (device.bit_xor(a[1:], b[:-1]) == a[1:] ^ b[:-1]).all()
        assert (device.bit_count(a) == np.bitwise_count(a)).all()
    assert network.simulation.illegal == 0
    network.close()


def expect_answers_of_its_rtl(name: str) -> None:
    """Expect that the netlist of a board answers in every cycle as its RTL does."""
    writes = _traffic(readback(name), name)
    built = _replay(readback(name), name, writes)
    written = _replay(rtl_model(boards()[name]), name, writes)
    assert sum(len(answer) for answer, _ in built) > 1000
    for number, (one, other) in enumerate(zip(built, written, strict=True)):
        assert one == other, f"write {number}: {writes[number].hex()}"


def _traffic(model: PinModel, name: str) -> list[bytes]:
    """Run a job that uses every part of the board; return the host's writes, greeting first."""
    board = boards()[name]
    port = opened(model, board)
    random = np.random.default_rng(2)
    a, b = (random.integers(0, 1 << 32, 100, np.uint32) for _ in range(2))
    link = connect(port, name)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        assert (device.bit_xor(a, b) == a ^ b).all()
        assert (device.bit_count(a) == np.bitwise_count(a)).all()
        assert (device.bit_and(a[1:], b[:-1]) == a[1:] & b[:-1]).all()
        return list(port.writes)


def _replay(model: PinModel, name: str, writes: list[bytes]) -> list[tuple[bytes, Any]]:
    """Send ``writes``; return each answer and the cycles of its bytes, counted from the write."""
    board = boards()[name]
    simulation = PinSimulation(model, board.clock_hz / board.baud)
    simulation.run(round(100e-6 * board.clock_hz))
    if isinstance(model, SdramModel):
        # Refreshes are timed from the end of a reset, which the RTL does not have.
        refreshes = model.chip.part.first_refreshes + 2
        while model.chip.counts.refreshes < refreshes:
            simulation.run(1)
    simulation.receive()
    answers = []
    for data in writes:
        began = simulation.cycle
        simulation.send(data)
        assert simulation.settle(quiet=100 * board.divider, limit=board.clock_hz)
        got, cycles = simulation.receive_timed()
        answers.append((got.tobytes(), (cycles - np.uint64(began)).tolist()))
    simulation.close()
    return answers
