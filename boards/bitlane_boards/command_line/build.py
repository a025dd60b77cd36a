"""`bitlane build BOARD`: make the bitstream of a board, and print a report.

Progress is printed on standard error, the report on standard output. The parser imports only the
boards; the tools' modules are imported when a build begins.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bitlane.command_line import CHECK_FAILED, DONE, Group, Subparsers
from bitlane.command_line.workers import add_workers, shared_by
from bitlane.errors import BitlaneError

from .. import Board, boards
from .common import add_addresses, add_board, addressed, progress_of

if TYPE_CHECKING:
    from ..flow.build import BuildReport
    from ..flow.seeds import Routed

__all__ = ["add_build"]

_progress = progress_of("bitlane build")

_LITEX = "litex:"
"""The prefix of a target of litex-boards, as in ``litex:radiona_ulx3s``."""


def add_build(subparsers: Subparsers) -> None:
    """Add the subcommand `build`."""
    parser = subparsers.add_parser(
        "build",
        help="make the bitstream of a board",
        description="Synthesise, place, route and pack the circuit of a board with tools from pip."
        " The same board and seed give the same bits.",
        epilog="exit codes: 0 built, 1 it does not fit or misses its clock, 2 bad input or a"
        " missing tool",
    )
    add_board(parser, nargs="?", prefix=_LITEX)
    parser.add_argument("--all", action="store_true", help="build every board; print one table")
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seed", type=_seed, metavar="N", help="of the placement (default 1)")
    seeds.add_argument(
        "--seeds",
        type=_seeds,
        metavar="M:N",
        help="all from M to N: print the clock of each, and keep the best",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=Path,
        help="folder for the bitstream, the report and the netlists (default build/BOARD)",
    )
    add_addresses(parser)
    add_workers(parser)
    parser.set_defaults(run=_run, group=Group.BOARDS, extra="boards")


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 10 or int(text) >= 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 to {(1 << 31) - 1}")
    return int(text)


def _seeds(text: str) -> range:
    first, colon, last = text.partition(":")
    if not colon or _seed(first) > _seed(last):
        raise argparse.ArgumentTypeError(f"{text!r}: expected FIRST:LAST, like 1:32")
    return range(int(first), int(last) + 1)


def _run(arguments: argparse.Namespace) -> int:
    from ..flow.build import BuildError

    if arguments.all == (arguments.board is not None):
        raise BitlaneError("build: expected either the name of a board or --all")
    if str(arguments.board).startswith(_LITEX):
        return _run_litex(arguments.board.removeprefix(_LITEX), arguments)
    if arguments.seeds is not None:
        if arguments.all:
            raise BitlaneError("build: --seeds is for one board; expected its name, not --all")
        return _run_seeds(addressed(boards()[arguments.board], arguments), arguments)
    if arguments.workers or arguments.cluster:
        raise BitlaneError("build: --workers and --cluster share the seeds of --seeds")
    if arguments.all:
        if arguments.ip or arguments.mac:
            raise BitlaneError("build: --ip and --mac are for one board; expected its name")
        chosen = list(boards().values())
    else:
        chosen = [addressed(boards()[arguments.board], arguments)]
    reports: list[BuildReport] = []
    failures: list[str] = []
    for board in chosen:
        folder = _folder(arguments.output, board, arguments.all)
        try:
            reports.append(_build(board, folder, 1 if arguments.seed is None else arguments.seed))
        except (BuildError, BitlaneError) as error:
            if isinstance(error, BitlaneError) and not arguments.all:
                raise
            _progress(str(error))
            failures.append(str(error))
    if arguments.all:
        print("\n".join([*_table(reports), *(f"FAILED  {failure}" for failure in failures)]))
    else:
        for report in reports:
            print(report.text())
    return CHECK_FAILED if failures else DONE


def _run_litex(target: str, arguments: argparse.Namespace) -> int:
    """Build a target of litex-boards with the core: NAME[?OPTION=VALUE[&OPTION=VALUE]]."""
    from ..litex.targets import build_target

    for option in ("seed", "seeds", "workers", "cluster", "ip", "mac"):
        if getattr(arguments, option) is not None:
            raise BitlaneError(f"build: --{option} is for the project's own boards")
    name, _, options = target.partition("?")
    folder = arguments.output or Path("build") / f"litex-{name}"
    with _written(folder):
        report = build_target(name, folder, options.split("&") if options else ())
    print(report.text())
    for line in report.failed:
        _progress(line)
    return CHECK_FAILED if report.failed else DONE


def _folder(output: Path | None, board: Board, several: bool) -> Path:
    if output is None:
        return Path("build") / board.name
    return output / board.name if several else output


def _build(board: Board, folder: Path, seed: int) -> "BuildReport":
    from ..flow.build import build

    with _written(folder):
        return build(board, folder, progress_of(board.name), seed=seed)


def _run_seeds(board: Board, arguments: argparse.Namespace) -> int:
    """Build with all seeds; print their table, then the report of the best."""
    from ..flow.build import BuildError
    from ..flow.seeds import build_best

    folder = _folder(arguments.output, board, False)
    try:
        with shared_by(arguments) as shared, _written(folder):
            report, placements = build_best(
                board, folder, arguments.seeds, shared, progress_of(board.name)
            )
    except BuildError as error:
        _progress(str(error))
        return CHECK_FAILED
    print("\n".join(_seed_lines(board, placements)))
    if report is None:
        _progress(f"{board.name}: no seed meets the clock")
        return CHECK_FAILED
    print(report.text())
    return DONE


def _seed_lines(board: Board, placements: "Sequence[Routed]") -> list[str]:
    from ..flow.seeds import best_of

    wanted = board.clock_hz / 1e6
    best = best_of(placements)
    lines = ["seed  achieves      margin"]
    for each in placements:
        if each.failure:
            lines.append(f"{each.seed:4}  {each.failure}")
            continue
        mark = "  best" if each is best else ""
        lines.append(f"{each.seed:4}  {each.mhz:7.2f} MHz  {each.mhz / wanted - 1:+7.1%}{mark}")
    return lines


@contextmanager
def _written(folder: Path) -> Iterator[None]:
    """Raises ``BitlaneError`` if a file cannot be written in the block."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BitlaneError):
            raise
        where = error.filename or folder
        raise BitlaneError(
            f"build: {where}: {error.strerror or error}; choose another folder with -o"
        ) from error


def _table(reports: Sequence["BuildReport"]) -> list[str]:
    """Return a line for each report, below the names of the columns."""
    rows = [_row(report) for report in reports]
    columns = [[name, *(row[name] for row in rows)] for name in (rows[0] if rows else ())]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]


def _row(report: "BuildReport") -> dict[str, str]:
    used, of = next(iter(report.cells.values()))
    return {
        "board": report.board,
        "seed": str(report.seed),
        "logic": f"{used}/{of}",
        "memory": " ".join(f"{n}/{total}" for n, total in report.blocks.values() if total),
        "clock": f"{report.clock_mhz:g} MHz",
        "achieves": f"{report.achieved_mhz:.1f} MHz",
        "margin": f"{report.margin:.0%}",
        "size": f"{report.bitstream_bytes} B",
        "took": f"{report.seconds:.0f} s",
        "RAM": f"{report.peak_bytes / 2**20:.0f} MiB",
    }
