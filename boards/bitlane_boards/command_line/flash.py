"""`bitlane flash BOARD`: load a bitstream through openFPGALoader. Builds nothing."""

import argparse
import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from bitlane.command_line import CHECK_FAILED, DONE, Group, Subparsers
from bitlane.errors import BitlaneError

from .. import Board, boards
from ..flow import FLOWS
from .common import add_board, progress_of
from .devices import url_of

__all__ = ["add_flash"]

_progress = progress_of("bitlane flash")

LOADER = "openFPGALoader"
_DEADLINE_SECONDS = 600.0

_HEAD_BYTES = 4096
"""Comments at the head of a bitstream are shorter."""

_CHIP_BYTES = 128
"""The first commands of a bitstream, which name its chip, are shorter."""


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
    parser.set_defaults(run=_run, group=Group.BOARDS)


def _expect_bitstream(board: Board, file: Path) -> None:
    """Raise ``BitlaneError`` if ``file`` or its report names another board or chip."""
    flow = FLOWS[board.family]
    suffix, makes = flow.bitstream, f"bitlane build {board.name} makes"
    if file.is_dir():
        raise BitlaneError(f"flash: {file} is a folder; expected a file .{suffix}")
    if not file.exists():
        raise BitlaneError(f"flash: {file}: no such file; {makes} it")
    if file.suffix != f".{suffix}":
        raise BitlaneError(f"flash: {file}: expected a file .{suffix} for {board.name}")
    with file.open("rb") as content:
        _, preamble, commands = content.read(_HEAD_BYTES).partition(flow.preamble)
    if not preamble:
        raise BitlaneError(f"flash: {file}: no bitstream of an {board.family.value}; {makes} one")
    if board.chip not in commands[:_CHIP_BYTES]:
        raise BitlaneError(
            f"flash: {file}: for another {board.family.value} than that of {board.title};"
            f" {makes} one for it"
        )
    built_for = _recorded_board(file)
    if built_for not in (None, board.name):
        raise BitlaneError(
            f"flash: {file}: was built for {built_for}, not for {board.name}; {makes} one for it"
        )


def _recorded_board(file: Path) -> str | None:
    """Return the board in the report of the build beside ``file``, or None without one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        report = json.loads((file.parent / "report.json").read_text(encoding="utf-8"))
        if Path(report["bitstream"]).name == file.name:
            return str(report["board"])
    return None


def _run(arguments: argparse.Namespace) -> int:
    board = boards()[arguments.board]
    suffix = FLOWS[board.family].bitstream
    file: Path = arguments.file or Path("build") / board.name / f"{board.name}.{suffix}"
    _expect_bitstream(board, file)
    loader = shutil.which(LOADER)
    if loader is None:
        raise BitlaneError(
            f"flash: {LOADER} is not on PATH; install it (Debian: apt install openfpgaloader)"
        )
    command = [loader, *board.loader, *(["-f"] if arguments.permanent else []), str(file)]
    _progress(" ".join(command))
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
        _progress(
            f"{LOADER} ended with exit code {status}; is {board.title} connected, and may this user"
            " open it?"
        )
        return CHECK_FAILED
    print(f"loaded; now: bitlane validate {url_of('PORT', board)}")
    return DONE
