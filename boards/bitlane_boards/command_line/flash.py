"""`bitlane flash BOARD`: load a bitstream through openFPGALoader. Builds nothing."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from bitlane.command_line.cli import CHECK_FAILED, DONE, Subparsers
from bitlane.errors import BitlaneError

from .. import boards
from ..flow.families import FLOWS
from .choice import add_board
from .devices import url_of

__all__ = ["add_flash"]

LOADER = "openFPGALoader"
_DEADLINE_SECONDS = 600.0

_HEAD_BYTES = 4096
"""Comments at the head of a bitstream are shorter."""


def add_flash(subparsers: Subparsers) -> None:
    """Add the subcommand `flash`."""
    parser = subparsers.add_parser(
        "flash",
        help="load a board's bitstream",
        description=f"Load a bitstream into a board's FPGA through {LOADER}; with --permanent into"
        " its flash memory, so that it survives power-off.",
        epilog="exit codes: 0 loaded, 1 the loader failed, 2 bad input or a missing tool",
    )
    add_board(parser)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        help="the bitstream (default: what bitlane build BOARD left in build/BOARD)",
    )
    parser.add_argument("--permanent", action="store_true", help="into flash memory")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    board = boards()[arguments.board]
    flow = FLOWS[board.family]
    suffix = flow.bitstream
    file: Path = arguments.file or Path("build") / board.name / f"{board.name}.{suffix}"
    if file.is_dir():
        raise BitlaneError(f"flash: {file} is a folder; expected a file .{suffix}")
    if not file.exists():
        raise BitlaneError(f"flash: {file}: no such file; bitlane build {board.name} makes it")
    if file.suffix != f".{suffix}":
        raise BitlaneError(f"flash: {file}: expected a file .{suffix} for {board.name}")
    with file.open("rb") as content:
        if flow.preamble not in content.read(_HEAD_BYTES):
            raise BitlaneError(
                f"flash: {file}: no bitstream of an {board.family.value};"
                f" bitlane build {board.name} makes one"
            )
    loader = shutil.which(LOADER)
    if loader is None:
        raise BitlaneError(
            f"flash: {LOADER} is not on PATH; install it (Debian: apt install openfpgaloader)"
        )
    command = [loader, *board.loader, *(["-f"] if arguments.permanent else []), str(file)]
    print(f"flash: {' '.join(command)}", file=sys.stderr, flush=True)
    try:
        status = subprocess.run(command, check=False, timeout=_DEADLINE_SECONDS).returncode
    except subprocess.TimeoutExpired as error:
        raise BitlaneError(
            f"flash: {LOADER} still runs after {_DEADLINE_SECONDS:.0f} s and was stopped;"
            " unplug the board, plug it in and try again"
        ) from error
    except OSError as error:
        raise BitlaneError(f"flash: {loader}: {error.strerror}") from error
    if status:
        print(
            f"bitlane flash: {LOADER} ended with exit code {status}; is {board.title} connected,"
            " and may this user open it?",
            file=sys.stderr,
        )
        return CHECK_FAILED
    print(f"loaded; now: bitlane validate {url_of('PORT', board)}")
    return DONE
