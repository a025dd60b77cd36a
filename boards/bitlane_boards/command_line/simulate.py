"""`bitlane simulate BOARD`: a board's circuit at its pins, behind a pseudo-terminal.

Standard output gets only the terminal's name. The parser imports only the boards; the simulator is
imported when the simulation begins.
"""

import argparse
import contextlib
from pathlib import Path

from bitlane.command_line.cli import DONE, Group, Subparsers
from bitlane.errors import BitlaneError
from cppsim.errors import SimulationError

from .. import boards
from .common import add_board, progress_of

__all__ = ["add_simulate"]

_progress = progress_of("bitlane simulate")


def add_simulate(subparsers: Subparsers) -> None:
    """Add the subcommand `simulate`."""
    parser = subparsers.add_parser(
        "simulate",
        help="run a board's circuit behind a pseudo-terminal",
        description="Simulate a board's circuit at its pins, with a UART at the other end, behind a"
        " pseudo-terminal that any program can open like the board's serial port. The terminal's"
        " name is printed on standard output; what is simulated, and what is left out, on standard"
        " error. Ctrl-C stops it.",
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
    parser.set_defaults(run=_run, group=Group.BOARDS, extra="boards")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected seconds, more than 0")
    return value


def _run(arguments: argparse.Namespace) -> int:
    board = boards()[arguments.board]
    from bitlane_sim.pins import PinSimulation
    from bitlane_sim.pins.pty import PtyServer

    from ..readback.netlist import model_of

    with contextlib.ExitStack() as open_things:
        if arguments.bitstream is None and arguments.netlist is None:
            _progress("compiling the circuit, once for this computer: a minute")
        model = model_of(board, arguments.bitstream, arguments.netlist)
        open_things.callback(model.close)
        try:
            simulation = PinSimulation(model, board.clock_hz / board.baud)
            server = PtyServer(simulation, board.clock_hz)
            open_things.callback(server.close)
            _progress(f"simulating {model.description}")
            for sentence in model.hidden:
                _progress(f"not shown: {sentence}")
            server.warm_up()
            _progress(f"ready for --device serial:{server.name}?baud={board.baud}; Ctrl-C stops it")
            print(server.name, flush=True)
            try:
                # Ctrl-C is the normal end.
                with contextlib.suppress(KeyboardInterrupt):
                    server.serve(arguments.deadline)
            finally:
                _progress(
                    f"stopped after {simulation.cycle} cycles; {server.sent} bytes to the board,"
                    f" {server.received} from it, {simulation.framing_errors} framing errors"
                )
        except SimulationError as error:
            raise BitlaneError(f"{board.name}: {error}") from error
    return DONE
