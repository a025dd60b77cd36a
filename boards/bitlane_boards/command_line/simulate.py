"""`bitlane simulate BOARD`: a board's circuit at its pins, behind a pseudo-terminal or a socket.

Standard output gets only the name of the terminal or the URL of the socket. The parser imports only
the boards; the simulator is imported when the simulation begins.
"""

import argparse
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bitlane.command_line import DONE, Group, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable

from .. import Board, boards
from .common import add_addresses, add_board, addressed, progress_of

if TYPE_CHECKING:
    from ..pins import PinModel, PtyServer, UdpServer

__all__ = ["add_simulate"]

_progress = progress_of("bitlane simulate")


def add_simulate(subparsers: Subparsers) -> None:
    """Add the subcommand `simulate`."""
    parser = subparsers.add_parser(
        "simulate",
        help="run a board's circuit behind a pseudo-terminal or a UDP socket",
        description="Simulate a board's circuit at its pins, with a UART at the other end, behind a"
        " pseudo-terminal that any program can open like the board's serial port; or with an"
        " Ethernet PHY and a cable, behind a UDP socket of 127.0.0.1. The name of the terminal, or"
        " the URL of the socket, is printed on standard output; what is simulated, and what is left"
        " out, on standard error. Ctrl-C stops it.",
        epilog="exit codes: 0 stopped after it was ready, 2 bad input or a missing tool",
    )
    add_board(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--bitstream",
        metavar="FILE",
        type=Path,
        help="simulate the gates in this bitstream of an iCE40 instead of the RTL",
    )
    source.add_argument(
        "--netlist",
        metavar="FILE",
        type=Path,
        help="simulate this netlist instead: top.routed.json of an ECP5, top.json of a Gowin",
    )
    parser.add_argument(
        "--deadline", metavar="SECONDS", type=_seconds, help="stop after this time (default: never)"
    )
    _add_network(parser)
    parser.set_defaults(run=_run, group=Group.BOARDS, extra="boards")


def _add_network(parser: argparse.ArgumentParser) -> None:
    """Add the options of boards with Ethernet, whose default is None."""
    group = parser.add_argument_group("boards with Ethernet")
    group.add_argument(
        "--port", metavar="N", type=_port, help="UDP port of 127.0.0.1 (default: a free one)"
    )
    group.add_argument(
        "--pcap",
        metavar="FILE",
        type=Path,
        help="record the frames, for Wireshark, at the simulated time",
    )
    for fault in _FAULTS:
        group.add_argument(
            f"--{fault}", metavar="SHARE", type=_share, help=f"of frames to {fault}, from 0 to 1"
        )
    group.add_argument(
        "--cable-seed",
        metavar="N",
        type=whole_number,
        help="of the faults of the cable (default 1)",
    )
    add_addresses(group)


_FAULTS = ("lose", "double", "reorder", "damage")
_NETWORK = ("port", "pcap", *_FAULTS, "cable_seed")


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 to 65535")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a share from 0 to 1")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected seconds, more than 0")
    return value


def _run(arguments: argparse.Namespace) -> int:
    board = addressed(boards()[arguments.board], arguments)
    given = [name for name in _NETWORK if getattr(arguments, name) is not None]
    if given and board.ethernet is None:
        raise BitlaneError(f"--{given[0].replace('_', '-')}: {board.name} has no Ethernet")
    if arguments.pcap is not None:
        expect_writable("--pcap", arguments.pcap)
    from cppsim.errors import SimulationError

    from ..readback.netlist import model_of

    with contextlib.ExitStack() as open_things:
        # Before the long build, so that a port that is taken is reported at once.
        bound = open_things.enter_context(_bound(arguments.port)) if board.ethernet else None
        if arguments.bitstream is None and arguments.netlist is None:
            _progress("compiling the circuit, once for this circuit: a minute")
        model = model_of(board, arguments.bitstream, arguments.netlist)
        open_things.callback(model.close)
        try:
            if bound:
                _serve_network(board, model, arguments, bound, open_things)
            else:
                _serve_terminal(board, model, arguments.deadline, open_things)
        except SimulationError as error:
            raise BitlaneError(f"{board.name}: {error}") from error
    return DONE


def _bound(port: int | None) -> socket.socket:
    """Return the UDP socket of ``--port``. Raises ``BitlaneError`` if the port is taken."""
    from ..pins import bound_socket

    try:
        return bound_socket(port or 0)
    except OSError as error:
        raise BitlaneError(f"--port: {port}: {error.strerror}; expected a free port") from error


def _serve_terminal(
    board: Board, model: "PinModel", deadline: float | None, open_things: contextlib.ExitStack
) -> None:
    from ..pins import PinSimulation, PtyServer

    simulation = PinSimulation(model, board.clock_hz / board.baud)
    server = PtyServer(simulation, board.clock_hz)
    open_things.callback(server.close)
    _describe(model)
    server.warm_up()
    _progress(f"ready for --device serial:{server.name}?baud={board.baud}; Ctrl-C stops it")
    print(server.name, flush=True)
    _serve(
        server,
        deadline,
        lambda: (
            f"{simulation.cycle} cycles",
            f"{server.sent} bytes",
            server.received,
            f"{simulation.framing_errors} framing errors",
        ),
    )


def _serve_network(
    board: Board,
    model: "PinModel",
    arguments: argparse.Namespace,
    bound: socket.socket,
    open_things: contextlib.ExitStack,
) -> None:
    from ..pins import CableFaults, NoAnswerError, PhySimulation, SimulatedNetwork, UdpServer

    assert board.ethernet is not None
    shares = {fault: getattr(arguments, fault) or 0.0 for fault in _FAULTS}
    seed = 1 if arguments.cable_seed is None else arguments.cable_seed
    network = SimulatedNetwork(
        PhySimulation(model, board.clock_hz),
        board.ethernet.addresses,
        faults=CableFaults(**shares, seed=seed),
        pcap=arguments.pcap,
    )
    open_things.callback(network.close)
    server = UdpServer(network, bound)
    _describe(model)
    _progress(f"the board's own address: {board.ethernet.text}")
    try:
        network.resolve()
    except NoAnswerError as error:
        given = " ".join(f"--{fault} {share:g}" for fault, share in shares.items() if share)
        if not given:
            raise
        raise BitlaneError(f"{given}: {error}; expected smaller shares") from error
    _progress(f"ready for --device {server.url}; Ctrl-C stops it")
    print(server.url, flush=True)
    _serve(
        server,
        arguments.deadline,
        lambda: (
            f"{network.simulation.seconds * 1e3:.3f} ms",
            f"{network.sent} datagrams",
            network.received,
            f"{network.simulation.illegal} illegal frames",
        ),
    )


def _serve(
    server: "PtyServer | UdpServer",
    deadline: float | None,
    passed: Callable[[], tuple[str, str, int, str]],
) -> None:
    """Serve until the deadline or Ctrl-C, the normal end; then report the time and what passed."""
    try:
        with contextlib.suppress(KeyboardInterrupt):
            server.serve(deadline)
    finally:
        time, sent, received, wrong = passed()
        _progress(f"stopped after {time}; {sent} to the board, {received} from it, {wrong}")


def _describe(model: "PinModel") -> None:
    _progress(f"simulating {model.description}")
    for sentence in model.hidden:
        _progress(f"not shown: {sentence}")
